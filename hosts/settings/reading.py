"""Reading a settings file: TOML, then the table of keys, then what must hold between keys."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any, Final

import msgspec

from standby.events.errors import BadPolicy
from standby.hosts.settings.checks import check_together
from standby.hosts.settings.keys import KEYS, NAMES, REQUIRED, TREE, Key, Node
from standby.hosts.settings.lines import Lines, Path
from standby.hosts.settings.secrets import refuse_secrets, secret_like, use_instead
from standby.hosts.settings.validators import Cell, Source, suggestion
from standby.hosts.settings.values import Settings

_BYTES_MOST: Final = 1 << 20
_DEPTH_MOST: Final = 32
_AT_LINE: Final = re.compile(r"\s*\(at line (\d+), column \d+\)$|\s*\(at end of document\)$")
_ALIAS_PATH: Final = "agents.defaults.models.*.alias"


@dataclass(frozen=True, slots=True)
class _Found:
    """A key of the file that has a row, and the names that its author chose on the way to it."""

    key: Key
    names: tuple[str, ...]
    cell: Cell


@dataclass(slots=True)
class _Reader:
    source: Source
    found: list[_Found] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def load_settings(path: str | FilePath) -> Settings:
    """Read a settings file.

    Raises:
        BadPolicy: it cannot be read, is not TOML, or a setting is unknown, misspelt or impossible. The message
            names file, line and key.
    """
    try:
        with FilePath(path).open("rb") as file:
            raw = file.read(_BYTES_MOST + 1)
        if len(raw) > _BYTES_MOST:
            raise BadPolicy(f"{path}: this file is larger than {_BYTES_MOST} bytes; is it the right one?")
        text = raw.decode("utf-8-sig")
    except OSError as fault:
        raise BadPolicy(f"{path}: the settings cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        line = raw[: fault.start].count(b"\n") + 1
        raise BadPolicy(f"{path}:{line}: the settings are not UTF-8 text; save the file as UTF-8") from fault
    return parse_settings(text, name=str(path))


def parse_settings(text: str, name: str = "<text>") -> Settings:
    """Read settings from TOML text; `name` stands for the file in messages. Raises BadPolicy."""
    return _read(_toml(text, name), Source(name, Lines(text)))


def settings_within(data: dict[str, Any], name: str, table: Path, text: str = "") -> Settings:
    """Read the settings that another file holds as its table `table`, such as a scenario's policy.

    `text` is that file as TOML, for the lines in messages; leave it out when the file is not TOML.
    Raises BadPolicy.
    """
    _check_depth(data, name)
    return _read(data, Source(name, Lines(text), prefix=table))


def _read(data: dict[str, Any], source: Source) -> Settings:
    reader = _Reader(source)
    refuse_secrets(reader.source, data)
    _walk(reader, TREE, (), data, ())
    # References may be short names of models, so those come first.
    for found in reader.found:
        if found.key.path == _ALIAS_PATH:
            _alias(found)
    tree: dict[str, Any] = {}
    cells: dict[Path, Cell] = {}
    for found in reader.found:
        if found.key.path == _ALIAS_PATH:
            continue
        into = tuple(part.format(*found.names) for part in found.key.into.split("."))
        _put(tree, into, found.key.check(found.cell))
        cells[into] = found.cell
    settings = _settings(tree, reader, data)
    return check_together(settings, cells, reader.source)


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text, parse_float=_decimal)
    except RecursionError as fault:
        raise BadPolicy(f"{name}: this is no settings file: it is nested too deeply") from fault
    except ValueError as fault:
        where = _AT_LINE.search(str(fault))
        line = int(where[1]) if where and where[1] else text.rstrip("\n").count("\n") + 1
        raise BadPolicy(f"{name}:{line}: this is not TOML: {_AT_LINE.sub('', str(fault))}") from fault
    _check_depth(data, name)
    return data


def _check_depth(data: dict[str, Any], name: str) -> None:
    """Refuse what no settings file nests so deeply; everything after this may recurse."""
    level: list[Any] = [data]
    for _ in range(_DEPTH_MOST):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
        if not level:
            return
    raise BadPolicy(f"{name}: this is no settings file: it is nested more than {_DEPTH_MOST} levels deep")


def _decimal(text: str) -> Decimal:
    """Prices are decimal fractions; as binary ones they would not be what the file says."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


# ---- the table of keys ---------------------------------------------------------------------------------------


def _walk(reader: _Reader, node: Node, path: Path, value: Any, names: tuple[str, ...]) -> None:
    """Find the row of every key below `path`, or say that a key has none."""
    cell = Cell(reader.source, path, value)
    if node.passed_over:
        reader.warnings.append(reader.source.note(path, node.passed_over))
    elif "[id]" in node.children:
        _walk_array(reader, node.children["[id]"], cell, names)
    elif isinstance(value, dict) and node.children:
        _walk_table(reader, node, cell, names)
    elif node.key is not None:
        reader.found.append(_Found(node.key, names, cell))
    else:
        raise cell.unlike("a table")


def _walk_table(reader: _Reader, node: Node, cell: Cell, names: tuple[str, ...]) -> None:
    for name, value in cell.value.items():
        path = (*cell.path, name)
        child, chosen = node.children.get(name), names
        if name in ("*", "[id]") or child is None:
            child = node.children.get("*")
            if child is None:
                raise _unknown(reader.source, node, path)
            chosen = (*names, NAMES[child.pattern](Cell(reader.source, path, name)))
        _walk(reader, child, path, value, chosen)
    _require(node, cell)


def _walk_array(reader: _Reader, node: Node, cell: Cell, names: tuple[str, ...]) -> None:
    if not isinstance(cell.value, list):
        raise cell.unlike("an array of tables, each with an id")
    seen: set[str] = set()
    for entry in cell.entries():
        if not isinstance(entry.value, dict):
            raise entry.unlike("a table with an id")
        if "id" not in entry.value:
            raise entry.error('the key "id" is missing')
        at = Cell(reader.source, (*entry.path, "id"), entry.value["id"])
        chosen = NAMES[node.pattern](at)
        if chosen in seen:
            raise at.error(f'the id "{chosen}" is used twice')
        seen.add(chosen)
        others = {name: value for name, value in entry.value.items() if name != "id"}
        _walk_table(reader, node, Cell(reader.source, entry.path, others), (*names, chosen))


def _require(node: Node, cell: Cell) -> None:
    for name in REQUIRED.get(node.pattern, ()):
        if name not in cell.value:
            raise cell.error(f'the key "{name}" is missing')


def _unknown(source: Source, node: Node, path: Path) -> BadPolicy:
    """An unknown key: a near name of the same table is suggested, else the same name elsewhere."""
    name = str(path[-1])
    if secret_like(name):
        return source.error(path, use_instead())
    known = [child for child in node.children if child != "*"]
    if node.pattern.endswith("[id]"):
        known.append("id")
    better = suggestion(name, known)
    if not better:
        same = [key.path for key in KEYS if key.path.rpartition(".")[2] == name != "*"]
        better = f'; did you mean "{same[0]}"?' if same else f"; known here: {', '.join(sorted(known))}"
    return source.error(path, f"unknown key{better}")


# ---- putting it together -------------------------------------------------------------------------------------


def _alias(found: _Found) -> None:
    alias, model = found.key.check(found.cell), found.names[0]
    known = found.cell.source.aliases
    if alias in known:
        raise found.cell.error(f'the alias "{alias}" belongs to {known[alias]} already')
    known[alias] = model


def _put(tree: dict[str, Any], into: tuple[str, ...], value: Any) -> None:
    for part in into[:-1]:
        tree = tree.setdefault(part, {})
    tree[into[-1]] = value


def _settings(tree: dict[str, Any], reader: _Reader, data: dict[str, Any]) -> Settings:
    policy = tree.setdefault("policy", {})
    policy["aliases"] = reader.source.aliases
    policy["consent"] = list(_consents(policy.get("consent", {})))
    policy["rows"] = [{"id": id, **row} for id, row in policy.get("rows", {}).items()]
    tree["agents"] = list(data.get("agents", {}).get("entries", {}))
    tree["warnings"] = reader.warnings
    return msgspec.convert(tree, Settings)


def _consents(given: dict[str, bool | list[str]]) -> Iterator[dict[str, Any]]:
    for reason, models in given.items():
        if isinstance(models, bool):
            yield {"reason": reason, "models": None if models else ()}
        else:
            yield {"reason": reason, "models": models}

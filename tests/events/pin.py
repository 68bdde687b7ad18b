"""The pinned shapes of the log: type tags, their fields, and the values of enums. The list only grows.

    python -m tests.events.pin            add what is new to tests/data: shapes.json and golden/bytes.json
    python -m tests.events.pin --check    only say what would be added or is missing

A tag, a field, an enum value that is in the list and not in the code any more is an error that no option gets
past: logs that hold it could not be read.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from standby.events import vocabulary
from standby.events.codec import encode
from standby.events.commit import SHAPE, Commit
from standby.events.decisions import Decision
from standby.events.facts import Fact
from tests.events.samples import KINDS, sample_commit

__all__ = ["BYTES", "PATH", "Shapes", "lost", "new", "now", "pinned", "stored"]

PATH = Path(__file__).resolve().parents[1] / "data" / "shapes.json"
BYTES = PATH.parent / "golden" / "bytes.json"
"""The stored bytes of one commit of each fact and decision, as they were when its tag was new."""

Shapes = dict[str, dict[str, Any]]
"""`structs`: {name: {field: how it is written}}, `enums`: {name: [value]}, `tags`: {tag: name}, `shape`."""


def now() -> Shapes:
    """The shapes as the code has them."""
    structs: dict[str, dict[str, str]] = {}
    tags: dict[str, str] = {}
    for kind in _reachable(Commit):
        hints = get_type_hints(kind)
        structs[kind.__name__] = {
            field.encode_name: ("" if field.required else "optional ") + _said(hints[field.name])
            for field in msgspec.structs.fields(kind)
        }
        config = kind.__struct_config__
        if config.tag is not None:
            tags[f"{config.tag_field}={config.tag}"] = kind.__name__
    enums = {
        name: sorted(member.value for member in kind)
        for name, kind in vars(vocabulary).items()
        if isinstance(kind, type) and issubclass(kind, StrEnum) and kind is not StrEnum
    }
    return {"structs": structs, "tags": tags, "enums": enums, "shape": {"newest": SHAPE}}


def _reachable(root: Any) -> list[Any]:
    """Every struct that a commit can hold."""
    found: dict[str, Any] = {}
    left = [root, *get_args(Fact), *get_args(Decision)]
    while left:
        kind = left.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__name__ not in found:
            found[kind.__name__] = kind
            left += [part for hint in get_type_hints(kind).values() for part in _parts(hint)]
    return [found[name] for name in sorted(found)]


def _parts(hint: Any) -> Iterator[Any]:
    args = get_args(hint)
    if not args:
        yield hint
    for arg in args:
        yield from _parts(arg)


def _said(hint: Any) -> str:
    """A type as it is written in the list."""
    if hint is type(None):
        return "null"
    if hint is Ellipsis:
        return "..."
    if get_origin(hint) in (Union, types.UnionType):
        if set(get_args(hint)) == set(get_args(Fact)):
            return "Fact"
        return " | ".join(sorted(_said(arg) for arg in get_args(hint)))
    if get_args(hint):
        inner = ", ".join("Decision" if arg is Decision else _said(arg) for arg in get_args(hint))
        return f"{get_origin(hint).__name__}[{inner}]"
    return str(hint.__name__)


def pinned() -> Shapes:
    """The shapes as they are pinned."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def stored() -> dict[str, str]:
    """The pinned bytes by tag."""
    return json.loads(BYTES.read_text(encoding="utf-8")) if BYTES.exists() else {}


def lost(code: Shapes, pins: Shapes) -> list[str]:
    """What is pinned and is not in the code any more, or is there as something else."""
    problems = []
    for name, fields in pins.get("structs", {}).items():
        there = code["structs"].get(name)
        if there is None:
            problems.append(f"{name} is gone")
            continue
        for field, written in fields.items():
            if there.get(field) != written:
                problems.append(f"{name}.{field} was {written!r}, is {there.get(field, 'gone')!r}")
        for field, written in there.items():
            if field not in fields and not written.startswith("optional "):
                problems.append(f"{name}.{field} is new and has no default: older commits have none")
    for tag, name in pins.get("tags", {}).items():
        if code["tags"].get(tag) != name:
            problems.append(f"{tag} was {name}, is {code['tags'].get(tag, 'gone')}")
    for name, values in pins.get("enums", {}).items():
        gone = set(values) - set(code["enums"].get(name, ()))
        problems += [f"{name}.{value} is gone" for value in sorted(gone)]
    if code["shape"]["newest"] < pins.get("shape", {}).get("newest", 0):
        problems.append("the number of the storage format went back")
    return problems


def new(code: Shapes, pins: Shapes) -> list[str]:
    """What is in the code and is not pinned yet."""
    found = [f"tag {tag}" for tag in code["tags"] if tag not in pins.get("tags", {})]
    for name, fields in code["structs"].items():
        old = pins.get("structs", {}).get(name)
        found += [name] if old is None else [f"{name}.{field}" for field in fields if field not in old]
    for name, values in code["enums"].items():
        known = pins.get("enums", {}).get(name, ())
        found += [f"{name}.{value}" for value in values if value not in known]
    return found


def main(args: list[str]) -> int:
    code, pins = now(), pinned()
    problems = lost(code, pins)
    for problem in problems:
        print(f"lost: {problem}", file=sys.stderr)
    if problems:
        print(
            "Nothing was written. What a log may hold is never removed or changed, only added to.",
            file=sys.stderr,
        )
        return 1
    added = new(code, pins)
    print("\n".join(f"new: {one}" for one in added) or "nothing is new")
    if added and "--check" not in args:
        PATH.write_text(json.dumps(code, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"written to {PATH.name}")
    bodies = stored()
    fresh = {tag: encode(sample_commit(tag)).decode() for tag in KINDS if tag not in bodies}
    if fresh and "--check" not in args:
        BYTES.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(bodies | fresh, indent=1, sort_keys=True, ensure_ascii=False)
        BYTES.write_text(text + "\n", encoding="utf-8")
        print(f"bytes of {', '.join(fresh)} written to {BYTES.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

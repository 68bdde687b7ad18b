"""Reading a scenario file: TOML or JSON, then shapes, then what must hold between its parts.

Every message names the file, the line where the file is TOML, and the key.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from pathlib import Path as FilePath
from typing import Any, Final, get_args, get_type_hints

import msgspec

from standby.events.errors import BadPolicy, BadScript
from standby.hosts.cli.rule_texts import rule_texts
from standby.hosts.settings import Settings, settings_within
from standby.hosts.settings.lines import Lines, Path, dotted
from standby.hosts.simulate.scenario import REFERENCES, Duration, Loaded, Profile, Scenario, Step

_BYTES_MOST: Final = 1 << 20
_LONGEST_MS: Final = 366 * 24 * 60 * 60 * 1000
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)")
_AT_LINE: Final = re.compile(r"\s*\(at line (\d+), column \d+\)$|\s*\(at end of document\)$")
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_PLACE: Final = re.compile(r" - at `\$(.*)`$")
_TYPES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


class _Source:
    """The file, for messages."""

    def __init__(self, name: str, text: str, *, as_json: bool) -> None:
        self.name = name
        self.lines = None if as_json else Lines(text)

    def error(self, path: Path, what: str) -> BadScript:
        """What is wrong with a key."""
        line = f":{self.lines.of(path)}" if self.lines else ""
        place = f" {dotted(path)}:" if path else ""
        return BadScript(f"{self.name}{line}:{place} {what}")


def duration_ms(value: Any) -> Duration:
    """Milliseconds of a duration.

    Raises:
        ValueError: it is none.
    """
    how = 'write milliseconds, or text such as "90s" or "1h30m"'
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is no duration; {how}")
    if isinstance(value, str):
        compact = value.replace(" ", "")
        parts = _PART.findall(compact)
        if not parts or "".join(number + unit for number, unit in parts) != compact:
            raise ValueError(f"{value[:40]!r} is no duration; {how}")
        value = int(sum(Decimal(number) * _UNITS[unit] for number, unit in parts))
    if not 0 <= value <= _LONGEST_MS:
        raise ValueError(f"{value} ms is no duration: it has to be between 0 and 366 days")
    return Duration(value)


def load_scenario(path: str | FilePath) -> Loaded:
    """Read a scenario file; one that ends in `.json` is JSON.

    Raises:
        BadScript: it cannot be read, or something in it is wrong; the message names file and place.
    """
    try:
        with FilePath(path).open("rb") as file:
            raw = file.read(_BYTES_MOST + 1)
    except OSError as error:
        raise BadScript(f"{path}: the scenario cannot be read: {error.strerror or error}") from error
    if len(raw) > _BYTES_MOST:
        raise BadScript(f"{path}: this file is larger than {_BYTES_MOST} bytes; is it the right one?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadScript(f"{path}:{line}: the scenario is not UTF-8 text; save the file as UTF-8") from error
    return parse_scenario(text, str(path), as_json=str(path).endswith(".json"))


def parse_scenario(text: str, name: str = "<text>", *, as_json: bool = False) -> Loaded:
    """Read a scenario from its text; see `load_scenario`."""
    data = _parsed(text, name, as_json=as_json)
    source = _Source(name, text, as_json=as_json)
    try:
        scenario = msgspec.convert(data, Scenario, dec_hook=_custom)
    except msgspec.ValidationError as error:
        raise _plainly(error, source) from error
    scenario = msgspec.structs.replace(scenario, steps=_numbered(scenario.steps))
    _check(scenario, source)
    # Prices are decimal fractions; as binary ones they would not be what the file says.
    exact = _parsed(text, name, as_json=as_json, exact=True)
    toml = "" if as_json else text
    settings = _settings(exact.get("policy", {}), name, ("policy",), toml)
    changes = {
        number: _settings(exact["steps"][number]["policy"], name, ("steps", number, "policy"), toml)
        for number, step in enumerate(scenario.steps)
        if step.policy is not None
    }
    return Loaded(scenario, settings, changes, source.error)


def _settings(data: Any, name: str, path: Path, text: str) -> Settings:
    try:
        return settings_within(data, name, path, text)
    except BadPolicy as error:
        raise BadScript(str(error)) from error


def _parsed(text: str, name: str, *, as_json: bool, exact: bool = False) -> dict[str, Any]:
    number: Any = _decimal if exact else float
    try:
        if as_json:
            data = json.loads(text, parse_float=number, parse_constant=_no_number)
        else:
            data = tomllib.loads(text, parse_float=number)
    except RecursionError as error:
        raise BadScript(f"{name}: this is no scenario: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise BadScript(f"{name}:{error.lineno}: this is not JSON: {error.msg}") from error
    except ValueError as error:
        where = _AT_LINE.search(str(error))
        line = int(where[1]) if where and where[1] else text.rstrip("\n").count("\n") + 1
        words = "JSON" if as_json else "TOML"
        raise BadScript(f"{name}:{line}: this is not {words}: {_AT_LINE.sub('', str(error))}") from error
    if as_json and _HALF.search(text) and _halves(data):
        raise BadScript(f"{name}: a \\u escape stands for half a character; write both halves, or the letter")
    if not isinstance(data, dict):
        raise BadScript(f"{name}: a scenario is a table of its parts, not {_type_of(data)}")
    return data


def _halves(data: Any) -> bool:
    """Whether a text in it is no Unicode; JSON lets halves of characters through that no log can hold."""
    try:
        json.dumps(data, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return True
    return False


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        return Decimal("NaN")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number here")


def _custom(kind: type, value: Any) -> Any:
    if kind is Duration:
        return duration_ms(value)
    raise NotImplementedError  # how msgspec is told that a type is not ours


def _type_of(value: Any) -> str:
    names = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}
    return _TYPES.get(names.get(type(value), ""), "a date or time")


def _numbered(steps: list[Step]) -> list[Step]:
    """Every turn has its id."""
    found, number = [], 0
    for step in steps:
        if step.turn is not None:
            number += 1
            if not step.turn.id:
                turn = msgspec.structs.replace(step.turn, id=f"turn-{number}")
                step = msgspec.structs.replace(step, turn=turn)
        found.append(step)
    return found


# ---- shapes --------------------------------------------------------------------------------------------------


def _plainly(error: msgspec.ValidationError, source: _Source) -> BadScript:
    """What msgspec found, in words, with the line of it."""
    text = str(error)
    place = _PLACE.search(text)
    path: Path = ()
    if place is not None:
        text = text[: place.start()]
        inner = place[1].partition("[...]")[0]
        parts = re.findall(r"\.(\w+)|\[(\d+)\]", inner)
        path = tuple(word or int(index) for word, index in parts)
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        kind = _kind_at(path)
        known = list(kind.__struct_fields__) if kind is not None else []
        return source.error((*path, found[1]), f"unknown key{_suggested(found[1], known)}")
    if found := re.fullmatch(r"Object missing required field `(.*)`", text):
        return source.error(path, f'the key "{found[1]}" is missing')
    if found := re.fullmatch(r"Expected `(.*)`, got `(.*)`", text):
        wanted = " or ".join(_TYPES.get(one, one) for one in found[1].split(" | ") if one != "null")
        return source.error(path, f"has to be {wanted}, not {_TYPES.get(found[2], 'a date or time')}")
    if found := re.fullmatch(r"Invalid enum value '(.*)'", text):
        known = [str(one.value) for one in _words_at(path)]
        return source.error(path, f'"{found[1]}" is none of its words{_suggested(found[1], known)}')
    if found := re.fullmatch(r"Expected `\w+` (>=|<=) (\S+)", text):
        return source.error(path, f"has to be {'at least' if found[1] == '>=' else 'at most'} {found[2]}")
    return source.error(path, text[:1].lower() + text[1:] if text.startswith("Expected") else text)


def _suggested(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else f"; there are: {', '.join(known)}"


def _type_at(path: Path) -> Any:
    kind: Any = Scenario
    for part in path:
        if isinstance(part, int):
            kind = next(iter(get_args(_whole(kind))), None)
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = get_type_hints(kind).get(part)
        kind = _whole(kind)
    return kind


def _whole(kind: Any) -> Any:
    """A type without its `| None`."""
    parts = [one for one in get_args(kind) if one is not type(None)]
    return parts[0] if type(None) in get_args(kind) and len(parts) == 1 else kind


def _kind_at(path: Path) -> type[msgspec.Struct] | None:
    kind = _type_at(path)
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _words_at(path: Path) -> list[Enum]:
    kind = _type_at(path)
    return list(kind) if isinstance(kind, type) and issubclass(kind, Enum) else []


# ---- what must hold between parts ----------------------------------------------------------------------------


def _check(scenario: Scenario, source: _Source) -> None:
    profiles = {one.name for one in scenario.profiles}
    profiles |= {one.name for step in scenario.steps for one in step.profiles or ()}
    turns: set[str] = set()
    last_at = -1
    for number, step in enumerate(scenario.steps):
        path: Path = ("steps", number)
        _check_step(step, path, source)
        if step.at is not None and step.at < last_at:
            raise source.error(
                (*path, "at"), f"{step.at} ms is before the step above it ({last_at} ms); put them in order"
            )
        last_at = last_at if step.at is None else step.at
        for at, key in _turns_named(step):
            if key not in turns:
                raise source.error((*path, *at), _no_turn(key, turns, scenario))
        if step.turn is not None:
            if step.turn.id in turns:
                raise source.error((*path, "turn", "id"), f'the id "{step.turn.id}" is used twice')
            turns.add(step.turn.id)
        for at, key in _profiles_named(step):
            _known_profile(key, profiles, (*path, *at), source)
        for place, rule in enumerate(step.expect.rules if step.expect else ()):
            _known_rule(rule, (*path, "expect", "rules", place), source)
    for number, rule in enumerate(scenario.shows):
        _known_rule(rule, ("shows", number), source)
    for at, key in _ordered(scenario.order, ("order",)):
        _known_profile(key, profiles, at, source)
    _check_profiles(scenario.profiles, ("profiles",), source)
    _check_outcomes(scenario, profiles, turns, source)


def _check_step(step: Step, path: Path, source: _Source) -> None:
    kinds = step.kinds()
    if len(kinds) != 1:
        said = " and ".join(kinds) or "nothing"
        raise source.error(path, f"says {said}; each step says one thing that happens")
    when = [name for name in ("at", "during", "after") if getattr(step, name) is not None]
    if len(when) > 1:
        raise source.error(path, f"says {' and '.join(when)}; say in one way when it happens")
    if step.expect is not None and step.turn is None:
        raise source.error((*path, "expect"), "only a turn has an expect")
    if step.profiles is not None:
        _check_profiles(step.profiles, (*path, "profiles"), source)


def _check_profiles(profiles: list[Profile], path: Path, source: _Source) -> None:
    seen: set[str] = set()
    for number, one in enumerate(profiles):
        if one.name in seen:
            raise source.error((*path, number, "name"), f'the profile "{one.name}" is there twice')
        seen.add(one.name)
        if not (one.provider or ":" in one.name):
            raise source.error((*path, number), 'write the name as "provider:account", or name the provider')


def _check_outcomes(scenario: Scenario, profiles: set[str], turns: set[str], source: _Source) -> None:
    for number, one in enumerate(scenario.outcomes):
        path: Path = ("outcomes", number)
        if one.turn and one.turn not in turns:
            raise source.error((*path, "turn"), _no_turn(one.turn, turns, scenario))
        if one.profile:
            _known_profile(one.profile, profiles, (*path, "profile"), source)
        if one.until is not None and one.until <= one.since:
            raise source.error((*path, "until"), "it is over before it begins; `until` has to be after `since`")
        if one.switch_to and one.fails:
            raise source.error(path, "a call that is left for another model (switch_to) does not fail, too")
        try:
            json.dumps([one.body, one.headers], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise source.error((*path, "body"), f"cannot be sent as JSON: {error}") from error


def _turns_named(step: Step) -> Iterator[tuple[Path, str]]:
    for name in REFERENCES:
        if getattr(step, name):
            yield (name,), getattr(step, name)
    if step.recovering is not None:
        yield ("recovering", "turn"), step.recovering.turn
    if step.recorded is not None:
        yield ("recorded", "turn"), step.recorded.turn
    if step.turn is not None and step.turn.continues:
        yield ("turn", "continues"), step.turn.continues


def _profiles_named(step: Step) -> Iterator[tuple[Path, str]]:
    for name in ("select", "pin", "quota", "health"):
        said = getattr(step, name)
        if said is not None and said.profile:
            yield (name, "profile"), said.profile
    if step.remove:
        yield ("remove",), step.remove
    yield from _ordered(step.order or {}, ("order",))


def _ordered(order: dict[str, list[str]], path: Path) -> Iterator[tuple[Path, str]]:
    for provider, names in order.items():
        for number, name in enumerate(names):
            yield (*path, provider, number), name


def _known_profile(name: str, known: Iterable[str], path: Path, source: _Source) -> None:
    if name not in known:
        raise source.error(path, f'there is no profile "{name}"{_suggested(name, sorted(known))}')


def _known_rule(rule: str, path: Path, source: _Source) -> None:
    if rule not in rule_texts():
        close = difflib.get_close_matches(rule.upper(), rule_texts(), n=1, cutoff=0.6)
        better = f'; did you mean "{close[0]}"?' if close else ""
        raise source.error(path, f'there is no rule "{rule}"{better}')


def _no_turn(key: str, turns: set[str], scenario: Scenario) -> str:
    if any(step.turn is not None and step.turn.id == key for step in scenario.steps):
        return f'the turn "{key}" is requested only further down'
    if not turns:
        return f'there is no turn "{key}", nor any other one before this step'
    return f'there is no turn "{key}" before this step{_suggested(key, sorted(turns))}'

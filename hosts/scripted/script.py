"""Scripts: which reply the next request gets.

    [keys]                        # optional: names for API keys, by the end of the key
    first = "aaaa"

    [[lane]]                      # replies in order, for one model, one key, both or neither
    model = "gpt-a"
    key = "first"
    replies = [
        { kind = "rate_limited", retry_after = 2 },
        { answer = "Hello", repeat = true },
    ]

    [default]                     # optional: when the lane has no reply left, or none matches
    answer = "ok"

A request belongs to the most specific lane that matches it (model and key, model, key, neither). A lane
that is used up gives its default, else status 501, which no provider sends: a script that is too short
should be noticed. A model that no lane names is not found, as at a real provider.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from standby.events.errors import BadScript
from standby.hosts.scripted.replies import Reply

_BYTES_MOST = 1 << 20

ReplyLike: TypeAlias = Reply | str
"""A reply, or the text of a good answer."""


class Lane(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replies in order for the requests that match."""

    model: str | None = None
    key: str | None = None
    """A name of `Script.keys`."""
    replies: tuple[Reply, ...]

    def at(self, index: int) -> Reply | None:
        """The reply for the request with this number (from 0); None when there is none left."""
        if index < len(self.replies):
            return self.replies[index]
        last = self.replies[-1] if self.replies else None
        return last if last is not None and last.repeat else None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole script. Use `Script.of` from Python and `load` for a file; both check it."""

    keys: dict[str, str] = {}
    lane: tuple[Lane, ...] = ()
    default: Reply | None = None

    @classmethod
    def of(
        cls,
        models: Mapping[str, Sequence[ReplyLike]] | Sequence[Lane] = (),
        *,
        keys: Mapping[str, str] | None = None,
        default: ReplyLike | None = None,
    ) -> "Script":
        """From Python: replies by model, or lanes. Raises BadScript."""
        if isinstance(models, Mapping):
            lanes = tuple(
                Lane(model=model, replies=tuple(_reply(item) for item in replies))
                for model, replies in models.items()
            )
        else:
            lanes = tuple(models)
        after = None if default is None else _reply(default)
        script = cls(keys=dict(keys or {}), lane=lanes, default=after)
        _check(script, "script")
        return script

    def alias(self, key: str) -> str:
        """The name of an API key, "" if it has none; the longest matching end wins."""
        matches = [(len(end), name) for name, end in self.keys.items() if key and key.endswith(end)]
        return max(matches)[1] if matches else ""

    def lane_for(self, model: str, alias: str) -> int | None:
        """The place of the most specific lane for a request."""
        ranked = [
            (lane.model is not None, lane.key is not None, -place)
            for place, lane in enumerate(self.lane)
            if lane.model in (None, model) and lane.key in (None, alias)
        ]
        return -max(ranked)[2] if ranked else None


def _reply(item: ReplyLike) -> Reply:
    return Reply(answer=item) if isinstance(item, str) else item


def load(path: str | Path) -> Script:
    """Read a script from a TOML file; BadScript names the file and the key or line that is wrong."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_BYTES_MOST + 1)
        if len(raw) > _BYTES_MOST:
            raise BadScript(f"{path}: this file is larger than {_BYTES_MOST} bytes; is it the right one?")
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8 text"
        raise BadScript(f"{path}: the script cannot be read: {reason}.") from fault
    return parse(text, name=str(path))


def parse(text: str, name: str = "script") -> Script:
    """Read a script from TOML text; `name` stands for the file in messages."""
    try:
        script = msgspec.convert(tomllib.loads(text), Script)
    except tomllib.TOMLDecodeError as fault:
        raise BadScript(f"{name}: this is not TOML: {fault}.") from fault
    except msgspec.ValidationError as fault:
        raise BadScript(f"{name}: {_explained(str(fault))}") from fault
    except RecursionError as fault:
        raise BadScript(f"{name}: this is no script: it is nested too deeply.") from fault
    except ValueError as fault:
        raise BadScript(f"{name}: a value of it cannot be used: {fault}.") from fault
    _check(script, name)
    return script


def _check(script: Script, name: str) -> None:
    seen: dict[tuple[str | None, str | None], int] = {}
    for place, lane in enumerate(script.lane):
        where = f"{name}: lane[{place}]"
        if lane.key is not None and lane.key not in script.keys:
            known = ", ".join(script.keys) or "none"
            raise BadScript(f"{where}.key: {lane.key!r} is not a name under [keys] (there: {known}).")
        if not lane.replies:
            raise BadScript(f"{where}.replies: a lane needs at least one reply.")
        for index, reply in enumerate(lane.replies[:-1]):
            if reply.repeat:
                raise BadScript(f"{where}.replies[{index}].repeat: only the last reply of a lane can repeat.")
        before = seen.setdefault((lane.model, lane.key), place)
        if before != place:
            raise BadScript(f"{where}: lane[{before}] has the same model and key; put all replies there.")
    for alias, end in script.keys.items():
        if not end:
            raise BadScript(f"{name}: keys.{alias}: give the last characters of the key.")


def _explained(message: str) -> str:
    """msgspec's words, with the key in front and a suggestion for a misspelt one."""
    words, _, place = message.partition(" - at `")
    key = place.rstrip("`").removeprefix("$").lstrip(".")
    unknown = re.search(r"unknown field `(.*)`", words)
    if unknown:
        near = difflib.get_close_matches(unknown[1], _fields(key), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(_fields(key))}."
        return f"{key}{'.' if key else ''}{unknown[1]}: unknown key{hint}"
    return f"{key}: {words}." if key else f"{words}."


def _fields(key: str) -> list[str]:
    kind: Any = Script
    if "replies[" in key or key.startswith("default"):
        kind = Reply
    elif key.startswith("lane["):
        kind = Lane
    return [field.encode_name for field in msgspec.structs.fields(kind)]

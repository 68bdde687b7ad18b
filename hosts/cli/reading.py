"""Reading a log for people: rows checked as they come, names for aliases, moments and turns by text."""

import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from standby.engine.fold import tag_of
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.codec import decode, link
from standby.events.commit import Commit
from standby.events.errors import BadInput, DamagedLog
from standby.events.store import START, Store, StoredRow
from standby.hosts.service import session_name

TYPES = sorted(str(kind.__struct_config__.tag) for kind in (*f.Fact.__args__, *d.Decision.__args__))
"""Every type tag of facts and decisions."""

_ALIAS = re.compile(rb'"([spto]-[0-9a-f]{24})"')
_LENGTH = re.compile(r"(\d{1,15})\s*(ms|min|s|m|h|d)")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TURN_REQUESTED = b'"type":"turn_requested"'


class Stored(NamedTuple):
    """A row and the commit in it."""

    row: StoredRow
    commit: Commit


def checked_rows(store: Store, after: StoredRow | None = None) -> Iterator[StoredRow]:
    """Rows in order, each held against its predecessor before anybody looks at it.

    Raises:
        DamagedLog: a position is missing, or its bytes are not what was written.
    """
    position, digest = (START.position, START.hash) if after is None else (after.position, after.hash)
    for row in store.read(position):
        position += 1
        if row.position != position:
            raise DamagedLog(f"position {position} is missing, position {row.position} follows", position)
        if link(digest, row.body) != row.hash:
            raise DamagedLog(
                f"position {position} is not what was written: its hash differs; run `standby verify`, "
                "and restore the log from a copy",
                position,
            )
        digest = row.hash
        yield row


def needle(text: str) -> bytes:
    """The bytes that a text has inside a stored commit."""
    return msgspec.json.encode(text)[1:-1]


def tags(commit: Commit) -> list[str]:
    """The type tags of a commit's fact and decisions."""
    return [tag_of(commit.fact), *map(tag_of, commit.decisions)]


class Names:
    """Names and texts behind aliases, as far as they were not erased."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[str, str | None] = {}

    def get(self, alias: str) -> str | None:
        """The name or text, or None when the side table has none (any more)."""
        if alias not in self._found:
            side_entry = self._store.side_entry(alias)
            self._found[alias] = None if side_entry is None else side_entry.text
        return self._found[alias]

    def of(self, alias: str) -> str:
        """The name, else the alias itself."""
        return self.get(alias) or alias

    def session(self, alias: str) -> str:
        """A session as people write it: without the agent when that is the usual one."""
        return self.of(alias).removeprefix("main/")

    def within(self, body: bytes) -> dict[str, str]:
        """Every alias in a stored commit that has a name or text, with it."""
        aliases = dict.fromkeys(found.decode() for found in _ALIAS.findall(body))
        return {alias: name for alias in aliases if (name := self.get(alias)) is not None}

    def replaced(self, value: Any) -> Any:
        """A plain value with names in the place of aliases."""
        if isinstance(value, str):
            return self.of(value) if _ALIAS.fullmatch(f'"{value}"'.encode()) else value
        if isinstance(value, dict):
            return {self.replaced(key): self.replaced(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.replaced(one) for one in value]
        return value

    def alias_of(self, kind: str, name: str, agent: str = "main") -> str:
        """The alias of a session or profile that somebody named, by name or by the alias itself.

        Raises:
            BadInput: the log knows no such name.
        """
        wanted = {name, session_name(agent, name)} if kind == "session" else {name}
        known = []
        for side_entry in self._store.side_entries():
            if side_entry.kind == kind:
                if side_entry.text in wanted or side_entry.alias == name:
                    return side_entry.alias
                known.append(side_entry.text)
        if re.fullmatch(rf"{kind[0]}-[0-9a-f]{{24}}", name):
            return name  # its name was erased; what is left of it goes by the alias
        some = ", ".join(self._shown(kind, one) for one in sorted(known)[:8]) or "none"
        more = f" and {len(known) - 8} more" if len(known) > 8 else ""
        raise BadInput(f"this log knows no {kind} {name!r}; it knows: {some}{more}")

    @staticmethod
    def _shown(kind: str, name: str) -> str:
        return name.removeprefix("main/") if kind == "session" else name


def length_ms(text: str) -> int | None:
    """`10m`, `2h30m`, `500ms` as milliseconds; None when the text is no length of time."""
    compact = text.replace(" ", "")
    parts = _LENGTH.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def timestamp_ms(text: str, now_ms: int | None = None) -> int:
    """A moment: ISO date or time (local unless it names a zone), epoch ms, `HH:MM[:SS]` today, or `10m` ago.

    Raises:
        BadInput: it is none of these.
    """
    text = text.strip()
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    ago = length_ms(text.removesuffix("ago").strip())
    if ago is not None:
        return now - ago
    if text.isascii() and text.isdigit() and 12 <= len(text) <= 15:
        return int(text)
    today = datetime.fromtimestamp(now / 1000).date().isoformat()
    for candidate in (text, f"{today}T{text}" if ":" in text else ""):
        try:
            found = datetime.fromisoformat(candidate)
            # At either end of the calendar a local time may have no moment in UTC.
            found = found if found.tzinfo is not None else found.astimezone()
        except (ValueError, OverflowError):
            continue
        return (found - _EPOCH) // timedelta(milliseconds=1)
    raise BadInput(
        f"{text[:60]!r} is no moment; give a date and time (2026-11-30T14:05:00), a time of today (14:05), "
        "epoch milliseconds, or how long ago (10m, 2h)"
    )


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def find_turn(store: Store, wanted: str) -> tuple[str, StoredRow | None]:
    """The turn that a prefix or `last` names, and the row before the one that requested it.

    Raises:
        BadInput: no turn, or several turns, begin so.
    """
    found: dict[str, StoredRow | None] = {}
    before: StoredRow | None = None
    part = needle(wanted)
    for row in checked_rows(store):
        if _TURN_REQUESTED in row.body and (wanted == "last" or part in row.body):
            fact = decode(row.body, row.position).fact
            if isinstance(fact, f.TurnRequested):
                if wanted == "last":
                    found = {fact.turn: before}
                elif fact.turn.startswith(wanted):
                    found.setdefault(fact.turn, before)
        before = row
    if wanted in found:
        return wanted, found[wanted]
    if not found:
        what = (
            "no turn yet"
            if wanted == "last"
            else f"no turn {wanted!r}; `standby log --type turn_requested` lists them"
        )
        raise BadInput(f"this log has {what}")
    if len(found) > 1:
        some = ", ".join(list(found)[:6]) + (" ..." if len(found) > 6 else "")
        raise BadInput(f"{wanted!r} stands for {len(found)} turns ({some}); give more of the id")
    return next(iter(found.items()))


def rows_of_turn(store: Store, turn: str, after: StoredRow | None) -> Iterator[Stored]:
    """The commits whose fact is about a turn."""
    part = needle(turn)
    for row in checked_rows(store, after):
        if part in row.body:
            commit = decode(row.body, row.position)
            if getattr(commit.fact, "turn", "") == turn:
                yield Stored(row, commit)

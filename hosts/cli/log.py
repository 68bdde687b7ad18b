"""`standby log`: commits as they lie in the log, filtered, and as they come."""

import time
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from standby.engine.fold import tag_of
from standby.events.codec import decode
from standby.events.commit import Commit
from standby.events.errors import BadInput
from standby.events.facts import CallFailed, TurnRequested
from standby.events.store import StoredRow
from standby.hosts.cli.labels import failure_text
from standby.hosts.cli.options import AgentName, AsJson, LogPath, open_log, parse_position
from standby.hosts.cli.output import MOMENTS, Out, local_time, span, utc_time
from standby.hosts.cli.reading import TYPES, Names, Stored, checked_rows, needle, tags, timestamp_ms

POLL_S = 0.1
LAST_MOST = 1_000_000_000
_CALM = {"answered": "green", "failed": "red", "block_set": "red", "notice_due": "yellow"}


class _Filter:
    """Which commits are wanted. Cheap tests on the stored bytes go before any decoding."""

    def __init__(
        self,
        *,
        turn: str | None,
        session: str | None,
        profile: str | None,
        types: list[str],
        since_ms: int | None,
        since_position: int | None,
    ) -> None:
        self._turn = turn
        self._session = session
        self._profile = profile
        self._types = set(types)
        self._since_ms = since_ms
        self._since_position = since_position
        self._turns: set[str] = set()
        """Turns of the wanted session that were seen so far."""
        self.turn_seen = turn is None
        """Whether the log has the wanted turn, as far as it was read."""

    def wants(self, row: StoredRow) -> Stored | None:
        """The commit of a row if it is wanted."""
        if self._session is not None:
            self._note_turn(row)
        if not self.turn_seen and self._turn is not None and needle(self._turn) in row.body:
            self.turn_seen = getattr(decode(row.body, row.position).fact, "turn", "").startswith(self._turn)
        if self._since_position is not None and row.position < self._since_position:
            return None
        for text in (self._turn, self._profile):
            if text and needle(text) not in row.body:
                return None
        commit = decode(row.body, row.position)
        return Stored(row, commit) if self._fits(commit, row) else None

    def _note_turn(self, row: StoredRow) -> None:
        if self._session and b'"turn_requested"' in row.body and needle(self._session) in row.body:
            fact = decode(row.body, row.position).fact
            if isinstance(fact, TurnRequested) and fact.session == self._session:
                self._turns.add(fact.turn)

    def _fits(self, commit: Commit, row: StoredRow) -> bool:
        if self._since_ms is not None and commit.at_ms < self._since_ms:
            return False
        if self._types and self._types.isdisjoint(tags(commit)):
            return False
        turn = getattr(commit.fact, "turn", "")
        if self._turn and not turn.startswith(self._turn):
            return False
        return not (self._session and turn not in self._turns and needle(self._session) not in row.body)


def event_text(event: Any, names: Names) -> str:
    """One event as words: each field that says something, with names for aliases; of a failure the gist."""
    if isinstance(event, CallFailed):
        return f"{field_text('turn', event.turn)} {failure_text(event, names)}"
    plain = names.replaced(msgspec.to_builtins(event))
    plain.pop("type", None)
    plain.pop("rules", None)
    return " ".join(field_text(key, one) for key, one in plain.items())


def field_text(key: str, value: Any) -> str:
    """One field of an event: `until=2026-11-30T14:05:00.000`."""
    return f"{key.removesuffix('_ms')}={_value(key, value)}"


def _value(key: str, value: Any) -> str:
    if key in MOMENTS and isinstance(value, int):
        return local_time(value).replace(" ", "T")
    if key.endswith("_ms") and isinstance(value, int):
        return span(value).replace(" ", "")
    if isinstance(value, str):
        return value if value and " " not in value else msgspec.json.encode(value).decode()
    if key == "candidates":
        return ",".join(one["model"] for one in value)
    return msgspec.json.encode(value).decode()


def commit_value(stored: Stored, names: Names) -> dict[str, Any]:
    """A commit as a plain value: what is stored, its place, and the names behind its aliases."""
    return {
        "position": stored.row.position,
        "hash": stored.row.hash.hex(),
        **msgspec.json.decode(stored.row.body),
        "names": names.within(stored.row.body),
    }


def _print(out: Out, stored: Stored, names: Names) -> None:
    commit, position = stored.commit, stored.row.position
    tag = tag_of(commit.fact)
    out.line(
        f"{position:>6}  ",
        (local_time(commit.at_ms), "dim"),
        "  ",
        (f"{tag:<20}", "bold"),
        f" {event_text(commit.fact, names)}",
    )
    for decision in commit.decisions:
        name = tag_of(decision)
        style = next((style for part, style in _CALM.items() if part in name), "")
        out.line(
            " " * 12,
            (f"{name:<20}", style),
            f" {event_text(decision, names)}  ",
            (f"[{' '.join(decision.rules)}]", "dim"),
        )


def _json(out: Out, stored: Stored, names: Names) -> None:
    value = commit_value(stored, names)
    value["at"] = utc_time(stored.commit.at_ms)
    out.json(value)


def _following(store: Any, last: StoredRow | None) -> Iterator[StoredRow]:
    while True:
        for row in checked_rows(store, last):
            last = row
            yield row
        time.sleep(POLL_S)


def _types(given: list[str]) -> list[str]:
    for one in given:
        if one not in TYPES:
            near = [tag for tag in TYPES if one in tag or tag in one] or TYPES
            raise BadInput(f"{one!r} is no type of event; there are: {', '.join(near)}")
    return given


def log_command(
    log: LogPath = None,
    turn: Annotated[str | None, typer.Option("--turn", help="Of this turn; a prefix will do.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Of this session.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="That speak of this profile.")] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="With a fact or decision of this type; repeatable.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="From a position, a moment, or a length of time ago (10m).")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", "-n", min=1, max=LAST_MOST, help="Only the last so many.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as commits come.")] = False,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Show commits: each fact, and below it the decisions that followed, with their rules."""
    store = open_log(log)
    try:
        names = Names(store)
        position = None if since is None else parse_position(since)
        wanted = _Filter(
            turn=turn,
            session=None if session is None else names.alias_of("session", session, agent),
            profile=None if profile is None else names.alias_of("profile", profile),
            types=_types(type_ or []),
            since_ms=timestamp_ms(since) if since is not None and position is None else None,
            since_position=position,
        )
        out = Out()
        show = _json if as_json else _print
        kept: deque[Stored] = deque(maxlen=last)
        end: StoredRow | None = None
        for row in checked_rows(store):
            end = row
            stored = wanted.wants(row)
            if stored is None:
                continue
            if last is None:
                show(out, stored, names)
            else:
                kept.append(stored)
        if not wanted.turn_seen:
            raise BadInput(f"this log has no turn {turn!r}; `standby log --type turn_requested` lists them")
        for stored in kept:
            show(out, stored, names)
        if follow:
            out.flush()
            for row in _following(store, end):
                if (found := wanted.wants(row)) is not None:
                    show(out, found, Names(store))
                    out.flush()
    finally:
        store.close()

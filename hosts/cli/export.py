"""`standby export`: the log for other programs, as JSON lines or as tables of an SQLite file of its own.

Both are without names and texts unless they are asked for, so that what is handed on says nothing about whose
sessions they were.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from sqlite_utils import Database

from standby.engine.fold import tag_of
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.codec import decode
from standby.events.errors import BadInput
from standby.events.sqlite import SQLiteStore
from standby.hosts.cli.options import AsJson, LogPath, open_log
from standby.hosts.cli.output import Out, remark, utc_time, working
from standby.hosts.cli.reading import Names, Stored, checked_rows
from standby.projections.history import History, TurnHistory


def export_command(
    log: LogPath = None,
    with_names: Annotated[
        bool, typer.Option("--with-names", help="Add the names and texts behind the aliases.")
    ] = False,
    sqlite: Annotated[
        Path | None,
        typer.Option("--sqlite", metavar="FILE", help="Write tables and views for queries to FILE."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write every commit as a line of JSON to standard output, or tables and views to an SQLite file."""
    if sqlite is not None and sqlite.exists():
        raise BadInput(f"{sqlite} exists already; name a file that does not, or remove it")
    store = open_log(log)
    try:
        with working("exporting", store.head().position) as steps:
            rows = _stored(store, steps.at)
            if sqlite is None:
                _write_lines(rows, Names(store) if with_names else None)
            else:
                count = _write_tables(sqlite, rows, Names(store) if with_names else None)
                if as_json:
                    Out().json({"commits": count, "file": str(sqlite), "names": with_names})
                else:
                    remark(f"wrote {count} commits to {sqlite}")
    finally:
        store.close()


def _stored(store: SQLiteStore, at: Any) -> Iterator[Stored]:
    for row in checked_rows(store):
        yield Stored(row, decode(row.body, row.position))
        if row.position % 1000 == 0:
            at(row.position)


def _write_lines(rows: Iterable[Stored], names: Names | None) -> None:
    """`commit` is what is stored, letter by letter, so that who has the lines can follow the chain."""
    out = Out()
    for row, commit in rows:
        head = {"position": row.position, "hash": row.hash.hex(), "at": utc_time(commit.at_ms)}
        start = msgspec.json.encode(head)[:-1] + b',"commit":' + row.body
        if names is not None:
            start += b',"names":' + msgspec.json.encode(names.within(row.body))
        out.raw(start + b"}")


# ---- tables --------------------------------------------------------------------------------------------

_VIEWS = {
    "failures": """
        select a.turn, t.session, a.attempt, a.model, a.profile, a.reason, a.status, a.row, a.started,
            a.ended_ms - a.started_ms as took_ms
        from attempts a join turns t using (turn) where a.reason is not null""",
    "fallbacks": """
        select turn, session, selected, answered_by, requested from turns
        where answered_by is not null and answered_by <> selected""",
    "reasons": """
        select model, reason, count(*) as failures from attempts
        where reason is not null group by model, reason order by failures desc""",
    "rules_used": """
        select rule.value as rule, events.type, count(*) as decisions
        from events, json_each(events.rules) as rule
        group by rule.value, events.type order by decisions desc""",
}


def _write_tables(path: Path, rows: Iterable[Stored], names: Names | None) -> int:
    history = History(events=False)
    count = 0

    def noted() -> Iterator[Stored]:
        nonlocal count
        for stored in rows:
            count += 1
            history.fold(stored.row.position, stored.commit)
            yield stored

    # Under its own name only once it is whole. Nothing is lost if the machine stops before: no need to sync.
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    database = Database(str(part))
    try:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        _fill(database, "events", _events(noted(), names), _EVENTS, ("position", "number"))
        turns = list(history.turns.values())
        _fill(database, "turns", (_turn(one, names) for one in turns), _TURNS, ("turn",))
        _fill(database, "attempts", _attempts(turns, names), _ATTEMPTS, ("turn", "attempt"))
        _fill(database, "skips", _skips(turns), _SKIPS, ())
        for name, sql in _VIEWS.items():
            database.create_view(name, sql)
        database.close()
        part.rename(path)
    finally:
        database.close()
        part.unlink(missing_ok=True)
    return count


_EVENTS: dict[str, Any] = {
    "position": int, "number": int, "at": str, "at_ms": int, "runtime": str, "is_fact": int, "type": str,
    "turn": str, "session": str, "profile": str, "rules": str, "body": str,
}  # fmt: skip
_TURNS: dict[str, Any] = {
    "turn": str, "session": str, "agent": str, "kind": str, "selected": str, "source": str, "outcome": str,
    "answered_by": str, "end": str, "attempts": int, "skips": int, "requested": str, "requested_ms": int,
    "ended_ms": int, "position": int,
}  # fmt: skip
_ATTEMPTS: dict[str, Any] = {
    "turn": str, "attempt": int, "model": str, "profile": str, "reason": str, "status": int, "row": str,
    "succeeded": int, "checked": int, "started": str, "started_ms": int, "ended_ms": int, "input": int,
    "output": int, "position": int,
}  # fmt: skip
_SKIPS: dict[str, Any] = {
    "turn": str, "model": str, "because": str, "reason": str, "until_ms": int, "at_ms": int, "position": int,
}  # fmt: skip


def _fill(
    database: Database, name: str, rows: Iterable[dict[str, Any]], columns: dict[str, Any], pk: tuple[str, ...]
) -> None:
    table = database.table(name)
    table.create(columns, pk=pk if len(pk) > 1 else pk[0] if pk else None)
    table.insert_all(rows)


def _named(alias: str, names: Names | None) -> str:
    return alias if names is None else names.of(alias)


def _events(rows: Iterable[Stored], names: Names | None) -> Iterator[dict[str, Any]]:
    for row, commit in rows:
        for number, event in enumerate((commit.fact, *commit.decisions)):
            plain = msgspec.to_builtins(event)
            rules = plain.pop("rules", [])
            plain.pop("type", None)
            yield {
                "position": row.position,
                "number": number,
                "at": utc_time(commit.at_ms),
                "at_ms": commit.at_ms,
                "runtime": commit.runtime,
                "is_fact": int(number == 0),
                "type": tag_of(event),
                "turn": plain.get("turn") or getattr(commit.fact, "turn", "") or None,
                "session": _named(plain["session"], names) if plain.get("session") else None,
                "profile": _named(plain["profile"], names) if plain.get("profile") else None,
                "rules": msgspec.json.encode(rules).decode(),
                "body": msgspec.json.encode(names.replaced(plain) if names is not None else plain).decode(),
            }


def _turn(history: TurnHistory, names: Names | None) -> dict[str, Any]:
    end = history.end
    return {
        "turn": history.turn,
        "session": _named(history.request.session, names),
        "agent": history.request.agent,
        "kind": history.request.kind.value,
        "selected": history.planned.selected if history.planned else None,
        "source": history.planned.source.value if history.planned else None,
        "outcome": "unfinished" if end is None else "answered" if isinstance(end, d.TurnAnswered) else "failed",
        "answered_by": end.model if isinstance(end, d.TurnAnswered) else None,
        "end": end.end.value if isinstance(end, d.TurnFailed) else None,
        "attempts": len(history.attempts),
        "skips": len(history.skips),
        "requested": utc_time(history.requested_ms),
        "requested_ms": history.requested_ms,
        "ended_ms": history.ended_ms,
        "position": history.position,
    }


def _attempts(turns: list[TurnHistory], names: Names | None) -> Iterator[dict[str, Any]]:
    for history in turns:
        for one in history.attempts:
            usage = one.report.usage if isinstance(one.report, f.CallSucceeded | f.CallFailed) else None
            yield {
                "turn": history.turn,
                "attempt": one.decided.attempt,
                "model": one.decided.model,
                "profile": _named(one.decided.profile, names) if one.decided.profile else None,
                "reason": one.classified.reason.value if one.classified else None,
                "status": one.classified.status if one.classified else None,
                "row": one.classified.row if one.classified else None,
                "succeeded": int(one.succeeded),
                "checked": int(one.decided.probe),
                "started": utc_time(one.started_ms),
                "started_ms": one.started_ms,
                "ended_ms": one.ended_ms,
                "input": usage.input if usage else None,
                "output": usage.output if usage else None,
                "position": one.position,
            }


def _skips(turns: list[TurnHistory]) -> Iterator[dict[str, Any]]:
    for history in turns:
        for skip in history.skips:
            yield {
                "turn": history.turn,
                "model": skip.decided.model,
                "because": skip.decided.because.value,
                "reason": skip.decided.reason.value if skip.decided.reason else None,
                "until_ms": skip.decided.until_ms,
                "at_ms": skip.at_ms,
                "position": skip.position,
            }

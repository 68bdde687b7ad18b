"""`standby replay`: the projections anew, from facts, at any position or moment of the log."""

from collections.abc import Iterator
from typing import Annotated

import typer
from sqlite_utils import Database

from standby.engine.checkpoint import VERSION, dump
from standby.engine.verify import check_commit
from standby.engine.view import View
from standby.events.codec import decode
from standby.events.errors import BadInput, Refused
from standby.events.sqlite import SQLiteStore
from standby.events.store import CheckpointRow, StoredRow
from standby.hosts.cli.options import AsJson, LogPath, open_log, parse_position
from standby.hosts.cli.output import Out, local_time, working
from standby.hosts.cli.reading import Names, checked_rows, timestamp_ms
from standby.hosts.cli.state import print_state, state_of
from standby.hosts.core import load_view, wall_clock


def replay_command(
    log: LogPath = None,
    at: Annotated[
        str | None, typer.Option("--at", help="A position, or a moment: the state as it was then.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Drop every checkpoint and write a new one from the facts.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild what is true from the facts alone, and say whether it is what a live process sees."""
    if rebuild and at is not None:
        raise BadInput("--rebuild is about the whole log; leave --at away")
    store = open_log(log)
    try:
        # The live view first: what others write meanwhile is then beyond the position that is compared.
        live = load_view(store, checkpointed=not rebuild)
        position, timestamp = _limit(at)
        view, last_ms = _replayed(store, live.position if at is None else position, timestamp)
        if position is not None and view.position < position:
            raise BadInput(f"the log ends at position {view.position}, before {position}")
        equal = dump(view) == dump(live) if at is None else None
        if equal is False:
            raise Refused(
                "the rebuilt projections are not what a live process sees: the checkpoint is wrong; "
                "`standby replay --rebuild` writes a new one",
                view.position,
            )
        dropped = _rebuild(store, view) if rebuild else None
        now = timestamp if timestamp is not None else last_ms if at is not None else wall_clock()
        out = Out()
        state = state_of(view, Names(store), now)
        first = at is not None and timestamp is None and view.position == 0
        if first:
            state["at_ms"] = None  # Nothing had happened yet, so there is no moment that it was true at.
        if as_json:
            out.json({"equal": equal, "rebuilt_checkpoint": rebuild, "dropped": dropped, **state})
            return
        if equal:
            out.line("replayed  ", f"{view.position} facts; the rebuilt projections equal the live ones")
        else:
            when = "before the first commit" if first else f"at {local_time(now)}"
            out.line("replayed  ", f"{view.position} facts; the state {when}")
        if dropped is not None:
            before = f"{dropped} dropped, a new one" if dropped else "there was none, one is"
            out.line("checkpoint", f" {before} written at position {view.position}")
        print_state(out, state, now)
    finally:
        store.close()


def _limit(at: str | None) -> tuple[int | None, int | None]:
    """The position or the moment that `--at` names."""
    if at is None:
        return None, None
    position = parse_position(at)
    if position is not None:
        return position, None
    return None, timestamp_ms(at)


def _replayed(store: SQLiteStore, position: int | None, timestamp: int | None) -> tuple[View, int]:
    """The view after the last commit that counts, and that commit's moment.

    Every decision is made again from its fact, and has to be the stored one: the result owes nothing to what
    was stored besides facts.
    """
    view, last_ms = View(), 0
    with working("replaying", store.head().position) as steps:
        for row in _until(store, position):
            commit = decode(row.body, row.position)
            if timestamp is not None and commit.at_ms > timestamp:
                break
            check_commit(view, commit)
            view.hash = row.hash
            last_ms = commit.at_ms
            if row.position % 1000 == 0:
                steps.at(row.position)
    return view, last_ms


def _until(store: SQLiteStore, position: int | None) -> Iterator[StoredRow]:
    for row in checked_rows(store):
        if position is not None and row.position > position:
            return
        yield row


def _rebuild(store: SQLiteStore, view: View) -> int:
    """Drop every checkpoint and write that of `view`; says how many were dropped."""
    database = Database(str(store.path))
    try:
        dropped = database["checkpoints"].count
        database.table("checkpoints").delete_where()
    finally:
        database.close()
    store.save_checkpoint(CheckpointRow(view.position, view.hash, VERSION, dump(view)))
    return dropped

"""Processes that write to a log in a file, for the tests of racing and of dying writers.

    python -m tests.contract.writers race PATH NUMBER COUNT
    python -m tests.contract.writers die PATH MOMENT

`race` prints every position that was acknowledged. `die` writes and acknowledges one row, then kills itself
with SIGKILL at the named moment of the next transaction.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

from standby.events.names import SideEntry, alias_for
from standby.events.sqlite import SQLiteStore

MOMENTS = ("begun", "appended", "before commit", "committed")
"""Where `die` dies; only after the last of them the row has to be there."""

NAME = SideEntry(alias_for("session", b"salt", "second"), "session", "", b"salt", "second")


def race(path: str, number: int, count: int) -> None:
    store = SQLiteStore(path)
    seen = 0
    for turn in range(count):
        with store.transaction() as transaction:
            for row in transaction.tail(seen):
                assert row.position == seen + 1, (row.position, seen)
                seen = row.position
            row = transaction.append(b"%d %d" % (number, turn))
            assert row.position == seen + 1, (row.position, seen)
            seen = row.position
        print(row.position, flush=True)
    store.close()


class _Dying:
    """A connection that dies in the moment before a statement."""

    def __init__(self, connection: sqlite3.Connection, before: str) -> None:
        self._connection, self._before = connection, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *args: Any) -> Any:
        if statement == self._before:
            die_now()
        return self._connection.execute(statement, *args)


def die_now() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die(path: str, timestamp: str) -> None:
    store = SQLiteStore(path)
    with store.transaction() as transaction:
        transaction.append(b"first")
    print("acknowledged", flush=True)
    if timestamp == "before commit":
        store._connection = _Dying(store._connection, "COMMIT")  # type: ignore[assignment]  # replaced on purpose
    with store.transaction() as transaction:
        if timestamp == "begun":
            die_now()
        transaction.put_side_entry(NAME._replace(subject=NAME.alias))
        transaction.append(b"second")
        transaction.append(b"third")
        if timestamp == "appended":
            die_now()
    die_now()


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "race":
        race(where, int(rest[0]), int(rest[1]))
    else:
        die(where, rest[0])

"""Files that are not logs, or not any more, or not yet: each is refused by name and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from standby.engine.verify import verify
from standby.events.errors import BadInput, DamagedLog, ForeignFile, LogError, LogTooNew
from standby.events.facts import CompactionCompleted
from standby.events.sqlite import APPLICATION_ID, FORMAT, SQLiteStore
from standby.hosts.core import Core


def log(path: Path, commits: int = 30) -> Path:
    """A closed log with a few commits, its write-ahead file folded back."""
    with Core(SQLiteStore(path), instance="main", clock=lambda: 1_000) as core:
        for count in range(1, commits):
            core.submit(CompactionCompleted(session="s-" + "x" * 200, count=count))
    return path


def altered(path: Path, change: Callable[[sqlite3.Connection], object]) -> Path:
    """Change a closed log behind standby's back."""
    connection = sqlite3.connect(path)
    with connection:
        change(connection)
    connection.close()
    return path


def not_sqlite(path: Path) -> None:
    path.write_bytes(b"some notes, in no database at all\n" * 40)


def of_another_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE commits (a)")
        connection.execute("PRAGMA application_id = 42")
    connection.close()


def unsigned(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE notes (a)")
    connection.close()


def newer(path: Path) -> None:
    altered(log(path), lambda connection: connection.execute(f"PRAGMA user_version = {FORMAT + 1}"))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (not_sqlite, ForeignFile, "not an SQLite file"),
        (of_another_program, ForeignFile, "of another program"),
        (unsigned, ForeignFile, "of another program"),
        (newer, LogTooNew, f"has format {FORMAT + 1}"),
        (lambda path: path.mkdir(), ForeignFile, "is a folder"),
    ],
)
def test_what_is_not_our_log_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], error: type[Exception], says: str
) -> None:
    path = tmp_path / "log.db"
    make(path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    with pytest.raises(error, match=says) as caught:
        SQLiteStore(path)
    assert str(path) in str(caught.value)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


def test_a_file_that_is_not_there_is_only_made_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with pytest.raises(BadInput, match="does not exist"):
        SQLiteStore(path, create=False)
    assert not path.exists()
    with pytest.raises(BadInput, match="synchronous is 'sometimes'"):
        SQLiteStore(path, synchronous="sometimes")


def test_an_empty_file_becomes_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.touch()
    SQLiteStore(path).close()
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
    SQLiteStore(path, create=False).close()


def test_a_log_whose_making_was_cut_off_is_made_again(tmp_path: Path) -> None:
    """Somebody died after signing the file and before its tables were there."""
    path = tmp_path / "log.db"
    altered(path, lambda connection: connection.execute(f"PRAGMA application_id = {APPLICATION_ID}"))
    store = SQLiteStore(path)
    with store.transaction() as transaction:
        assert transaction.append(b"1").position == 1
    store.close()


@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_synchronous_is_what_was_asked_for(tmp_path: Path, synchronous: str) -> None:
    store = SQLiteStore(tmp_path / "log.db", synchronous=synchronous)
    level = store._connection.execute("PRAGMA synchronous").fetchone()[0]
    assert level == {"normal": 1, "full": 2}[synchronous]
    assert store._connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    store.close()


CHANGES: dict[str, tuple[str, int]] = {
    "a changed byte": (
        "UPDATE commits SET body = replace(body, 'compaction', 'compactiom') WHERE position = 7",
        7,
    ),
    "a changed hash": ("UPDATE commits SET hash = zeroblob(32) WHERE position = 9", 9),
    "a removed row": ("DELETE FROM commits WHERE position = 5", 5),
    "two rows swapped": (
        "UPDATE commits SET body = (SELECT body FROM commits o WHERE o.position = 19 - commits.position)"
        " WHERE position IN (9, 10)",
        9,
    ),
    "not JSON": ("UPDATE commits SET body = x'00ff' WHERE position = 12", 12),
}


@pytest.mark.invariant(11)
@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_row_is_named_by_position(tmp_path: Path, change: str) -> None:
    statement, position = CHANGES[change]
    path = altered(log(tmp_path / "log.db"), lambda connection: connection.execute(statement))
    before = path.read_bytes()
    store = SQLiteStore(path, create=False)
    with pytest.raises(DamagedLog, match=rf"position {position} ") as caught:
        Core(store, instance="main", clock=lambda: 2_000)
    assert caught.value.position == position
    report = verify(store.read())
    assert report.refused_at == position
    store.close()
    assert path.read_bytes() == before


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    """Whole pages are missing at the end: rows before them can be read, and the first that cannot is named."""
    path = log(tmp_path / "log.db", 300)
    raw = path.read_bytes()
    for kept in (len(raw) // 2 // 4096 * 4096, 3 * 4096):
        cut = tmp_path / f"cut{kept}.db"
        cut.write_bytes(raw[:kept])
        with pytest.raises(DamagedLog, match=str(cut)), closing(SQLiteStore(cut, create=False)) as store:  # noqa: PT012 - the block is what fails
            for count, row in enumerate(store.read(), 1):
                assert row.position == count
        assert cut.read_bytes() == raw[:kept]


def test_scribbled_pages_are_named_by_position(tmp_path: Path) -> None:
    path = log(tmp_path / "log.db", 300)
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(bytes(raw))
    store = SQLiteStore(path, create=False)
    with pytest.raises((DamagedLog, LogError), match=str(path)):
        Core(store, instance="main", clock=lambda: 2_000)
    store.close()
    assert path.read_bytes() == bytes(raw)


def test_a_copy_of_a_log_is_a_log(tmp_path: Path) -> None:
    path = log(tmp_path / "log.db")
    copy = Path(shutil.copy(path, tmp_path / "copy.db"))
    first, second = SQLiteStore(path), SQLiteStore(copy)
    assert first.head() == second.head()
    first.close()
    second.close()

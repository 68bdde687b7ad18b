"""One file and many processes: racing, dying, waiting for the lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from standby.engine.verify import verify
from standby.events.codec import GENESIS, link
from standby.events.errors import LogBusy
from standby.events.facts import CompactionCompleted
from standby.events.sqlite import APPLICATION_ID, SQLiteStore
from standby.hosts.core import Core
from tests.contract.writers import MOMENTS, NAME


def start(*args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.contract.writers", *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_four_racing_processes_append_densely(tmp_path: Path) -> None:
    """They create the same file at once, and every acknowledged row is there, once, at its position."""
    path, each = tmp_path / "log.db", 30
    racing = [start("race", path, number, each) for number in range(4)]
    outputs = [process.communicate(timeout=60)[0] for process in racing]
    assert [process.returncode for process in racing] == [0, 0, 0, 0]
    acknowledged = sorted(int(line) for output in outputs for line in output.split())
    assert acknowledged == list(range(1, 4 * each + 1))
    store = SQLiteStore(path, create=False)
    previous, bodies = GENESIS, []
    for position, row in enumerate(store.read(), 1):
        assert (row.position, row.hash) == (position, link(previous, row.body))
        previous = row.hash
        bodies.append(row.body)
    assert sorted(bodies) == sorted(b"%d %d" % (n, t) for n in range(4) for t in range(each))
    store.close()


@pytest.mark.parametrize("timestamp", MOMENTS)
def test_a_killed_writer_leaves_all_of_a_transaction_or_nothing(tmp_path: Path, timestamp: str) -> None:
    path = tmp_path / "log.db"
    dying = start("die", path, timestamp)
    output, _ = dying.communicate(timeout=60)
    assert dying.returncode == -signal.SIGKILL
    assert output.split() == ["acknowledged"]
    store = SQLiteStore(path, create=False)
    bodies = [row.body for row in store.read()]
    assert bodies == ([b"first", b"second", b"third"] if timestamp == "committed" else [b"first"])
    assert (store.side_entry(NAME.alias) is not None) == (timestamp == "committed")
    with store.transaction() as transaction:
        assert transaction.append(b"next").position == len(bodies) + 1
    store.close()


def test_a_log_in_use_and_one_whose_writer_was_killed_are_known_as_logs(tmp_path: Path) -> None:
    """The header is in the file itself from the first moment on, not only in the write-ahead file."""
    path = tmp_path / "log.db"
    first = SQLiteStore(path)
    with first.transaction() as transaction:
        transaction.append(b"1")
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    second = SQLiteStore(path, create=False)
    assert second.head() == first.head()
    first.close()
    second.close()


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    holder, waiter = SQLiteStore(path), SQLiteStore(path, timeout_s=0.15)
    with holder.transaction() as transaction:
        transaction.append(b"1")
        began = time.monotonic()
        with (
            pytest.raises(LogBusy, match=r"log\.db was locked by another writer for 0\.15 s"),
            waiter.transaction(),
        ):
            pass
        assert time.monotonic() - began >= 0.15
        assert waiter.head().position == 0
    with waiter.transaction() as transaction:
        assert transaction.append(b"2").position == 2
    holder.close()
    waiter.close()


CORE = """
import os, signal, sys
from standby.events.facts import CompactionCompleted
from standby.events.sqlite import SQLiteStore
from standby.hosts.core import Core
core = Core(SQLiteStore(sys.argv[1]), instance=sys.argv[2])
for count in range(1, 400):
    commit = core.submit(CompactionCompleted(session="s", count=count))
    print(core.view.position, flush=True)
"""


def write(path: Path, instance: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CORE, str(path), instance],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.invariant(11)
def test_cores_that_are_killed_lose_nothing_acknowledged_and_the_next_goes_on(tmp_path: Path) -> None:
    """Two processes write; both are killed at some moment; a third opens, writes, and all of it verifies."""
    path = tmp_path / "log.db"
    for round_ in range(3):
        racing = [write(path, instance) for instance in ("a", "b")]
        lines: list[int] = []
        for process in racing:
            assert process.stdout is not None
            lines += [int(process.stdout.readline()) for _ in range(20 + 7 * round_)]
        for process in racing:
            process.kill()
            assert process.stdout is not None
            lines += [int(line) for line in process.stdout.read().split()]
            process.stdout.close()
            process.wait(timeout=30)
        store = SQLiteStore(path, create=False)
        with Core(store, instance="a") as core:
            assert core.view.position > max(lines)
            written = {row.position for row in store.read()}
            assert set(lines) <= written
            assert core.submit(CompactionCompleted(session="s", count=999)) is not None
            report = verify(store.read(), head=store.head())
            assert report.holds, report.problem

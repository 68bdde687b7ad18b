"""Faults that an attacker found, each held by the promise it broke."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from standby.engine.checkpoint import VERSION, dump
from standby.engine.reading.extract import Reply
from standby.engine.steps import CallModel, Settled, Wait
from standby.engine.verify import verify
from standby.engine.view import View
from standby.events.errors import BadReport, DamagedLog, LogError
from standby.events.facts import Usage
from standby.events.sqlite import SQLiteStore
from standby.events.store import START, CheckpointRow
from standby.events.vocabulary import Failure, StopKind
from standby.hosts.core import Core, load_view
from standby.hosts.reports import Failed, Succeeded
from standby.hosts.service import Standby
from standby.hosts.settings import Settings
from tests.harness import START_MS, World, chain

OTHER = """
import sys
from standby.events.sqlite import SQLiteStore
print(SQLiteStore(sys.argv[1]).head().position)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    """A log on disk that is closed again."""
    store = SQLiteStore(tmp_path / "log.db")
    yield store
    store.close()


def head_seen_elsewhere(path: Path) -> int:
    """The head as another process sees it, which opens the log and closes it again."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return int(done.stdout)


@pytest.mark.invariant(11)
def test_opening_a_log_twice_in_one_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Standby(Core(SQLiteStore(path), instance="a"), Settings(policy=chain())) as service:
        SQLiteStore(path).close()
        head_seen_elsewhere(path)
        for number in range(3):
            service.start_turn(session=f"s{number}").report(Succeeded())
            assert head_seen_elsewhere(path) == service.core.view.position
        assert verify(service.core.store.read()).holds


def test_a_log_that_was_deleted_while_open_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Standby(Core(SQLiteStore(path), instance="a"), Settings(policy=chain())) as service:
        path.unlink()
        with pytest.raises(LogError, match="moved or deleted"):
            list(service.core.store.read())
        with pytest.raises(LogError, match="moved or deleted"):
            service.start_turn(session="s")


@pytest.mark.parametrize(
    "say",
    [
        lambda w: w.turn(deadline_ms=START_MS + 0.5),
        lambda w: w.turn(timeout_ms=1.5),
        lambda w: w.turn(input_tokens=2**70),
        lambda w: w.turn(session="\ud800"),
        lambda w: w.turn().report(Succeeded(usage=Usage(input=1.0))),  # type: ignore[arg-type]  # on purpose
        lambda w: w.turn().report(Succeeded(stop="nonsense")),  # type: ignore[arg-type]  # on purpose
    ],
)
@pytest.mark.invariant(11)
def test_what_could_not_be_read_again_is_not_written(say: Callable[[World], Any]) -> None:
    world = World()
    turn = world.turn("before")
    with pytest.raises(BadReport):
        say(world)
    world.answer(turn)
    assert load_view(world.store).position == world.view.position
    world.proved()


@pytest.mark.invariant(10, 15)
def test_plain_words_decide_what_their_members_decide() -> None:
    world = World()
    step = world.turn("a").report(Failed(reply=Reply(origin="abort", message="stopped")))  # type: ignore[arg-type]  # on purpose
    assert isinstance(step, Settled)
    turn = world.turn("b")
    step = turn.report(Succeeded(stop="incomplete"))  # type: ignore[arg-type]  # on purpose
    assert isinstance(step, Settled)
    assert not step.answered
    assert StopKind.INCOMPLETE in {getattr(report, "stop", None) for report in turn.state.reports}
    world.proved()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status="500"), Failure.SERVER_ERROR),  # type: ignore[arg-type]  # on purpose
        (Reply(status=429, headers=[("Retry-After", "7")]), Failure.RATE_LIMIT),  # type: ignore[arg-type]  # on purpose
        (Reply(status=500, headers=None), Failure.SERVER_ERROR),  # type: ignore[arg-type]  # on purpose
        (Reply(status=401, code=5), Failure.AUTH),  # type: ignore[arg-type]  # on purpose
        (Reply(status=401, code="\ud800"), Failure.AUTH),
        (TimeoutError("deadline"), Failure.TIMEOUT),
    ],
)
def test_a_report_is_never_refused_for_its_clothes(reply: Reply | Exception, reason: Failure) -> None:
    world = World()
    turn = world.turn()
    turn.report(reply)
    assert turn.state.attempts[0].reason is reason
    world.proved()


def test_what_is_no_report_says_so() -> None:
    with pytest.raises(BadReport, match="str is no report"):
        World().turn().report("it failed")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("position", [0, -3])
@pytest.mark.invariant(11)
def test_a_checkpoint_before_the_start_is_neither_used_nor_proved(position: int) -> None:
    world = World()
    forged = CheckpointRow(position, START.hash, VERSION, dump(View()))
    world.store.save_checkpoint(forged)
    assert load_view(world.store).position == world.view.position
    report = verify(world.store.read(), checkpoint=forged, encode_view=dump)
    assert "before its start" in report.problem


@pytest.mark.invariant(11)
def test_names_that_went_without_an_erasure_are_missed(store: SQLiteStore) -> None:
    world = World(store=store)
    world.answer(world.turn())
    store._connection.execute("DELETE FROM side_entries WHERE text = 'openai:one'")
    report = verify(store.read(), side_entry=store.side_entry, side_entries=store.side_entries())
    assert report.refused_at == 3
    assert "missing and was not erased" in report.problem


@pytest.mark.invariant(11)
def test_an_altered_text_is_named_by_its_position_and_cannot_change_its_owner(store: SQLiteStore) -> None:
    world = World(store=store)
    turn = world.turn()
    world.fail(turn, "auth")
    at = store.head().position
    store._connection.execute("UPDATE side_entries SET subject = 's-nobody' WHERE kind = 'text'")
    report = verify(store.read(), side_entry=store.side_entry, side_entries=store.side_entries())
    assert report.refused_at == at


def test_a_clock_that_ran_ahead_does_not_freeze_its_runtime() -> None:
    world = World(chain("openai/alpha"))
    turn, other = world.turn("under way"), world.turn("another")
    right = world.now_ms
    world.now_ms += 10 * 365 * 86_400_000
    world.service.reset("somebody")
    world.now_ms = right + 1000
    step = world.fail(turn, "server_error")
    assert isinstance(step, Wait)
    assert step.until_ms < right + 60_000
    assert isinstance(world.wait(turn), CallModel)
    world.answer(turn)
    world.answer(other)
    assert world.view.runtimes["main"].epoch == 2
    world.proved()


def test_a_clock_that_is_set_back_a_little_is_waited_out() -> None:
    world = World()
    world.answer(world.turn("a"))
    world.now_ms -= 5_000
    world.answer(world.turn("b"))
    assert world.view.runtimes["main"].epoch == 1
    world.proved()


def test_a_trigger_that_could_keep_what_is_erased_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SQLiteStore(path)
    store._connection.execute(
        "CREATE TRIGGER keeper BEFORE DELETE ON side_entries BEGIN SELECT raise(IGNORE); END"
    )
    store.close()
    with pytest.raises(DamagedLog, match="keeper"):
        SQLiteStore(path)

"""The history of turns, as a fold over commits (`standby.projections.history`)."""

from standby.events.codec import decode
from standby.events.decisions import TurnAnswered, TurnFailed
from standby.events.facts import CallFailed, CallSucceeded, CallUnknown, WaitEnded
from standby.events.vocabulary import Effects, Failure, KeptBecause
from standby.hosts.reports import Succeeded, Unknown
from standby.projections.history import History, TurnHistory
from tests.harness import A, B, World, chain


def told(world: World, turn: str) -> TurnHistory:
    history = History()
    for row in world.store.read():
        history.fold(row.position, decode(row.body, row.position))
    return history.turns[turn]


def test_attempts_waits_and_the_end_are_in_order_and_timed() -> None:
    world = World(chain(A, B))
    turn = world.turn(turn="t")
    world.sleep(300)
    world.fail(turn, "overloaded")
    world.wait(turn)
    world.sleep(200)
    world.answer(turn)
    found = told(world, "t")
    first, second = found.attempts
    assert isinstance(first.report, CallFailed)
    assert isinstance(second.report, CallSucceeded)
    assert first.ended_ms is not None
    assert first.ended_ms - first.started_ms == 300
    assert first.classified is not None
    assert first.classified.reason is Failure.OVERLOADED
    (wait,) = found.waits
    assert (wait.at_ms, wait.ended_ms) == (first.ended_ms, second.started_ms)
    assert wait.ended_ms == wait.decided.until_ms
    assert isinstance(found.end, TurnAnswered)
    assert found.ended_ms == second.ended_ms
    assert [one.position for one in found.events] == sorted(one.position for one in found.events)
    assert [one.event for one in found.events if one.fact] == [
        found.request,
        first.report,
        WaitEnded(turn="t"),
        second.report,
    ]


def test_skips_and_notices_are_kept() -> None:
    world = World(chain(A, B))
    world.run("s", "billing", turn="t")
    world.run("s", turn="u")
    first, second = told(world, "t"), told(world, "u")
    (notice,) = first.notices
    assert (notice.decided.selected, notice.decided.active) == (A, B)
    assert notice.delivered_ms is None
    (skip,) = second.skips
    assert (skip.decided.model, skip.decided.reason, skip.before_attempt) == (A, Failure.BILLING, 1)
    assert second.notices == []


def test_a_late_report_ends_nothing() -> None:
    world = World(chain(A))
    turn = world.turn(turn="t")
    turn.cancel()
    before = told(world, "t")
    assert isinstance(before.end, TurnFailed)
    assert before.attempts[0].ended_ms is None
    world.sleep(50)
    turn.report(Succeeded(effects=Effects.NONE))
    after = told(world, "t")
    assert after.attempts[0].ended_ms is None
    (kept,) = after.kept
    assert kept.because is KeptBecause.LATE
    assert after.ended_ms == before.ended_ms


def test_a_call_that_nobody_saw_end() -> None:
    world = World(chain(A, B))
    world.turn(turn="t")
    world.restart()
    turn = world.service.reopen("t")
    turn.report(Unknown(effects=Effects.NONE))
    (first, *_) = told(world, "t").attempts
    assert isinstance(first.report, CallUnknown)
    assert first.classified is not None
    assert first.classified.reason is Failure.INTERRUPTED


def test_only_what_is_wanted_is_kept() -> None:
    world = World(chain(A, B))
    world.run("s", turn="t")
    world.run("s", turn="u")
    history = History(("u",), events=False)
    for row in world.store.read():
        history.fold(row.position, decode(row.body, row.position))
    assert list(history.turns) == ["u"]
    assert history.turns["u"].events == []
    assert len(history.turns["u"].attempts) == 1

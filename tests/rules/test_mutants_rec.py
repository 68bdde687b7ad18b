"""REC, closer: what is said of a retry, and what comes after a repair."""

import pytest

from standby.engine.steps import CallModel, Repair, Settled, Wait
from standby.events import decisions as d
from standby.events.vocabulary import Effects, Failure, TurnEnd, WaitBecause
from tests.harness import A, B, World, chain, of


@pytest.mark.rule("REC-6")
@pytest.mark.parametrize("effects", [Effects.NONE, Effects.POSSIBLE])
def test_only_a_retry_that_continues_says_so(effects: Effects) -> None:
    w = World(chain(A, B))
    turn = w.turn(continuable=True)
    assert isinstance(w.fail(turn, "overloaded", effects=effects), Wait)
    (scheduled,) = of(turn, d.RetryScheduled)
    assert ("REC-6" in scheduled.rules) is (effects is Effects.POSSIBLE)
    step = w.wait(turn)
    assert isinstance(step, CallModel)
    assert step.continuation is (effects is Effects.POSSIBLE)


@pytest.mark.rule("CLS-33")
@pytest.mark.parametrize("repaired", [True, False])
def test_a_format_failure_with_a_cure_is_sent_again_whole_once_it_is_cured_and_shown_otherwise(
    repaired: bool,
) -> None:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, "format", format_repair=True)
    assert isinstance(step, Repair)
    assert step.reason is Failure.FORMAT
    step = turn.repaired(repaired)
    if repaired:
        assert isinstance(step, CallModel)
        assert (step.model, step.continuation) == (A, False)
        step = w.fail(turn, "format", format_repair=True)
    assert isinstance(step, Settled)
    assert (step.end, step.reason) == (TurnEnd.SURFACED, Failure.FORMAT)


@pytest.mark.rule("REC-7")
def test_a_turn_that_no_longer_waits_holds_nothing_of_the_wait() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, "overloaded")
    assert isinstance(step, Wait)
    assert (turn.state.until_ms, turn.state.waits_for) == (step.until_ms, WaitBecause.RETRY)
    w.wait(turn)
    assert (turn.state.until_ms, turn.state.waits_for) == (None, None)

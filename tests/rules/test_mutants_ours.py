"""OURS, closer: what is used up in a turn is never tried again, whatever happens in between."""

import pytest

from standby.engine.steps import CallModel, Wait
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import SkipBecause
from tests.harness import A, B, World, chain, of


@pytest.mark.rule("OURS-11")
def test_a_profile_that_was_left_is_not_gone_back_to_when_the_next_one_is_removed() -> None:
    w = World(
        chain(A, B, recovery=Recovery(rate_limit_retries=1)),
        {"openai": ["one", "two"], "anthropic": ["other"]},
    )
    turn = w.turn()
    assert isinstance(w.fail(turn, "auth"), CallModel)
    assert isinstance(w.fail(turn, "overloaded"), Wait)
    w.service.remove_profile("two")
    step = w.wait(turn)
    assert isinstance(step, CallModel)
    assert step.model == B
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.because, "OURS-11" in skip.rules) == (SkipBecause.USED_UP, True)


@pytest.mark.rule("OURS-11")
def test_a_call_without_a_profile_is_used_up_like_any_other() -> None:
    w = World(chain(A, B), {"anthropic": ["other"]})
    turn = w.turn()
    w.service.observe({"openai": ["late"], "anthropic": ["other"]})
    step = w.fail(turn, "auth")
    assert isinstance(step, CallModel)
    assert step.profile == "late"
    assert isinstance(w.fail(turn, "overloaded"), Wait)
    w.service.remove_profile("late")
    step = w.wait(turn)
    assert isinstance(step, CallModel)
    assert step.model == B
    assert [one.because for one in of(turn, d.CandidateSkipped)] == [SkipBecause.USED_UP]

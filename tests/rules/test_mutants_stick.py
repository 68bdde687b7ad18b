"""STICK, closer: what holds for one run passes, and the sticky fallback is still there."""

from typing import Any

import pytest

from standby.engine.steps import CallModel, Wait
from standby.events import decisions as d
from standby.events.policy import Recovery
from tests.harness import A, B, C, World, chain, of


def stuck() -> World:
    """The session is on its sticky fallback B."""
    w = World(chain(A, B, C, recovery=Recovery(max_retries=0)))
    w.run("s", "rate_limit")
    return w


@pytest.mark.rule("STICK-3")
@pytest.mark.parametrize(
    "fields",
    [{"locked": True}, {"selected_only": True}, {"fallbacks": [C]}, {"model": C}],
    ids=str,
)
def test_a_run_with_limits_of_its_own_neither_uses_the_sticky_fallback_nor_ends_it(
    fields: dict[str, Any],
) -> None:
    w = stuck()
    w.sleep(120_000)
    limited = w.turn(**fields)
    assert B not in [candidate.model for candidate in limited.state.candidates[:1]]
    assert of(limited, d.StickyEnded) == []
    limited.cancel()
    assert w.turn().state.candidates[0].model == B


@pytest.mark.rule("STICK-1", "ADV-13")
def test_an_answer_that_a_refusal_led_to_is_no_rate_limit_although_one_came_before() -> None:
    first, second = "anthropic/alpha", "anthropic/beta"
    w = World(chain(first, second))
    turn = w.turn()
    assert isinstance(w.fail(turn, "rate_limit", retry_after=1), Wait)
    step = w.wait(turn)
    assert isinstance(step, CallModel)
    assert step.refusal_models == (second,)
    assert w.answer(turn, served=second).model == second
    assert of(turn, d.StickySet) == []
    assert w.turn().state.candidates[0].model == first


@pytest.mark.rule("STICK-2")
def test_a_turn_that_began_in_the_window_renews_it_although_it_is_answered_after_its_end() -> None:
    w = stuck()
    (began,) = w.decisions(d.StickySet)
    w.now_ms = began.until_ms - 1
    turn = w.turn()
    assert turn.state.candidates[0].model == B
    w.sleep(1_000)
    w.answer(turn)
    (renewed,) = of(turn, d.StickySet)
    assert (renewed.first_ms, renewed.until_ms) == (began.first_ms, w.now_ms + 600_000)

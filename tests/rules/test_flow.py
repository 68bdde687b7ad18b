"""FLOW: one turn from end to end."""

import pytest

from standby.engine.steps import Settled, Wait
from standby.events import decisions as d
from standby.events import errors
from standby.events.facts import Usage
from standby.events.policy import Price, Recovery
from standby.events.vocabulary import Failure, SkipBecause, StopKind, TurnEnd
from standby.hosts.reports import Succeeded
from standby.projections.costs import usage_of
from tests.harness import FAILURES, START_MS, A, B, C, World, chain, of, reply

AT_ONCE = Recovery(max_retries=0)
"""No same-model recovery: what comes after it is looked at."""

TWO_EACH = {"openai": ["o1", "o2"], "anthropic": ["a1", "a2"], "google": ["g1"]}


@pytest.mark.rule("FLOW-1")
def test_profiles_of_a_provider_take_turns_before_the_next_model() -> None:
    w = World(chain(A, B, C), TWO_EACH)
    turn = w.turn()
    for _ in range(4):
        w.fail(turn, "auth")
    assert w.tried(turn) == [(A, "o1"), (A, "o2"), (B, "a1"), (B, "a2"), (C, "g1")]
    assert [one.model for one in of(turn, d.ChainAdvanced) if "FLOW-1" in one.rules] == [B, C]
    w.proved()


@pytest.mark.rule("FLOW-2")
def test_the_chain_comes_first_then_cooldowns_then_a_call_and_at_the_end_the_failure() -> None:
    w = World(chain(A, B), TWO_EACH)
    w.run("other", "billing", "billing")
    turn = w.turn()
    # Both openai profiles are disabled by now, so the first candidate is passed over before any call.
    assert [type(one) for one in turn.commits[0].decisions] == [
        d.ChainPlanned,
        d.CandidateSkipped,
        d.PinSet,
        d.AttemptStarted,
    ]
    skip = of(turn, d.CandidateSkipped)[0]
    assert (skip.model, skip.because, skip.reason) == (A, SkipBecause.COOLDOWN, Failure.BILLING)
    w.fail(turn, "auth")
    step = w.fail(turn, "auth")
    assert isinstance(step, Settled)
    assert (step.answered, step.end) == (False, TurnEnd.EXHAUSTED)
    planned = of(turn, d.ChainPlanned)[0]
    assert "FLOW-2" in planned.rules
    assert all("FLOW-2" in one.rules for one in of(turn, d.AttemptStarted)[:1])
    w.proved()


@pytest.mark.rule("FLOW-3")
def test_the_same_model_again_then_another_profile_then_another_model() -> None:
    w = World(chain(A, B, recovery=Recovery(max_retries=1)), TWO_EACH)
    turn = w.turn()
    step = w.fail(turn, "rate_limit")
    assert isinstance(step, Wait)
    assert "FLOW-3" in of(turn, d.RetryScheduled)[0].rules
    w.wait(turn)
    w.fail(turn, "rate_limit")
    w.fail(turn, "rate_limit")
    assert w.tried(turn) == [(A, "o1"), (A, "o1"), (A, "o2"), (B, "a1")]


@pytest.mark.rule("FLOW-4")
def test_a_fallback_serves_its_turn_and_selects_nothing() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    first = w.turn()
    w.fail(first, "overloaded")
    settled = w.answer(first)
    assert (settled.model, settled.selected) == (B, A)
    answered = of(first, d.TurnAnswered)[0]
    assert answered.fallback
    assert "FLOW-4" in answered.rules
    session = w.view.sessions.get(w.view.turns[first.id].request.session)  # type: ignore[union-attr]  # it is there
    assert session is not None
    assert (session.model, session.switched) == ("", 0)
    assert session.announced is not None, "notice state is what a fallback persists"
    second = w.turn()
    assert w.tried(second) == [(A, "openai:one")]
    planned = of(second, d.ChainPlanned)[0]
    assert (planned.selected, [one.model for one in planned.candidates]) == (A, [A, B])


AMBIGUOUS = reply(404, {"error": {"message": "Not Found"}})
PLAN = reply(403, {"error": {"message": "Your plan does not include access to this model"}})


@pytest.mark.rule("FLOW-8")
@pytest.mark.parametrize(
    ("failed", "then"),
    [
        (FAILURES["model_not_found"], (B, "a1")),
        (AMBIGUOUS, (A, "o2")),
        (PLAN, (A, "o2")),
        (FAILURES["auth"], (A, "o2")),
        (
            reply(429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}),
            (A, "o2"),
        ),
    ],
    ids=["named", "ambiguous", "plan", "auth", "quota"],
)
def test_only_a_model_that_is_named_as_missing_passes_over_the_other_credentials(
    failed: object, then: tuple[str, str]
) -> None:
    w = World(chain(A, B, recovery=AT_ONCE), TWO_EACH)
    turn = w.turn()
    w.fail(turn, failed)  # type: ignore[arg-type]  # replies of the table
    assert w.tried(turn)[-1] == then
    assert any("FLOW-8" in one.rules for one in of(turn, d.ChainAdvanced)) == (then == (B, "a1"))


@pytest.mark.rule("FLOW-8")
def test_a_missing_model_without_a_fallback_is_surfaced() -> None:
    w = World(chain(A), TWO_EACH)
    turn = w.turn()
    step = w.fail(turn, "model_not_found")
    assert isinstance(step, Settled)
    assert (step.end, step.reason) == (TurnEnd.SURFACED, Failure.MODEL_NOT_FOUND)
    assert len(step.attempts) == 1, "no other credential was asked"
    assert "FLOW-8" in of(turn, d.TurnFailed)[0].rules


PRICES = {A: Price(input=1_000_000, output=2_000_000), B: Price(input=3_000_000, output=6_000_000)}


def _dropped_then_answered() -> tuple[World, Settled]:
    w = World(chain(A, B))
    turn = w.turn()
    turn.report(Succeeded(stop=StopKind.INCOMPLETE, fallback_worthy=True, usage=Usage(input=100, output=10)))
    return w, w.answer(turn, usage=Usage(input=200, output=20))


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
def test_every_completed_candidate_is_counted_at_its_own_price() -> None:
    w, settled = _dropped_then_answered()
    used = usage_of(settled.usages, PRICES)
    # 100 × 1 + 10 × 2 for the answer that was dropped, 200 × 3 + 20 × 6 for the one that stands.
    assert used.cost_trillionths == (100 * 1 + 10 * 2 + 200 * 3 + 20 * 6) * 1_000_000
    assert (used.input, used.output) == (300, 30)
    assert (used.model, used.context) == (B, 220), "model and context are the final model's last call"
    w.proved()


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
@pytest.mark.parametrize("priced", [A, B])
def test_one_unknown_price_makes_the_whole_cost_unknown(priced: str) -> None:
    _, settled = _dropped_then_answered()
    used = usage_of(settled.usages, {priced: PRICES[priced]})
    assert used.cost_trillionths is None
    assert used.cost is None


@pytest.mark.rule("FLOW-13")
def test_a_call_that_failed_before_it_completed_has_no_price() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    w.fail(turn, "auth")
    settled = w.answer(turn, usage=Usage(input=200, output=20))
    assert usage_of(settled.usages, {B: PRICES[B]}).cost_trillionths == (200 * 3 + 20 * 6) * 1_000_000


@pytest.mark.rule("FLOW-13")
def test_responses_inside_an_attempt_are_counted_once() -> None:
    w = World(chain(A))
    turn = w.turn()
    turn.response_completed(Usage(input=100, output=10))
    turn.response_completed(Usage(input=150, output=5))
    settled = w.answer(turn)
    used = usage_of(settled.usages, PRICES)
    assert (used.input, used.output, used.context) == (250, 15, 155)
    assert used.cost_trillionths == (250 * 1 + 15 * 2) * 1_000_000


@pytest.mark.rule("FLOW-14")
def test_exhaustion_keeps_a_record_of_each_attempt_and_the_soonest_expiry() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=300)
    step = w.fail(turn, "rate_limit", retry_after=120)
    assert isinstance(step, Settled)
    assert (step.answered, step.end, step.reason) == (False, TurnEnd.EXHAUSTED, Failure.RATE_LIMIT)
    assert [(a.model, a.profile, a.reason, a.status) for a in step.attempts] == [
        (A, "openai:one", Failure.RATE_LIMIT, 429),
        (B, "anthropic:one", Failure.RATE_LIMIT, 429),
    ]
    assert (step.soonest_ms, step.soonest_model) == (START_MS + 120_000, B)
    assert "FLOW-14" in of(turn, d.TurnFailed)[0].rules
    raised = errors.TurnFailed("all models failed", step)
    assert (raised.settled.attempts, raised.soonest_ms) == (step.attempts, START_MS + 120_000)


@pytest.mark.rule("FLOW-14")
def test_without_a_known_expiry_none_is_made_up() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    turn = w.turn()
    w.fail(turn, "overloaded")
    step = w.fail(turn, "overloaded")
    assert isinstance(step, Settled)
    assert (step.end, step.soonest_ms, step.soonest_model) == (TurnEnd.EXHAUSTED, None, "")

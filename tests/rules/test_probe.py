"""PROBE: every profile of a provider cools. Is it passed over, or checked?"""

from typing import Any

import pytest

from standby.engine.steps import CallModel, Settled
from standby.events import decisions as d
from standby.events.policy import Probes, Recovery
from standby.events.vocabulary import Failure, SkipBecause
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, World, chain, of

AT_ONCE = Recovery(max_retries=0)
A2 = "openai/alpha-two"
A3 = "openai/alpha-three"


def world(*models: str, **fields: Any) -> World:
    return World(chain(*(models or (A, B)), recovery=AT_ONCE, **fields))


def blocked(kind: str, seconds: float = 3600, *models: str, **fields: Any) -> World:
    """A world in which the only openai profile was blocked a moment ago."""
    w = world(*models, **fields)
    turn = w.turn("blocker")
    w.fail(turn, kind, retry_after=seconds)
    turn.cancel()
    return w


def called(turn: TurnHandle) -> tuple[str, bool]:
    step = turn.step
    assert isinstance(step, CallModel), step
    return step.model, step.probe


def skips(turn: TurnHandle) -> list[d.CandidateSkipped]:
    return of(turn, d.CandidateSkipped)


@pytest.mark.rule("PROBE-1")
def test_each_candidate_of_a_cooling_provider_is_decided_on_its_own() -> None:
    # The limit is the first model's: a sibling is not blocked by it, and the provider not out for ever.
    w = blocked("rate_limit", 3600, A, A2, B)
    turn = w.turn()
    (skip,) = skips(turn)
    assert (skip.model, called(turn)) == (A, (A2, False))
    w.sleep(3_600_000 - 120_000)
    near = w.turn("near")
    assert called(near) == (A, True)
    assert "PROBE-1" in of(near, d.ProbeAdmitted)[0].rules


@pytest.mark.rule("PROBE-1")
def test_a_fallback_whose_provider_cools_is_passed_over_and_says_until_when() -> None:
    w = world(A, B)
    turn = w.turn("blocker")
    w.fail(turn, "auth")
    w.fail(turn, "rate_limit", retry_after=900)
    w.sleep(300_000)
    again = w.turn()
    assert called(again) == (A, False)
    assert isinstance(w.fail(again, "overloaded"), Settled)
    (skip,) = skips(again)
    assert (skip.model, skip.because, skip.reason) == (B, SkipBecause.COOLDOWN, Failure.RATE_LIMIT)
    assert "PROBE-1" in skip.rules


@pytest.mark.rule("PROBE-2")
def test_an_unpaid_account_is_passed_over_but_the_primary_checks_it_on_a_throttle() -> None:
    w = blocked("billing")
    far = w.turn("far")
    assert called(far) == (B, False)
    assert "PROBE-2" in skips(far)[0].rules
    w.sleep(8 * 60_000)
    near = w.turn("near")
    assert called(near) == (A, True)
    assert "PROBE-2" in of(near, d.ProbeAdmitted)[0].rules
    w.sleep(29_999)
    assert called(w.turn("throttled")) == (B, False)
    w.sleep(1)
    assert called(w.turn("again")) == (A, True)


@pytest.mark.rule("PROBE-2")
def test_an_unpaid_fallback_is_passed_over() -> None:
    w = world(A, B)
    first = w.turn("blocker")
    w.fail(first, "overloaded")
    w.fail(first, "billing")
    w.sleep(9 * 60_000)
    turn = w.turn()
    assert isinstance(w.fail(turn, "overloaded"), Settled)
    (skip,) = skips(turn)
    assert (skip.reason, skip.rules[0]) == (Failure.BILLING, "PROBE-2")


@pytest.mark.rule("PROBE-2")
def test_without_a_fallback_an_unpaid_account_is_checked_at_any_time_and_on_the_throttle() -> None:
    w = blocked("billing", 3600, A)
    assert called(w.turn("one")) == (A, True)
    assert isinstance(w.turn("two").step, Settled)
    w.sleep(30_000)
    assert called(w.turn("three")) == (A, True)
    limited = blocked("rate_limit", 3600, A)
    assert isinstance(limited.turn().step, Settled), "a stated deadline is not second-guessed"


@pytest.mark.rule("PROBE-3")
@pytest.mark.parametrize(("left_ms", "checked"), [(120_000, True), (120_001, False)])
def test_the_primary_is_checked_near_the_end_of_its_cooldown(left_ms: int, checked: bool) -> None:
    w = blocked("rate_limit", 3600)
    w.sleep(3_600_000 - left_ms)
    turn = w.turn()
    assert called(turn) == ((A, True) if checked else (B, False))
    decided = of(turn, d.ProbeAdmitted) if checked else skips(turn)
    assert "PROBE-3" in decided[0].rules


@pytest.mark.rule("PROBE-3")
def test_the_throttle_counts_by_provider_and_process() -> None:
    w = blocked("rate_limit", 100)
    assert called(w.turn("one")) == (A, True)
    w.sleep(29_999)
    assert called(w.turn("two")) == (B, False)
    other = w.other().start_turn(session="elsewhere")
    assert called(other) == (A, True), "another process has a throttle of its own"
    w.sleep(1)
    assert called(w.turn("three")) == (A, True)


@pytest.mark.rule("PROBE-3")
def test_margin_and_throttle_are_settings() -> None:
    w = blocked("rate_limit", 3600, probes=Probes(interval_ms=1000, margin_ms=3_600_000))
    assert called(w.turn("one")) == (A, True)
    w.sleep(1000)
    assert called(w.turn("two")) == (A, True)


def timed_out(*models: str) -> World:
    """Both models of openai were blocked: by a timeout, for 30 s."""
    w = world(*models)
    for name, model in (("one", A), ("two", A2), ("three", A3)):
        turn = w.turn(name, model=model, fallbacks=[B])
        w.fail(turn, "stream_timeout")
        turn.cancel()
    # Somebody checks the primary, so that the throttle keeps it from being checked again below.
    w.turn("check").cancel()
    return w


@pytest.mark.rule("PROBE-4")
def test_a_sibling_of_the_provider_is_tried_when_what_blocks_it_looks_transient() -> None:
    w = timed_out(A, A2, B)
    turn = w.turn()
    assert called(turn) == (A2, True)
    (check,) = of(turn, d.ProbeAdmitted)
    assert (check.primary, "PROBE-4" in check.rules) == (False, True)


@pytest.mark.rule("PROBE-4")
def test_a_missing_model_does_not_look_transient() -> None:
    w = world(A, A2, B)
    for name, model in (("one", A), ("two", A2)):
        turn = w.turn(name, model=model, fallbacks=[B])
        w.fail(turn, "stream_timeout" if model == A else "model_not_found")
        turn.cancel()
    w.turn("check").cancel()
    turn = w.turn()
    assert called(turn) == (B, False)
    assert [skip.reason for skip in skips(turn)] == [Failure.TIMEOUT, Failure.MODEL_NOT_FOUND]


@pytest.mark.rule("PROBE-5")
def test_a_provider_gets_one_transient_check_in_a_turn() -> None:
    w = timed_out(A, A2, A3, B)
    turn = w.turn()
    assert called(turn) == (A2, True)
    step = w.fail(turn, "stream_timeout")
    assert isinstance(step, CallModel)
    assert step.model == B
    assert [(one.model, one.because) for one in skips(turn)] == [
        (A, SkipBecause.COOLDOWN),
        (A3, SkipBecause.PROBED_ALREADY),
    ]
    assert "PROBE-5" in skips(turn)[1].rules


@pytest.mark.rule("PROBE-5")
@pytest.mark.parametrize("kind", ["model_not_found", "unclassified", "billing"])
def test_a_check_that_failed_for_another_reason_gives_its_slot_back(kind: str) -> None:
    w = timed_out(A, A2, A3, B)
    turn = w.turn()
    w.fail(turn, kind)
    (failed,) = of(turn, d.FailureClassified)
    assert failed.probe_returned is (kind == "model_not_found")
    assert called(turn) == ((A3, True) if kind == "model_not_found" else (B, False))


@pytest.mark.rule("PROBE-6")
@pytest.mark.parametrize("kind", ["auth", "auth_permanent"])
def test_a_persistent_auth_failure_passes_the_whole_provider_over_at_once(kind: str) -> None:
    w = blocked(kind, 3600, A, A2, B)
    turn = w.turn()
    assert called(turn) == (B, False)
    assert [(one.model, one.because) for one in skips(turn)] == [(A, SkipBecause.AUTH), (A2, SkipBecause.AUTH)]
    assert all("PROBE-6" in one.rules for one in skips(turn))


@pytest.mark.rule("PROBE-6")
def test_a_profile_that_only_cools_is_checked_beside_one_that_cannot_authenticate() -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn("blocker")
    w.fail(turn, "auth_permanent")
    w.fail(turn, "rate_limit", retry_after=60)
    step = w.turn().step
    assert isinstance(step, CallModel)
    assert (step.profile, step.probe) == ("o2", True)

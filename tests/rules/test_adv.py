"""ADV: which failures move a turn on along its chain, and which end it."""

from typing import Any

import pytest

from standby.engine.steps import CallModel, Repair, Settled, Step
from standby.events import decisions as d
from standby.events.policy import Consent, ModelChain, Policy, Recovery
from standby.events.vocabulary import CredentialKind, Effects, Failure, Origin, StopKind, TurnEnd, TurnKind
from standby.hosts.reports import Profile, Succeeded, Switched
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, C, World, chain, of, reply

AT_ONCE = Recovery(max_retries=0)
CEILING = reply(
    413,
    {
        "error": {
            "message": "Request too large for model `alpha` on tokens per minute (TPM): "
            "Limit 8000, Requested 8098",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        }
    },
)
ABORT = reply(None, None, message="The operation was cancelled by the user", origin=Origin.ABORT)
ABORT_BY_TIME = reply(None, None, message="request timed out", code="ETIMEDOUT", origin=Origin.ABORT)


def world(*models: str, **fields: Any) -> World:
    return World(chain(*(models or (A, B)), recovery=AT_ONCE, **fields))


def moved(step: Step) -> str:
    """The model that is called now, or how the turn ended."""
    if isinstance(step, CallModel):
        return step.model
    assert isinstance(step, Settled), step
    return f"{step.end}"


@pytest.mark.rule("ADV-1")
@pytest.mark.parametrize(
    "kind",
    [
        "auth",
        "auth_permanent",
        "rate_limit",
        "overloaded",
        "timeout",
        "billing",
        "model_not_found",
        "server_error",
        "unclassified",
        "tls",
        reply(None, ""),
        reply(None, None, message="Unknown error (no error details in response)"),
        reply(404, {"error": {"message": "session not found"}}),
    ],
)
def test_these_failures_move_the_turn_on(kind: object) -> None:
    w = world()
    turn = w.turn()
    assert moved(w.fail(turn, kind)) == B  # type: ignore[arg-type]  # the harness takes it
    (advanced,) = of(turn, d.ChainAdvanced)
    assert {"ADV-1", "FLOW-8"} & set(advanced.rules)


@pytest.mark.rule("ADV-1")
def test_exhaustion_by_cooldown_moves_the_turn_on() -> None:
    w = world()
    turn = w.turn("s")
    w.fail(turn, "rate_limit", retry_after=900)
    assert moved(w.turn("other").step) == B


@pytest.mark.rule("ADV-2")
def test_an_explicit_abort_ends_the_turn_and_one_by_time_does_not() -> None:
    w = world()
    turn = w.turn()
    assert moved(w.fail(turn, ABORT)) == TurnEnd.CANCELLED
    assert "ADV-2" in of(turn, d.TurnFailed)[0].rules
    assert moved(w.fail(w.turn("by-time"), ABORT_BY_TIME)) == B


@pytest.mark.rule("ADV-2")
def test_a_last_unknown_error_is_shown_as_itself() -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "auth")
    assert moved(w.fail(turn, "unclassified")) == TurnEnd.SURFACED
    (failed,) = of(turn, d.TurnFailed)
    assert (failed.reason, failed.rules[0]) == (Failure.UNCLASSIFIED, "ADV-2")
    w.sleep(600_000)
    known = w.turn("known")
    w.fail(known, "unclassified")
    assert moved(w.fail(known, "auth")) == TurnEnd.EXHAUSTED


@pytest.mark.rule("ADV-4")
def test_an_overflow_moves_on_once_it_cannot_be_made_to_fit() -> None:
    w = world()
    turn = w.turn()
    for _ in range(2):
        step = w.fail(turn, "context_overflow", repairable=True)
        assert isinstance(step, Repair)
        assert step.reason is Failure.CONTEXT_OVERFLOW
        assert moved(turn.repaired(True)) == A
    assert moved(w.fail(turn, "context_overflow", repairable=True)) == B, "not for ever"
    assert "ADV-4" in of(turn, d.RepairOrdered)[0].rules
    single = w.turn("a message that cannot shrink")
    assert moved(w.fail(single, "context_overflow")) == B
    failed = w.turn("failed repair")
    w.fail(failed, "context_overflow", repairable=True)
    assert moved(failed.repaired(False)) == B
    assert "ADV-4" in of(failed, d.ChainAdvanced)[0].rules
    w.proved()


@pytest.mark.rule("ADV-4")
def test_locks_empty_overrides_and_the_operators_limits_still_hold() -> None:
    w = world(consent=(Consent(reason=Failure.CONTEXT_OVERFLOW, models=(C,)),))
    limits: list[dict[str, Any]] = [{"locked": True}, {"fallbacks": []}, {}]
    for fields in limits:
        turn = w.turn("s", **fields)
        assert moved(w.fail(turn, "context_overflow")) == TurnEnd.EXHAUSTED


@pytest.mark.rule("ADV-6")
def test_a_switch_to_the_present_or_an_earlier_candidate_is_stale() -> None:
    w = world(A, B, C)
    turn = w.turn()
    assert moved(turn.report(Switched(model=A, effects=Effects.NONE))) == B
    assert moved(turn.report(Switched(model=A, effects=Effects.NONE))) == C
    assert all("ADV-6" in one.rules and not one.redirect for one in of(turn, d.ChainAdvanced))
    w.proved()


@pytest.mark.rule("ADV-7")
def test_a_size_ceiling_moves_on_where_embedded_recovery_was_bypassed() -> None:
    w = world()
    turn = w.turn(owns_transport=True)
    assert moved(w.fail(turn, CEILING)) == B
    assert "ADV-7" in of(turn, d.ChainAdvanced)[0].rules
    assert moved(w.fail(w.turn("embedded"), CEILING)) == TurnEnd.SURFACED
    unsafe = w.turn("unsafe", owns_transport=True)
    assert moved(w.fail(unsafe, CEILING, effects=Effects.COMMITTED)) == TurnEnd.UNSAFE


@pytest.mark.rule("ADV-12")
def test_a_size_ceiling_inside_an_embedded_run_is_final_and_not_compacted() -> None:
    w = world()
    turn = w.turn()
    assert moved(w.fail(turn, CEILING, repairable=True)) == TurnEnd.SURFACED
    assert "ADV-12" in of(turn, d.TurnFailed)[0].rules
    assert not of(turn, d.RepairOrdered)


def stopped_short(turn: TurnHandle, **fields: Any) -> Step:
    return turn.report(Succeeded(stop=StopKind.INCOMPLETE, **fields))


@pytest.mark.rule("ADV-8")
def test_an_incomplete_reply_does_not_move_the_chain_because_it_is_safe_to_replay() -> None:
    w = world()
    turn = w.turn(continuable=True)
    assert isinstance(stopped_short(turn), Repair)
    step = turn.repaired(True)
    assert isinstance(step, CallModel)
    assert (step.model, step.continuation) == (A, True)
    ended = stopped_short(turn)
    assert isinstance(ended, Settled)
    assert (ended.end, ended.reason) == (TurnEnd.SURFACED, Failure.EMPTY_RESPONSE)
    assert not of(turn, d.ChainAdvanced)
    assert turn.failure is not None
    assert "without an answer" in turn.failure.text
    w.proved()


@pytest.mark.rule("ADV-8")
def test_an_incomplete_reply_that_cannot_be_continued_is_shown() -> None:
    w = world()
    assert moved(stopped_short(w.turn())) == TurnEnd.SURFACED
    given_up = w.turn("given up", continuable=True)
    stopped_short(given_up)
    ended = given_up.repaired(False)
    assert isinstance(ended, Settled)
    assert (ended.end, ended.reason) == (TurnEnd.SURFACED, Failure.EMPTY_RESPONSE)


@pytest.mark.rule("ADV-8")
def test_the_harness_may_class_an_incomplete_reply_as_a_failure_of_the_model() -> None:
    w = world()
    turn = w.turn()
    assert moved(stopped_short(turn, fallback_worthy=True)) == B
    assert "ADV-8" in of(turn, d.ChainAdvanced)[0].rules
    unsafe = w.turn("unsafe")
    ended = stopped_short(unsafe, fallback_worthy=True, effects=Effects.COMMITTED)
    assert moved(ended) == TurnEnd.SURFACED


@pytest.mark.rule("ADV-8")
def test_a_turn_that_owes_no_answer_ends_silently() -> None:
    w = world()
    turn = w.turn(kind=TurnKind.BACKGROUND, answer_required=False, continuable=True)
    step = stopped_short(turn)
    assert isinstance(step, Settled)
    assert step.answered
    assert turn.due == []
    assert turn.failure is None


@pytest.mark.rule("ADV-9")
def test_a_refusal_ends_the_turn_and_the_next_message_starts_one_of_its_own() -> None:
    w = world()
    turn = w.turn(continuable=True)
    assert moved(w.fail(turn, "refusal", repairable=True)) == TurnEnd.SURFACED
    assert "ADV-9" in of(turn, d.TurnFailed)[0].rules
    assert not of(turn, d.RetryScheduled) + of(turn, d.RepairOrdered) + of(turn, d.ChainAdvanced)
    assert moved(w.turn().step) == A


@pytest.mark.rule("ADV-10")
def test_an_overflow_after_effects_or_delivery_stays_where_it_is() -> None:
    w = world()
    for fields in ({"effects": Effects.COMMITTED}, {"effects": Effects.POSSIBLE}, {"delivered": True}):
        turn = w.turn()
        assert moved(w.fail(turn, "context_overflow", repairable=True, **fields)) == TurnEnd.UNSAFE
        assert "ADV-10" in of(turn, d.TurnFailed)[0].rules


@pytest.mark.rule("ADV-11")
def test_an_answer_after_an_overflow_names_both_and_warns_each_time() -> None:
    w = world()
    for first in (True, False):
        turn = w.turn()
        w.fail(turn, "context_overflow")
        step = w.answer(turn)
        (answered,) = of(turn, d.TurnAnswered)
        assert (answered.model, answered.guidance) == (B, Failure.CONTEXT_OVERFLOW)
        assert "ADV-11" in answered.rules
        assert step.guidance is Failure.CONTEXT_OVERFLOW
        assert f"⚠️ The conversation no longer fits {A}; {B} answered instead." in turn.notices
        assert len(of(turn, d.NoticeDue)) == first
    plain = w.turn("plain")
    w.fail(plain, "auth")
    w.answer(plain)
    assert not [text for text in plain.notices if "fits" in text]


@pytest.mark.rule("ADV-11")
def test_if_no_candidate_succeeds_the_guidance_of_the_overflow_is_kept() -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "context_overflow")
    step = w.fail(turn, "auth")
    assert isinstance(step, Settled)
    assert (step.reason, step.guidance) == (Failure.AUTH, Failure.CONTEXT_OVERFLOW)
    assert turn.failure is not None
    assert "Shorten or compact" in turn.failure.text


B2, B3 = "anthropic/beta-two", "anthropic/beta-three"


def refused(kind: CredentialKind = CredentialKind.API_KEY, *models: str, **fields: Any) -> TurnHandle:
    profiles = [
        Profile(name="a1", provider="anthropic", kind=kind),
        Profile(name="o1", provider="openai"),
        Profile(name="g1", provider="google"),
    ]
    w = World(chain(*(models or (B, A, B2, B3))), profiles)
    return w.turn(**fields)


@pytest.mark.rule("ADV-13")
def test_a_direct_request_with_an_api_key_may_handle_a_refusal_inside_it() -> None:
    def inside(*args: Any, **fields: Any) -> tuple[str, ...]:
        step = refused(*args, **fields).step
        assert isinstance(step, CallModel)
        return step.refusal_models

    assert inside() == (B2, B3)
    assert inside(CredentialKind.OAUTH) == ()
    assert inside(harness="cli") == ()
    assert inside(owns_transport=True) == ()
    assert inside(fallbacks=[]) == (), "strict"
    assert inside(CredentialKind.API_KEY, A, "openai/alpha-two") == (), "other providers do not"


@pytest.mark.rule("ADV-13")
def test_the_model_that_the_provider_went_to_is_the_one_that_answered() -> None:
    turn = refused()
    assert "ADV-13" in of(turn, d.AttemptStarted)[0].rules
    step = turn.report(Succeeded(served=B2))
    assert isinstance(step, Settled)
    assert step.model == B2
    assert "ADV-13" in of(turn, d.TurnAnswered)[0].rules
    assert turn.notices == [f"↪️ Model Fallback: {B2} (selected {B}; refusal)"]
    elsewhere = refused().report(Succeeded(served=A))
    assert isinstance(elsewhere, Settled)
    assert elsewhere.model == B, "it was not allowed to go there"


@pytest.mark.rule("ADV-15")
def test_a_switch_to_a_later_candidate_jumps_straight_to_it() -> None:
    w = world(A, B, C)
    turn = w.turn()
    assert moved(turn.report(Switched(model=C, effects=Effects.NONE))) == C
    (advanced,) = of(turn, d.ChainAdvanced)
    assert (advanced.redirect, advanced.after, "ADV-15" in advanced.rules) == (True, A, True)
    assert B not in [model for model, _ in w.tried(turn)]
    w.proved()


@pytest.mark.rule("ADV-16")
def test_a_switch_out_of_the_chain_goes_back_to_the_owner_of_the_retry() -> None:
    w = World(Policy(models=ModelChain(primary=A, fallbacks=(B,)), aliases={"gem": C}))
    turn = w.turn()
    step = turn.report(Switched(model="gem", effects=Effects.NONE))
    assert isinstance(step, Settled)
    assert (step.end, step.target) == (TurnEnd.RETURNED, C)
    assert "ADV-16" in of(turn, d.TurnFailed)[0].rules
    assert turn.failure is None, "no failure is shown: the owner completes the turn"
    assert moved(w.turn(model=step.target, fallbacks=[]).step) == C

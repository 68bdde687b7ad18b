"""After a failed call: what it means, what it does to its profile, and what the turn does next.

The order never changes (FLOW-3): wait for the same model while its budget lasts, then rotate to another
profile of the provider, then go on along the chain; stop at once where another try cannot help, and where
something may have happened that must not happen twice.
"""

from standby.engine.decide.chain import reorder
from standby.engine.decide.cooldowns import block, spared
from standby.engine.decide.ending import fail
from standby.engine.decide.failure import FailedCall, blame_for, failure_of
from standby.engine.decide.next_call import advance, start, usable_now
from standby.engine.decide.repairs import order_repair
from standby.engine.decide.retry import finalize, next_try, retry
from standby.engine.deciding import Draft
from standby.engine.rulesets import Budget, Course, HealthRule, Rotation, Ruleset
from standby.engine.turn import Attempt, Turn
from standby.events.decisions import FailureClassified, SkipMarked
from standby.events.facts import CallFailed, CallUnknown
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, Stage, TurnEnd

_PROBE_RETURNED = frozenset(
    {
        Failure.AUTH,
        Failure.AUTH_PERMANENT,
        Failure.CONTEXT_OVERFLOW,
        Failure.FORMAT,
        Failure.MODEL_NOT_FOUND,
        Failure.SESSION_EXPIRED,
        Failure.TLS_CERTIFICATE,
    }
)
"""A check that fails for one of these says nothing about the provider's load, so that its provider may be
checked once more in the turn (PROBE-5)."""


def after_failure(draft: Draft, fact: CallFailed | CallUnknown, policy: Policy, ruleset: Ruleset) -> None:
    """Decide what follows a failed call of a turn that it can move."""
    key = fact.turn
    turn = draft.turn(key)
    attempt = turn.attempts[-1]
    failure = failure_of(fact, policy, ruleset, draft.stamp.at_ms)
    course = ruleset.courses[failure.reason]
    reading = failure.reading
    leads_on = course.health is HealthRule.TIMEOUT and _leads_on(draft, turn, policy, ruleset)
    blame = blame_for(failure, attempt, leads_on=leads_on)
    draft.emit(
        FailureClassified(
            rules=(
                "OURS-5" if reading.row else "REC-8",
                *reading.rules,
                *spared(policy, ruleset, blame, failure.selected_profile),
            ),
            turn=key,
            attempt=attempt.attempt,
            reason=reading.reason,
            kind=reading.kind,
            row=reading.row,
            also=reading.also_matched,
            retry_after_ms=reading.retry_after_ms,
            wait_source=reading.wait_source,
            status=failure.status,
            replayable=turn.replayable,
            probe_returned=attempt.probe and failure.reason in _PROBE_RETURNED,
        )
    )
    turn = draft.turn(key)
    if course.health is not HealthRule.TIMEOUT or not _recovers(draft, turn, policy, ruleset, failure):
        block(draft, policy, ruleset, blame)
    _mark(draft, turn, policy, ruleset, attempt, failure)
    if isinstance(fact, CallFailed) and order_repair(draft, turn, fact, failure):
        return
    if not _surface(draft, turn, policy, ruleset, course, failure):
        _go_on(draft, turn, policy, ruleset, course, failure)


def _recovers(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, failure: FailedCall) -> bool:
    """Whether the same model is tried again: a timeout cools its profile only after that (COOL-10)."""
    return _may_go_on(turn) and next_try(draft, turn, policy, ruleset, failure) is not None


def _leads_on(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset) -> bool:
    """Whether a replacement profile is there or a fallback is configured (COOL-10)."""
    if len(turn.candidates) > 1:
        return True
    if not turn.replayable:
        return False
    here = turn.attempts[-1]
    return usable_now(draft, turn, policy, ruleset, besides=here.profile) is not None


def _mark(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, attempt: Attempt, failure: FailedCall
) -> None:
    """Remember that a fallback could not authenticate, where the policy wants that (SKIP-1, SKIP-2)."""
    if not policy.skip_ttl_ms or failure.reason not in (Failure.AUTH, Failure.AUTH_PERMANENT):
        return
    if turn.request is None or attempt.model == turn.selected:
        return
    shortest, longest = ruleset.skip_ttl_ms
    ttl = min(max(policy.skip_ttl_ms, shortest), longest)
    draft.emit(
        SkipMarked(
            rules=("SKIP-1", "SKIP-2"),
            session=turn.request.session,
            model=attempt.model,
            profile=attempt.profile,
            until_ms=draft.stamp.at_ms + ttl,
            reason=failure.reason,
        )
    )


def _surface(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, failure: FailedCall
) -> bool:
    """End the turn where another try cannot help or must not be made."""
    key = _key(turn)
    owns = turn.request is not None and turn.request.owns_transport
    if failure.reason is Failure.REQUEST_SIZE_CEILING and owns:
        # The refusal came past embedded recovery: another provider's quota may admit the request (ADV-7).
        return _refuse_unsafe(draft, turn, policy, ruleset, key, Budget.NONE)
    if failure.reading.aborted:
        # Somebody stopped the call on purpose: the provider did not fail, and nothing follows (ADV-2).
        fail(draft, key, policy, ruleset, TurnEnd.CANCELLED, ("ADV-2",))
        return True
    if not course.advance:
        fail(draft, key, policy, ruleset, TurnEnd.SURFACED, course.rules)
        return True
    return _refuse_unsafe(draft, turn, policy, ruleset, key, course.recover)


def _refuse_unsafe(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, key: str, recover: Budget
) -> bool:
    """Nothing is replayed after an unsafe attempt; only a continuation of the same model may follow."""
    if turn.replayable:
        return False
    if _may_go_on(turn) and recover is not Budget.NONE:
        return False
    rule = "ADV-10" if turn.attempts[-1].reason is Failure.CONTEXT_OVERFLOW else "REC-8"
    fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, (rule,))
    return True


def _may_go_on(turn: Turn) -> bool:
    """Whether the same model may go on: by a replay, or by a continuation where the host can (REC-6)."""
    return turn.replayable or (turn.request is not None and turn.request.continuable)


def _key(turn: Turn) -> str:
    return turn.request.turn if turn.request else ""


def _go_on(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, failure: FailedCall
) -> None:
    """Same model, other profile, next model: the first of them that is possible."""
    key = _key(turn)
    if retry(draft, turn, policy, ruleset, failure):
        return
    if finalize(draft, turn, policy, ruleset, failure):
        return
    if not turn.replayable:
        fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))
        return
    if _rotate(draft, turn, policy, ruleset, course, failure):
        return
    if failure.reason is Failure.CONTEXT_OVERFLOW and not turn.strict:
        reorder(draft, turn, policy)
    rules = _advance_rules(course, failure)
    advance(draft, key, policy, ruleset, failure.reason, rules)


def _rotate(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, failure: FailedCall
) -> bool:
    """Go to another profile of the provider, as far as the course allows it (FLOW-1, REC-9, REC-17)."""
    fallback = len(turn.candidates) > 1
    if course.rotate is Rotation.NONE or (course.rotate is Rotation.ONE and fallback and turn.rotations):
        return False
    if failure.reason is Failure.MODEL_NOT_FOUND and failure.reading.missing_model:
        # The model is gone, whoever asks for it (FLOW-8).
        return False
    if failure.reason is Failure.TIMEOUT and failure.stage is Stage.PROMPT and fallback:
        return False
    here = turn.attempts[-1]
    profile = usable_now(draft, turn, policy, ruleset, besides=here.profile)
    if profile is None:
        return False
    rules = ("FLOW-1", "REC-9", "REC-17") if course.rotate is Rotation.ONE else ("FLOW-1", "REC-17")
    start(draft, _key(turn), policy, profile, rules)
    return True


def _advance_rules(course: Course, failure: FailedCall) -> tuple[str, ...]:
    if failure.reason is Failure.MODEL_NOT_FOUND and failure.reading.missing_model:
        return ("FLOW-8", "OBS-5", "ADV-1")
    if failure.reason is Failure.REQUEST_SIZE_CEILING:
        return ("ADV-7",)
    return ("FLOW-1", *course.rules)

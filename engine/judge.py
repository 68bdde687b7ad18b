"""After a failed call: what it means, what it does to its profile, and what the turn does next.

The order never changes (FLOW-3): wait for the same model while its budget lasts, then rotate to another
profile of the provider, then go on along the chain; stop at once where another try cannot help, and where
something may have happened that must not happen twice.
"""

from typing import NamedTuple

from standby.engine.blocks import Blame, block
from standby.engine.candidates import reorder_for_window
from standby.engine.choose import again, choose, start, usable_now
from standby.engine.classify import Reading, classify
from standby.engine.draft import Draft
from standby.engine.recovery import schedule
from standby.engine.rulesets import Budget, Course, HealthRule, Rotation, Ruleset
from standby.engine.stickiness import drop_sticky
from standby.engine.summary import fail
from standby.engine.turn import Attempt, Turn
from standby.events.decisions import (
    ChainAdvanced,
    ChainReordered,
    FailureClassified,
    RepairOrdered,
    RetryScheduled,
    SkipMarked,
    TurnAnswered,
)
from standby.events.facts import CallFailed, CallSucceeded, CallUnknown
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, Stage, TurnEnd

__all__ = ["Verdict", "advance", "blame_for", "incomplete", "judge", "repaired", "verdict_of"]

REPAIRS_PER_CANDIDATE = 2
"""Most repairs that one candidate's request gets."""


class Verdict(NamedTuple):
    """The reading of a failure and what the report says around it."""

    reading: Reading
    started_ms: int
    received_ms: int
    status: int | None = None
    stage: Stage = Stage.STREAM
    provider_started: bool = True
    selected_profile: bool = True
    finished_work: bool = False

    @property
    def reason(self) -> Failure:
        """What the failure is."""
        return self.reading.reason


def verdict_of(fact: CallFailed | CallUnknown, policy: Policy, ruleset: Ruleset, at_ms: int) -> Verdict:
    """Read the evidence of a failed call; a call that nobody saw end was interrupted."""
    if isinstance(fact, CallUnknown):
        return Verdict(Reading(reason=Failure.INTERRUPTED, row=""), at_ms, at_ms)
    return Verdict(
        classify(fact.evidence, ruleset=ruleset.id, extra_rows=policy.rows),
        fact.started_ms,
        fact.received_ms,
        fact.evidence.status,
        fact.evidence.stage,
        fact.provider_started,
        fact.selected_profile,
        fact.finished_work,
    )


def blame_for(verdict: Verdict, attempt: Attempt, *, leads_on: bool) -> Blame:
    """What the failure says about the profile of the attempt."""
    return Blame(
        attempt.profile if verdict.selected_profile else "",
        attempt.model,
        verdict.reason,
        verdict.reading.retry_after_ms,
        verdict.received_ms,
        verdict.started_ms,
        verdict.reading.subscription,
        leads_on,
        verdict.provider_started,
    )


def judge(draft: Draft, fact: CallFailed | CallUnknown, policy: Policy, ruleset: Ruleset) -> None:
    """Decide what follows a failed call of a turn that it can move."""
    key = fact.turn
    turn = draft.turn(key)
    attempt = turn.attempts[-1]
    verdict = verdict_of(fact, policy, ruleset, draft.stamp.at_ms)
    course = ruleset.courses[verdict.reason]
    consumed = (
        course.health in (HealthRule.PROVIDER_TIMED, HealthRule.TIMEOUT) or course.recover is not Budget.NONE
    )
    reading = verdict.reading
    draft.emit(
        FailureClassified(
            rules=("OURS-5",) if reading.row else ("REC-8",),
            turn=key,
            attempt=attempt.attempt,
            reason=reading.reason,
            kind=reading.kind,
            row=reading.row,
            also=reading.also_matched,
            retry_after_ms=reading.retry_after_ms,
            wait_source=reading.wait_source,
            status=verdict.status,
            replayable=turn.replayable,
            check_returned=attempt.check and not consumed,
        )
    )
    turn = draft.turn(key)
    block(draft, policy, ruleset, blame_for(verdict, attempt, leads_on=_leads_on(draft, turn, policy, ruleset)))
    _mark(draft, turn, policy, ruleset, attempt, verdict)
    if isinstance(fact, CallFailed) and _order_repair(draft, turn, fact, verdict):
        return
    if not _surface(draft, turn, policy, ruleset, course, verdict):
        _go_on(draft, turn, policy, ruleset, course, verdict)


def _leads_on(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset) -> bool:
    """Whether a replacement profile is there or a fallback is configured (COOL-10)."""
    if len(turn.candidates) > 1:
        return True
    here = turn.attempts[-1]
    return usable_now(draft, turn, policy, ruleset, besides=here.profile) is not None


def _mark(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, attempt: Attempt, verdict: Verdict
) -> None:
    """Remember that a fallback could not authenticate, where the policy wants that (SKIP-1, SKIP-2)."""
    if not policy.skip_ttl_ms or verdict.reason not in (Failure.AUTH, Failure.AUTH_PERMANENT):
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
        )
    )


def _order_repair(draft: Draft, turn: Turn, fact: CallFailed, verdict: Verdict) -> bool:
    """Let the host repair the request where it can, a bounded number of times (ADV-4, CLS-33)."""
    if not turn.replayable:
        return False
    if verdict.reason is Failure.FORMAT and fact.format_repair and not turn.repairs:
        rules: tuple[str, ...] = ("CLS-33",)
    elif (
        verdict.reason is Failure.CONTEXT_OVERFLOW and fact.repairable and turn.repairs < REPAIRS_PER_CANDIDATE
    ):
        rules = ("ADV-4",)
    else:
        return False
    draft.emit(RepairOrdered(rules=rules, turn=fact.turn, reason=verdict.reason))
    return True


def _surface(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, verdict: Verdict
) -> bool:
    """End the turn where another try cannot help or must not be made."""
    key = _key(turn)
    owns = turn.request is not None and turn.request.owns_transport
    if verdict.reason is Failure.REQUEST_SIZE_CEILING and owns:
        # The refusal came past embedded recovery: another provider's quota may admit the request (ADV-7).
        return _refuse_unsafe(draft, turn, policy, ruleset, key, Budget.NONE)
    if verdict.reading.aborted:
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
    continuable = turn.request is not None and turn.request.continuable
    if continuable and recover is not Budget.NONE:
        return False
    rule = "ADV-10" if turn.attempts[-1].reason is Failure.CONTEXT_OVERFLOW else "REC-8"
    fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, (rule,))
    return True


def _key(turn: Turn) -> str:
    return turn.request.turn if turn.request else ""


def _go_on(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, verdict: Verdict
) -> None:
    """Same model, other profile, next model: the first of them that is possible."""
    key = _key(turn)
    if _retry(draft, turn, policy, ruleset, verdict):
        return
    if _finalize(draft, turn, policy, verdict):
        return
    if not turn.replayable:
        fail(draft, key, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))
        return
    if _rotate(draft, turn, policy, ruleset, course, verdict):
        return
    if verdict.reason is Failure.CONTEXT_OVERFLOW and not turn.strict:
        _reorder(draft, turn, policy)
    rules = _advance_rules(course, verdict)
    advance(draft, key, policy, ruleset, verdict.reason, rules)


def _retry(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, verdict: Verdict) -> bool:
    attempt = turn.attempts[-1]
    if attempt.check or verdict.reading.long_window or verdict.reading.subscription:
        # A check that failed is not repeated; a window of hours or days is not waited for.
        return False
    wait = schedule(
        turn,
        policy,
        ruleset,
        verdict.reason,
        wait_ms=verdict.reading.retry_after_ms,
        received_ms=verdict.received_ms,
        now_ms=draft.stamp.at_ms,
        draw=draft.stamp.draw,
        organisation_tpm=verdict.reading.organisation_tpm,
    )
    if wait is None or _blocked_past(draft, attempt, wait.until_ms):
        return False
    rules = wait.rules if turn.replayable else (*wait.rules, "REC-6")
    draft.emit(
        RetryScheduled(
            rules=(*rules, "FLOW-3"),
            turn=_key(turn),
            until_ms=wait.until_ms,
            reason=verdict.reason,
            retry=wait.retry,
            of=wait.of,
            floor_ms=wait.floor_ms,
        )
    )
    return True


def _finalize(draft: Draft, turn: Turn, policy: Policy, verdict: Verdict) -> bool:
    """Ask once, without tools, for the final answer to work that is finished (REC-14)."""
    if turn.replayable or turn.finalized or not verdict.finished_work:
        return False
    attempt = turn.attempts[-1]
    if _blocked_past(draft, attempt, draft.stamp.at_ms):
        return False
    start(draft, _key(turn), policy, attempt.profile, ("REC-14", "REC-6"), finalize=True)
    return True


def _blocked_past(draft: Draft, attempt: Attempt, until_ms: int) -> bool:
    """Whether the profile would still be blocked when the wait is over (invariant 3)."""
    health = draft.profiles.get(attempt.profile) if attempt.profile else None
    return health is not None and any(
        cell.until_ms > until_ms and cell.covers(attempt.model) for cell in health.cells
    )


def _rotate(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, course: Course, verdict: Verdict
) -> bool:
    """Go to another profile of the provider, as far as the course allows it (FLOW-1, REC-9, REC-17)."""
    fallback = len(turn.candidates) > 1
    if course.rotate is Rotation.NONE or (course.rotate is Rotation.ONE and fallback and turn.rotations):
        return False
    if verdict.reason is Failure.MODEL_NOT_FOUND and verdict.reading.missing_model:
        # The model is gone, whoever asks for it (FLOW-8).
        return False
    if verdict.reason is Failure.TIMEOUT and verdict.stage is Stage.PROMPT and fallback:
        return False
    here = turn.attempts[-1]
    profile = usable_now(draft, turn, policy, ruleset, besides=here.profile)
    if profile is None:
        return False
    rules = ("FLOW-1", "REC-9", "REC-17") if course.rotate is Rotation.ONE else ("FLOW-1", "REC-17")
    start(draft, _key(turn), policy, profile, rules)
    return True


def _reorder(draft: Draft, turn: Turn, policy: Policy) -> None:
    needed = turn.request.input_tokens if turn.request else None
    ordered = reorder_for_window(policy, turn.candidates, turn.index, needed)
    if ordered != turn.candidates:
        draft.emit(ChainReordered(rules=("CHAIN-8", "CHAIN-10"), turn=_key(turn), candidates=ordered))


def _advance_rules(course: Course, verdict: Verdict) -> tuple[str, ...]:
    if verdict.reason is Failure.MODEL_NOT_FOUND and verdict.reading.missing_model:
        return ("FLOW-8", "OBS-5", "ADV-1")
    if verdict.reason is Failure.REQUEST_SIZE_CEILING:
        return ("ADV-7",)
    return ("FLOW-1", *course.rules)


def advance(
    draft: Draft,
    key: str,
    policy: Policy,
    ruleset: Ruleset,
    reason: Failure | None,
    rules: tuple[str, ...],
) -> None:
    """Leave the present candidate for the next one that the policy consents to, and choose there."""
    turn = draft.turn(key)
    drop_sticky(draft, turn)
    following = next(
        (
            index
            for index in range(turn.index + 1, len(turn.candidates))
            if _consents(policy, reason, turn.candidates[index].model)
        ),
        None,
    )
    if following is None:
        refused = turn.index + 1 < len(turn.candidates)
        end, why = (TurnEnd.EXHAUSTED, ("FLOW-14",))
        if reason in (Failure.UNCLASSIFIED, Failure.UNKNOWN):
            end, why = TurnEnd.SURFACED, ("ADV-2",)
        fail(draft, key, policy, ruleset, end, (*why, "OURS-7") if refused else why)
        return
    draft.emit(
        ChainAdvanced(
            rules=rules,
            turn=key,
            index=following,
            model=turn.candidates[following].model,
            after=turn.candidates[turn.index].model,
            reason=reason,
        )
    )
    choose(draft, key, policy, ruleset)


def _consents(policy: Policy, reason: Failure | None, model: str) -> bool:
    """Whether the operator lets a turn go on to `model` after this reason (OURS-7)."""
    for consent in policy.consent:
        if consent.reason is reason:
            return consent.models is None or model in consent.models
    return True


def incomplete(draft: Draft, fact: CallSucceeded, policy: Policy, ruleset: Ruleset) -> None:
    """A reply that stopped normally without the answer (ADV-8): one continuation of the same model, then the
    chain goes on only if the harness says that the model failed. Being safe to replay is no reason."""
    key = fact.turn
    turn = draft.turn(key)
    attempt = turn.attempts[-1]
    request = turn.request
    if fact.fallback_worthy and turn.replayable:
        draft.emit(
            FailureClassified(
                rules=("ADV-8",), turn=key, attempt=attempt.attempt, reason=Failure.EMPTY_RESPONSE
            )
        )
        advance(draft, key, policy, ruleset, Failure.EMPTY_RESPONSE, ("ADV-8",))
    elif request is not None and request.continuable and not turn.repairs:
        draft.emit(RepairOrdered(rules=("ADV-8", "REC-6"), turn=key, reason=Failure.EMPTY_RESPONSE))
    elif request is not None and not request.answer_required:
        draft.emit(
            TurnAnswered(
                rules=("ADV-8",),
                turn=key,
                attempt=attempt.attempt,
                model=attempt.model,
                evidence_ms=fact.started_ms,
                profile=attempt.profile,
                fallback=attempt.model != turn.selected,
            )
        )
    else:
        fail(draft, key, policy, ruleset, TurnEnd.SURFACED, ("ADV-8",), reason=Failure.EMPTY_RESPONSE)


def repaired(draft: Draft, key: str, policy: Policy, ruleset: Ruleset, fits: bool) -> None:
    """A repair is over: the same candidate goes on, or the chain does (ADV-4)."""
    turn = draft.turn(key)
    attempt = turn.attempts[-1]
    overflow = attempt.reason is Failure.CONTEXT_OVERFLOW
    why = {Failure.CONTEXT_OVERFLOW: "ADV-4", Failure.FORMAT: "CLS-33"}.get(
        attempt.reason or Failure.UNKNOWN, "ADV-8"
    )
    if fits:
        again(draft, key, policy, ruleset, (why,), continuation=why == "ADV-8")
        return
    if overflow:
        if not turn.strict:
            _reorder(draft, turn, policy)
        advance(draft, key, policy, ruleset, attempt.reason, ("ADV-4",))
        return
    fail(draft, key, policy, ruleset, TurnEnd.SURFACED, ("CLS-3",) if why == "CLS-33" else (why,))

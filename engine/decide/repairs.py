"""Requests that the host repairs, and replies that stopped without the answer (ADV-4, ADV-8, CLS-33).

what happened                       first                         then
----------------------------------  ----------------------------  ------------------------------------------
does not fit the window             the host compacts or trims    the same model, or the chain goes on
a format failure with a known cure  the host sanitises, once      the same model, or the failure is shown
an incomplete reply                 one continuation              shown if an answer is owed, else silence
"""

from standby.engine.decide.chain import reorder
from standby.engine.decide.ending import fail
from standby.engine.decide.failure import FailedCall
from standby.engine.decide.next_call import advance, again
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.events.decisions import FailureClassified, RepairOrdered, TurnAnswered
from standby.events.facts import CallFailed, CallSucceeded
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, TurnEnd

REPAIRS_PER_CANDIDATE = 2
"""Most repairs that one candidate's request gets."""


def order_repair(draft: Draft, turn: Turn, fact: CallFailed, failure: FailedCall) -> bool:
    """Let the host repair the request where it can, a bounded number of times (ADV-4, CLS-33)."""
    if not turn.replayable:
        return False
    if failure.reason is Failure.FORMAT and fact.format_repair and not turn.repairs:
        rules: tuple[str, ...] = ("CLS-33",)
    elif (
        failure.reason is Failure.CONTEXT_OVERFLOW and fact.repairable and turn.repairs < REPAIRS_PER_CANDIDATE
    ):
        rules = ("ADV-4",)
    else:
        return False
    draft.emit(RepairOrdered(rules=rules, turn=fact.turn, reason=failure.reason))
    return True


def repaired(draft: Draft, key: str, policy: Policy, ruleset: Ruleset, fits: bool) -> None:
    """A repair is over: the same candidate goes on, or the chain does (ADV-4)."""
    turn = draft.turn(key)
    reason = turn.attempts[-1].reason
    if reason is Failure.CONTEXT_OVERFLOW:
        if fits:
            again(draft, key, policy, ruleset, ("ADV-4",))
            return
        if not turn.strict:
            reorder(draft, turn, policy)
        advance(draft, key, policy, ruleset, reason, ("ADV-4",))
    elif reason is Failure.FORMAT:
        if fits:
            again(draft, key, policy, ruleset, ("CLS-33",))
        else:
            fail(draft, key, policy, ruleset, TurnEnd.SURFACED, ("CLS-3",))
    elif fits:
        again(draft, key, policy, ruleset, ("ADV-8", "REC-6"), continuation=True)
    else:
        fail(draft, key, policy, ruleset, TurnEnd.SURFACED, ("ADV-8",), reason=Failure.EMPTY_RESPONSE)


def incomplete(draft: Draft, fact: CallSucceeded, policy: Policy, ruleset: Ruleset) -> None:
    """A reply that stopped normally without the answer (ADV-8): one continuation of the same model, then the
    chain goes on only if the harness says that the model failed. Being safe to replay is no reason. Turns
    that owe nobody an answer end silently."""
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
    elif request is not None and request.continuable and not turn.repairs:
        draft.emit(RepairOrdered(rules=("ADV-8", "REC-6"), turn=key, reason=Failure.EMPTY_RESPONSE))
    else:
        fail(draft, key, policy, ruleset, TurnEnd.SURFACED, ("ADV-8",), reason=Failure.EMPTY_RESPONSE)

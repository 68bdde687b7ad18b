"""`plan`: the decisions that follow from a fact on the log before it.

Pure: no clock, no randomness, no I/O. The same view, fact and stamp give the same decisions, on every run and
machine. `plan` never changes the view; `apply` does, once the commit is stored.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from standby.engine.apply import LOGIC, check_stamp
from standby.engine.decide.after_failure import after_failure
from standby.engine.decide.chain import plan_chain
from standby.engine.decide.cooldowns import block, clear, observe_quota
from standby.engine.decide.ending import fail
from standby.engine.decide.failure import blame_for, failure_of
from standby.engine.decide.next_call import advance, again, choose
from standby.engine.decide.notices import announce
from standby.engine.decide.repairs import incomplete, repaired
from standby.engine.decide.selection import (
    created,
    credential_removed,
    pinned,
    reset,
    resolve,
    resolve_model,
    selected,
)
from standby.engine.decide.sticky import admit_sticky, after_answer
from standby.engine.deciding import Draft
from standby.engine.fold import admission
from standby.engine.rulesets import Ruleset, ruleset_of
from standby.engine.turn import Turn, served_by
from standby.engine.view import View
from standby.events import facts as f
from standby.events.commit import Stamp
from standby.events.decisions import (
    ChainAdvanced,
    ChainPlanned,
    Decision,
    DoubtDismissed,
    ReportKept,
    TurnAnswered,
)
from standby.events.errors import BadReport, LogTooNew
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, StopKind, TurnEnd

_CALLS = (f.CallSucceeded, f.CallFailed, f.CallUnknown, f.LiveSwitchRequested)
_REPORTS = (*_CALLS, f.ResponseCompleted, f.EffectsBegun, f.RuntimeRecovering, f.NoProgressSeen)


def is_noop(view: View, fact: f.Fact, stamp: Stamp) -> bool:
    """Whether this fact is in the log already, or asks for what is the case: then no commit is made.

    The same report twice is one commit. A wait that is not over, a cancel of a settled turn and a repeated
    request change nothing.

    Raises:
        BadReport: the fact makes no sense on this log (an unknown turn, a number that is no attempt).
    """
    key = getattr(fact, "turn", None)
    if key is None or isinstance(fact, f.NoticeDelivered):
        return False
    turn = view.turns.get(key)
    if isinstance(fact, f.TurnRequested):
        if turn is not None and turn.request != fact:
            raise BadReport(f"turn {key} was requested before with other words; give each turn its own id")
        if turn is None and fact.continues:
            _check_continues(view, fact)
        return turn is not None
    if turn is None:
        raise BadReport(
            f"turn {key} is not known to this log (or settled long ago); report only turns that it started"
        )
    if isinstance(fact, _REPORTS):
        if not 1 <= fact.attempt <= turn.attempt:
            raise BadReport(f"turn {key} has no attempt {fact.attempt}; it has made {turn.attempt}")
        return fact in turn.reports
    if isinstance(fact, f.WriterAdmitted):
        return not turn.unannounced
    if isinstance(fact, f.TranscriptEventRecorded):
        return turn.divider is None
    if isinstance(fact, f.WaitEnded) and turn.until_ms is not None and stamp.at_ms < turn.until_ms:
        return True
    if isinstance(fact, f.TurnTakenOver):
        owned = (turn.runtime, turn.epoch) == (stamp.runtime, stamp.epoch)
        return owned or admission(turn, fact, stamp) is not None
    return admission(turn, fact, stamp) is not None


def _check_continues(view: View, fact: f.TurnRequested) -> None:
    """Only the latest run of a session can be tried again, and only if it failed (NOTE-13)."""
    session = view.sessions.get(fact.session)
    former = view.turns.get(fact.continues)
    if session is None or session.user_turn != fact.continues:
        raise BadReport(
            f"turn {fact.continues} is not the latest run of its session; "
            "only that one can be tried again, otherwise request an ordinary turn"
        )
    if former is not None and former.state != "failed":
        raise BadReport(f"turn {fact.continues} has not failed; there is nothing to try again")


def plan(view: View, fact: f.Fact, stamp: Stamp) -> tuple[Decision, ...]:
    """The decisions that follow from `fact`, in order.

    Raises:
        BadReport, BadPolicy: the fact makes no sense; nothing may be written.
        RuntimeEnded: the writing runtime was replaced.
        LogTooNew: the policy in force asks for newer decision code.
    """
    return tuple(decide(view, fact, stamp).decisions)


def decide(view: View, fact: f.Fact, stamp: Stamp) -> Draft:
    """The draft in which the decisions were made, for who stores the commit and then adopts it."""
    check_stamp(view, stamp.runtime, stamp.epoch, stamp.at_ms, fact)
    if isinstance(fact, f.PolicyAdopted):
        _check_policy(fact.policy)
    draft = Draft(view, stamp)
    draft.take(fact)
    planner = _PLANNERS.get(type(fact))
    if planner is not None:
        planner(draft, fact)
    return draft


def _check_policy(policy: Policy) -> None:
    ruleset_of(policy)
    if policy.logic > LOGIC:
        raise LogTooNew(
            f"the policy asks for decision logic {policy.logic}, this version has logic up to {LOGIC}; "
            "use a newer standby"
        )


def _of(draft: Draft, key: str) -> tuple[Turn, Policy, Ruleset]:
    turn = draft.turn(key)
    policy = draft.policy_of(turn)
    return turn, policy, ruleset_of(policy)


def _on_requested(draft: Draft, fact: f.TurnRequested) -> None:
    _, policy, ruleset = _of(draft, fact.turn)
    selection = resolve(draft, policy, fact)
    sticky = admit_sticky(draft, fact, selection)
    candidates, rules = plan_chain(selection, sticky)
    draft.emit(
        ChainPlanned(
            rules=(*selection.rules, *rules),
            turn=fact.turn,
            selected=selection.model,
            source=selection.source,
            candidates=candidates,
            strict=selection.override == (),
        )
    )
    choose(draft, fact.turn, policy, ruleset)


def _on_succeeded(draft: Draft, fact: f.CallSucceeded) -> None:
    if _kept(draft, fact):
        return
    turn, policy, ruleset = _of(draft, fact.turn)
    attempt = turn.attempts[-1]
    clear(draft, attempt.profile, attempt.model, fact.started_ms)
    if fact.stop is StopKind.INCOMPLETE:
        incomplete(draft, fact, policy, ruleset)
        return
    model = served_by(attempt, fact)
    overflowed = model != turn.selected and any(a.reason is Failure.CONTEXT_OVERFLOW for a in turn.attempts)
    draft.emit(
        TurnAnswered(
            rules=_answer_rules(turn, model, overflowed),
            turn=fact.turn,
            attempt=attempt.attempt,
            model=model,
            evidence_ms=fact.started_ms,
            profile=attempt.profile,
            fallback=model != turn.selected,
            guidance=Failure.CONTEXT_OVERFLOW if overflowed else None,
        )
    )
    turn = draft.turn(fact.turn)
    after_answer(draft, turn, policy, ruleset)
    if fact.writer_admitted or any(a.model == turn.selected for a in turn.attempts):
        announce(draft, turn)


def _answer_rules(turn: Turn, model: str, overflowed: bool) -> tuple[str, ...]:
    if model == turn.selected:
        return ("FLOW-2",)
    rules = ["FLOW-4"]
    if turn.candidates[0].origin == "sticky" and model == turn.candidates[0].model:
        # A turn on a sticky fallback is a fallback turn like any other (STICK-6).
        rules.append("STICK-6")
    if turn.attempts[-1].model != model:
        rules.append("ADV-13")
    if overflowed:
        rules.append("ADV-11")
    return tuple(rules)


def _on_failed(draft: Draft, fact: f.CallFailed | f.CallUnknown) -> None:
    if _kept(draft, fact):
        return
    _, policy, ruleset = _of(draft, fact.turn)
    after_failure(draft, fact, policy, ruleset)


def _on_report(draft: Draft, fact: f.ResponseCompleted | f.EffectsBegun) -> None:
    _kept(draft, fact)


def _on_switch(draft: Draft, fact: f.LiveSwitchRequested) -> None:
    """A live switch left the call: go there, go on, or hand it back (ADV-6, ADV-15, ADV-16)."""
    if _kept(draft, fact):
        return
    turn, policy, ruleset = _of(draft, fact.turn)
    provider = turn.selected.partition("/")[0]
    target = resolve_model(policy, fact.model, provider)
    models = [candidate.model for candidate in turn.candidates]
    if not turn.replayable:
        fail(draft, fact.turn, policy, ruleset, TurnEnd.UNSAFE, ("REC-8",))
    elif target not in models:
        fail(draft, fact.turn, policy, ruleset, TurnEnd.RETURNED, ("ADV-16", "LIVE-7"), target=target)
    elif (index := models.index(target)) > turn.index:
        draft.emit(
            ChainAdvanced(
                rules=("ADV-15", "LIVE-7"),
                turn=fact.turn,
                index=index,
                model=target,
                after=models[turn.index],
                redirect=True,
            )
        )
        choose(draft, fact.turn, policy, ruleset)
    else:
        advance(draft, fact.turn, policy, ruleset, None, ("ADV-6", "LIVE-7"))


def _on_wait_ended(draft: Draft, fact: f.WaitEnded) -> None:
    turn, policy, ruleset = _of(draft, fact.turn)
    rules = ("REC-7",) if turn.replayable else ("REC-6", "REC-7")
    again(draft, fact.turn, policy, ruleset, rules)


def _on_repaired(draft: Draft, fact: f.RepairFinished) -> None:
    _, policy, ruleset = _of(draft, fact.turn)
    repaired(draft, fact.turn, policy, ruleset, fact.repaired)


def _on_cancelled(draft: Draft, fact: f.TurnCancelled) -> None:
    _, policy, ruleset = _of(draft, fact.turn)
    fail(draft, fact.turn, policy, ruleset, TurnEnd.CANCELLED, ("REC-13", "ADV-2"))


def _on_deadline(draft: Draft, fact: f.DeadlinePassed) -> None:
    _, policy, ruleset = _of(draft, fact.turn)
    fail(draft, fact.turn, policy, ruleset, TurnEnd.DEADLINE, ("REC-7", "REC-13"))


def _on_no_progress(draft: Draft, fact: f.NoProgressSeen) -> None:
    """A breaker wants to end the run: not before the attempt's own allowance is over (REC-10, STOP-5)."""
    if _kept(draft, fact):
        return
    turn, policy, ruleset = _of(draft, fact.turn)
    attempt = turn.attempts[-1]
    allowance = attempt.allowance_ms or ruleset.allowance_ms
    if draft.stamp.at_ms < attempt.started_ms + allowance:
        draft.emit(DoubtDismissed(rules=("REC-10",), turn=fact.turn, attempt=fact.attempt))
    else:
        fail(draft, fact.turn, policy, ruleset, TurnEnd.STOPPED, ("STOP-5", "REC-7"))


def _on_writer(draft: Draft, fact: f.WriterAdmitted) -> None:
    """The turn holds the writer's authority now: its notice is due (NOTE-11)."""
    announce(draft, draft.turn(fact.turn), "NOTE-11")


def _on_event_recorded(draft: Draft, fact: f.TranscriptEventRecorded) -> None:
    """No divider could be stored: the status notice is sent after all (NOTE-4)."""
    owed = draft.owed
    if owed is not None and not fact.stored:
        draft.emit(msgspec.structs.replace(owed, rules=("NOTE-4",), divider=False))


def _on_taken_over(draft: Draft, fact: f.TurnTakenOver) -> None:
    """The fold gives the turn to the new owner; nothing else follows."""


def _kept(draft: Draft, fact: Any) -> bool:
    """A report that could not move its turn is kept, and what it says about health counts."""
    turn = draft.turn(fact.turn)
    because = draft.refused
    if because is None:
        return False
    attempt = turn.attempts[fact.attempt - 1]
    policy = draft.policy_of(turn)
    ruleset = ruleset_of(policy)
    reason = None
    succeeded = isinstance(fact, f.CallSucceeded)
    if isinstance(fact, f.CallFailed):
        failure = failure_of(fact, policy, ruleset, draft.stamp.at_ms)
        reason = failure.reason
        block(draft, policy, ruleset, blame_for(failure, attempt, leads_on=len(turn.candidates) > 1))
    elif succeeded:
        clear(draft, attempt.profile, attempt.model, fact.started_ms)
    draft.emit(
        ReportKept(
            rules=("OURS-9",),
            turn=fact.turn,
            attempt=fact.attempt,
            because=because,
            profile=attempt.profile,
            model=attempt.model,
            succeeded=succeeded,
            evidence_ms=fact.started_ms if succeeded else 0,
            reason=reason,
        )
    )
    return True


_PLANNERS: dict[type, Callable[[Draft, Any], None]] = {
    f.CredentialRemoved: credential_removed,
    f.QuotaObserved: observe_quota,
    f.SessionCreated: created,
    f.ModelSelected: selected,
    f.ProfilePinned: pinned,
    f.SessionReset: reset,
    f.TurnRequested: _on_requested,
    f.CallSucceeded: _on_succeeded,
    f.CallFailed: _on_failed,
    f.CallUnknown: _on_failed,
    f.ResponseCompleted: _on_report,
    f.EffectsBegun: _on_report,
    f.RuntimeRecovering: _on_report,
    f.NoProgressSeen: _on_no_progress,
    f.WriterAdmitted: _on_writer,
    f.TranscriptEventRecorded: _on_event_recorded,
    f.LiveSwitchRequested: _on_switch,
    f.WaitEnded: _on_wait_ended,
    f.RepairFinished: _on_repaired,
    f.TurnCancelled: _on_cancelled,
    f.DeadlinePassed: _on_deadline,
    f.TurnTakenOver: _on_taken_over,
}
"""Facts that decisions can follow from. All others are only folded."""

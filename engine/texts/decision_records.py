"""What the operator sees of a turn's way along its chain (OBS-3, OBS-5): one record for each candidate that
failed, was passed over, was checked in spite of its blocks, or answered after others had not.

The fields that begin with `fallbackStep` name a transition by themselves, so that the first failure can be
rebuilt from any log store, also if the last fallback failed, too. Records hold models, reasons, statuses and
codes; no names and no words of providers.
"""

from typing import NamedTuple

import msgspec

from standby.engine.texts.failures import attempt_detail, skip_detail
from standby.engine.turn import Attempt, Turn
from standby.events import decisions as d
from standby.events.commit import Commit
from standby.events.vocabulary import Failure, SkipBecause, TurnEnd

_UNSEEN = (TurnEnd.CANCELLED, TurnEnd.DEADLINE, TurnEnd.RETURNED)
"""Ends that say nothing about the candidate."""


class ChainStep(msgspec.Struct, frozen=True, kw_only=True):
    """One record."""

    decision: str
    """"candidate_failed", "skip_candidate", "probe_cooldown_candidate" or "candidate_succeeded"."""
    candidate: str
    position: int
    """Place of the candidate in the chain, from 1."""
    attempt: int = 0
    """Number of the attempt; 0 for a candidate that was passed over."""
    reason: Failure | None = None
    status: int | None = None
    code: str = ""
    because: SkipBecause | None = None
    left: str = ""
    """The model that the step leaves; "" when the record is no transition."""
    to: str = ""
    """The model that it goes to; "" at the end of the chain."""
    left_reason: Failure | None = None
    detail: str = ""
    outcome: str = ""
    """"next_fallback", "chain_exhausted", "stopped" or "succeeded"."""


def chain_steps(commit: Commit, turn: Turn) -> list[ChainStep]:
    """The records of a commit; `turn` is the commit's turn as it stands since."""
    steps: list[ChainStep] = []
    for decision in commit.decisions:
        match decision:
            case d.ChainAdvanced() if not decision.redirect:
                steps.append(_failed(turn, decision.after, decision.model, "next_fallback"))
            case d.CandidateSkipped():
                steps.append(_skipped(turn, decision))
            case d.ProbeAdmitted():
                steps.append(_probed(turn, commit, decision))
            case d.TurnFailed() if decision.end not in _UNSEEN and turn.attempts:
                if not any(isinstance(one, d.CandidateSkipped) for one in commit.decisions):
                    outcome = "chain_exhausted" if decision.end is TurnEnd.EXHAUSTED else "stopped"
                    steps.append(_failed(turn, turn.attempts[-1].model, "", outcome, decision.reason))
            case d.TurnAnswered() if (step := _succeeded(turn, decision)) is not None:
                steps.append(step)
            case _:
                pass
    return steps


def _place(turn: Turn, model: str) -> int:
    return next((i for i, c in enumerate(turn.candidates, 1) if c.model == model), 0)


def _last(turn: Turn, model: str) -> Attempt | None:
    return next((a for a in reversed(turn.attempts) if a.model == model), None)


def _failed(turn: Turn, model: str, to: str, outcome: str, reason: Failure | None = None) -> ChainStep:
    last = _last(turn, model)
    reason = last.reason if last is not None and last.reason is not None else reason
    return ChainStep(
        decision="candidate_failed",
        candidate=model,
        position=_place(turn, model),
        attempt=last.attempt if last is not None else 0,
        reason=reason,
        status=last.status if last is not None else None,
        code=last.code if last is not None else "",
        left=model,
        to=to,
        left_reason=reason,
        detail=attempt_detail(last) if last is not None else "",
        outcome=outcome,
    )


def _skipped(turn: Turn, skip: d.CandidateSkipped) -> ChainStep:
    following = turn.candidates[skip.index + 1].model if skip.index + 1 < len(turn.candidates) else ""
    return ChainStep(
        decision="skip_candidate",
        candidate=skip.model,
        position=skip.index + 1,
        reason=skip.reason,
        because=skip.because,
        left=skip.model,
        to=following,
        left_reason=skip.reason,
        detail=skip_detail(skip.model, skip.because, skip.reason),
        outcome="next_fallback" if following else "chain_exhausted",
    )


def _probed(turn: Turn, commit: Commit, check: d.ProbeAdmitted) -> ChainStep:
    started = next((one for one in commit.decisions if isinstance(one, d.AttemptStarted) and one.probe), None)
    model = started.model if started is not None else ""
    return ChainStep(
        decision="probe_cooldown_candidate",
        candidate=model,
        position=_place(turn, model),
        attempt=started.attempt if started is not None else 0,
    )


class _Left(NamedTuple):
    """A candidate that was left, in the order of leaving."""

    when: int
    model: str
    reason: Failure | None
    detail: str


def _succeeded(turn: Turn, answer: d.TurnAnswered) -> ChainStep | None:
    """Only an answer after other candidates failed or were passed over is a step of the chain."""
    here = turn.attempts[answer.attempt - 1].index
    # A skip comes before the attempt whose number it bears, so that of equal numbers the attempt is later.
    before = [
        _Left(2 * a.attempt, a.model, a.reason, attempt_detail(a)) for a in turn.attempts if a.index != here
    ]
    before += [
        _Left(2 * s.before_attempt - 1, s.model, s.reason, skip_detail(s.model, s.because, s.reason))
        for s in turn.skips
    ]
    if not before:
        return None
    # Of skips in a row the last one counts, and `max` keeps the first.
    _, model, reason, detail = max(reversed(before), key=lambda one: one.when)
    return ChainStep(
        decision="candidate_succeeded",
        candidate=answer.model,
        position=_place(turn, answer.model),
        attempt=answer.attempt,
        left=model,
        to=answer.model,
        left_reason=reason,
        detail=detail,
        outcome="succeeded",
    )


def fields_of(step: ChainStep, turn: Turn) -> dict[str, object]:
    """The record as flat fields for structured logs; those that have nothing to say are left out."""
    requested, candidate, following = turn.selected, step.candidate, step.to
    fields: dict[str, object] = {
        "event": "model_fallback_decision",
        "decision": step.decision,
        "turn": turn.request.turn if turn.request is not None else "",
        "requestedProvider": requested.partition("/")[0],
        "requestedModel": requested.partition("/")[2],
        "candidateProvider": candidate.partition("/")[0],
        "candidateModel": candidate.partition("/")[2],
        "chainPosition": step.position,
        "chainLength": len(turn.candidates),
        "attempt": step.attempt,
        "isPrimary": candidate == requested,
        "fallbackConfigured": len(turn.candidates) > 1,
        "reason": step.reason,
        "status": step.status,
        "code": step.code,
        "skippedBecause": step.because,
        "nextCandidateProvider": following.partition("/")[0],
        "nextCandidateModel": following.partition("/")[2],
        "fallbackStepFromModel": step.left,
        "fallbackStepToModel": step.to,
        "fallbackStepFromFailureReason": step.left_reason,
        "fallbackStepFromFailureDetail": step.detail,
        "fallbackStepChainPosition": step.position if step.left else 0,
        "fallbackStepFinalOutcome": step.outcome,
    }
    plain = {
        key: str(value) if isinstance(value, Failure | SkipBecause) else value for key, value in fields.items()
    }
    return {key: value for key, value in plain.items() if value not in (None, "", 0) or value is False}

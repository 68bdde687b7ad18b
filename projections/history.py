"""History: what happened in each turn, in order, with who decided what and when.

State says what is true now and forgets the way; an explanation needs the way. This fold keeps it: each attempt
with its report and what followed from it, each candidate that was passed over, each wait, what the user was
told, and how it ended. It reads commits alone and decides nothing.
"""

from collections.abc import Collection
from typing import Any, TypeVar

import msgspec

from standby.events.commit import Commit
from standby.events.decisions import (
    AttemptStarted,
    CandidateSkipped,
    ChainPlanned,
    Decision,
    FailureClassified,
    NoticeDue,
    ReportKept,
    RetryScheduled,
    TurnAnswered,
    TurnFailed,
)
from standby.events.facts import (
    CallFailed,
    CallSucceeded,
    CallUnknown,
    Fact,
    LiveSwitchRequested,
    NoticeDelivered,
    TurnRequested,
    WaitEnded,
)
from standby.events.vocabulary import Failure

CallReport = CallSucceeded | CallFailed | CallUnknown | LiveSwitchRequested

T = TypeVar("T")


class Happened(msgspec.Struct, frozen=True):
    """One event of a turn's commits: the fact first, then the decisions that followed from it."""

    position: int
    at_ms: int
    event: Fact | Decision
    fact: bool


class AttemptRecord(msgspec.Struct):
    """One hosted call: how it was decided, how it went, and what followed from that."""

    decided: AttemptStarted
    position: int
    started_ms: int
    report: CallReport | None = None
    """None while it runs, and when the turn ended before anything was reported."""
    ended_at: int = 0
    """Position of the commit that ended it; 0 while it runs."""
    ended_ms: int | None = None
    classified: FailureClassified | None = None
    followed: tuple[Decision, ...] = ()
    """Every decision of the commit that ended it."""

    @property
    def succeeded(self) -> bool:
        """Whether the call was completed with an answer."""
        return isinstance(self.report, CallSucceeded)


class SkipRecord(msgspec.Struct, frozen=True):
    """A candidate that was passed over without a call."""

    decided: CandidateSkipped
    position: int
    at_ms: int
    before_attempt: int
    """The attempt that came next, so that skips and attempts can be told in order."""


class WaitRecord(msgspec.Struct):
    """A wait between two attempts at the same candidate; `ended_ms` is None while it lasts."""

    decided: RetryScheduled
    position: int
    at_ms: int
    ended_ms: int | None = None


class NoticeRecord(msgspec.Struct):
    """A notice that fell due in the turn."""

    decided: NoticeDue
    position: int
    at_ms: int
    delivered_ms: int | None = None


class TurnHistory(msgspec.Struct):
    """A turn from its request to its end."""

    turn: str
    request: TurnRequested
    position: int
    requested_ms: int
    runtime: str
    planned: ChainPlanned | None = None
    attempts: list[AttemptRecord] = []
    skips: list[SkipRecord] = []
    waits: list[WaitRecord] = []
    notices: list[NoticeRecord] = []
    kept: list[ReportKept] = []
    """Reports that could not move the turn."""
    end: TurnAnswered | TurnFailed | None = None
    ended_ms: int | None = None
    events: list[Happened] = []
    """Everything in order; empty when the history keeps no events."""


def hidden_attempts(history: TurnHistory) -> tuple[int, ...]:
    """Attempts that a history shown to readers leaves out (NOTE-8): errors that were recovered and had left
    nothing but an empty message or reasoning. What is stored stays as it is."""
    if not isinstance(history.end, TurnAnswered):
        return ()
    return tuple(attempt.decided.attempt for attempt in history.attempts if _bare(attempt))


def _bare(attempt: AttemptRecord) -> bool:
    if isinstance(attempt.report, CallFailed) and attempt.report.bare:
        return True
    return attempt.classified is not None and attempt.classified.reason is Failure.EMPTY_RESPONSE


class History:
    """Histories by turn.

    Args:
        only: keep these turns and pass over all others; None keeps every turn.
        events: keep each turn's whole list of events besides the records.
    """

    def __init__(self, only: Collection[str] | None = None, *, events: bool = True) -> None:
        self.turns: dict[str, TurnHistory] = {}
        self._only = only
        self._events = events

    def fold(self, position: int, commit: Commit) -> None:
        """Add the commit at `position`, if it is about a turn that is kept."""
        fact = commit.fact
        key = getattr(fact, "turn", "")
        if not key or (self._only is not None and key not in self._only):
            return
        if isinstance(fact, TurnRequested) and key not in self.turns:
            self.turns[key] = TurnHistory(
                turn=key, request=fact, position=position, requested_ms=commit.at_ms, runtime=commit.runtime
            )
        history = self.turns.get(key)
        if history is None:
            return
        _fold_fact(history, position, commit)
        for decision in commit.decisions:
            _fold_decision(history, position, commit.at_ms, decision)
        if self._events:
            history.events.append(Happened(position, commit.at_ms, fact, True))
            history.events += [Happened(position, commit.at_ms, one, False) for one in commit.decisions]


def _first(decisions: tuple[Any, ...], kind: type[T]) -> T | None:
    return next((one for one in decisions if isinstance(one, kind)), None)


def _fold_fact(history: TurnHistory, position: int, commit: Commit) -> None:
    fact, at_ms = commit.fact, commit.at_ms
    if isinstance(fact, CallReport):
        # A report that was kept ended nothing: its attempt, or its turn, was over before.
        if _first(commit.decisions, ReportKept) is None and 0 < fact.attempt <= len(history.attempts):
            attempt = history.attempts[fact.attempt - 1]
            attempt.report = fact
            _end_attempt(attempt, position, commit)
    elif isinstance(fact, WaitEnded):
        if history.waits and history.waits[-1].ended_ms is None:
            history.waits[-1].ended_ms = at_ms
    elif isinstance(fact, NoticeDelivered):
        for notice in history.notices:
            notice.delivered_ms = at_ms if notice.delivered_ms is None else notice.delivered_ms
    elif (judged := _first(commit.decisions, FailureClassified)) is not None:
        # Judged without a report of its call: the host's breaker ended it.
        _end_attempt(history.attempts[judged.attempt - 1], position, commit)


def _end_attempt(attempt: AttemptRecord, position: int, commit: Commit) -> None:
    attempt.ended_at, attempt.ended_ms = position, commit.at_ms
    attempt.classified = _first(commit.decisions, FailureClassified)
    attempt.followed = commit.decisions


def _fold_decision(history: TurnHistory, position: int, at_ms: int, decision: Decision) -> None:
    match decision:
        case ChainPlanned():
            history.planned = decision
        case AttemptStarted():
            history.attempts.append(AttemptRecord(decided=decision, position=position, started_ms=at_ms))
        case CandidateSkipped():
            history.skips.append(SkipRecord(decision, position, at_ms, len(history.attempts) + 1))
        case RetryScheduled():
            history.waits.append(WaitRecord(decision, position, at_ms))
        case NoticeDue():
            history.notices.append(NoticeRecord(decision, position, at_ms))
        case ReportKept():
            history.kept.append(decision)
        case TurnAnswered() | TurnFailed():
            history.end, history.ended_ms = decision, at_ms
        case _:
            pass

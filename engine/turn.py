"""A turn's own state, and how its events are folded into it.

The state is the machine's: projections never need it. Every value inside a turn is immutable, so that a
shallow copy is a true copy.
"""

import msgspec

from standby.events.decisions import (
    AttemptStarted,
    Candidate,
    CandidateSkipped,
    ChainAdvanced,
    ChainPlanned,
    ChainReordered,
    FailureClassified,
    NoticeDue,
    ProbeAdmitted,
    RepairOrdered,
    ReportKept,
    RetryScheduled,
    TurnAnswered,
    TurnFailed,
)
from standby.events.evidence import claimed_by, worst
from standby.events.facts import (
    CallFailed,
    CallSucceeded,
    CallUnknown,
    EffectsBegun,
    Fact,
    LiveSwitchRequested,
    NoProgressSeen,
    ResponseCompleted,
    RuntimeRecovering,
    TurnRequested,
    Usage,
)
from standby.events.vocabulary import (
    Effects,
    Failure,
    SelectionSource,
    SkipBecause,
    StopKind,
    TurnEnd,
    WaitBecause,
)


class Attempt(msgspec.Struct, gc=False, frozen=True):
    """The record of one attempt (OBS-1)."""

    attempt: int
    index: int
    model: str
    profile: str
    started_ms: int
    probe: bool = False
    continuation: bool = False
    timeout_ms: int | None = None
    finalize: bool = False
    allowance_ms: int = 0
    refusal_models: tuple[str, ...] = ()
    ended_ms: int | None = None
    succeeded: bool = False
    reason: Failure | None = None
    status: int | None = None
    code: str = ""
    row: str = ""
    text: str = ""
    """Alias of the kept text in the side table."""
    usage: Usage | None = None


class Skip(msgspec.Struct, gc=False, frozen=True):
    """The record of a candidate that was passed over."""

    index: int
    model: str
    because: SkipBecause
    reason: Failure | None
    until_ms: int | None
    before_attempt: int
    """The attempt that came next, so that skips and attempts can be told in order."""


class Turn(msgspec.Struct, gc=False):
    """Where a turn stands."""

    state: str = "new"
    request: TurnRequested | None = None
    runtime: str = ""
    epoch: int = 0
    """The runtime that owns the turn."""
    requested_ms: int = 0
    policy: int = 0
    """Position of the policy that planned the chain; it holds until the turn settles."""
    switched: int = 0
    """How many explicit switches the session had seen when the turn was planned."""
    chosen_live: bool = False
    """The user chose a model while the session's last turn was under way (LIVE-3)."""

    selected: str = ""
    source: SelectionSource = SelectionSource.DEFAULT
    strict: bool = False
    candidates: tuple[Candidate, ...] = ()
    index: int = 0
    """The candidate that the chain stands at; len(candidates) when it was walked to the end."""
    attempts: tuple[Attempt, ...] = ()
    skips: tuple[Skip, ...] = ()
    used: frozenset[tuple[str, str]] = frozenset()
    """(model, profile) pairs that are used up in this turn (OURS-11)."""
    probed: frozenset[str] = frozenset()
    """Providers whose one transient check was consumed (PROBE-5)."""

    retries: int = 0
    """Retries of the present outage at this candidate."""
    retries_of: int = 0
    """How many the newest of them was allowed; for the status line."""
    outage_ms: int | None = None
    """When the present outage began: its first failure."""
    rotations: int = 0
    """Profiles that this candidate was rotated to."""
    repairs: int = 0
    finalized: bool = False
    """The tool-free try at a final answer was made (REC-14)."""
    effects: Effects = Effects.NONE
    delivered: bool = False

    until_ms: int | None = None
    waits_for: WaitBecause | None = None
    repairs_for: Failure | None = None

    reports: tuple[Fact, ...] = ()
    """What was reported of its attempts: the same report twice is one commit."""
    usages: tuple[tuple[str, Usage | None], ...] = ()
    """(model, usage) of each completed call, dropped answers included (FLOW-13)."""
    end: TurnEnd | None = None
    reason: Failure | None = None
    answered: str = ""
    """The model that answered."""
    soonest_ms: int | None = None
    soonest_model: str = ""
    target: str = ""
    guidance: Failure | None = None
    unannounced: bool = False
    """It answered before it was admitted as a writer, so its notice is still owed (NOTE-11)."""
    divider: NoticeDue | None = None
    """Its notice, while it is a divider that the transcript has not stored yet (NOTE-4)."""
    ended_ms: int | None = None

    @property
    def attempt(self) -> int:
        """Number of the newest attempt; 0 before the first."""
        return len(self.attempts)

    @property
    def standing(self) -> bool:
        """Whether the chain stands at a candidate."""
        return self.index < len(self.candidates)

    @property
    def replayable(self) -> bool:
        """Whether the request may be sent again: nothing happened and nothing was delivered (REC-8)."""
        return self.effects is Effects.NONE and not self.delivered

    @property
    def provider(self) -> str:
        """Provider of the candidate that the chain stands at."""
        return self.candidates[self.index].model.partition("/")[0] if self.standing else ""


# ---- facts ---------------------------------------------------------------------------------------------


def fold_requested(turn: Turn, event: TurnRequested, at_ms: int) -> None:
    turn.request = event
    turn.requested_ms = at_ms


def fold_succeeded(turn: Turn, event: CallSucceeded, at_ms: int) -> None:
    turn.effects = worst(turn.effects, event.effects)
    turn.reports = (*turn.reports, event)
    complete = event.stop is not StopKind.INCOMPLETE
    _close(turn, at_ms, succeeded=complete, usage=event.usage)
    counted = event.usage is None and any(
        isinstance(report, ResponseCompleted) and report.attempt == event.attempt for report in turn.reports
    )
    if not counted:
        # Otherwise the responses inside the attempt have said what it used.
        turn.usages = (*turn.usages, (served_by(turn.attempts[-1], event), event.usage))
    if complete:
        turn.retries, turn.outage_ms = 0, None
    turn.unannounced = not event.writer_admitted


def served_by(attempt: Attempt, event: CallSucceeded) -> str:
    """The model that answered: another than was asked only where the attempt let its provider go there."""
    return event.served if event.served in attempt.refusal_models else attempt.model


def fold_failed(turn: Turn, event: CallFailed, at_ms: int) -> None:
    turn.effects = worst(turn.effects, worst(event.effects, claimed_by(event.receipts)))
    turn.delivered = turn.delivered or event.delivered
    turn.reports = (*turn.reports, event)
    _close(turn, at_ms, status=event.evidence.status, code=event.evidence.code, text=event.evidence.text)
    if event.usage is not None:
        turn.usages = (*turn.usages, (turn.attempts[-1].model, event.usage))


def fold_lost(turn: Turn, event: CallUnknown | LiveSwitchRequested, at_ms: int) -> None:
    turn.effects = worst(turn.effects, event.effects)
    turn.reports = (*turn.reports, event)
    _close(turn, at_ms)


def fold_response(turn: Turn, event: ResponseCompleted, at_ms: int) -> None:
    turn.reports = (*turn.reports, event)
    turn.usages = (*turn.usages, (turn.attempts[-1].model, event.usage))
    turn.retries, turn.outage_ms = 0, None


def fold_recovering(turn: Turn, event: RuntimeRecovering | NoProgressSeen, at_ms: int) -> None:
    turn.reports = (*turn.reports, event)


def fold_effects(turn: Turn, event: EffectsBegun, at_ms: int) -> None:
    turn.effects = worst(turn.effects, event.effects)
    turn.reports = (*turn.reports, event)


def fold_claims(turn: Turn, event: Fact, *, first: bool) -> None:
    """A report that cannot move the turn is kept, and what it claims counts all the same: the worst effect
    stands, and its usage unless the call was reported before (`first` says that it was not)."""
    turn.reports = (*turn.reports, event)
    turn.effects = worst(turn.effects, getattr(event, "effects", Effects.NONE))
    turn.effects = worst(turn.effects, claimed_by(getattr(event, "receipts", ())))
    turn.delivered = turn.delivered or (isinstance(event, CallFailed) and event.delivered)
    usage = getattr(event, "usage", None)
    if first and (usage is not None or isinstance(event, CallSucceeded)):
        turn.usages = (*turn.usages, (turn.attempts[event.attempt - 1].model, usage))  # type: ignore[union-attr]  # narrowed above


def fold_wait_ended(turn: Turn, event: object, at_ms: int) -> None:
    turn.until_ms, turn.waits_for, turn.repairs_for = None, None, None


# ---- decisions -----------------------------------------------------------------------------------------


def fold_planned(turn: Turn, event: ChainPlanned, at_ms: int) -> None:
    turn.selected, turn.source, turn.strict = event.selected, event.source, event.strict
    turn.candidates = event.candidates


def fold_skipped(turn: Turn, event: CandidateSkipped, at_ms: int) -> None:
    turn.skips = (
        *turn.skips,
        Skip(event.index, event.model, event.because, event.reason, event.until_ms, turn.attempt + 1),
    )
    _go_to(turn, turn.index + 1)


def fold_advanced(turn: Turn, event: ChainAdvanced, at_ms: int) -> None:
    _go_to(turn, event.index)


def fold_reordered(turn: Turn, event: ChainReordered, at_ms: int) -> None:
    turn.candidates = event.candidates


def fold_started(turn: Turn, event: AttemptStarted, at_ms: int) -> None:
    before = turn.attempts[-1] if turn.attempts else None
    if before is not None and before.index == event.index and before.profile != event.profile:
        turn.rotations += 1
        turn.used |= {(before.model, before.profile)}
    turn.finalized = turn.finalized or event.finalize
    turn.attempts = (
        *turn.attempts,
        Attempt(
            event.attempt,
            event.index,
            event.model,
            event.profile,
            at_ms,
            event.probe,
            event.continuation,
            event.timeout_ms,
            event.finalize,
            event.allowance_ms,
            event.refusal_models,
        ),
    )


def fold_classified(turn: Turn, event: FailureClassified, at_ms: int) -> None:
    turn.attempts = (
        *turn.attempts[:-1],
        msgspec.structs.replace(turn.attempts[-1], reason=event.reason, row=event.row, status=event.status),
    )
    if turn.outage_ms is None:
        turn.outage_ms = at_ms
    if event.probe_returned:
        turn.probed -= {turn.provider}


def fold_probe(turn: Turn, event: ProbeAdmitted, at_ms: int) -> None:
    turn.probed |= {event.provider}


def fold_retry(turn: Turn, event: RetryScheduled, at_ms: int) -> None:
    turn.retries, turn.retries_of = event.retry, event.of
    turn.until_ms, turn.waits_for = event.until_ms, event.because


def fold_repair(turn: Turn, event: RepairOrdered, at_ms: int) -> None:
    turn.repairs += 1
    turn.repairs_for = event.reason


def fold_kept(turn: Turn, event: ReportKept, at_ms: int) -> None:
    """Nothing moves."""


def fold_answered(turn: Turn, event: TurnAnswered, at_ms: int) -> None:
    turn.answered, turn.guidance, turn.ended_ms = event.model, event.guidance, at_ms


def fold_end(turn: Turn, event: TurnFailed, at_ms: int) -> None:
    turn.end, turn.reason, turn.target = event.end, event.reason, event.target
    turn.soonest_ms, turn.soonest_model = event.soonest_ms, event.soonest_model
    turn.guidance = event.guidance
    turn.ended_ms, turn.until_ms = at_ms, None


def _go_to(turn: Turn, index: int) -> None:
    """Stand at another candidate: budgets of same-model recovery are the candidate's own."""
    if turn.attempts:
        last = turn.attempts[-1]
        turn.used |= {(last.model, last.profile)}
    turn.index = index
    turn.retries, turn.outage_ms, turn.rotations, turn.repairs = 0, None, 0, 0


def _close(
    turn: Turn,
    at_ms: int,
    *,
    succeeded: bool = False,
    status: int | None = None,
    code: str = "",
    text: str = "",
    usage: Usage | None = None,
) -> None:
    closed = msgspec.structs.replace(
        turn.attempts[-1],
        ended_ms=at_ms,
        succeeded=succeeded,
        status=status,
        code=code,
        text=text,
        usage=usage,
    )
    turn.attempts = (*turn.attempts[:-1], closed)

"""Decisions: what the engine concludes from a fact and the log before it.

A decision carries results (`until_ms`), never inputs from which a fold would recompute them, and names the
rules that made it (`rules`), so that an explanation is a lookup (OURS-12). Tags and fields are pinned like
those of facts.
"""

import msgspec

from standby.events.vocabulary import (
    BlockKind,
    Failure,
    KeptBecause,
    RefusalKind,
    SelectionSource,
    SkipBecause,
    TurnEnd,
    WaitBecause,
    WaitSource,
)


class _Decision(
    msgspec.Struct,
    gc=False,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
):
    rules: tuple[str, ...]
    """Ids of the rules that made this decision."""


class Candidate(
    msgspec.Struct, gc=False, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """One entry of a chain. `origin` is "requested", "fallback", "primary" or "sticky"."""

    model: str
    origin: str


# ---- the course of a turn ------------------------------------------------------------------------------


class ChainPlanned(_Decision, tag="chain_planned", frozen=True, kw_only=True):
    """The candidates of the turn, in order. `selected` is the session's model, whatever stands first."""

    turn: str
    selected: str
    source: SelectionSource
    candidates: tuple[Candidate, ...]
    strict: bool = False
    """No fallback is allowed: SEL-5, SEL-7."""


class CandidateSkipped(_Decision, tag="candidate_skipped", frozen=True, kw_only=True):
    """A candidate was passed over without a call; the next one follows."""

    turn: str
    index: int
    model: str
    because: SkipBecause
    reason: Failure | None = None
    until_ms: int | None = None


class AttemptStarted(_Decision, tag="attempt_started", frozen=True, kw_only=True):
    """One hosted call to a candidate begins."""

    turn: str
    attempt: int
    index: int
    model: str
    profile: str = ""
    """Alias of the auth profile; "" when the provider has none."""
    probe: bool = False
    """A recorded check of a profile that is blocked (PROBE)."""
    continuation: bool = False
    """The saved transcript is continued; the request is not replayed (REC-6)."""
    timeout_ms: int | None = None
    finalize: bool = False
    """No tools: only the final answer to finished work is asked for (REC-14)."""
    allowance_ms: int = 0
    """Until this long after its start, evidence of no progress cannot end the attempt (REC-10)."""
    refusal_models: tuple[str, ...] = ()
    """Models to which the provider may go by itself, inside the request, when this one refuses (ADV-13)."""


class FailureClassified(_Decision, tag="failure_classified", frozen=True, kw_only=True):
    """What the failure of an attempt means."""

    turn: str
    attempt: int
    reason: Failure
    kind: RefusalKind = RefusalKind.GENERIC
    row: str = ""
    """Id of the classification row that won."""
    also: tuple[str, ...] = ()
    """Rows that matched and lost (OURS-5)."""
    retry_after_ms: int | None = None
    wait_source: WaitSource | None = None
    status: int | None = None
    replayable: bool = True
    """Whether anything may be replayed after this attempt (REC-8)."""
    probe_returned: bool = False
    """The attempt was a check and its provider may be checked once more in this turn (PROBE-5)."""


class DoubtDismissed(_Decision, tag="doubt_dismissed", frozen=True, kw_only=True):
    """Evidence of no progress came within the attempt's own allowance: the attempt goes on (REC-10)."""

    turn: str
    attempt: int


class RetryScheduled(_Decision, tag="retry_scheduled", frozen=True, kw_only=True):
    """The same candidate and profile are tried again after a wait."""

    turn: str
    until_ms: int
    reason: Failure
    retry: int
    """Which retry of the outage this is, from 1."""
    of: int
    """How many the budget allows."""
    floor_ms: int = 0
    """The part of the delay that the provider asked for."""
    because: WaitBecause = WaitBecause.RETRY


class RepairOrdered(_Decision, tag="repair_ordered", frozen=True, kw_only=True):
    """The host repairs the request (compaction, sanitising) before the same candidate goes on."""

    turn: str
    reason: Failure


class ChainAdvanced(_Decision, tag="chain_advanced", frozen=True, kw_only=True):
    """The turn goes on to another candidate because the present one failed."""

    turn: str
    index: int
    """The candidate that comes next."""
    model: str
    after: str
    """The candidate that was left."""
    reason: Failure | None = None
    redirect: bool = False
    """A live switch jumped here (ADV-15)."""


class ChainReordered(_Decision, tag="chain_reordered", frozen=True, kw_only=True):
    """The remaining candidates in a new order (CHAIN-8); `candidates` is the whole chain."""

    turn: str
    candidates: tuple[Candidate, ...]


class TurnAnswered(_Decision, tag="turn_answered", frozen=True, kw_only=True):
    """The turn is over with an answer from `model`."""

    turn: str
    attempt: int
    model: str
    evidence_ms: int
    """Start of the call that answered."""
    profile: str = ""
    fallback: bool = False
    """Another model than the selected one answered."""
    guidance: Failure | None = None
    """The failure that the user is warned of although the turn was answered (ADV-11)."""


class TurnFailed(_Decision, tag="turn_failed", frozen=True, kw_only=True):
    """The turn is over without an answer.

    `first` is the first attempt that failed (OURS-9, 0 if none was made); `soonest_ms` and `soonest_model` say
    when which candidate can be tried again (OURS-10).
    """

    turn: str
    end: TurnEnd
    reason: Failure | None = None
    first: int = 0
    soonest_ms: int | None = None
    soonest_model: str = ""
    target: str = ""
    """Model that the owner of the retry should go to (ADV-16)."""
    guidance: Failure | None = None
    """The failure whose guidance the user is shown, where it is not the last one (ADV-11)."""


class ReportKept(_Decision, tag="report_kept", frozen=True, kw_only=True):
    """A report that could not move its turn is kept; its evidence about health counts."""

    turn: str
    attempt: int
    because: KeptBecause
    profile: str = ""
    model: str = ""
    succeeded: bool = False
    evidence_ms: int = 0
    reason: Failure | None = None


# ---- health of profiles --------------------------------------------------------------------------------


class BlockSet(_Decision, tag="block_set", frozen=True, kw_only=True):
    """A health cell (profile, model or all models, reason) is blocked until a moment."""

    profile: str
    model: str = ""
    """`provider/model`; "" blocks every model of the profile."""
    reason: Failure
    kind: BlockKind
    until_ms: int
    evidence_ms: int
    """Start of the call that this rests on."""
    counter: str = ""
    """Name of the counter that `count` is the new value of."""
    count: int = 0
    restarted: bool = False
    """The failure window had passed: every other counter of the profile is gone (COOL-5)."""
    ours: bool = False
    """Our own cooldown, not the provider's (OURS-8)."""


class BlockCleared(_Decision, tag="block_cleared", frozen=True, kw_only=True):
    """Newer evidence ends the profile's blocks for this model and for all models.

    With `reason` only cells of that reason; counters start anew when `reason` is None.
    """

    profile: str
    evidence_ms: int
    model: str = ""
    reason: Failure | None = None


class ProbeAdmitted(_Decision, tag="probe_admitted", frozen=True, kw_only=True):
    """A blocked profile may be checked once, on the provider's throttle (PROBE-2 to PROBE-5)."""

    turn: str
    provider: str
    profile: str
    primary: bool
    """Checks of the primary run on the throttle; those of siblings do not."""


class SkipMarked(_Decision, tag="skip_marked", frozen=True, kw_only=True):
    """A fallback that failed to authenticate is passed over in this session until a moment (SKIP-2)."""

    session: str
    model: str
    profile: str
    until_ms: int
    reason: Failure = Failure.AUTH


# ---- sessions ------------------------------------------------------------------------------------------


class PinSet(_Decision, tag="pin_set", frozen=True, kw_only=True):
    """The session keeps to this profile of the provider (PIN-1)."""

    session: str
    provider: str
    profile: str
    user: bool = False
    displaced: bool = False
    """A rate limit drove the session here from an earlier profile of an explicit order (COOL-18)."""


class PinCleared(_Decision, tag="pin_cleared", frozen=True, kw_only=True):
    """The session's pin for the provider is gone."""

    session: str
    provider: str


class SelectionInherited(_Decision, tag="selection_inherited", frozen=True, kw_only=True):
    """A new session takes over a selection: its parent's, or the model it was created with."""

    session: str
    model: str
    source: SelectionSource


class SelectionCleared(_Decision, tag="selection_cleared", frozen=True, kw_only=True):
    """The session's stored override is gone."""

    session: str


class StickySet(_Decision, tag="sticky_set", frozen=True, kw_only=True):
    """The session's next turns try this fallback first, until `until_ms` (STICK-1, STICK-2)."""

    session: str
    model: str
    selected: str
    first_ms: int
    until_ms: int


class StickyEnded(_Decision, tag="sticky_ended", frozen=True, kw_only=True):
    """The sticky fallback is over (STICK-2, STICK-3)."""

    session: str
    model: str
    instance: str = ""
    """Runtime slot whose fallback it is; "" for the one that writes."""


class NoticeDue(_Decision, tag="notice_due", frozen=True, kw_only=True):
    """The user is told once that the model changed or came back (NOTE-1, NOTE-2, NOTE-9)."""

    session: str
    turn: str
    selected: str
    active: str
    """The model that answered; on a return the fallback that was left."""
    returned: bool = False
    reason: Failure | None = None
    attempt: int = 0
    """The failed attempt whose text explains the change; 0 if the candidate was skipped."""
    more: int = 0
    """How many further attempts failed."""
    quiet: bool = False
    """State only: nothing is shown (NOTE-10)."""
    divider: bool = False
    """The transcript's event is shown instead, if it can be stored (NOTE-4)."""
    warning: bool = False
    """A visible warning: the request did not fit the selected model (ADV-11)."""


Decision = (
    ChainPlanned
    | CandidateSkipped
    | AttemptStarted
    | FailureClassified
    | DoubtDismissed
    | RetryScheduled
    | RepairOrdered
    | ChainAdvanced
    | ChainReordered
    | TurnAnswered
    | TurnFailed
    | ReportKept
    | BlockSet
    | BlockCleared
    | ProbeAdmitted
    | SkipMarked
    | PinSet
    | PinCleared
    | SelectionCleared
    | SelectionInherited
    | StickySet
    | StickyEnded
    | NoticeDue
)

"""Facts: what a host or a user reports. It happened, so it is never refused once it makes sense.

Sessions and profiles are named by aliases (`standby.events.names`); no name, prompt or secret stands here.
Tags and fields are the storage format: they are pinned in `tests/data/shapes.json`, only ever added to, and
an added field needs a default. Moments are epoch milliseconds.
"""

import msgspec

from standby.events.evidence import Evidence
from standby.events.policy import Policy
from standby.events.vocabulary import (
    CredentialKind,
    Effects,
    ResetKind,
    SelectionSource,
    StopKind,
    Surface,
    ToolReceipt,
    TurnKind,
)


class _Fact(
    msgspec.Struct,
    gc=False,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
):
    pass


class _Value(
    msgspec.Struct, gc=False, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    pass


# ---- the log and its configuration ---------------------------------------------------------------------


class RuntimeStarted(_Fact, tag="runtime_started", frozen=True, kw_only=True):
    """A process began to write as `slot`; whatever was process-local to the slot ends (design point 6)."""

    instance: str
    epoch: int


class PolicyAdopted(_Fact, tag="policy_adopted", frozen=True, kw_only=True):
    """Decisions from here on follow this policy; turns under way keep theirs."""

    policy: Policy


class ObservedProfile(_Value, frozen=True, kw_only=True):
    """State of one credential as its owner sees it, without the credential."""

    alias: str
    provider: str
    kind: CredentialKind = CredentialKind.API_KEY
    expires_ms: int | None = None
    usable: bool = True
    """False when it cannot be used at all now (missing, malformed, unresolved reference)."""
    inline: bool = False
    """A key from configuration instead of the store: it gets no checks inside its window (BILL-4)."""
    agent: str = ""
    """The agent whose credential it is; "" for credentials that all agents share."""


class ProfilesObserved(_Fact, tag="profiles_observed", frozen=True, kw_only=True):
    """All credentials there are, in stored order, and the order stored for the agent (ORD-1, ORD-9)."""

    profiles: tuple[ObservedProfile, ...] = ()
    order: dict[str, tuple[str, ...]] = {}
    """Stored order of aliases by provider."""


class CredentialRemoved(_Fact, tag="credential_removed", frozen=True, kw_only=True):
    """A saved credential was removed on purpose; selections of its account go with it (PIN-5)."""

    profile: str
    agent: str = ""


class QuotaObserved(_Fact, tag="quota_observed", frozen=True, kw_only=True):
    """Result of a quota check of a subscription (COOL-14, COOL-19, COOL-20)."""

    profile: str
    checked_ms: int
    valid: bool = True
    """False when the answer was unavailable or could not be read; the saved block then stays."""
    exhausted: bool = False
    resets_at_ms: int | None = None


class SubjectErased(_Fact, tag="subject_erased", frozen=True, kw_only=True):
    """Names and texts of this alias were deleted from the side table."""

    subject: str


# ---- sessions ------------------------------------------------------------------------------------------


class ModelSelected(_Fact, tag="model_selected", frozen=True, kw_only=True):
    """An explicit switch of the session's model (LIVE-1); "" clears the override.

    `source` is `user` for a model of the user's choice and `default` for the explicit choice "Default"
    (SEL-8); with `model=""` and `user` the override is simply gone (SEL-18).
    """

    session: str
    model: str = ""
    source: SelectionSource = SelectionSource.USER
    profile: str = ""
    """Alias that the user named along with the model (`model@profile`)."""
    agent: str = "main"


class ProfilePinned(_Fact, tag="profile_pinned", frozen=True, kw_only=True):
    """A user's pin of an auth profile (PIN-4); `profile=""` takes the pin of `provider` away."""

    session: str
    provider: str
    profile: str = ""
    agent: str = ""


class SessionReset(_Fact, tag="session_reset", frozen=True, kw_only=True):
    """`/new`, `/reset` or a rollover: automatic pins may go, a user's pin stays (PIN-2, PIN-4)."""

    session: str
    kind: ResetKind = ResetKind.RESET


class CompactionCompleted(_Fact, tag="compaction_completed", frozen=True, kw_only=True):
    """A compaction of the session's context was completed."""

    session: str
    count: int


class SessionCreated(_Fact, tag="session_created", frozen=True, kw_only=True):
    """A session came into being, perhaps as the child of another, perhaps with a model of its own (SEL-8,
    SEL-13)."""

    session: str
    agent: str = "main"
    parent: str = ""
    model: str = ""


class TranscriptEventRecorded(_Fact, tag="transcript_event_recorded", frozen=True, kw_only=True):
    """The control UI tried to record a transition in the transcript; `stored` says if it could (NOTE-4)."""

    turn: str
    stored: bool


class NoticeDelivered(_Fact, tag="notice_delivered", frozen=True, kw_only=True):
    """A due notice reached its surface."""

    session: str
    turn: str


# ---- turns ---------------------------------------------------------------------------------------------


class TurnRequested(_Fact, tag="turn_requested", frozen=True, kw_only=True):
    """A turn is wanted. Everything about it that a rule reads is said here."""

    turn: str
    session: str
    agent: str = "main"
    model: str = ""
    """A model asked for with the turn; "" goes by the session's selection."""
    source: SelectionSource = SelectionSource.DEFAULT
    """Where `model` or `fallbacks` came from. What a runtime still carries (`auto`) gives way to the session's
    stored override (LIVE-2)."""
    fallbacks: tuple[str, ...] | None = None
    """Override of the chain for this run; () is strict (CHAIN-7, SEL-7, SEL-14)."""
    locked: bool = False
    """A model-selection lock: no fallback whatever the source (SEL-7)."""
    rerouted: bool = False
    """A hook chose the model of this turn (STICK-4)."""
    kind: TurnKind = TurnKind.INTERACTIVE
    surface: Surface = Surface.DIRECT
    image: bool = False
    deadline_ms: int | None = None
    """Moment at which the whole run has to be over."""
    timeout_ms: int | None = None
    """Budget of each attempt; it beats the policy's (REC-11)."""
    max_retries: int | None = None
    input_tokens: int | None = None
    continuable: bool = False
    """The host can continue the saved transcript instead of replaying the request (REC-6)."""
    owns_transport: bool = False
    """A harness with its own transport, past embedded recovery (ADV-7)."""
    answer_required: bool = True
    local_settings: bool = True
    """The runtime takes part in the session's retry setting (REC-15)."""
    selected_only: bool = False
    """A command that runs its selected model only and gains no fallback by any configuration (SEL-4)."""
    harness: str = ""
    """The runtime that makes the calls; it stays whichever profile pays (ORD-12)."""
    allowance_ms: int | None = None
    """How long each attempt may go on before evidence of no progress can end it (REC-10)."""
    hidden: bool = False
    """An internal continuation prompt: no user turn of its own for notices (NOTE-12)."""
    continues: str = ""
    """The failed turn that the user wants tried again (NOTE-13). Its transcript is continued and finished work
    is looked for first; its prompt is not sent again."""


class Usage(_Value, frozen=True, kw_only=True):
    """Tokens of one completed call (FLOW-13)."""

    input: int = 0
    output: int = 0
    cached: int = 0


class CallSucceeded(_Fact, tag="call_succeeded", frozen=True, kw_only=True):
    """The attempt's call was completed with an answer."""

    turn: str
    attempt: int
    started_ms: int
    effects: Effects
    stop: StopKind = StopKind.STOP
    usage: Usage | None = None
    writer_admitted: bool = True
    """False while the turn does not yet hold the writer authority of an admitted run (NOTE-11)."""
    fallback_worthy: bool = False
    """The harness classes an incomplete reply as a failure of the model (ADV-8)."""
    served: str = ""
    """The model, as `provider/model`, to which the provider went inside the request after a refusal (ADV-13);
    "" when the model that was asked answered."""


class CallFailed(_Fact, tag="call_failed", frozen=True, kw_only=True):
    """The attempt's call failed with this evidence."""

    turn: str
    attempt: int
    started_ms: int
    received_ms: int
    """When the failure arrived; stated waits count from here."""
    evidence: Evidence
    effects: Effects
    delivered: bool = False
    """Part of the answer reached the caller."""
    provider_started: bool = True
    usage: Usage | None = None
    repairable: bool = False
    """The host can still compact or trim the request (ADV-4)."""
    format_repair: bool = False
    """The host knows a repair of this format failure and wants its one retry (CLS-33)."""
    selected_profile: bool = True
    """False when the runtime had not selected a profile: no shared health changes (COOL-23)."""
    finished_work: bool = False
    """Work of the attempt is finished and only the final answer is owed (REC-14)."""
    receipts: tuple[ToolReceipt, ...] = ()
    """Operations of the attempt that are not safe to repeat, and how far each came; they claim effects beside
    `effects` (REC-8)."""
    bare: bool = False
    """What the attempt left in the transcript is empty or reasoning alone (NOTE-8)."""


class CallUnknown(_Fact, tag="call_unknown", frozen=True, kw_only=True):
    """Nobody saw how the attempt's call ended; the host says what it may have done."""

    turn: str
    attempt: int
    effects: Effects


class ResponseCompleted(_Fact, tag="response_completed", frozen=True, kw_only=True):
    """A model response inside the attempt was completed: retries start anew (REC-3)."""

    turn: str
    attempt: int
    usage: Usage | None = None
    number: int = 0
    """Which response of the attempt it is, so that two alike are two and one that is reported twice is one."""


class EffectsBegun(_Fact, tag="effects_begun", frozen=True, kw_only=True):
    """Reported before an effect, so that a crash after it finds the claim in the log."""

    turn: str
    attempt: int
    effects: Effects = Effects.POSSIBLE


class RuntimeRecovering(_Fact, tag="runtime_recovering", frozen=True, kw_only=True):
    """A call inside the attempt failed and the runtime goes on with recovery of its own: a CLI's resume, fork
    or fresh session (COOL-12), a native harness's request retries (REC-16). Nothing is settled by it."""

    turn: str
    attempt: int
    evidence: Evidence


class NoProgressSeen(_Fact, tag="no_progress_seen", frozen=True, kw_only=True):
    """The host's breaker saw no progress and growing cost; it asks whether the run ends (REC-10, STOP-5)."""

    turn: str
    attempt: int
    seen_ms: int = 0
    """When it did: it may ask again later."""


class WriterAdmitted(_Fact, tag="writer_admitted", frozen=True, kw_only=True):
    """A turn that answered before it was admitted as a writer now is (NOTE-11)."""

    turn: str


class LiveSwitchRequested(_Fact, tag="live_switch_requested", frozen=True, kw_only=True):
    """The attempt was left because the user switched the model while it ran (ADV-6, ADV-15, ADV-16)."""

    turn: str
    attempt: int
    model: str
    effects: Effects


class WaitEnded(_Fact, tag="wait_ended", frozen=True, kw_only=True):
    """The moment that a turn waited for has come."""

    turn: str


class RepairFinished(_Fact, tag="repair_finished", frozen=True, kw_only=True):
    """The ordered repair of the request is over; `repaired` says whether it may fit now."""

    turn: str
    repaired: bool


class TurnCancelled(_Fact, tag="turn_cancelled", frozen=True, kw_only=True):
    """The user stopped the turn (REC-13)."""

    turn: str


class DeadlinePassed(_Fact, tag="deadline_passed", frozen=True, kw_only=True):
    """The deadline of the run passed while the turn was under way."""

    turn: str


class TurnTakenOver(_Fact, tag="turn_taken_over", frozen=True, kw_only=True):
    """The runtime of this commit owns the turn from here on."""

    turn: str


Fact = (
    RuntimeStarted
    | PolicyAdopted
    | ProfilesObserved
    | CredentialRemoved
    | QuotaObserved
    | SubjectErased
    | ModelSelected
    | ProfilePinned
    | SessionReset
    | CompactionCompleted
    | NoticeDelivered
    | SessionCreated
    | TranscriptEventRecorded
    | WriterAdmitted
    | RuntimeRecovering
    | NoProgressSeen
    | TurnRequested
    | CallSucceeded
    | CallFailed
    | CallUnknown
    | ResponseCompleted
    | EffectsBegun
    | LiveSwitchRequested
    | WaitEnded
    | RepairFinished
    | TurnCancelled
    | DeadlinePassed
    | TurnTakenOver
)

"""The words that facts and decisions are written with.

Every value here is stored in logs. Members are never renamed or removed, only added: `tests/data/shapes.json`
pins them, and a log of any age must still decode. Outside the log (command line, settings, other people's
JSON) the same words are plain text; inside, code compares enum members by identity.
"""

from enum import StrEnum


class Failure(StrEnum):
    """Failover reason: what a failed call says about provider, credential, model or request (CLS)."""

    AUTH = "auth"
    AUTH_PERMANENT = "auth_permanent"
    FORMAT = "format"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    BILLING = "billing"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    TLS_CERTIFICATE = "tls_certificate"
    MODEL_NOT_FOUND = "model_not_found"
    SESSION_EXPIRED = "session_expired"
    CONTEXT_OVERFLOW = "context_overflow"
    REQUEST_SIZE_CEILING = "request_size_ceiling"
    REFUSAL = "refusal"
    OUTPUT_LIMIT = "output_limit"
    EMPTY_RESPONSE = "empty_response"
    NO_ERROR_DETAILS = "no_error_details"
    UNCLASSIFIED = "unclassified"
    UNKNOWN = "unknown"
    """Nothing recognised, as ruleset 2026-04 says it."""
    INTERRUPTED = "interrupted"
    """Ours: the host lost sight of the call (a crash, a take-over) and nobody saw how it ended."""


class RefusalKind(StrEnum):
    """Which structured refusal it was; plain refusals are GENERIC (ADV-9, CYB-2, MIS-1)."""

    GENERIC = "generic"
    CYBER_POLICY = "cyber_policy"
    MISALIGNMENT = "misalignment"


class Effects(StrEnum):
    """What the host claims that a call did to the world, worst last. Never left out of a report."""

    NONE = "none"
    POSSIBLE = "possible"
    COMMITTED = "committed"


class ToolReceipt(StrEnum):
    """How far an operation came that may not be repeated blindly (REC-8). Others need no receipt."""

    REJECTED = "rejected"
    """Turned down before it was executed: nothing happened."""
    STARTED = "started"
    """It began, or may have."""
    FINISHED = "finished"


class Origin(StrEnum):
    """Where a failure arose."""

    PROVIDER = "provider"
    TRANSPORT = "transport"
    LOCAL = "local"
    ABORT = "abort"


class Stage(StrEnum):
    """How far a failed call had come."""

    PROMPT = "prompt"
    """Nothing had been received yet."""
    STREAM = "stream"
    """The response had begun."""


class WaitSource(StrEnum):
    """Where a provider stated a wait (TIME)."""

    RETRY_AFTER_MS = "retry_after_ms"
    RETRY_AFTER = "retry_after"
    RETRY_INFO = "retry_info"
    TEXT = "text"
    BODY_FIELD = "body_field"
    SUBSCRIPTION_RESET = "subscription_reset"
    """The reset of a usage window of a subscription: a block of its own (COOL-13)."""
    BUCKET_RESET = "bucket_reset"
    """The reset of an exhausted bucket: counts only without an explicit instruction (TIME-2)."""


class CredentialKind(StrEnum):
    """Kind of credential behind an auth profile (ORD-7, ORD-11)."""

    OAUTH = "oauth"
    TOKEN = "token"
    API_KEY = "api_key"


class BlockKind(StrEnum):
    """What keeps a profile from being used."""

    COOLDOWN = "cooldown"
    DISABLED = "disabled"
    """Billing and permanent auth failures: always the whole profile (COOL-17)."""
    WINDOW = "window"
    """A usage window that the provider reported (COOL-13)."""


class SelectionSource(StrEnum):
    """Who chose the model of a turn (SEL)."""

    DEFAULT = "default"
    """`agents.defaults.model`."""
    AGENT = "agent"
    """The agent's own primary."""
    USER = "user"
    """An explicit choice of the session's user."""
    CRON = "cron"
    CHILD = "child"
    HOOK = "hook"
    AUTO = "auto"
    """An automatic override that an older release stored."""
    CALLER = "caller"
    """A one-off provider or model given with the run."""


class TurnKind(StrEnum):
    """What a turn is for; only interactive and subagent turns count as ordinary ones (STICK-5)."""

    INTERACTIVE = "interactive"
    SUBAGENT = "subagent"
    BACKGROUND = "background"
    COMPACTION = "compaction"
    CRON = "cron"


class Surface(StrEnum):
    """Where replies of a turn appear; notices are shown on direct surfaces only (NOTE-10)."""

    DIRECT = "direct"
    CONTROL = "control"
    """The control UI: a transition that its transcript records shows as a divider there (NOTE-4)."""
    GROUP = "group"
    CHANNEL = "channel"


class StopKind(StrEnum):
    """How a successful call ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    EMPTY = "empty"
    INCOMPLETE = "incomplete"
    """A normal stop without the answer that was asked for (ADV-8)."""


class SkipBecause(StrEnum):
    """Why a candidate was passed over without a call."""

    COOLDOWN = "cooldown"
    PROBED_ALREADY = "probed_already"
    """Its provider had its one transient check in this turn (PROBE-5)."""
    AUTH = "auth"
    """All its profiles failed persistently (PROBE-6)."""
    USED_UP = "used_up"
    """Each of its profiles was already used up in this turn (OURS-11)."""
    NO_CREDENTIAL = "no_credential"
    SKIP_MARKER = "skip_marker"
    TLS = "tls"
    REDIRECT = "redirect"
    GATE = "gate"
    CONSENT = "consent"
    REMOVED = "removed"
    """A newer policy took it out of the chain while the turn was under way."""


class WaitBecause(StrEnum):
    """What a wait is for."""

    RETRY = "retry"
    GATE = "gate"


class KeptBecause(StrEnum):
    """Why a report was kept without moving its turn."""

    LATE = "late"
    """The attempt or the turn was already over."""
    DOUBLED = "doubled"
    """Another report of the same attempt says something else."""
    FORMER_OWNER = "former_owner"
    """The turn belongs to another runtime by now."""
    UNEXPECTED = "unexpected"
    """The turn was in a state that this report cannot leave."""


class TurnEnd(StrEnum):
    """Why a failed turn ended."""

    EXHAUSTED = "exhausted"
    """Every candidate failed or was skipped (FLOW-14)."""
    SURFACED = "surfaced"
    """The failure is one that another try cannot repair."""
    UNSAFE = "unsafe"
    """A try had or may have had effects, so that nothing may be replayed (REC-8)."""
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    RETURNED = "returned"
    """Handed back unchanged to the owner of the retry (ADV-16, STOP-3)."""
    STOPPED = "stopped"
    """A local fault that another provider cannot repair (STOP)."""


class ResetKind(StrEnum):
    """How a session began anew."""

    NEW = "new"
    RESET = "reset"
    ROLLOVER = "rollover"

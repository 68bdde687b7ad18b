"""The policy as it stands in the log: configuration without secrets and without names.

What `plan` reads is in the log, so configuration is an event (`policy_adopted`). Profiles appear under their
aliases. A number that is `None` means the value of the ruleset, which is frozen; so a policy says only what
its owner changed (OURS-13).
"""

import msgspec

from standby.events.evidence import OperatorRow
from standby.events.vocabulary import CredentialKind, Failure


class _Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ModelChain(_Part, frozen=True, kw_only=True):
    """A primary model and its fallbacks, each as `provider/model`.

    `fallbacks` of None means that none were configured here; an empty tuple says "no fallback" on purpose.
    """

    primary: str = ""
    fallbacks: tuple[str, ...] | None = None


class AgentModels(_Part, frozen=True, kw_only=True):
    """`agents.entries.<id>`: the models of one agent (SEL-2 to SEL-4)."""

    model: ModelChain = ModelChain()
    acp: bool = False
    """The primary picks the model of an external harness; native calls inherit the defaults (SEL-4)."""
    remembered: str = ""
    """A remembered default for new sessions: it is the primary in effect, whatever is configured (SEL-13)."""


class ProfileRule(_Part, frozen=True, kw_only=True):
    """`auth.profiles.<id>`: which provider a profile belongs to and which kind it has to be."""

    provider: str
    mode: CredentialKind | None = None


class Recovery(_Part, frozen=True, kw_only=True):
    """Budgets of same-model recovery (REC-1, REC-2, REC-4) and the cap on waits (TIME-4)."""

    max_retries: int | None = None
    """`retry.provider.maxRetries`: overrides the count for every reason; 0 disables."""
    max_retry_delay_ms: int | None = None
    """`retry.provider.maxRetryDelayMs`: a longer stated wait is not waited for; 0 is no cap."""
    base_ms: int | None = None
    rate_limit_retries: int | None = None
    rate_limit_cap_ms: int | None = None
    transient_retries: int | None = None
    transient_window_ms: int | None = None
    transient_cap_ms: int | None = None


class Stickiness(_Part, frozen=True, kw_only=True):
    """Windows of a sticky fallback (STICK-2)."""

    idle_ms: int | None = None
    cap_ms: int | None = None


class Probes(_Part, frozen=True, kw_only=True):
    """Throttle and margin of checks on a provider whose profiles all cool (PROBE-3)."""

    interval_ms: int | None = None
    margin_ms: int | None = None


class Price(_Part, frozen=True, kw_only=True):
    """Price of a model in millionths of a currency unit for a million tokens (FLOW-13)."""

    input: int
    output: int
    cached: int | None = None


class Consent(_Part, frozen=True, kw_only=True):
    """Where a turn may go on to after a failure of one reason (OURS-7).

    `models` of None allows every candidate; an empty tuple allows none.
    """

    reason: Failure
    models: tuple[str, ...] | None = None


class Policy(_Part, frozen=True, kw_only=True):
    """Everything that decisions read and that is not a fact of the moment."""

    ruleset: str = "2026-10"
    logic: int = 1
    """Number of the decision code that decides under this policy."""
    models: ModelChain = ModelChain()
    images: ModelChain = ModelChain()
    agents: dict[str, AgentModels] = {}
    order: dict[str, tuple[str, ...]] = {}
    """`auth.order`: explicit order of profile aliases per provider."""
    profiles: dict[str, ProfileRule] = {}
    """`auth.profiles`, by alias."""
    aliases: dict[str, str] = {}
    """Short names of models, each for one `provider/model`."""
    recovery: Recovery = Recovery()
    stickiness: Stickiness = Stickiness()
    probes: Probes = Probes()
    skip_ttl_ms: int = 0
    """How long an auth failure of a fallback is remembered; 0 is off (SKIP-1)."""
    shared_markers: bool = False
    """Skip markers and check throttles hold for every process on the log (OURS-14)."""
    local_cooldown_ms: int = 0
    """Our own short cooldown for rate limits that state no wait; 0 is off (OURS-8)."""
    attempt_timeout_ms: int | None = None
    """`agents.defaults.timeoutSeconds`: budget of each attempt (REC-11)."""
    self_managed: tuple[str, ...] = ()
    """Further providers that manage their own availability (COOL-11)."""
    prices: dict[str, Price] = {}
    windows: dict[str, int] = {}
    """Known context window per `provider/model`, in tokens."""
    context_tokens: dict[str, int] = {}
    """Effective cap on the window, where configured."""
    consent: tuple[Consent, ...] = ()
    rows: tuple[OperatorRow, ...] = ()
    """Classification rows of the operator; they go first (OURS-6)."""

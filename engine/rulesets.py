"""Rulesets: frozen values that say how failures are followed.

A ruleset is numbers (ladders, windows, budgets) and, where behaviour differs in kind, a course per failure
reason. Nothing else in the engine knows a ruleset's name. What is frozen here belongs to a `logic` number: a
change of any value that alters a decision needs a new number, so that old logs still verify.

Reading the table of courses: after a failure of this reason,

* `recover`: which budget the same candidate and profile may use first (REC-1, REC-2), if any;
* `health`: what the failure says about the profile (COOL, BILL);
* `rotate`: to how many other profiles of the provider the candidate may rotate: none, one while a fallback
  is configured (REC-9), or all;
* `advance`: whether the chain goes on to the next candidate (ADV); if not, the failure is surfaced.
"""

from enum import Enum

import msgspec

from standby.events.errors import BadPolicy
from standby.events.policy import Policy
from standby.events.vocabulary import CredentialKind, Failure

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Budget(Enum):
    """Which budget of same-model recovery a reason draws on."""

    NONE = "none"
    RATE_LIMIT = "rate_limit"
    TRANSIENT = "transient"


class HealthRule(Enum):
    """What a failure does to its profile."""

    NOTHING = "nothing"
    PROVIDER_TIMED = "provider_timed"
    LADDER = "ladder"
    """The whole profile, growing with its recent failures (COOL-4)."""
    MODEL_LADDER = "model_ladder"
    """The same for the failing model only."""
    TIMEOUT = "timeout"
    """Like MODEL_LADDER, but only where another way leads on (COOL-10)."""
    BILLING = "billing"
    PERMANENT = "permanent"


class Rotation(Enum):
    """To how many other profiles a candidate rotates."""

    NONE = "none"
    ONE = "one"
    ALL = "all"


class Course(msgspec.Struct, frozen=True):
    """What follows a failure of one reason, with the rules that say so."""

    recover: Budget
    health: HealthRule
    rotate: Rotation
    advance: bool
    rules: tuple[str, ...]


class Ruleset(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of the documented behaviour. All durations in milliseconds."""

    id: str
    courses: dict[Failure, Course]

    base_ms: int = SECOND
    rate_limit_retries: int = 15
    rate_limit_cap_ms: int = MINUTE
    transient_retries: int = 8
    transient_window_ms: int = 90 * SECOND
    transient_cap_ms: int = 30 * SECOND
    tpm_retries: int = 2
    tpm_window_ms: int = 15 * SECOND
    max_retry_delay_ms: int = MINUTE

    ladder_ms: tuple[int, ...]
    billing_ms: tuple[int, ...]
    permanent_ms: tuple[int, ...]
    failure_window_ms: int = DAY
    absurd_wait_ms: int = 31 * DAY

    sticky_idle_ms: int = 10 * MINUTE
    sticky_cap_ms: int = 30 * MINUTE
    probe_interval_ms: int = 30 * SECOND
    probe_margin_ms: int = 2 * MINUTE
    skip_ttl_ms: tuple[int, int] = (SECOND, 10 * MINUTE)
    allowance_ms: int = 90 * SECOND
    """How long an attempt may go without progress before a breaker can end it, where the host says nothing."""

    kind_order: tuple[CredentialKind, ...]
    self_managed: frozenset[str]
    refusal_in_request: frozenset[str] = frozenset()
    """Providers that go to another model of theirs inside a request that is refused (ADV-13)."""


def _courses_2026_10() -> dict[Failure, Course]:
    rate, transient, none = Budget.RATE_LIMIT, Budget.TRANSIENT, Budget.NONE
    nothing, ladder = HealthRule.NOTHING, HealthRule.LADDER
    one, every, never = Rotation.ONE, Rotation.ALL, Rotation.NONE
    health = HealthRule
    return {
        # Temporary: wait for the same model, then rotate once, then fall back.
        Failure.RATE_LIMIT: Course(rate, health.PROVIDER_TIMED, one, True, ("REC-9", "ADV-1")),
        Failure.OVERLOADED: Course(transient, nothing, one, True, ("REC-9", "ADV-1")),
        Failure.SERVER_ERROR: Course(transient, nothing, every, True, ("ADV-1",)),
        Failure.TIMEOUT: Course(transient, health.TIMEOUT, every, True, ("ADV-1",)),
        Failure.INTERRUPTED: Course(transient, nothing, every, True, ("ADV-1",)),
        # The credential: another one may do.
        Failure.AUTH: Course(none, ladder, every, True, ("COOL-22", "ADV-1")),
        Failure.AUTH_PERMANENT: Course(none, health.PERMANENT, every, True, ("BILL-3", "ADV-1")),
        Failure.BILLING: Course(none, health.BILLING, every, True, ("BILL-5", "ADV-1")),
        Failure.SESSION_EXPIRED: Course(none, ladder, every, True, ("ADV-1",)),
        # The model or the provider: another one may do.
        Failure.MODEL_NOT_FOUND: Course(none, health.MODEL_LADDER, every, True, ("ADV-1",)),
        Failure.TLS_CERTIFICATE: Course(none, nothing, never, True, ("ADV-1",)),
        Failure.CONTEXT_OVERFLOW: Course(none, nothing, never, True, ("ADV-4",)),
        # Little is known: go on while candidates remain.
        Failure.EMPTY_RESPONSE: Course(none, nothing, every, True, ("ADV-1",)),
        Failure.NO_ERROR_DETAILS: Course(none, nothing, every, True, ("ADV-1",)),
        Failure.UNCLASSIFIED: Course(none, ladder, every, True, ("ADV-1",)),
        Failure.UNKNOWN: Course(none, ladder, every, True, ("ADV-1",)),
        # Another try would fail the same way: tell the user.
        Failure.FORMAT: Course(none, nothing, never, False, ("CLS-3",)),
        Failure.REQUEST_SIZE_CEILING: Course(none, nothing, never, False, ("ADV-12",)),
        Failure.REFUSAL: Course(none, nothing, never, False, ("ADV-9",)),
        Failure.OUTPUT_LIMIT: Course(none, nothing, never, False, ("OUT-1",)),
    }


RULESETS: dict[str, Ruleset] = {
    "2026-10": Ruleset(
        id="2026-10",
        courses=_courses_2026_10(),
        ladder_ms=(30 * SECOND, MINUTE, 5 * MINUTE),
        billing_ms=(10 * MINUTE,),
        permanent_ms=(10 * MINUTE, 20 * MINUTE, 40 * MINUTE, 60 * MINUTE),
        kind_order=(CredentialKind.OAUTH, CredentialKind.TOKEN, CredentialKind.API_KEY),
        self_managed=frozenset({"openrouter", "kilocode"}),
        refusal_in_request=frozenset({"anthropic"}),
    ),
}
"""By id. `2026-04` follows with its own issue; a policy that names it is refused until then."""


def is_self_managed(policy: Policy, ruleset: Ruleset, provider: str) -> bool:
    """Whether the provider's own gateway looks after capacity (COOL-11). Known from the policy alone, before
    anything of the provider's was loaded (COOL-24)."""
    return provider in ruleset.self_managed or provider in policy.self_managed


def ruleset_of(policy: Policy) -> Ruleset:
    """The ruleset that a policy names.

    Raises:
        BadPolicy: this version does not implement it.
    """
    ruleset = RULESETS.get(policy.ruleset)
    if ruleset is None:
        raise BadPolicy(
            f"ruleset {policy.ruleset!r} is not implemented by this version; choose one of: "
            + ", ".join(RULESETS)
        )
    return ruleset

"""When every profile that is left of a candidate is blocked: check one, try a sibling, or pass it over (PROBE).

A provider is not passed over for ever because all its profiles cool: each candidate is decided on its own
(PROBE-1).

    what blocks it                 the selected model                 a sibling of an earlier candidate
    -----------------------------  ---------------------------------  ---------------------------------
    auth, permanent auth           passed over (PROBE-6)              passed over (PROBE-6)
    billing                        checked on the throttle near its   passed over
                                   end (PROBE-2, BILL-6); at any
                                   time where it has no fallback
    rate limit, timeout, unknown   checked on the throttle near the   tried, once per provider and turn
                                   block's end (PROBE-3)              (PROBE-4, PROBE-5)
    anything else                  the same                           passed over
"""

from typing import NamedTuple

from standby.engine.decide.profiles import Ranked
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, Failure, SkipBecause
from standby.projections.health import CooldownEntry

_TRANSIENT = frozenset(
    {
        Failure.RATE_LIMIT,
        Failure.OVERLOADED,
        Failure.TIMEOUT,
        Failure.UNKNOWN,
        Failure.UNCLASSIFIED,
        Failure.EMPTY_RESPONSE,
        Failure.NO_ERROR_DETAILS,
    }
)
_PERSISTENT = frozenset({Failure.AUTH, Failure.AUTH_PERMANENT})
_PAID = _PERSISTENT | {Failure.BILLING}
_GRAVITY = (
    Failure.AUTH_PERMANENT,
    Failure.AUTH,
    Failure.SESSION_EXPIRED,
    Failure.BILLING,
    Failure.FORMAT,
    Failure.MODEL_NOT_FOUND,
    Failure.OVERLOADED,
    Failure.TIMEOUT,
    Failure.RATE_LIMIT,
    Failure.EMPTY_RESPONSE,
    Failure.NO_ERROR_DETAILS,
    Failure.UNCLASSIFIED,
    Failure.UNKNOWN,
    *(
        Failure.SERVER_ERROR,
        Failure.INTERRUPTED,
        Failure.TLS_CERTIFICATE,
        Failure.CONTEXT_OVERFLOW,
        Failure.REQUEST_SIZE_CEILING,
        Failure.REFUSAL,
        Failure.OUTPUT_LIMIT,
    ),
)
"""Gravest first; the last seven block nothing."""


class SkipCandidate(NamedTuple):
    """Pass the candidate over."""

    because: SkipBecause
    reason: Failure | None
    until_ms: int | None
    rules: tuple[str, ...]


class CallCandidate(NamedTuple):
    """Call the candidate with this profile."""

    profile: str
    rules: tuple[str, ...]
    probe: bool = False
    primary: bool = False


def all_blocked(
    draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, left: list[Ranked]
) -> SkipCandidate | CallCandidate:
    """Every profile that is left is blocked: check one, try a sibling, or pass the candidate over."""
    cooldowns = [one.block for one in left if one.block is not None]
    until = min(entry.until_ms for entry in cooldowns)
    reason = reason_of(cooldowns)
    if all(entry.reason in _PERSISTENT for entry in cooldowns):
        return SkipCandidate(SkipBecause.AUTH, reason, until, ("PROBE-6",))
    if turn.candidates[turn.index].model == turn.selected:
        rule = "PROBE-2" if all(entry.reason in _PAID for entry in cooldowns) else "PROBE-3"
        probe = _probeable(draft, turn, policy, ruleset, left)
        if probe is None:
            return SkipCandidate(SkipBecause.COOLDOWN, reason, until, (rule,))
        way = CallCandidate(probe.alias, _rules_of(probe, rule), probe=True, primary=True)
    else:
        sibling = _sibling(turn, left)
        if sibling is None:
            rule = "PROBE-2" if reason is Failure.BILLING else "PROBE-1"
            return SkipCandidate(SkipBecause.COOLDOWN, reason, until, (rule,))
        way = CallCandidate(sibling.alias, ("PROBE-4", "PROBE-5"), probe=True)
    if turn.provider in turn.probed:
        return SkipCandidate(SkipBecause.PROBED_ALREADY, reason, until, ("PROBE-5",))
    return way


def reason_of(cooldowns: list[CooldownEntry]) -> Failure:
    """Why a provider is out, in one word: what disables an account outweighs what cools it, the graver of two
    reasons the lesser."""
    disabled = [entry for entry in cooldowns if entry.kind is BlockKind.DISABLED]
    return min((entry.reason for entry in disabled or cooldowns), key=_GRAVITY.index)


def _rules_of(probe: Ranked, rule: str) -> tuple[str, ...]:
    billed = probe.block is not None and probe.block.reason is Failure.BILLING
    return ("PROBE-2", "BILL-6", "PROBE-1") if billed else (rule, "PROBE-1")


def _sibling(turn: Turn, left: list[Ranked]) -> Ranked | None:
    """The blocked profile with which a later model of a provider that stands in the chain before may be tried:
    what blocks it looks transient (PROBE-4)."""
    before = turn.candidates[: turn.index]
    if all(candidate.model.partition("/")[0] != turn.provider for candidate in before):
        return None
    for one in left:
        if one.block is not None and one.block.reason in _TRANSIENT and one.block.kind is BlockKind.COOLDOWN:
            return one
    return None


def _probeable(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, left: list[Ranked]) -> Ranked | None:
    """The blocked profile that the throttle lets the primary check now, soonest expiry first."""
    now = draft.stamp.at_ms
    settings = policy.probes
    interval = ruleset.probe_interval_ms if settings.interval_ms is None else settings.interval_ms
    margin = ruleset.probe_margin_ms if settings.margin_ms is None else settings.margin_ms
    last = _last_probe(draft, policy, turn.provider)
    if last is not None and now - last < interval:
        return None
    for one in left:
        block = one.block
        if block is None or block.reason in _PERSISTENT:
            continue
        inline = one.health.observed is not None and one.health.observed.inline
        if inline and block.kind is BlockKind.DISABLED:
            # A key from configuration cannot retry inside its window (BILL-4).
            continue
        # Nothing else can serve a turn with one candidate, so a recharged account is found without waiting.
        alone = len(turn.candidates) == 1 and block.reason is Failure.BILLING
        if alone or block.until_ms - now <= margin:
            return one
    return None


def _last_probe(draft: Draft, policy: Policy, provider: str) -> int | None:
    slots = draft.runtimes.keys_now() if policy.shared_markers else iter((draft.stamp.runtime,))
    found = [
        runtime.probes[provider]
        for instance in slots
        if (runtime := draft.runtimes.get(instance)) is not None and provider in runtime.probes
    ]
    return max(found, default=None)

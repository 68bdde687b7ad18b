"""When every profile that is left of a candidate is blocked: check one, try a sibling, or pass it over (PROBE).

A provider is not passed over for ever because all its profiles cool: each candidate is decided on its own
(PROBE-1).

    what blocks it                 the selected model                 a sibling of an earlier candidate
    -----------------------------  ---------------------------------  ---------------------------------
    auth, permanent auth           passed over (PROBE-6)              passed over (PROBE-6)
    billing                        checked on the throttle (PROBE-2)  passed over
    rate limit, timeout, unknown   checked on the throttle near the   tried, once per provider and turn
                                   block's end (PROBE-3)              (PROBE-4, PROBE-5)
    anything else                  the same                           passed over
"""

from typing import NamedTuple

from standby.engine.draft import Draft
from standby.engine.order import Ranked
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, Failure, SkipBecause

__all__ = ["Call", "Skip", "all_blocked"]

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


class Skip(NamedTuple):
    """Pass the candidate over."""

    because: SkipBecause
    reason: Failure | None
    until_ms: int | None
    rules: tuple[str, ...]


class Call(NamedTuple):
    """Call the candidate with this profile."""

    profile: str
    rules: tuple[str, ...]
    check: bool = False
    primary: bool = False


def all_blocked(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, left: list[Ranked]) -> Skip | Call:
    """Every profile that is left is blocked: check one, try a sibling, or pass the candidate over."""
    soonest = left[0]
    cells = [one.block for one in left if one.block is not None]
    reasons = {cell.reason for cell in cells}
    until = min(cell.until_ms for cell in cells)
    reason = soonest.block.reason if soonest.block else Failure.UNKNOWN
    if reasons <= _PERSISTENT:
        return Skip(SkipBecause.AUTH, reason, until, ("PROBE-6",))
    if Failure.BILLING in reasons and not reasons & _TRANSIENT:
        reason = Failure.BILLING
    candidate = turn.candidates[turn.index]
    primary = candidate.model == turn.selected
    if primary:
        check = _checkable(draft, policy, ruleset, left)
        if check is not None:
            rule = "PROBE-2" if reason is Failure.BILLING else "PROBE-3"
            if turn.provider in turn.checked:
                return Skip(SkipBecause.CHECKED_ALREADY, reason, until, ("PROBE-5",))
            return Call(check, (rule, "PROBE-1"), check=True, primary=True)
        return Skip(SkipBecause.COOLDOWN, reason, until, ("PROBE-3",))
    sibling = any(c.model.partition("/")[0] == turn.provider for c in turn.candidates[: turn.index])
    transient = next(
        (
            one
            for one in left
            if one.block is not None and one.block.reason in _TRANSIENT and one.block.kind is BlockKind.COOLDOWN
        ),
        None,
    )
    if not sibling or transient is None:
        rule = "PROBE-2" if reason is Failure.BILLING else "PROBE-1"
        return Skip(SkipBecause.COOLDOWN, reason, until, (rule,))
    if turn.provider in turn.checked:
        return Skip(SkipBecause.CHECKED_ALREADY, reason, until, ("PROBE-5",))
    return Call(transient.alias, ("PROBE-4", "PROBE-5"), check=True)


def _checkable(draft: Draft, policy: Policy, ruleset: Ruleset, left: list[Ranked]) -> str | None:
    """The blocked profile that the throttle lets the primary check now, soonest expiry first."""
    now = draft.stamp.at_ms
    settings = policy.checks
    interval = ruleset.check_interval_ms if settings.interval_ms is None else settings.interval_ms
    margin = ruleset.check_margin_ms if settings.margin_ms is None else settings.margin_ms
    one = left[0]
    if one.health.observed is None or one.block is None:
        return None
    last = _last_check(draft, policy, one.health.observed.provider)
    if last is not None and now - last < interval:
        return None
    for one in left:
        block = one.block
        if block is None or block.reason in _PERSISTENT or block.until_ms - now > margin:
            continue
        if one.health.observed is not None and one.health.observed.inline:
            # A key from configuration is not retried inside its window (BILL-4).
            continue
        return one.alias
    return None


def _last_check(draft: Draft, policy: Policy, provider: str) -> int | None:
    slots = draft.runtimes.keys_now() if policy.shared_markers else iter((draft.stamp.runtime,))
    found = [
        runtime.checks[provider]
        for slot in slots
        if (runtime := draft.runtimes.get(slot)) is not None and provider in runtime.checks
    ]
    return max(found, default=None)

"""Bounded recovery of the same model (REC), before anything is rotated or left.

Delays double from about one second up to a cap, with jitter from the recorded draw: a factor between 0.5 and
1.5 in thousandths, in integers. What the provider asks for is a floor (TIME-4). A floor over the policy's cap
on waits is not waited for at all, and never shortened. Rate limits have a count of their own; other transient
failures have a count and a window from the outage's first failure. Counts live in the turn and end with it
(REC-18); nothing of this has to be configured.
"""

from typing import NamedTuple

from standby.engine.rulesets import Budget, Ruleset
from standby.engine.turn import Turn
from standby.events.policy import Policy, Recovery
from standby.events.vocabulary import Failure

__all__ = ["Wait", "budget", "delay_ms", "schedule"]


class Wait(NamedTuple):
    """A retry that is worth waiting for."""

    until_ms: int
    retry: int
    of: int
    floor_ms: int
    rules: tuple[str, ...]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def budget(kind: Budget, recovery: Recovery, ruleset: Ruleset, wanted: int | None) -> int:
    """How many retries an outage gets (REC-1, REC-2); `wanted` is the setting that overrides it (REC-4)."""
    if kind is Budget.NONE:
        return 0
    limit = _or(recovery.rate_limit_retries, ruleset.rate_limit_retries)
    own = limit if kind is Budget.RATE_LIMIT else _or(recovery.transient_retries, ruleset.transient_retries)
    chosen = _or(wanted, own)
    return min(chosen, limit) if kind is Budget.RATE_LIMIT else chosen


def _wanted(turn: Turn, recovery: Recovery) -> int | None:
    """`retry.provider.maxRetries` for this turn: the session's, else the policy's (REC-4). It does not reach
    runs whose runtime admits no local settings: those keep their budgets (REC-15)."""
    request = turn.request
    if request is None or not request.local_settings:
        return None
    return recovery.max_retries if request.max_retries is None else request.max_retries


def _longest(turn: Turn, recovery: Recovery, ruleset: Ruleset) -> int:
    """`retry.provider.maxRetryDelayMs`, which only embedded runs read (REC-15); 0 is no cap."""
    embedded = turn.request is not None and turn.request.local_settings and not turn.request.harness
    return _or(recovery.max_retry_delay_ms if embedded else None, ruleset.max_retry_delay_ms)


def delay_ms(retry: int, base_ms: int, cap_ms: int, draw: int) -> int:
    """Backoff before the given retry (from 1): doubling, jittered by the draw, capped."""
    plain = min(base_ms << min(retry - 1, 30), cap_ms)
    return min(cap_ms, plain * (500 + draw % 1000) // 1000)


def schedule(
    turn: Turn,
    policy: Policy,
    ruleset: Ruleset,
    reason: Failure,
    *,
    wait_ms: int | None,
    received_ms: int,
    now_ms: int,
    draw: int,
    shared: bool = False,
) -> Wait | None:
    """The next retry of this candidate and profile, or None when its budget is spent.

    `shared` says that the tokens per minute of a whole organisation are used up while a fallback can serve
    the turn: that is not sat out (REC-5).
    """
    kind = ruleset.courses[reason].recover
    recovery = policy.recovery
    wanted = _wanted(turn, recovery)
    allowed = budget(kind, recovery, ruleset, wanted)
    if shared:
        allowed = min(allowed, ruleset.tpm_retries)
    retry = turn.retries + 1
    if retry > allowed:
        return None
    rate = kind is Budget.RATE_LIMIT
    cap = (
        _or(recovery.rate_limit_cap_ms, ruleset.rate_limit_cap_ms)
        if rate
        else _or(recovery.transient_cap_ms, ruleset.transient_cap_ms)
    )
    floor_until = received_ms + wait_ms if wait_ms is not None else now_ms
    floor = max(0, floor_until - now_ms)
    longest = _longest(turn, recovery, ruleset)
    if longest and floor > longest:
        return None
    base = _or(recovery.base_ms, ruleset.base_ms)
    until = now_ms + max(delay_ms(retry, base, cap, draw), floor)
    if not rate or shared:
        window = (
            ruleset.tpm_window_ms if shared else _or(recovery.transient_window_ms, ruleset.transient_window_ms)
        )
        if until > (turn.outage_ms if turn.outage_ms is not None else now_ms) + window:
            return None
    deadline = turn.request.deadline_ms if turn.request else None
    if deadline is not None and until >= deadline:
        return None
    rules = ["REC-5" if shared else "REC-1" if rate else "REC-2"]
    if wanted is not None:
        rules.append("REC-4")
    if floor:
        rules.append("TIME-4")
    return Wait(until, retry, allowed, floor, tuple(rules))

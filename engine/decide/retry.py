"""Trying the same model with the same profile once more, after a wait or at once (REC).

`standby.engine.decide.retry` counts and times; here it is decided whether waiting is any use at all. It is not
after a check that failed, while a window of hours or days is used up, or when the profile would still be
blocked at the end of the wait.

Bounded recovery of the same model (REC), before anything is rotated or left.

Delays double from about one second up to a cap, with jitter from the recorded draw: a factor between 0.5 and
1.5 in thousandths, in integers. What the provider asks for is a floor (TIME-4). A floor over the policy's cap
on waits is not waited for at all, and never shortened. Rate limits have a count of their own; other transient
failures have a count and a window from the outage's first failure. Counts live in the turn and end with it
(REC-18); nothing of this has to be configured.
"""

from typing import NamedTuple

from standby.engine.decide.chain import consents
from standby.engine.decide.failure import FailedCall
from standby.engine.decide.next_call import start
from standby.engine.decide.profiles import ranked
from standby.engine.deciding import Draft
from standby.engine.rulesets import Budget, Ruleset, is_self_managed
from standby.engine.turn import Attempt, Turn
from standby.events.decisions import RetryScheduled
from standby.events.policy import Policy, Recovery
from standby.events.vocabulary import Failure
from standby.projections.health import enforced

_LONG_WAIT_MS = 60_000


class Retry(NamedTuple):
    """A retry that is worth waiting for."""

    until_ms: int
    retry: int
    of: int
    floor_ms: int
    rules: tuple[str, ...]


def next_try(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, failure: FailedCall) -> Retry | None:
    """The retry that is worth waiting for, if there is one."""
    attempt, reading = turn.attempts[-1], failure.reading
    stated = reading.retry_after_ms
    # A window of days is not sat out on a guess; a wait that was stated is honoured up to the cap (TIME-4).
    hopeless = reading.long_window and (stated is None or stated <= _LONG_WAIT_MS)
    if attempt.probe or hopeless or reading.subscription:
        return None
    wait = schedule(
        turn,
        policy,
        ruleset,
        failure.reason,
        wait_ms=stated,
        received_ms=failure.received_ms,
        now_ms=draft.stamp.at_ms,
        entropy=draft.stamp.entropy,
        shared=reading.organisation_tpm
        and turn.replayable
        and _fallback_ready(draft, turn, policy, ruleset, failure),
    )
    if wait is None or _blocked_past(draft, policy, ruleset, attempt, wait.until_ms):
        return None
    return wait


def retry(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, failure: FailedCall) -> bool:
    """Schedule the retry that is worth waiting for; says whether there was one."""
    wait = next_try(draft, turn, policy, ruleset, failure)
    if wait is None or turn.request is None:
        return False
    rules = wait.rules if turn.replayable else (*wait.rules, "REC-6")
    draft.emit(
        RetryScheduled(
            rules=(*rules, "FLOW-3"),
            turn=turn.request.turn,
            until_ms=wait.until_ms,
            reason=failure.reason,
            retry=wait.retry,
            of=wait.of,
            floor_ms=wait.floor_ms,
        )
    )
    return True


def _fallback_ready(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, failure: FailedCall) -> bool:
    """Whether a later candidate can serve now: one that the policy consents to, with a profile that is free or
    with no need of one (REC-5)."""
    agent = turn.request.agent if turn.request else ""
    for candidate in turn.candidates[turn.index + 1 :]:
        provider = candidate.model.partition("/")[0]
        if not consents(policy, failure.reason, candidate.model):
            continue
        profiles = ranked(draft, policy, ruleset, provider, candidate.model, agent, draft.stamp.at_ms)
        needs_none = not (
            draft.known_profiles.get(provider) or draft.order.get(provider) or provider in policy.order
        )
        if needs_none or any(one.block is None for one in profiles):
            return True
    return False


def finalize(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, failure: FailedCall) -> bool:
    """Ask once, without tools, for the final answer to work that is finished (REC-14)."""
    if turn.request is None or turn.replayable or turn.finalized or not failure.finished_work:
        return False
    attempt = turn.attempts[-1]
    if _blocked_past(draft, policy, ruleset, attempt, draft.stamp.at_ms):
        return False
    start(draft, turn.request.turn, policy, attempt.profile, ("REC-14", "REC-6"), finalize=True)
    return True


def _blocked_past(draft: Draft, policy: Policy, ruleset: Ruleset, attempt: Attempt, until_ms: int) -> bool:
    """Whether the profile would still be blocked when the wait is over (invariant 3)."""
    health = draft.profiles.get(attempt.profile) if attempt.profile else None
    if health is None or not health.cooldowns:
        return False
    managed = is_self_managed(policy, ruleset, attempt.model.partition("/")[0])
    return any(entry.until_ms > until_ms and entry.covers(attempt.model) for entry in enforced(health, managed))


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


def delay_ms(retry: int, base_ms: int, cap_ms: int, entropy: int) -> int:
    """Backoff before the given retry (from 1): doubling, jittered by the draw, capped."""
    plain = min(base_ms << min(retry - 1, 30), cap_ms)
    return min(cap_ms, plain * (500 + entropy % 1000) // 1000)


def schedule(
    turn: Turn,
    policy: Policy,
    ruleset: Ruleset,
    reason: Failure,
    *,
    wait_ms: int | None,
    received_ms: int,
    now_ms: int,
    entropy: int,
    shared: bool = False,
) -> Retry | None:
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
    until = now_ms + max(delay_ms(retry, base, cap, entropy), floor)
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
    return Retry(until, retry, allowed, floor, tuple(rules))

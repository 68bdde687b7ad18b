"""Trying the same model with the same profile once more, after a wait or at once (REC).

`standby.engine.recovery` counts and times; here it is decided whether waiting is any use at all. It is not
after a check that failed, while a window of hours or days is used up, or when the profile would still be
blocked at the end of the wait.
"""

from standby.engine.advance import consents
from standby.engine.choose import start
from standby.engine.draft import Draft
from standby.engine.order import ranked
from standby.engine.recovery import Wait, schedule
from standby.engine.rulesets import Ruleset, is_self_managed
from standby.engine.turn import Attempt, Turn
from standby.engine.verdict import Verdict
from standby.events.decisions import RetryScheduled
from standby.events.policy import Policy
from standby.projections.health import enforced

__all__ = ["finalize", "next_try", "retry"]

_LONG_WAIT_MS = 60_000


def next_try(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, verdict: Verdict) -> Wait | None:
    """The retry that is worth waiting for, if there is one."""
    attempt, reading = turn.attempts[-1], verdict.reading
    stated = reading.retry_after_ms
    # A window of days is not sat out on a guess; a wait that was stated is honoured up to the cap (TIME-4).
    hopeless = reading.long_window and (stated is None or stated <= _LONG_WAIT_MS)
    if attempt.check or hopeless or reading.subscription:
        return None
    wait = schedule(
        turn,
        policy,
        ruleset,
        verdict.reason,
        wait_ms=stated,
        received_ms=verdict.received_ms,
        now_ms=draft.stamp.at_ms,
        draw=draft.stamp.draw,
        shared=reading.organisation_tpm
        and turn.replayable
        and _fallback_ready(draft, turn, policy, ruleset, verdict),
    )
    if wait is None or _blocked_past(draft, policy, ruleset, attempt, wait.until_ms):
        return None
    return wait


def retry(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, verdict: Verdict) -> bool:
    """Schedule the retry that is worth waiting for; says whether there was one."""
    wait = next_try(draft, turn, policy, ruleset, verdict)
    if wait is None or turn.request is None:
        return False
    rules = wait.rules if turn.replayable else (*wait.rules, "REC-6")
    draft.emit(
        RetryScheduled(
            rules=(*rules, "FLOW-3"),
            turn=turn.request.turn,
            until_ms=wait.until_ms,
            reason=verdict.reason,
            retry=wait.retry,
            of=wait.of,
            floor_ms=wait.floor_ms,
        )
    )
    return True


def _fallback_ready(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, verdict: Verdict) -> bool:
    """Whether a later candidate can serve now: one that the policy consents to, with a profile that is free or
    with no need of one (REC-5)."""
    agent = turn.request.agent if turn.request else ""
    for candidate in turn.candidates[turn.index + 1 :]:
        provider = candidate.model.partition("/")[0]
        if not consents(policy, verdict.reason, candidate.model):
            continue
        profiles = ranked(draft, policy, ruleset, provider, candidate.model, agent, draft.stamp.at_ms)
        needs_none = not (draft.stock.get(provider) or draft.order.get(provider) or provider in policy.order)
        if needs_none or any(one.block is None for one in profiles):
            return True
    return False


def finalize(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, verdict: Verdict) -> bool:
    """Ask once, without tools, for the final answer to work that is finished (REC-14)."""
    if turn.request is None or turn.replayable or turn.finalized or not verdict.finished_work:
        return False
    attempt = turn.attempts[-1]
    if _blocked_past(draft, policy, ruleset, attempt, draft.stamp.at_ms):
        return False
    start(draft, turn.request.turn, policy, attempt.profile, ("REC-14", "REC-6"), finalize=True)
    return True


def _blocked_past(draft: Draft, policy: Policy, ruleset: Ruleset, attempt: Attempt, until_ms: int) -> bool:
    """Whether the profile would still be blocked when the wait is over (invariant 3)."""
    health = draft.profiles.get(attempt.profile) if attempt.profile else None
    if health is None or not health.cells:
        return False
    managed = is_self_managed(policy, ruleset, attempt.model.partition("/")[0])
    return any(cell.until_ms > until_ms and cell.covers(attempt.model) for cell in enforced(health, managed))

"""How a turn ends without an answer: the summary that keeps the first failure and says what can be tried when.

Nothing of the way is lost: the turn holds a record of each attempt and skip, the first failure is named
(OURS-9), and "all cooling" is data: the soonest moment at which some candidate can be tried, and which one
(OURS-10). The expiry is model-aware (OBS-2): limits of models outside the chain are ignored, and where only
limits scoped to the candidate's own model are left, the latest of them counts.
"""

from standby.engine.decide.profiles import Ranked, ranked
from standby.engine.decide.sticky import drop_sticky
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset, is_self_managed
from standby.engine.turn import Turn
from standby.events.decisions import TurnFailed
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, SkipBecause, TurnEnd
from standby.projections.health import enforced


def fail(
    draft: Draft,
    key: str,
    policy: Policy,
    ruleset: Ruleset,
    end: TurnEnd,
    rules: tuple[str, ...],
    *,
    target: str = "",
    reason: Failure | None = None,
) -> None:
    """End the turn; the sticky fallback that it stood on has failed with it."""
    turn = draft.turn(key)
    if end not in (TurnEnd.CANCELLED, TurnEnd.DEADLINE, TurnEnd.RETURNED):
        drop_sticky(draft, turn)
    failed = [a for a in turn.attempts if a.reason is not None]
    if reason is None and failed:
        reason = failed[-1].reason
    if reason is None and turn.skips:
        reason = turn.skips[-1].reason
    overflowed = any(a.reason is Failure.CONTEXT_OVERFLOW for a in failed)
    at, model = soonest(draft, turn, policy, ruleset) if end is TurnEnd.EXHAUSTED else (None, "")
    draft.emit(
        TurnFailed(
            rules=(*rules, "OURS-9", "OURS-10") if end is TurnEnd.EXHAUSTED else (*rules, "OURS-9"),
            turn=key,
            end=end,
            reason=reason,
            first=failed[0].attempt if failed else 0,
            soonest_ms=at,
            soonest_model=model,
            target=target,
            guidance=Failure.CONTEXT_OVERFLOW if overflowed else None,
        )
    )


def run_out(draft: Draft, key: str, policy: Policy, ruleset: Ruleset) -> None:
    """No candidate is left: every one failed or was passed over (FLOW-14).

    A last error that nothing is known of is shown as itself (ADV-2), and so is a missing model that had no
    fallback (FLOW-8).
    """
    turn = draft.turn(key)
    last = turn.attempts[-1].reason if turn.attempts else None
    refused = [skip for skip in turn.skips if skip.because is SkipBecause.CONSENT]
    later = [s for s in turn.skips if s.before_attempt > turn.attempt and s.because is not SkipBecause.CONSENT]
    if last in _UNREAD and not later:
        end, rules = TurnEnd.SURFACED, ("ADV-2",)
    elif last is Failure.MODEL_NOT_FOUND and len(turn.candidates) == 1:
        end, rules = TurnEnd.SURFACED, ("FLOW-8",)
    else:
        end, rules = TurnEnd.EXHAUSTED, ("FLOW-14",)
    fail(draft, key, policy, ruleset, end, (*rules, "OURS-7") if refused else rules)


_UNREAD = (Failure.UNCLASSIFIED, Failure.UNKNOWN)


def soonest(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset) -> tuple[int | None, str]:
    """The soonest known expiry over the turn's candidates, and whose it is. Candidates that the operator keeps
    the turn from do not count (OURS-7)."""
    best: int | None = None
    whose = ""
    agent = turn.request.agent if turn.request else ""
    now = draft.stamp.at_ms
    refused = {skip.model for skip in turn.skips if skip.because is SkipBecause.CONSENT}
    for candidate in turn.candidates:
        if candidate.model in refused:
            continue
        provider = candidate.model.partition("/")[0]
        profiles = ranked(draft, policy, ruleset, provider, candidate.model, agent, now)
        at = soonest_expiry(profiles, candidate.model, now, is_self_managed(policy, ruleset, provider))
        if at is not None and (best is None or at < best):
            best, whose = at, candidate.model
    return best, whose


def soonest_expiry(profiles: list[Ranked], model: str, now_ms: int, managed: bool = False) -> int | None:
    """When one of these profiles can serve `model` again, as far as blocks say (OBS-2)."""
    scoped: list[int] = []
    whole: list[int] = []
    for one in profiles:
        cooldowns = enforced(one.health, managed) if one.health.cooldowns else ()
        open_entries = [c for c in cooldowns if c.until_ms > now_ms and c.covers(model)]
        if not open_entries:
            continue
        longest = max(open_entries, key=lambda entry: entry.until_ms)
        is_scoped = bool(longest.model) and longest.reason is Failure.RATE_LIMIT
        (scoped if is_scoped else whole).append(longest.until_ms)
    ends = ([max(scoped)] if scoped else []) + ([min(whole)] if whole else [])
    return min(ends, default=None)

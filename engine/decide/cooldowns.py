"""What a failure or a success says about a profile's health (COOL, BILL).

* A rate limit blocks exactly as long as the provider said, for the failing model where it is known; a later
  deadline extends, an earlier one never shortens, none is invented (COOL-2, COOL-3, COOL-6, COOL-25).
* Billing and permanent auth failures disable the whole profile (BILL-2, BILL-3, COOL-17).
* Other failures that count climb a ladder by the profile's recent failures (COOL-4). Its counter ends with the
  failure window, never with the cooldown (COOL-5). A failure inside an open window is counted and does not
  move its end.
* Evidence that is older than a success with the same profile blocks nothing.

Quota checks of subscriptions (COOL-13, COOL-14, COOL-19, COOL-20).

A successful check replaces the saved reset by the current one, also an earlier one, and a check that finds
capacity adds no delay of its own. An answer that was unavailable or invalid leaves the saved block. A check
that is older than a newer success with the credential, or than a newer check, says nothing any more.
"""

from typing import NamedTuple

from standby.engine.deciding import Draft
from standby.engine.rulesets import HealthRule, Ruleset, is_self_managed
from standby.events.decisions import BlockCleared, BlockSet
from standby.events.facts import QuotaObserved
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, Failure
from standby.projections.health import Health, cleared_since, cooldown_of


class Blame(NamedTuple):
    """What a failed call says about its profile."""

    profile: str
    model: str
    reason: Failure
    wait_ms: int | None
    """The wait that the provider stated, counted from `received_ms`."""
    received_ms: int
    evidence_ms: int
    subscription: bool
    """The wait is the reset of a usage window of the account (COOL-13)."""
    leads_on: bool
    """A replacement profile or a fallback exists (COOL-10)."""
    provider_started: bool


def spared(policy: Policy, ruleset: Ruleset, blame: Blame, selected: bool) -> tuple[str, ...]:
    """The rule by which a failure that can block a profile blocks none, if there is one.

    `selected` of False says that the runtime had selected no profile.
    """
    rule = ruleset.courses[blame.reason].health
    if rule is HealthRule.NOTHING:
        return ()
    if not selected:
        return ("COOL-23",)
    if not blame.profile:
        return ()
    if rule is HealthRule.TIMEOUT:
        return ("COOL-23",) if not blame.provider_started else () if blame.leads_on else ("COOL-10",)
    if rule is HealthRule.PROVIDER_TIMED and not blame.subscription:
        if is_self_managed(policy, ruleset, blame.model.partition("/")[0]):
            return ("COOL-11",)
        if blame.wait_ms is None and not policy.local_cooldown_ms:
            return ("COOL-25",)
    return ()


def block(draft: Draft, policy: Policy, ruleset: Ruleset, blame: Blame) -> None:
    """Emit the block that the failure deserves, if it deserves one."""
    if not blame.profile:
        return
    health = draft.profiles.get(blame.profile) or Health()
    rule = ruleset.courses[blame.reason].health
    if rule is HealthRule.PROVIDER_TIMED:
        _rate_limit(draft, policy, ruleset, health, blame)
    elif rule is HealthRule.BILLING:
        _climb(
            draft,
            ruleset,
            health,
            blame,
            BlockKind.DISABLED,
            ruleset.billing_ms,
            ("BILL-2", "BILL-5", "COOL-17"),
        )
    elif rule is HealthRule.PERMANENT:
        _climb(draft, ruleset, health, blame, BlockKind.DISABLED, ruleset.permanent_ms, ("BILL-3", "COOL-17"))
    elif rule is HealthRule.LADDER:
        rules = ("COOL-4", "COOL-22") if blame.reason is Failure.AUTH else ("COOL-4",)
        _climb(draft, ruleset, health, blame, BlockKind.COOLDOWN, ruleset.ladder_ms, rules)
    elif rule is HealthRule.MODEL_LADDER:
        rules = ("COOL-4", "OURS-1")
        _climb(draft, ruleset, health, blame, BlockKind.COOLDOWN, ruleset.ladder_ms, rules, blame.model)
    elif rule is HealthRule.TIMEOUT and blame.leads_on and blame.provider_started:
        rules = ("COOL-4", "COOL-10")
        _climb(draft, ruleset, health, blame, BlockKind.COOLDOWN, ruleset.ladder_ms, rules, blame.model)


def _rate_limit(draft: Draft, policy: Policy, ruleset: Ruleset, health: Health, blame: Blame) -> None:
    kind = BlockKind.WINDOW if blame.subscription else BlockKind.COOLDOWN
    model = "" if blame.subscription else blame.model
    if kind is BlockKind.COOLDOWN and is_self_managed(policy, ruleset, blame.model.partition("/")[0]):
        return
    now = draft.stamp.at_ms
    rules = ("COOL-13",) if blame.subscription else ("COOL-2", "COOL-6", "COOL-8")
    ours = False
    if blame.wait_ms is not None:
        until = blame.received_ms + blame.wait_ms
    elif policy.local_cooldown_ms:
        until, ours, rules = now + policy.local_cooldown_ms, True, ("OURS-8",)
    else:
        return
    open_entry = cooldown_of(health, model, blame.reason, kind)
    if until <= now or blame.evidence_ms < cleared_since(health, model):
        return
    if open_entry is not None and open_entry.until_ms >= until:
        return
    evidence = blame.evidence_ms
    if open_entry is not None and open_entry.until_ms > now:
        # The longer block rests on all that was seen, so a success between the two calls does not end it.
        rules, evidence = (*rules, "COOL-3"), max(evidence, open_entry.evidence_ms)
    draft.emit(
        BlockSet(
            rules=rules,
            profile=blame.profile,
            model=model,
            reason=blame.reason,
            kind=kind,
            until_ms=until,
            evidence_ms=evidence,
            ours=ours,
        )
    )


def _climb(
    draft: Draft,
    ruleset: Ruleset,
    health: Health,
    blame: Blame,
    kind: BlockKind,
    ladder_ms: tuple[int, ...],
    rules: tuple[str, ...],
    model: str = "",
) -> None:
    """Block by the count of recent failures; inside an open window only the count goes up."""
    if blame.evidence_ms < cleared_since(health, model):
        return
    now = draft.stamp.at_ms
    counter = blame.reason.value if kind is BlockKind.DISABLED else "ladder"
    last = health.last_failure_ms
    restarted = last is not None and now - last > ruleset.failure_window_ms
    if restarted:
        count, rules = 1, (*rules, "COOL-5")
    else:
        count = health.counters.get(counter, 0) + 1
    entry = cooldown_of(health, model, blame.reason, kind)
    if entry is not None and entry.until_ms > now:
        until, evidence = entry.until_ms, max(entry.evidence_ms, blame.evidence_ms)
    else:
        until, evidence = now + ladder_ms[min(count, len(ladder_ms)) - 1], blame.evidence_ms
    draft.emit(
        BlockSet(
            rules=rules,
            profile=blame.profile,
            model=model,
            reason=blame.reason,
            kind=kind,
            until_ms=until,
            evidence_ms=evidence,
            counter=counter,
            count=count,
            restarted=restarted,
        )
    )


def clear(draft: Draft, profile: str, model: str, started_ms: int) -> None:
    """A success ends the profile's blocks for this model and for all models, and its counters (COOL-9)."""
    health = draft.profiles.get(profile) if profile else None
    if health is None:
        return
    if health.counters or any(
        entry.covers(model) and entry.evidence_ms <= started_ms for entry in health.cooldowns
    ):
        draft.emit(BlockCleared(rules=("COOL-9",), profile=profile, model=model, evidence_ms=started_ms))


def observe_quota(draft: Draft, fact: QuotaObserved) -> None:
    """Bring the usage window of the profile to what the check found."""
    health = draft.profiles.get(fact.profile) or Health()
    newest = max(cleared_since(health, ""), health.checked_ms)
    if not fact.valid or fact.checked_ms < newest:
        return
    window = cooldown_of(health, "", Failure.RATE_LIMIT, BlockKind.WINDOW)
    if window is not None and window.evidence_ms > fact.checked_ms:
        # The block rests on a newer refusal than the check.
        return
    until = fact.resets_at_ms if fact.exhausted else None
    if until is None or until <= draft.stamp.at_ms:
        if window is not None and not fact.exhausted:
            draft.emit(
                BlockCleared(
                    rules=("COOL-14", "COOL-19"),
                    profile=fact.profile,
                    evidence_ms=fact.checked_ms,
                    reason=Failure.RATE_LIMIT,
                )
            )
        return
    if window is None or window.until_ms != until:
        draft.emit(
            BlockSet(
                rules=("COOL-13", "COOL-19"),
                profile=fact.profile,
                reason=Failure.RATE_LIMIT,
                kind=BlockKind.WINDOW,
                until_ms=until,
                evidence_ms=fact.checked_ms,
            )
        )

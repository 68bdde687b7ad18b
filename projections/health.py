"""Health of auth profiles: what blocks which model of which profile, and until when.

A health cell is one (model or all models, reason, kind) of a profile, so that a second model's failure never
widens the first one's block and a missing model blocks no other (OURS-1). Profile health follows log order:
each block and each clearing carries `evidence_ms`, the start of the call that it rests on. Whether a cell
blocks is a question with a moment in it; folds know no clock. A deadline that is exactly now has passed.
"""

import msgspec

from standby.events.decisions import BlockCleared, BlockSet
from standby.events.facts import ObservedProfile, QuotaObserved
from standby.events.vocabulary import BlockKind, Failure


class CooldownEntry(msgspec.Struct, gc=False, frozen=True):
    """One block of a profile."""

    model: str
    """`provider/model`; "" is every model."""
    reason: Failure
    kind: BlockKind
    until_ms: int
    evidence_ms: int
    ours: bool = False

    def covers(self, model: str) -> bool:
        """Whether this cell speaks about `model`."""
        return not self.model or self.model == model


class Health(msgspec.Struct, gc=False):
    """All that is known of one profile. `observed` is None when its credential is not there (any more)."""

    observed: ObservedProfile | None = None
    cooldowns: tuple[CooldownEntry, ...] = ()
    counters: dict[str, int] = {}
    last_failure_ms: int | None = None
    last_used_ms: int = 0
    """When a call with it last succeeded; 0 is never (ORD-4)."""
    cleared_ms: dict[str, int] = {}
    """Start of the newest successful call, by model: older evidence cannot block again."""
    checked_ms: int = 0
    """Moment of the newest quota check (COOL-19)."""


_CAPACITY = frozenset({Failure.RATE_LIMIT, Failure.OVERLOADED})


def enforced(health: Health, managed: bool) -> tuple[CooldownEntry, ...]:
    """The cells that count. Where the provider's own gateway manages capacity (`managed`), cooldowns for rate
    limits and overload do not, whoever set them; everything that routes or shows status asks here, so that
    both say the same (COOL-11, COOL-24)."""
    if not managed:
        return health.cooldowns
    return tuple(
        entry
        for entry in health.cooldowns
        if entry.kind is not BlockKind.COOLDOWN or entry.reason not in _CAPACITY
    )


def blocking(health: Health, model: str, now_ms: int, managed: bool = False) -> CooldownEntry | None:
    """The cell that blocks `model` longest at `now_ms`, or None when the profile may be used.

    With `model=""` only blocks of the whole profile count.
    """
    longest = None
    for entry in enforced(health, managed):
        if (
            entry.until_ms > now_ms
            and entry.covers(model)
            and (longest is None or entry.until_ms > longest.until_ms)
        ):
            longest = entry
    return longest


def cooldown_of(health: Health, model: str, reason: Failure, kind: BlockKind) -> CooldownEntry | None:
    """The cell with exactly this scope."""
    for entry in health.cooldowns:
        if entry.model == model and entry.reason is reason and entry.kind is kind:
            return entry
    return None


def fold_block_set(health: Health, event: BlockSet, at_ms: int) -> None:
    """A cell takes the decided deadline; expired cells are swept on the way."""
    kept = [
        entry
        for entry in health.cooldowns
        if entry.until_ms > at_ms
        and not (entry.model == event.model and entry.reason is event.reason and entry.kind is event.kind)
    ]
    kept.append(
        CooldownEntry(event.model, event.reason, event.kind, event.until_ms, event.evidence_ms, event.ours)
    )
    health.cooldowns = tuple(kept)
    if event.counter:
        # A profile that had not failed for a whole window starts all its counters anew (COOL-5).
        counters = {} if event.restarted else health.counters
        health.counters = {**counters, event.counter: event.count}
        health.last_failure_ms = at_ms


def fold_block_cleared(health: Health, event: BlockCleared) -> None:
    """Cells that rest on no newer evidence go; without a reason the counters go too."""
    health.cooldowns = tuple(
        entry
        for entry in health.cooldowns
        if not (
            entry.covers(event.model)
            and entry.evidence_ms <= event.evidence_ms
            and (event.reason is None or entry.reason is event.reason)
        )
    )
    if event.reason is None:
        health.counters = {}


def fold_use(health: Health, model: str, started_ms: int, at_ms: int) -> None:
    """A call with the profile succeeded."""
    health.last_used_ms = max(health.last_used_ms, at_ms)
    if health.cleared_ms.get(model, 0) < started_ms:
        health.cleared_ms = {**health.cleared_ms, model: started_ms}


def cleared_since(health: Health, model: str) -> int:
    """Start of the newest success that evidence about `model` ("" is the whole profile) has to beat."""
    if model:
        return health.cleared_ms.get(model, 0)
    return max(health.cleared_ms.values(), default=0)


def documented_stats(health: Health, now_ms: int, managed: bool = False) -> dict[str, int | str]:
    """The documented `usageStats` entry of a profile as a view of its cells (COOL-7).

    Keys that have nothing to say are left out. `cooldownModel` stands only when every cooldown that is open
    belongs to the same model (COOL-6).
    """
    stats: dict[str, int | str] = {}
    if health.last_used_ms:
        stats["lastUsed"] = health.last_used_ms
    if count := sum(health.counters.values()):
        stats["errorCount"] = count
    if health.last_failure_ms is not None:
        stats["lastFailureAt"] = health.last_failure_ms
    for kind, until, reason in (
        (BlockKind.COOLDOWN, "cooldownUntil", "cooldownReason"),
        (BlockKind.DISABLED, "disabledUntil", "disabledReason"),
        (BlockKind.WINDOW, "blockedUntil", "blockedReason"),
    ):
        cooldowns = [
            entry for entry in enforced(health, managed) if entry.kind is kind and entry.until_ms > now_ms
        ]
        if not cooldowns:
            continue
        longest = max(cooldowns, key=lambda entry: entry.until_ms)
        stats[until] = longest.until_ms
        stats[reason] = "subscription_limit" if kind is BlockKind.WINDOW else longest.reason.value
        models = {entry.model for entry in cooldowns}
        if kind is BlockKind.COOLDOWN and len(models) == 1 and (model := models.pop()):
            stats["cooldownModel"] = model.partition("/")[2]
    return stats


def fold_quota(health: Health, event: QuotaObserved) -> None:
    """A quota check is remembered, so that an older one cannot speak after it."""
    if event.valid:
        health.checked_ms = max(health.checked_ms, event.checked_ms)

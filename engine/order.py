"""Order of auth profiles (ORD) and what is usable of them.

The list comes from the first source that exists: the order stored for the agent, `auth.order`,
`auth.profiles`, the stored profiles. An explicit order is kept as it is; without one, kinds come in the
ruleset's order (OAuth, static token, API key), usable OAuth before expired, and the least recently used first
in each tier. Blocked profiles go last, soonest expiry first.
"""

from typing import NamedTuple

from standby.engine.rulesets import Ruleset
from standby.engine.view import Reading
from standby.events.facts import ObservedProfile
from standby.events.policy import Policy
from standby.events.vocabulary import CredentialKind
from standby.projections.health import Cell, Health, blocking

__all__ = ["Ranked", "is_explicit", "ranked"]


class Ranked(NamedTuple):
    """A profile in its place; `block` is what keeps it from being used for the model, if anything."""

    alias: str
    health: Health
    block: Cell | None


def is_explicit(view: Reading, policy: Policy, provider: str) -> bool:
    """Whether somebody ordered the provider's profiles (ORD-1, ORD-9)."""
    return bool(view.order.get(provider)) or provider in policy.order


def ranked(
    view: Reading, policy: Policy, ruleset: Ruleset, provider: str, model: str, agent: str, now_ms: int
) -> list[Ranked]:
    """The usable profiles of a provider for `model` (as `provider/model`), best first."""
    explicit = is_explicit(view, policy, provider)
    found = [
        (alias, health)
        for alias in _base(view, policy, provider)
        if (health := view.profiles.get(alias)) is not None
        and health.observed is not None
        and _usable(health.observed, policy, provider, agent, now_ms)
    ]
    if not explicit and len(found) > 1:
        found.sort(key=lambda pair: _tier(pair[1], ruleset, now_ms))
    free: list[Ranked] = []
    blocked: list[Ranked] = []
    for alias, health in found:
        block = blocking(health, model, now_ms) if health.cells else None
        (free if block is None else blocked).append(Ranked(alias, health, block))
    if not blocked:
        return free
    blocked.sort(key=lambda one: one.block.until_ms if one.block else 0)
    return free + blocked


def _base(view: Reading, policy: Policy, provider: str) -> tuple[str, ...]:
    stock = view.stock.get(provider, ())
    if stored := view.order.get(provider):
        listed = stored
    elif provider in policy.order:
        return tuple(dict.fromkeys(policy.order[provider]))
    elif any(rule.provider == provider for rule in policy.profiles.values()):
        # A mapping has no order that would survive being written, so the stored order stands.
        rules = policy.profiles
        listed = tuple(alias for alias in stock if alias in rules and rules[alias].provider == provider)
    else:
        return stock
    # Names that are all unknown to the store say nothing about it: what is stored serves.
    return tuple(dict.fromkeys(listed)) if any(alias in stock for alias in listed) else stock


def _usable(profile: ObservedProfile, policy: Policy, provider: str, agent: str, now_ms: int) -> bool:
    if profile.provider != provider or not profile.usable or profile.agent not in ("", agent):
        return False
    rule = policy.profiles.get(profile.alias)
    if rule is not None and rule.mode is not None and rule.mode is not profile.kind:
        oauth_token = rule.mode is CredentialKind.OAUTH and profile.kind is CredentialKind.TOKEN
        if not oauth_token:
            return False
    # A static token is never refreshed, so an expired one is of no use; expired OAuth stays eligible (ORD-3).
    return not (profile.kind is CredentialKind.TOKEN and _expired(profile, now_ms))


def _expired(profile: ObservedProfile, now_ms: int) -> bool:
    return profile.expires_ms is not None and profile.expires_ms <= now_ms


def _tier(health: Health, ruleset: Ruleset, now_ms: int) -> tuple[int, bool, int]:
    profile = health.observed
    if profile is None:
        return (len(ruleset.kind_order), False, 0)
    stale = profile.kind is CredentialKind.OAUTH and _expired(profile, now_ms)
    return (ruleset.kind_order.index(profile.kind), stale, health.last_used_ms)

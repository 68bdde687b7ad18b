"""Order of auth profiles (ORD) and what is usable of them.

The list comes from the first source that exists: the order stored for the agent, `auth.order`,
`auth.profiles`, the stored profiles. An explicit order is kept as it is; without one, kinds come in the
ruleset's order (OAuth, static token, API key), usable OAuth before expired, and the least recently used first
in each tier (ORD-3, ORD-4, ORD-10, ORD-11). Blocked profiles go last, soonest expiry first (ORD-5).
"""

from typing import NamedTuple

from standby.engine.rulesets import Ruleset, is_self_managed, ruleset_of
from standby.engine.view import Reading
from standby.events.facts import ObservedProfile
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, CredentialKind
from standby.projections.health import Cell, Health, blocking

__all__ = ["Ranked", "explicit_order", "manages_itself", "order_rules", "ranked"]


class Ranked(NamedTuple):
    """A profile in its place; `block` is what keeps it from being used for the model, if anything."""

    alias: str
    health: Health
    block: Cell | None


def explicit_order(view: Reading, policy: Policy, provider: str) -> tuple[str, ...] | None:
    """The order that somebody gave the provider's profiles, or None: the agent's stored one (ORD-9), else the
    configured one (ORD-1)."""
    if stored := view.order.get(provider):
        # Names that are all unknown to the store say nothing about it.
        return stored if any(alias in view.stock.get(provider, ()) for alias in stored) else None
    return policy.order.get(provider)


def order_rules(
    view: Reading, policy: Policy, provider: str, profiles: list[Ranked], now_ms: int
) -> tuple[str, ...]:
    """The rules that put these profiles in their order."""
    rules: tuple[str, ...]
    if explicit_order(view, policy, provider) is not None:
        rules = ("ORD-9",) if view.order.get(provider) else ("ORD-1",)
        if any(one.block is not None and one.block.kind is BlockKind.WINDOW for one in profiles):
            rules = (*rules, "ORD-8")
    elif len(profiles) == 1:
        rules = ("ORD-1",)
    else:
        rules = ("ORD-1", "ORD-10", "ORD-4")
        if any(one.health.observed is not None and _stale(one.health.observed, now_ms) for one in profiles):
            rules = (*rules, "ORD-3")
    return (*rules, "ORD-5") if any(one.block is not None for one in profiles) else rules


def manages_itself(view: Reading, health: Health) -> bool:
    """Whether a profile's provider looks after its capacity itself, under the policy in force (COOL-24)."""
    if health.observed is None:
        return False
    policy = view.policy()
    return is_self_managed(policy, ruleset_of(policy), health.observed.provider)


def ranked(
    view: Reading, policy: Policy, ruleset: Ruleset, provider: str, model: str, agent: str, now_ms: int
) -> list[Ranked]:
    """The usable profiles of a provider for `model` (as `provider/model`), best first."""
    explicit = explicit_order(view, policy, provider)
    found = [
        (alias, health)
        for alias in (_base(view, policy, provider) if explicit is None else dict.fromkeys(explicit))
        if (health := view.profiles.get(alias)) is not None
        and health.observed is not None
        and _usable(health.observed, policy, provider, agent, now_ms)
    ]
    if explicit is None and len(found) > 1:
        found.sort(key=lambda pair: _tier(pair[1], ruleset, now_ms))
    free: list[Ranked] = []
    blocked: list[Ranked] = []
    managed = is_self_managed(policy, ruleset, provider)
    for alias, health in found:
        block = blocking(health, model, now_ms, managed) if health.cells else None
        (free if block is None else blocked).append(Ranked(alias, health, block))
    if not blocked:
        return free
    blocked.sort(key=lambda one: one.block.until_ms if one.block else 0)
    return free + blocked


def _base(view: Reading, policy: Policy, provider: str) -> tuple[str, ...]:
    """The profiles of a provider that nobody ordered: the configured ones, else the stored ones, as stored."""
    stock = view.stock.get(provider, ())
    if not policy.profiles or view.order.get(provider):
        return stock
    # A mapping has no order that would survive being written, so the stored order stands.
    rules = policy.profiles
    listed = tuple(alias for alias in stock if alias in rules and rules[alias].provider == provider)
    # Names that are all unknown to the store say nothing about it: what is stored serves.
    return listed or stock


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


def _stale(profile: ObservedProfile, now_ms: int) -> bool:
    """Whether the access token of an OAuth profile has to be refreshed before use (ORD-3)."""
    return profile.kind is CredentialKind.OAUTH and _expired(profile, now_ms)


def _tier(health: Health, ruleset: Ruleset, now_ms: int) -> tuple[int, bool, int]:
    profile = health.observed
    if profile is None:
        return (len(ruleset.kind_order), False, 0)
    return (ruleset.kind_order.index(profile.kind), _stale(profile, now_ms), health.last_used_ms)

"""Order of auth profiles (ORD) and what is usable of them.

The list comes from the first source that exists: the order stored for the agent, `auth.order`,
`auth.profiles`, the stored profiles. An explicit order is kept as it is; without one, kinds come in the
ruleset's order (OAuth, static token, API key), usable OAuth before expired, and the least recently used first
in each tier (ORD-3, ORD-4, ORD-10, ORD-11). Blocked profiles go last, soonest expiry first (ORD-5).

Pins: the profile that a session keeps to for a provider, so that the provider's cache stays warm (PIN).

    whose pin   profile free    profile blocked, gone or expired   ends by
    ---------   -------------   --------------------------------   ------------------------------------------
    automatic   goes first      another serves and is pinned       reset, an earlier profile (COOL-18)
    the user's  goes first      another serves, the pin stays      the user, removal of its credential

Compaction is not in this table: it changes no profile (PIN-9).
"""

from typing import NamedTuple

from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset, is_self_managed, ruleset_of
from standby.engine.turn import Turn
from standby.engine.view import Readable
from standby.events.decisions import PinSet
from standby.events.facts import ObservedProfile
from standby.events.policy import Policy
from standby.events.vocabulary import BlockKind, CredentialKind, Failure
from standby.projections.health import CooldownEntry, Health, blocking
from standby.projections.sessions import Pin


class Ranked(NamedTuple):
    """A profile in its place; `block` is what keeps it from being used for the model, if anything."""

    alias: str
    health: Health
    block: CooldownEntry | None


def explicit_order(view: Readable, policy: Policy, provider: str) -> tuple[str, ...] | None:
    """The order that somebody gave the provider's profiles, or None: the agent's stored one (ORD-9), else the
    configured one (ORD-1)."""
    if stored := view.order.get(provider):
        # Names that are all unknown to the store say nothing about it.
        return stored if any(alias in view.known_profiles.get(provider, ()) for alias in stored) else None
    return policy.order.get(provider)


def order_rules(
    view: Readable, policy: Policy, provider: str, profiles: list[Ranked], now_ms: int
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


def manages_itself(view: Readable, health: Health) -> bool:
    """Whether a profile's provider looks after its capacity itself, under the policy in force (COOL-24)."""
    if health.observed is None:
        return False
    policy = view.policy()
    return is_self_managed(policy, ruleset_of(policy), health.observed.provider)


def ranked(
    view: Readable, policy: Policy, ruleset: Ruleset, provider: str, model: str, agent: str, now_ms: int
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
        block = blocking(health, model, now_ms, managed) if health.cooldowns else None
        (free if block is None else blocked).append(Ranked(alias, health, block))
    if not blocked:
        return free
    blocked.sort(key=lambda one: one.block.until_ms if one.block else 0)
    return free + blocked


def _base(view: Readable, policy: Policy, provider: str) -> tuple[str, ...]:
    """The profiles of a provider that nobody ordered: the configured ones, else the stored ones, as stored."""
    known_profiles = view.known_profiles.get(provider, ())
    if not policy.profiles or view.order.get(provider):
        return known_profiles
    # A mapping has no order that would survive being written, so the stored order stands.
    rules = policy.profiles
    listed = tuple(alias for alias in known_profiles if alias in rules and rules[alias].provider == provider)
    # Names that are all unknown to the store say nothing about it: what is stored serves.
    return listed or known_profiles


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


def preferred(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset, model: str) -> list[Ranked]:
    """The ranked profiles with the session's pin in front while it may be used (PIN-1, PIN-4)."""
    request = turn.request
    provider = turn.provider
    agent = request.agent if request else ""
    profiles = ranked(draft, policy, ruleset, provider, model, agent, draft.stamp.at_ms)
    pin = draft.session(request.session).pins.get(provider) if request else None
    if pin is None:
        return profiles
    place = next((i for i, one in enumerate(profiles) if one.alias == pin.profile), None)
    if place is None or profiles[place].block is not None:
        return profiles
    if pin.displaced and explicit_order(draft, policy, provider) is not None:
        # A rate limit drove the session here; an earlier profile of the order is usable again (COOL-18).
        return profiles
    return [profiles[place], *profiles[:place], *profiles[place + 1 :]]


def keep_pin(draft: Draft, turn: Turn, policy: Policy, profile: str, rules: tuple[str, ...]) -> tuple[str, ...]:
    """Pin the chosen profile unless a pin stands that may stay (PIN-1, PIN-2, PIN-4)."""
    if turn.request is None:
        return rules
    session, provider = turn.request.session, turn.provider
    pin = draft.session(session).pins.get(provider)
    if pin is not None and pin.profile == profile:
        return (*rules, "PIN-4" if pin.user else "PIN-1")
    if pin is not None and pin.user:
        return (*rules, "PIN-4", "PIN-12" if _missing(draft, pin) else "PIN-11")
    returns = pin is not None and _returns(draft, policy, provider, pin, profile)
    if pin is not None and not returns and not _may_go(draft, turn, pin):
        return rules
    why = ("PIN-1",) if pin is None else ("PIN-2", "COOL-18") if returns else ("PIN-2",)
    draft.emit(
        PinSet(
            rules=why,
            session=session,
            provider=provider,
            profile=profile,
            displaced=_displaced(draft, turn, policy, profile),
        )
    )
    return (*rules, *why)


def _missing(draft: Draft, pin: Pin) -> bool:
    """Whether the pinned credential is not there or not usable for now: a refresh may restore it (PIN-12)."""
    health = draft.profiles.get(pin.profile)
    if health is None or health.observed is None or not health.observed.usable:
        return True
    expires = health.observed.expires_ms
    return expires is not None and expires <= draft.stamp.at_ms


def _returns(draft: Draft, policy: Policy, provider: str, pin: Pin, profile: str) -> bool:
    """Whether the session comes back to an earlier profile of its order after a rate limit (COOL-18)."""
    order = explicit_order(draft, policy, provider)
    if not pin.displaced or order is None or profile not in order:
        return False
    return pin.profile not in order or order.index(profile) < order.index(pin.profile)


def _may_go(draft: Draft, turn: Turn, pin: Pin) -> bool:
    """An automatic pin goes while its profile is blocked or gone (PIN-2)."""
    health = draft.profiles.get(pin.profile)
    if health is None or health.observed is None:
        return True
    now = draft.stamp.at_ms
    model = turn.candidates[turn.index].model
    return any(entry.until_ms > now and entry.covers(model) for entry in health.cooldowns)


def _displaced(draft: Draft, turn: Turn, policy: Policy, profile: str) -> bool:
    """Whether a rate limit or a usage window keeps the session off an earlier profile of an explicit order, to
    which it returns as soon as that is usable (COOL-18, ORD-8)."""
    order = explicit_order(draft, policy, turn.provider)
    if order is None or profile not in order:
        return False
    now, model = draft.stamp.at_ms, turn.candidates[turn.index].model
    earlier = (draft.profiles.get(alias) for alias in order[: order.index(profile)])
    return any(
        entry.reason is Failure.RATE_LIMIT and entry.until_ms > now and entry.covers(model)
        for health in earlier
        if health is not None and health.observed is not None
        for entry in health.cooldowns
    )

"""Pins: the profile that a session keeps to for a provider, so that the provider's cache stays warm (PIN).

    whose pin   profile free    profile blocked, gone or expired   ends by
    ---------   -------------   --------------------------------   ------------------------------------------
    automatic   goes first      another serves and is pinned       reset, an earlier profile (COOL-18)
    the user's  goes first      another serves, the pin stays      the user, removal of its credential

Compaction is not in this table: it changes no profile (PIN-9).
"""

from standby.engine.draft import Draft
from standby.engine.order import Ranked, explicit_order, ranked
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.events.decisions import PinSet
from standby.events.policy import Policy
from standby.events.vocabulary import Failure
from standby.projections.sessions import Pin

__all__ = ["keep_pin", "preferred"]


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
    return any(cell.until_ms > now and cell.covers(model) for cell in health.cells)


def _displaced(draft: Draft, turn: Turn, policy: Policy, profile: str) -> bool:
    """Whether a rate limit or a usage window keeps the session off an earlier profile of an explicit order, to
    which it returns as soon as that is usable (COOL-18, ORD-8)."""
    order = explicit_order(draft, policy, turn.provider)
    if order is None or profile not in order:
        return False
    now, model = draft.stamp.at_ms, turn.candidates[turn.index].model
    earlier = (draft.profiles.get(alias) for alias in order[: order.index(profile)])
    return any(
        cell.reason is Failure.RATE_LIMIT and cell.until_ms > now and cell.covers(model)
        for health in earlier
        if health is not None and health.observed is not None
        for cell in health.cells
    )

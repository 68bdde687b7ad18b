"""Facts about sessions and credentials: switches of the model, pins, resets, removals (PIN, SEL, LIVE).

A fallback never comes here (FLOW-4). What the user says replaces what stands; a user's pin goes only when the
user replaces it, when its credential is removed on purpose, or when it no longer fits the selected provider.

Decisions about several providers or slots come in the order of their names: the order in which a mapping was
filled is not kept in a checkpoint.
"""

from standby.engine.draft import Draft
from standby.engine.selection import configured, resolve_model
from standby.events.decisions import PinCleared, PinSet, SelectionCleared, SelectionInherited, StickyEnded
from standby.events.errors import BadReport
from standby.events.facts import CredentialRemoved, ModelSelected, ProfilePinned, SessionCreated, SessionReset
from standby.events.vocabulary import SelectionSource

__all__ = ["created", "credential_removed", "pinned", "reset", "selected"]


def created(draft: Draft, fact: SessionCreated) -> None:
    """A new session: the primary in effect is no override, another model is an explicit choice (SEL-13); a
    child takes over its parent's pinned model unless the parent, or it, chose the default (SEL-8)."""
    policy = draft.policy()
    chain = configured(policy, fact.agent).chain
    if fact.model:
        model = resolve_model(policy, fact.model, chain.primary.partition("/")[0])
        if model != chain.primary:
            draft.emit(
                SelectionInherited(
                    rules=("SEL-13",), session=fact.session, model=model, source=SelectionSource.USER
                )
            )
        return
    own = draft.session(fact.session)
    if not own.chose_default and not own.model:
        _inherit(draft, fact.session, ("SEL-8",))


def _inherit(draft: Draft, key: str, rules: tuple[str, ...]) -> None:
    """A child without a selection of its own takes over its parent's pinned model."""
    own = draft.session(key)
    parent = draft.session(own.parent) if own.parent else None
    if parent is not None and parent.source is SelectionSource.USER:
        draft.emit(
            SelectionInherited(rules=rules, session=key, model=parent.model, source=SelectionSource.USER)
        )


def selected(draft: Draft, fact: ModelSelected) -> None:
    """An explicit switch: the sticky fallback ends, pins that no longer fit go (STICK-3, PIN-6, PIN-13).

    An override that was cleared (`null`) leaves a child to its parent's pin again (SEL-18); the choice
    "Default" does not (SEL-8).
    """
    policy = draft.policy()
    chain = configured(policy, fact.agent).chain
    default_provider = chain.primary.partition("/")[0]
    if not fact.model and fact.source is not SelectionSource.DEFAULT:
        _inherit(draft, fact.session, ("SEL-18", "SEL-8"))
    override = draft.session(fact.session).model
    model = resolve_model(policy, override, default_provider) if override else chain.primary
    provider = model.partition("/")[0]
    session = draft.session(fact.session)
    for slot, sticky in sorted(session.sticky.items()):
        if sticky.selected != model:
            elsewhere = "" if slot == draft.stamp.runtime else slot
            draft.emit(
                StickyEnded(rules=("STICK-3",), session=fact.session, model=sticky.model, slot=elsewhere)
            )
    for other, pin in sorted(session.pins.items()):
        if pin.user and other != provider:
            rule = "PIN-6" if fact.model else "PIN-13"
            draft.emit(PinCleared(rules=(rule,), session=fact.session, provider=other))
    if fact.profile:
        _pin(draft, fact.session, provider, fact.profile)


def pinned(draft: Draft, fact: ProfilePinned) -> None:
    """The user pins a profile, replaces the pin, or takes it away."""
    if fact.profile:
        _pin(draft, fact.session, fact.provider, fact.profile)
    elif fact.provider in draft.session(fact.session).pins:
        draft.emit(PinCleared(rules=("PIN-6",), session=fact.session, provider=fact.provider))


def _pin(draft: Draft, session: str, provider: str, profile: str) -> None:
    health = draft.profiles.get(profile)
    if health is None or health.observed is None:
        raise BadReport(f"profile {profile} is not known; add its credential first, then pin it")
    if health.observed.provider != provider:
        raise BadReport(
            f"profile {profile} belongs to {health.observed.provider}, not to {provider}; "
            "pin a profile of the provider that the model is from"
        )
    pin = draft.session(session).pins.get(provider)
    if pin is None or pin.profile != profile or not pin.user:
        draft.emit(
            PinSet(
                rules=("PIN-4",) if pin is None else ("PIN-4", "PIN-6"),
                session=session,
                provider=provider,
                profile=profile,
                user=True,
            )
        )


def reset(draft: Draft, fact: SessionReset) -> None:
    """A session begins anew: automatic pins and overrides go, the user's stay (PIN-2, PIN-4, SEL-10)."""
    session = draft.session(fact.session)
    for provider, pin in sorted(session.pins.items()):
        if not pin.user:
            draft.emit(PinCleared(rules=("PIN-2", "PIN-7"), session=fact.session, provider=provider))
    if session.model and session.source is SelectionSource.AUTO:
        draft.emit(SelectionCleared(rules=("SEL-10",), session=fact.session))


def credential_removed(draft: Draft, fact: CredentialRemoved) -> None:
    """The agent's account selections of a removed credential go; selected models stay, and so do other accounts
    and what other agents select (PIN-5)."""
    for key in sorted(draft.sessions.keys_now()):
        session = draft.session(key)
        if fact.agent and session.agent != fact.agent:
            continue
        for provider, pin in sorted(session.pins.items()):
            if pin.profile == fact.profile:
                draft.emit(PinCleared(rules=("PIN-5",), session=key, provider=provider))

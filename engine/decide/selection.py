"""Which model a turn is for, and whether it may fall back (SEL).

Strictness is derived from the source of the selection, never guessed: a user's different model is strict, a
model that equals the configured primary keeps the configured chain, a cron payload's model is a primary.

Facts about sessions and credentials: switches of the model, pins, resets, removals (PIN, SEL, LIVE).

A fallback never comes here (FLOW-4). What the user says replaces what stands; a user's pin goes only when the
user replaces it, when its credential is removed on purpose, or when it no longer fits the selected provider.

Decisions about several providers or slots come in the order of their names: the order in which a mapping was
filled is not kept in a checkpoint.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from standby.engine.deciding import Draft
from standby.engine.turn import Turn
from standby.engine.view import Readable
from standby.events.decisions import PinCleared, PinSet, SelectionCleared, SelectionInherited, StickyEnded
from standby.events.errors import BadReport
from standby.events.facts import (
    CredentialRemoved,
    ModelSelected,
    ProfilePinned,
    SessionCreated,
    SessionReset,
    TurnRequested,
)
from standby.events.policy import AgentModels, ModelChain, Policy
from standby.events.vocabulary import SelectionSource


class Selection(NamedTuple):
    """The selected model and how its chain is to be built.

    `override` of None means that the configured fallbacks and the configured primary follow; a tuple is
    exactly what follows (CHAIN-7).
    """

    model: str
    source: SelectionSource
    override: tuple[str, ...] | None
    configured: ModelChain
    rules: tuple[str, ...]


def resolve_model(policy: Policy, name: str, default_provider: str = "") -> str:
    """A model reference as `provider/model`: aliases resolved, a bare name given the default's provider.

    Raises:
        BadReport: the name can stand for no model.
    """
    name = policy.aliases.get(name, name).strip()
    if "/" in name:
        provider, _, model = name.partition("/")
        if provider and model:
            return name
    elif name and default_provider:
        return f"{default_provider}/{name}"
    raise BadReport(f"{name!r} names no model; write it as provider/model")


class Configured(NamedTuple):
    """What configuration says for an agent: the chain, where its primary is from, and the rule that says so."""

    chain: ModelChain
    source: SelectionSource
    rule: str


def configured(policy: Policy, agent: str, image: bool = False) -> Configured:
    """The primary and fallbacks in effect for an agent (SEL-1 to SEL-4, SEL-13).

    `fallbacks` of None means that none were configured; an empty tuple is the explicit "no fallback".
    """
    shared = policy.images if image else policy.models
    entry = policy.agents.get(agent)
    if entry is None or image:
        return Configured(_resolved(policy, shared), SelectionSource.DEFAULT, "SEL-1")
    own = entry.model
    if own.primary and not entry.acp:
        # Strict unless its model brings fallbacks of its own (SEL-2).
        wanted = ModelChain(primary=entry.remembered or own.primary, fallbacks=own.fallbacks)
        return Configured(_resolved(policy, wanted), SelectionSource.AGENT, "SEL-2")
    primary = entry.remembered or shared.primary
    fallbacks = shared.fallbacks if own.fallbacks is None else own.fallbacks
    rule = "SEL-4" if entry.acp else "SEL-1" if own.fallbacks is None else "SEL-3"
    wanted = ModelChain(primary=primary, fallbacks=fallbacks)
    return Configured(_resolved(policy, wanted), SelectionSource.DEFAULT, rule)


def edit_fallbacks(models: AgentModels, fallbacks: Sequence[str]) -> AgentModels:
    """An agent's models after its list of fallbacks was edited, chip by chip (SEL-19).

    Whatever the agent inherits or pins as its primary stays as it is. The last one removed leaves the explicit
    empty list, which switches fallback off, and does not bring back the shared fallbacks.
    """
    edited = tuple(dict.fromkeys(fallbacks))
    return msgspec.structs.replace(models, model=ModelChain(primary=models.model.primary, fallbacks=edited))


def _resolved(policy: Policy, chain: ModelChain) -> ModelChain:
    if not chain.primary:
        return chain
    primary = resolve_model(policy, chain.primary)
    if chain.fallbacks is None:
        return ModelChain(primary=primary)
    provider = primary.partition("/")[0]
    return ModelChain(
        primary=primary, fallbacks=tuple(resolve_model(policy, name, provider) for name in chain.fallbacks)
    )


def resolve(view: Readable, policy: Policy, request: TurnRequested) -> Selection:
    """The selection of a turn.

    Raises:
        BadReport: nothing selects a model.
    """
    setting = configured(policy, request.agent, request.image)
    chain = setting.chain
    model, source, rules = _chosen(view, policy, request, setting)
    if not model:
        raise BadReport(
            f"turn {request.turn} selects no model: set agents.defaults.model.primary in the policy, "
            "or name a model with the turn"
        )
    if request.locked or request.selected_only:
        return Selection(model, source, (), chain, (*rules, "SEL-7" if request.locked else "SEL-4"))
    if request.fallbacks is not None:
        provider = model.partition("/")[0]
        listed = tuple(resolve_model(policy, name, provider) for name in request.fallbacks)
        by = {SelectionSource.HOOK: "SEL-14", SelectionSource.CRON: "SEL-12"}.get(request.source)
        given = (*rules, by) if by else rules
        return Selection(model, source, listed, chain, given if listed else (*given, "SEL-7"))
    override, why = _strictness(model, source, setting)
    entry = policy.agents.get(request.agent)
    if entry is not None and entry.acp and source in _BY_USER:
        why = (*why, "SEL-16")
    return Selection(model, source, override, chain, (*rules, *why))


def pending_switch(view: Readable, turn: Turn) -> str | None:
    """The model that the user switched the session to while this turn was under way, if it is another one than
    the turn is calling (LIVE-1, LIVE-7).

    Only an explicit switch counts. The turn's own candidates never change by it: the host leaves the call
    and reports `live_switch_requested`, or lets the turn end.
    """
    request = turn.request
    session = view.sessions.get(request.session) if request is not None else None
    if request is None or session is None or session.switched == turn.switched or turn.ended_ms is not None:
        return None
    bare = msgspec.structs.replace(request, model="")
    model, _, _ = _chosen(view, view.policy(), bare, configured(view.policy(), request.agent, request.image))
    return model if model and (not turn.attempts or turn.attempts[-1].model != model) else None


_BY_USER = (SelectionSource.USER, SelectionSource.CALLER)


def _chosen(
    view: Readable, policy: Policy, request: TurnRequested, setting: Configured
) -> tuple[str, SelectionSource, tuple[str, ...]]:
    """The selected model, who chose it, and by which rules."""
    provider = setting.chain.primary.partition("/")[0]
    session = view.sessions.get(request.session)
    stored = session is not None and session.model and not request.image
    # What a runtime still carries gives way to what the session stores (LIVE-2).
    if request.model and not (stored and request.source is SelectionSource.AUTO):
        source = request.source
        if source is SelectionSource.DEFAULT:
            source = SelectionSource.CALLER
        return resolve_model(policy, request.model, provider), source, ("FLOW-2",)
    turn = view.turns.get(request.turn)
    # The user's word from the last run decides this one, whatever answered meanwhile (LIVE-3).
    rules = ("FLOW-2", "LIVE-3") if turn is not None and turn.chosen_live else ("FLOW-2",)
    if session is not None and stored:
        return resolve_model(policy, session.model, provider), session.source, (*rules, "LIVE-2")
    if session is not None and session.chose_default:
        rules = (*rules, "SEL-8")
    return setting.chain.primary, setting.source, rules


def _strictness(
    model: str, source: SelectionSource, setting: Configured
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The override list that the source implies, and the rules that say so."""
    chain = setting.chain
    if source in _BY_USER and model != chain.primary:
        return (), ("SEL-5",)
    by = {
        SelectionSource.DEFAULT: setting.rule,
        SelectionSource.AGENT: setting.rule,
        SelectionSource.USER: "SEL-6",
        SelectionSource.CALLER: "SEL-6",
        SelectionSource.CRON: "SEL-12",
        SelectionSource.CHILD: "SEL-11",
        SelectionSource.HOOK: "CHAIN-9",
        SelectionSource.AUTO: "SEL-17",
    }[source]
    if chain.fallbacks == ():
        return (), (by, "SEL-7")
    if setting.source is SelectionSource.AGENT and model == chain.primary:
        own = chain.fallbacks or ()
        return own, ("SEL-2", "SEL-17") if own else ("SEL-2",)
    return None, (by, "SEL-17") if source in _MAY_WALK else (by,)


_MAY_WALK = (SelectionSource.DEFAULT, SelectionSource.CRON)


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
    for instance, sticky in sorted(session.sticky.items()):
        if sticky.selected != model:
            elsewhere = "" if instance == draft.stamp.runtime else instance
            draft.emit(
                StickyEnded(rules=("STICK-3",), session=fact.session, model=sticky.model, instance=elsewhere)
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

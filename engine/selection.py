"""Which model a turn is for, and whether it may fall back (SEL).

Strictness is derived from the source of the selection, never guessed: a user's different model is strict, a
model that equals the configured primary keeps the configured chain, a cron payload's model is a primary.
"""

from typing import NamedTuple

from standby.engine.view import Reading
from standby.events.errors import BadReport
from standby.events.facts import TurnRequested
from standby.events.policy import ModelChain, Policy
from standby.events.vocabulary import SelectionSource

__all__ = ["Selection", "configured", "resolve", "resolve_model"]


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


def configured(policy: Policy, agent: str, image: bool = False) -> tuple[ModelChain, SelectionSource]:
    """The primary and fallbacks in effect for an agent (SEL-1 to SEL-4), and where the primary is from."""
    shared = policy.images if image else policy.models
    entry = policy.agents.get(agent)
    if entry is None or image:
        return _resolved(policy, shared), SelectionSource.DEFAULT
    own = entry.model
    if own.primary and not entry.acp:
        # An agent's own primary is strict unless its model brings fallbacks of its own (SEL-2).
        return _resolved(
            policy, ModelChain(primary=own.primary, fallbacks=own.fallbacks or ())
        ), SelectionSource.AGENT
    if own.fallbacks is not None:
        return _resolved(
            policy, ModelChain(primary=shared.primary, fallbacks=own.fallbacks)
        ), SelectionSource.DEFAULT
    return _resolved(policy, shared), SelectionSource.DEFAULT


def _resolved(policy: Policy, chain: ModelChain) -> ModelChain:
    if not chain.primary:
        return chain
    primary = resolve_model(policy, chain.primary)
    provider = primary.partition("/")[0]
    fallbacks = tuple(resolve_model(policy, name, provider) for name in chain.fallbacks or ())
    return ModelChain(primary=primary, fallbacks=fallbacks)


def resolve(view: Reading, policy: Policy, request: TurnRequested) -> Selection:
    """The selection of a turn.

    Raises:
        BadReport: nothing selects a model.
    """
    chain, origin = configured(policy, request.agent, request.image)
    model, source, rules = _chosen(view, policy, request, chain, origin)
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
        by = {SelectionSource.HOOK: "SEL-14", SelectionSource.CRON: "SEL-12"}.get(source)
        return Selection(model, source, listed, chain, (*rules, by or "CHAIN-7"))
    override, why = _strictness(model, source, chain, origin)
    return Selection(model, source, override, chain, (*rules, why))


def _chosen(
    view: Reading,
    policy: Policy,
    request: TurnRequested,
    chain: ModelChain,
    origin: SelectionSource,
) -> tuple[str, SelectionSource, tuple[str, ...]]:
    provider = chain.primary.partition("/")[0]
    if request.model:
        source = request.source
        if source is SelectionSource.DEFAULT:
            source = SelectionSource.CALLER
        return resolve_model(policy, request.model, provider), source, ("FLOW-2",)
    session = view.sessions.get(request.session)
    if session is not None and session.model and not request.image:
        # The stored override beats whatever a runtime still carries (LIVE-2, LIVE-3).
        return resolve_model(policy, session.model, provider), session.source, ("FLOW-2", "LIVE-2")
    return chain.primary, origin, ("FLOW-2",)


def _strictness(
    model: str, source: SelectionSource, chain: ModelChain, origin: SelectionSource
) -> tuple[tuple[str, ...] | None, str]:
    """The override list that the source implies, and the rule that says so."""
    if source in (SelectionSource.USER, SelectionSource.CALLER):
        if model != chain.primary:
            return (), "SEL-5"
        if origin is SelectionSource.AGENT:
            return chain.fallbacks or (), "SEL-6"
        return None, "SEL-6"
    if source is SelectionSource.AGENT:
        return chain.fallbacks or (), "SEL-2"
    if source is SelectionSource.CRON:
        return None, "SEL-12"
    if source is SelectionSource.CHILD:
        return None, "SEL-11"
    if source is SelectionSource.DEFAULT:
        return None, "SEL-1"
    return None, "SEL-17"

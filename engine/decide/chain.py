"""Building the chain of candidates (CHAIN), and putting it in another order.

    no override        requested, configured fallbacks in order, configured primary
    override list      requested and exactly that list
    sticky fallback    that fallback, then as above

Duplicates go, allowlists play no part, and the chain has a limit.
"""

from standby.engine.decide.selection import Selection
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.engine.view import Readable
from standby.events.decisions import Candidate, ChainReordered
from standby.events.facts import CallFailed
from standby.events.policy import Policy
from standby.events.vocabulary import CredentialKind, Failure

CHAIN_LIMIT = 32
"""Longest chain; what comes after is left out."""


def plan_chain(selection: Selection, sticky: str | None) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """The candidates in order, and the rules that made the order."""
    rules = ["CHAIN-1", "CHAIN-2"]
    wanted = [Candidate(model=selection.model, origin="requested")]
    if selection.override is not None:
        wanted += [Candidate(model=model, origin="fallback") for model in selection.override]
        rules.append("CHAIN-7")
    else:
        wanted += [Candidate(model=model, origin="fallback") for model in selection.configured.fallbacks or ()]
        if selection.configured.primary:
            wanted.append(Candidate(model=selection.configured.primary, origin="primary"))
        rules += ["CHAIN-5", "CHAIN-9"]
        if _on_fallback(selection):
            rules.append("CHAIN-3")
    chain = _first_of_each(wanted)
    if sticky is not None:
        chain = [
            Candidate(model=sticky, origin="sticky"),
            *(candidate for candidate in chain if candidate.model != sticky),
        ]
        rules.append("STICK-1")
    return tuple(chain[:CHAIN_LIMIT]), tuple(rules)


def consents(policy: Policy, reason: Failure | None, model: str) -> bool:
    """Whether the operator lets a turn go on to `model` after this reason (OURS-7)."""
    for consent in policy.consent:
        if consent.reason is reason:
            return consent.models is None or model in consent.models
    return True


def _on_fallback(selection: Selection) -> bool:
    """Whether the turn starts on a configured fallback, or on another model of such a fallback's provider."""
    provider = selection.model.partition("/")[0]
    families = {model.partition("/")[0] for model in selection.configured.fallbacks or ()}
    return selection.model != selection.configured.primary and provider in families


def _first_of_each(wanted: list[Candidate]) -> list[Candidate]:
    chain: dict[str, Candidate] = {}
    for candidate in wanted:
        chain.setdefault(candidate.model, candidate)
    return list(chain.values())


def refusal_models(
    view: Readable, turn: Turn, policy: Policy, ruleset: Ruleset, profile: str
) -> tuple[str, ...]:
    """Later candidates of the same provider, to which it may go inside the request when this model refuses.

    Only for direct requests with an API key, to providers that do so, and where the operator consents (ADV-13).
    A refusal that comes back all the same is final (ADV-9).
    """
    if turn.provider not in ruleset.refusal_in_request or turn.request is None:
        return ()
    known = view.profiles.get(profile)
    by_key = known is not None and known.observed is not None and known.observed.kind is CredentialKind.API_KEY
    if not by_key or turn.request.owns_transport or turn.request.harness:
        return ()
    return tuple(
        candidate.model
        for candidate in turn.candidates[turn.index + 1 :]
        if candidate.model.partition("/")[0] == turn.provider
        and consents(policy, Failure.REFUSAL, candidate.model)
    )


def reorder_for_window(
    policy: Policy, candidates: tuple[Candidate, ...], index: int, needed: int | None
) -> tuple[Candidate, ...]:
    """The chain after an overflow at `index`: candidates that are known to be large enough go ahead (CHAIN-8).

    `needed` is the number of tokens that did not fit, if it is known; without it a window is enough when it is
    larger than the one that overflowed, larger known windows first. Order inside each group stays, and nobody
    is left out: what is known of a window is a hint (CHAIN-10).
    """
    passed, rest = candidates[: index + 1], candidates[index + 1 :]
    known = {c.model: window_of(policy, c.model) or 0 for c in candidates}
    if needed is not None:
        fits = [c for c in rest if known[c.model] >= needed]
    else:
        fits = [c for c in rest if known[c.model] > known[candidates[index].model]]
        fits.sort(key=lambda c: -known[c.model])
    return (*passed, *fits, *(c for c in rest if c not in fits))


def window_of(policy: Policy, model: str) -> int | None:
    """The known context window of a model, cut by the effective `contextTokens` where one is configured."""
    window, cap = policy.windows.get(model), policy.context_tokens.get(model)
    if window is None or cap is None:
        return window if cap is None else cap
    return min(window, cap)


def reorder(draft: Draft, turn: Turn, policy: Policy) -> None:
    """Put candidates that are known to be large enough ahead of the others (CHAIN-8)."""
    stated = next((report for report in reversed(turn.reports) if isinstance(report, CallFailed)), None)
    needed = stated.evidence.request_tokens if stated is not None else None
    if needed is None and turn.request is not None:
        # The provider gave no count: the host's own, if it has one, is the next best.
        needed = turn.request.input_tokens
    ordered = reorder_for_window(policy, turn.candidates, turn.index, needed)
    if ordered != turn.candidates:
        draft.emit(
            ChainReordered(
                rules=("CHAIN-8", "CHAIN-10"),
                turn=turn.request.turn if turn.request else "",
                candidates=ordered,
            )
        )

"""Leaving a candidate for a later one (ADV): where to, and in which order the rest is tried."""

from standby.engine.candidates import consents, reorder_for_window
from standby.engine.choose import choose
from standby.engine.draft import Draft
from standby.engine.rulesets import Ruleset
from standby.engine.stickiness import drop_sticky
from standby.engine.summary import run_out
from standby.engine.turn import Turn
from standby.events.decisions import ChainAdvanced, ChainReordered
from standby.events.facts import CallFailed
from standby.events.policy import Policy
from standby.events.vocabulary import Failure

__all__ = ["advance", "consents", "reorder"]


def advance(
    draft: Draft,
    key: str,
    policy: Policy,
    ruleset: Ruleset,
    reason: Failure | None,
    rules: tuple[str, ...],
) -> None:
    """Leave the present candidate for the next one, and choose there; `choose` asks for consent (OURS-7)."""
    turn = draft.turn(key)
    drop_sticky(draft, turn)
    following = turn.index + 1
    if following >= len(turn.candidates):
        run_out(draft, key, policy, ruleset)
        return
    draft.emit(
        ChainAdvanced(
            rules=rules,
            turn=key,
            index=following,
            model=turn.candidates[following].model,
            after=turn.candidates[turn.index].model,
            reason=reason,
        )
    )
    choose(draft, key, policy, ruleset)


def reorder(draft: Draft, turn: Turn, policy: Policy) -> None:
    """Put candidates that are known to be large enough ahead of the others (CHAIN-8)."""
    stated = next((report for report in reversed(turn.reports) if isinstance(report, CallFailed)), None)
    needed = stated.evidence.asked if stated is not None else None
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

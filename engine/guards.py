"""Guards of the turn table: functions of a turn and an event, nothing else."""

from collections.abc import Callable
from typing import Any

from standby.engine.turn import Turn

__all__ = ["GUARDS"]


def of_this_attempt(turn: Turn, event: Any) -> bool:
    """The event speaks about the attempt that is under way."""
    return bool(event.attempt == turn.attempt)


def at_the_candidate(turn: Turn, event: Any) -> bool:
    """The event speaks about the candidate that the chain stands at."""
    return turn.standing and bool(event.index == turn.index)


def another_candidate(turn: Turn, event: Any) -> bool:
    """The chain goes forward, to a candidate that exists (OURS-11: no way leads back)."""
    return bool(turn.index < event.index < len(turn.candidates))


def same_candidates(turn: Turn, event: Any) -> bool:
    """A new order holds the same candidates and leaves those already passed in their place."""
    passed = turn.index + 1
    return bool(
        event.candidates[:passed] == turn.candidates[:passed]
        and sorted(event.candidates, key=str) == sorted(turn.candidates, key=str)
    )


def may_be_tried(turn: Turn, event: Any) -> bool:
    """The next attempt in number, at this candidate, with nothing used up and nothing replayed unsafely."""
    return bool(
        turn.standing
        and event.attempt == turn.attempt + 1
        and event.index == turn.index
        and event.model == turn.candidates[turn.index].model
        and (event.model, event.profile) not in turn.used
        and (turn.replayable or event.continuation)
    )


def next_retry(turn: Turn, event: Any) -> bool:
    """Retries are counted without gaps and stay in their budget; nothing is retried after an unsafe try
    unless the host can continue (REC-6, REC-8)."""
    return bool(
        turn.retries < event.retry <= turn.retries + 1 <= event.of
        and (turn.replayable or turn.request is None or turn.request.continuable)
    )


GUARDS: dict[str, Callable[[Any, Any], bool]] = {
    guard.__name__: guard
    for guard in (
        of_this_attempt,
        at_the_candidate,
        another_candidate,
        same_candidates,
        may_be_tried,
        next_retry,
    )
}
"""Guards by the names that the table uses."""

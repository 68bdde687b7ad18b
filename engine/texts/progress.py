"""What is shown of a turn while it goes on, and when it has failed (NOTE-5, NOTE-6, NOTE-13, NOTE-14).

while it waits     one passing line, replaced by the next                 never stored
another model      an event: which was left, which is tried, and why      stays in history
it is answered     the line goes away; the answer stands alone            no failure is shown
it has failed      one failure, however many attempts there were          offers what can be done
"""

from enum import Enum

import msgspec

from standby.engine.steps import Wait
from standby.engine.texts.failures import failure_message
from standby.engine.turn import Turn
from standby.events.decisions import NoticeDue
from standby.events.vocabulary import Failure, TurnEnd, WaitBecause
from standby.projections.sessions import Session

TRYING_FALLBACK = "Trying fallback model…"
"""The line while a fallback is tried (NOTE-5)."""


def retry_line(wait: Wait, now_ms: int) -> str:
    """The line of a wait before the same model is tried again (NOTE-5, REC-7): for rate limits which attempt
    comes next of how many, and how long it takes. "" for waits of another kind."""
    if wait.because is not WaitBecause.RETRY:
        return ""
    count = ""
    if wait.reason is Failure.RATE_LIMIT:
        count = f" {wait.retry + 1}" + (f"/{wait.of + 1}" if wait.of else "")
    seconds = max(1, -(-(wait.until_ms - now_ms) // 1000))
    return f"Retrying…{count} (in {seconds} s)"


class FallbackAttempted(msgspec.Struct, frozen=True, kw_only=True):
    """A model other than the selected one is being tried (NOTE-6). It does not say that it succeeds."""

    attempt: int
    previous: str
    """The model that was left or passed over."""
    trying: str
    reason: Failure | None


class ReturnedToSelected(msgspec.Struct, frozen=True, kw_only=True):
    """The selected model answered after a fallback had (NOTE-14)."""

    fallback: str
    selected: str


def fallback_attempted(turn: Turn, attempt: int) -> FallbackAttempted | None:
    """The fallback event of an attempt: of the first one to a candidate that is not the selected model.

    A candidate that was passed over before anything was tried is what was left, too.
    """
    here = turn.attempts[attempt - 1]
    before = turn.attempts[attempt - 2] if attempt > 1 else None
    if here.model == turn.selected or (before is not None and before.index == here.index):
        return None
    if before is not None:
        previous, reason = before.model, before.reason
    else:
        skips = [skip for skip in turn.skips if skip.before_attempt == attempt]
        if not skips:
            # A sticky fallback stands first: nothing was left for it.
            return None
        previous, reason = skips[0].model, skips[0].reason
    return FallbackAttempted(attempt=attempt, previous=previous, trying=here.model, reason=reason)


def returned(due: NoticeDue) -> ReturnedToSelected | None:
    """The divider "Returned to selected model": only an answer of the selected model makes one fall due, not
    an attempt at it, and not its failure (NOTE-14)."""
    if not due.returned:
        return None
    return ReturnedToSelected(fallback=due.active, selected=due.selected)


class Offer(Enum):
    """What the user can do about a failed run. Neither sends the prompt again by itself nor touches an unsent
    draft (NOTE-13)."""

    TRY_AGAIN = "Try again"
    """Request a turn that `continues` this one: finished work is looked for before anything is repeated."""
    CHANGE_MODEL = "Change model"
    """Open the choice of models."""


class FinalFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The one failure that is shown of a failed run."""

    turn: str
    text: str
    offers: tuple[Offer, ...]


_SHOWN = (TurnEnd.EXHAUSTED, TurnEnd.SURFACED, TurnEnd.UNSAFE, TurnEnd.DEADLINE, TurnEnd.STOPPED)


def final_failure(turn: Turn, session: Session, now_ms: int) -> FinalFailure | None:
    """What is shown of a run that failed: once, not per attempt; None for a run that did not fail, was stopped
    by the user, or was handed back to its owner. Only the latest run of the session has offers (NOTE-13)."""
    if turn.request is None or turn.end not in _SHOWN:
        return None
    key = turn.request.turn
    offers = (Offer.TRY_AGAIN, Offer.CHANGE_MODEL) if session.user_turn == key else ()
    return FinalFailure(turn=key, text=failure_message(turn, now_ms), offers=offers)

"""What the user is told when the answering model changes, and when it comes back (NOTE).

An event knows the reason, never the provider's words; the text is put together at the edge from the event and,
where it is still kept, the failed attempt's text. The same (selected, active) pair is told once, across
restarts; groups and channels keep the state and show nothing.
"""

import re

from standby.engine.draft import Draft
from standby.engine.turn import Turn
from standby.events.decisions import NoticeDue
from standby.events.vocabulary import Failure, Surface, TurnKind

__all__ = ["announce", "notice_text", "reason_text"]

REASON_LIMIT = 80
"""Longest reason in a notice, in characters; the last one is an ellipsis when it was cut."""

_VERBOSE = {
    Failure.RATE_LIMIT,
    Failure.OVERLOADED,
    Failure.TIMEOUT,
    Failure.EMPTY_RESPONSE,
    Failure.NO_ERROR_DETAILS,
    Failure.UNCLASSIFIED,
}
_TELLING = re.compile(
    r"429|\b5\d\d\b|too many requests|usage limit|quota|try again in|retry-after|\d+ ?(?:seconds|minutes|hours)"
    r"|temporarily unavailable|overloaded|service unavailable|throttl",
    re.IGNORECASE,
)


def announce(draft: Draft, turn: Turn, rule: str = "NOTE-2") -> None:
    """A turn was answered: is there something to tell about the model that did?

    Internal turns and hidden continuation prompts are no turns of the user's (NOTE-12).
    """
    request = turn.request
    if request is None or request.hidden or request.kind in (TurnKind.COMPACTION, TurnKind.BACKGROUND):
        return
    session = draft.session(request.session)
    told = session.announced
    if told is not None and told.selected != turn.selected:
        told = None
    quiet = request.surface in (Surface.GROUP, Surface.CHANNEL)
    divider = request.surface is Surface.CONTROL
    if turn.answered == turn.selected:
        if told is not None:
            draft.emit(
                NoticeDue(
                    rules=("NOTE-9", "NOTE-10") if quiet else ("NOTE-9", "NOTE-14"),
                    session=request.session,
                    turn=request.turn,
                    selected=turn.selected,
                    active=told.active,
                    returned=True,
                    quiet=quiet,
                    divider=divider,
                )
            )
        return
    if told is not None and told.active == turn.answered:
        return
    failed = [a for a in turn.attempts if not a.succeeded and a.reason is not None]
    skipped = [skip for skip in turn.skips if skip.reason is not None]
    # What is told is why the first candidate was left, and how many more were tried or passed over.
    first = next((a for a in reversed(failed) if a.index == failed[0].index), None) if failed else None
    reason = first.reason if first else (skipped[0].reason if skipped else None)
    draft.emit(
        NoticeDue(
            rules=("NOTE-1", "NOTE-10") if quiet else ("NOTE-1", rule),
            session=request.session,
            turn=request.turn,
            selected=turn.selected,
            active=turn.answered,
            reason=reason,
            attempt=first.attempt if first else 0,
            more=max(0, len({a.index for a in failed} | {skip.index for skip in skipped}) - 1),
            quiet=quiet,
            divider=divider,
            warning=any(a.reason is Failure.CONTEXT_OVERFLOW for a in failed),
        )
    )


def reason_text(reason: Failure | None, text: str = "", status: int | None = None) -> str:
    """The reason in a notice: the provider's own words where they tell more than the reason does."""
    if reason in _VERBOSE and text and _TELLING.search(text):
        words = f"HTTP {status}: {text}" if status and str(status) not in text else text
    elif reason is not None:
        words = reason.value.replace("_", " ")
    elif status is not None:
        words = f"HTTP {status}"
    else:
        words = text or "selected model unavailable"
    words = " ".join(words.split())
    return words if len(words) <= REASON_LIMIT else words[: REASON_LIMIT - 1] + "…"


def notice_text(notice: NoticeDue, text: str = "", status: int | None = None) -> str:
    """The notice as it is shown (NOTE-1, NOTE-9). `text` is the kept text of the failed attempt, if any."""
    if notice.returned:
        was = f" (was {notice.active})" if notice.active != notice.selected else ""
        return f"↪️ Model Fallback cleared: {notice.selected}{was}"
    reason = reason_text(notice.reason, text, status)
    if notice.more:
        reason += f" (+{notice.more} more attempts)"
    return f"↪️ Model Fallback: {notice.active} (selected {notice.selected}; {reason})"

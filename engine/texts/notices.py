"""What the user is told when the answering model changes, and when it comes back (NOTE).

An event knows the reason, never the provider's words; the text is put together at the edge from the event and,
where it is still kept, the failed attempt's text. The same (selected, active) pair is told once, across
restarts; groups and channels keep the state and show nothing.

What a host delivers is a `Notice`. It says about itself how it is to be handled: it is no assistant content,
so that it gets past the suppression of source replies, leaves the first reply slot of a thread free and is
not spoken (NOTE-3).
"""

import re
from collections.abc import Callable
from enum import Enum

import msgspec

from standby.engine.reading.masking import mask
from standby.engine.steps import Settled
from standby.events.decisions import NoticeDue
from standby.events.vocabulary import Failure
from standby.projections.sessions import Announced, Session

REASON_LIMIT = 80
"""Longest reason in a notice, in characters; the last one is an ellipsis when it was cut."""


class NoticeKind(Enum):
    """What a notice is about."""

    FALLBACK = "fallback"
    RETURNED = "returned"
    WARNING = "warning"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An operational message to the user, and how it is delivered (NOTE-3)."""

    kind: NoticeKind
    text: str
    assistant_content: bool = False
    """Part of the conversation: stored, counted and sent to models."""
    suppressible: bool = False
    """Held back where ordinary replies to the source are."""
    takes_reply_slot: bool = False
    """Uses up the first reply slot of a threaded channel."""
    spoken: bool = False
    """Read aloud."""


class FallbackNote(msgspec.Struct, frozen=True, kw_only=True):
    """What status and session lists say of a fallback that the user was told of (NOTE-7)."""

    selected: str
    active: str
    reason: Failure | None
    detail: str = ""
    """Words of the failed attempt; "" where the transcript has none or is not there."""


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


def reason_text(reason: Failure | None, text: str = "", status: int | None = None, code: str = "") -> str:
    """The reason in a notice: the provider's own words where they tell more than the reason does."""
    said = _words_of(text)
    if reason in _VERBOSE and _TELLING.search(said):
        words = _with_status(said, status)
    elif reason is not None:
        words = reason.value.replace("_", " ")
    elif code:
        words = code
    elif status is not None:
        words = f"HTTP {status}"
    else:
        words = said or "selected model unavailable"
    words = " ".join(words.split())
    return words if len(words) <= REASON_LIMIT else words[: REASON_LIMIT - 1] + "…"


_MESSAGE = re.compile(r'"(?:message|detail|error)"\s*:\s*"((?:[^"\\]|\\.)+)')
_LEADING_STATUS = re.compile(r"(?:HTTP[ /]*(?:1\.\d )?)?([45]\d\d)\b[\s:]*")


def _words_of(text: str) -> str:
    """What a kept reply says to people: of a JSON body its message, also when the body was cut."""
    text = " ".join(text.split())
    if not text.startswith(("{", "[")):
        return text
    found = _MESSAGE.search(text)
    if found is None:
        return ""
    try:
        # Masked again, since escapes are undone only here.
        return mask(" ".join(str(msgspec.json.decode(f'"{found[1]}"')).split()))
    except msgspec.DecodeError:
        return found[1]


def _with_status(said: str, status: int | None) -> str:
    """The words with the status in front, once."""
    leading = _LEADING_STATUS.match(said)
    if leading is not None:
        rest = said[leading.end() :]
        return f"HTTP {leading[1]}: {rest}" if rest else f"HTTP {leading[1]}"
    return f"HTTP {status}: {said}" if status and str(status) not in said else said


def notice_text(notice: NoticeDue, text: str = "", status: int | None = None, code: str = "") -> str:
    """The notice as it is shown (NOTE-1, NOTE-9). `text` is the kept text of the failed attempt, if any."""
    if notice.returned:
        was = f" (was {notice.active})" if notice.active != notice.selected else ""
        return f"↪️ Model Fallback cleared: {notice.selected}{was}"
    reason = reason_text(notice.reason, text, status, code)
    if notice.more:
        reason += f" (+{notice.more} more attempts)"
    return f"↪️ Model Fallback: {notice.active} (selected {notice.selected}; {reason})"


def notice_of(due: NoticeDue, text: str = "", status: int | None = None) -> Notice | None:
    """The notice to deliver. None in groups and channels (NOTE-10), and while a divider of the transcript
    stands for it (NOTE-4)."""
    if due.quiet or due.divider:
        return None
    kind = NoticeKind.RETURNED if due.returned else NoticeKind.FALLBACK
    return Notice(kind=kind, text=notice_text(due, text, status))


def warning_of(settled: Settled) -> Notice | None:
    """The visible warning of an answered turn whose conversation did not fit the selected model (ADV-11). It
    comes with each such answer; the notice of the fallback comes once."""
    if not settled.answered or settled.guidance is not Failure.CONTEXT_OVERFLOW:
        return None
    return Notice(
        kind=NoticeKind.WARNING,
        text=f"⚠️ The conversation no longer fits {settled.selected}; {settled.model} answered instead.",
    )


def fallback_note(
    session: Session, selected: str, read: Callable[[Announced], str | None] | None = None
) -> FallbackNote | None:
    """The fallback notice that stands for the selected model, if one does (NOTE-7).

    A notice that belongs to another selected model is stale, and nothing is looked up for it. `read` looks the
    words of the failed attempt up without writing anything; it returns None where there are none to be had,
    and what it raises goes through.
    """
    notified = session.announced
    if notified is None or notified.selected != selected:
        return None
    detail = read(notified) if read is not None and notified.attempt else None
    return FallbackNote(selected=selected, active=notified.active, reason=notified.reason, detail=detail or "")

"""What `/status` shows of a session: the selected model and, where another one answers, which and why (LIVE-5).

The selection is never what answered last: a fallback writes none (FLOW-4). What answers comes from the notice
state, and before any notice from a fallback that is still sticky.
"""

import msgspec

from standby.engine.decide.selection import resolve
from standby.engine.view import View
from standby.events.errors import BadReport
from standby.events.facts import TurnRequested
from standby.events.vocabulary import Failure, SelectionSource
from standby.projections.sessions import Session, Sticky


class SessionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A session at a moment."""

    selected: str
    """`provider/model`; "" when nothing selects one."""
    source: SelectionSource
    strict: bool
    """A failure of the selected model is final."""
    active: str = ""
    """The fallback that answers instead; "" when the selected model does."""
    reason: Failure | None = None
    """Why it does."""


def held_sticky(view: View, session: Session, selected: str, now_ms: int) -> Sticky | None:
    """The sticky fallback that some living runtime still holds, the longest one."""
    held = [
        one
        for one in session.sticky.values()
        if one.until_ms > now_ms and one.selected == selected and view.local(one.runtime, one.epoch)
    ]
    return max(held, key=lambda one: one.until_ms, default=None)


def status_of(view: View, session: str, agent: str, now_ms: int) -> SessionStatus:
    """The status of a session, by its alias. A fallback from another selected model is stale and not shown."""
    try:
        selection = resolve(view, view.policy(), TurnRequested(turn="", session=session, agent=agent))
    except BadReport:
        return SessionStatus(selected="", source=SelectionSource.DEFAULT, strict=False)
    known = view.sessions.get(session) or Session()
    active, reason = "", None
    if known.announced is not None and known.announced.selected == selection.model:
        active, reason = known.announced.active, known.announced.reason
    elif (sticky := held_sticky(view, known, selection.model, now_ms)) is not None:
        active, reason = sticky.model, Failure.RATE_LIMIT
    return SessionStatus(
        selected=selection.model,
        source=selection.source,
        strict=selection.override == (),
        active=active,
        reason=reason,
    )

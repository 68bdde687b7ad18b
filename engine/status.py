"""What `/status` shows of a session: the selected model and, where another one answers, which and why (LIVE-5).

The selection is never what answered last: a fallback writes none (FLOW-4). What answers comes from the notice
state, and before any notice from a fallback that is still sticky.
"""

import msgspec

from standby.engine.selection import resolve
from standby.engine.view import View
from standby.events.errors import BadReport
from standby.events.facts import TurnRequested
from standby.events.vocabulary import Failure, SelectionSource
from standby.projections.sessions import Session

__all__ = ["Status", "status_of"]


class Status(msgspec.Struct, frozen=True, kw_only=True):
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


def status_of(view: View, session: str, agent: str, now_ms: int) -> Status:
    """The status of a session, by its alias. A fallback from another selected model is stale and not shown."""
    try:
        selection = resolve(view, view.policy(), TurnRequested(turn="", session=session, agent=agent))
    except BadReport:
        return Status(selected="", source=SelectionSource.DEFAULT, strict=False)
    known = view.sessions.get(session) or Session()
    active, reason = "", None
    if known.announced is not None and known.announced.selected == selection.model:
        active, reason = known.announced.active, known.announced.reason
    else:
        held = [
            sticky
            for sticky in known.sticky.values()
            if sticky.selected == selection.model
            and sticky.until_ms > now_ms
            and view.local(sticky.runtime, sticky.epoch)
        ]
        if held:
            active, reason = max(held, key=lambda one: one.until_ms).model, Failure.RATE_LIMIT
    return Status(
        selected=selection.model,
        source=selection.source,
        strict=selection.override == (),
        active=active,
        reason=reason,
    )

"""NOTE: whether a change of the answering model has to be notified, once, and whether the return has to.

An event knows the reason, never the provider's words; the text is put together at the edge
(`standby.engine.texts.notices`). The same (selected, active) pair is notified once, across restarts; groups and
channels keep the state and show nothing.
"""

from standby.engine.deciding import Draft
from standby.engine.turn import Turn
from standby.events.decisions import NoticeDue
from standby.events.vocabulary import Failure, Surface, TurnKind


def announce(draft: Draft, turn: Turn, rule: str = "NOTE-2") -> None:
    """A turn was answered: is there something to tell about the model that did?

    Internal turns and hidden continuation prompts are no turns of the user's (NOTE-12).
    """
    request = turn.request
    if request is None or request.hidden or request.kind in (TurnKind.COMPACTION, TurnKind.BACKGROUND):
        return
    session = draft.session(request.session)
    notified = session.announced
    if notified is not None and notified.selected != turn.selected:
        notified = None
    quiet = request.surface in (Surface.GROUP, Surface.CHANNEL)
    divider = request.surface is Surface.CONTROL
    if turn.answered == turn.selected:
        if notified is not None:
            draft.emit(
                NoticeDue(
                    rules=("NOTE-9", "NOTE-10") if quiet else ("NOTE-9", "NOTE-14"),
                    session=request.session,
                    turn=request.turn,
                    selected=turn.selected,
                    active=notified.active,
                    returned=True,
                    quiet=quiet,
                    divider=divider,
                )
            )
        return
    if notified is not None and notified.active == turn.answered:
        return
    failed = [a for a in turn.attempts if not a.succeeded and a.reason is not None]
    skipped = [skip for skip in turn.skips if skip.reason is not None]
    # What is told is why the first candidate was left, and how many more were tried or passed over.
    first = next((a for a in reversed(failed) if a.index == failed[0].index), None) if failed else None
    if skipped and (not failed or skipped[0].before_attempt <= failed[0].attempt):
        # It was passed over before anything was tried.
        first, reason = None, skipped[0].reason
    else:
        reason = first.reason if first else None
    if reason is None and turn.attempts[-1].model != turn.answered:
        # The provider went to another model by itself, as it does after a refusal (ADV-13).
        reason = Failure.REFUSAL
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

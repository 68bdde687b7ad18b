"""Staying on a fallback that a rate limit drove a session to, while that saves the prompt cache (STICK).

Process-local: a sticky fallback counts only for the runtime slot that set it, in the epoch that set it. Each
success extends the idle window, up to a cap from the first fallback. What ends it is said by an event, so a
replay shows when and why.

    the turn                                    begins or extends it      is served by it
    ------------------------------------------  ------------------------  ------------------------
    interactive, subagent                       after a rate limit        yes, as a fallback turn (STICK-6)
    compaction, background, cron                no (STICK-5)              no
    rerouted by a hook; strict; another session no (STICK-4)              no

No profile is cooled by it (STICK-4).
"""

from standby.engine.decide.selection import Selection
from standby.engine.deciding import Draft
from standby.engine.rulesets import Ruleset
from standby.engine.turn import Turn
from standby.events.decisions import StickyEnded, StickySet
from standby.events.facts import TurnRequested
from standby.events.policy import Policy
from standby.events.vocabulary import Failure, SkipBecause, TurnKind
from standby.projections.sessions import Sticky

_ORDINARY = (TurnKind.INTERACTIVE, TurnKind.SUBAGENT)


def _held(draft: Draft, session: str) -> Sticky | None:
    """The sticky fallback in the memory of the writing runtime."""
    sticky = draft.session(session).sticky.get(draft.stamp.runtime)
    return sticky if sticky is not None and sticky.epoch == draft.stamp.epoch else None


def _end(draft: Draft, session: str, model: str, rule: str) -> None:
    draft.emit(StickyEnded(rules=(rule,), session=session, model=model))


def admit_sticky(draft: Draft, request: TurnRequested, selection: Selection) -> str | None:
    """The fallback that this turn tries first, if one is still sticky; one that is over is ended here."""
    sticky = _held(draft, request.session)
    if sticky is None:
        return None
    if draft.stamp.at_ms >= sticky.until_ms:
        _end(draft, request.session, sticky.model, "STICK-2")
        return None
    if request.kind not in _ORDINARY or request.rerouted or request.image:
        return None
    if draft.turn(request.turn).chosen_live and not request.model:
        # The user chose while the last turn ran: this one starts there (LIVE-3).
        _end(draft, request.session, sticky.model, "LIVE-3")
        return None
    if sticky.selected != selection.model:
        if not request.model:
            _end(draft, request.session, sticky.model, "STICK-3")
        return None
    allowed = (
        selection.override
        if selection.override is not None
        else (*(selection.configured.fallbacks or ()), selection.configured.primary)
    )
    if sticky.model in allowed:
        return sticky.model
    # What holds for one run only (a lock, a list or a model of its own) passes; the configuration stays.
    if not (request.locked or request.selected_only or request.fallbacks is not None or request.model):
        _end(draft, request.session, sticky.model, "STICK-3")
    return None


def drop_sticky(draft: Draft, turn: Turn) -> None:
    """The chain leaves its present candidate: if that is the sticky fallback, it has failed (STICK-3)."""
    if turn.request is None or not turn.standing or turn.candidates[turn.index].origin != "sticky":
        return
    sticky = _held(draft, turn.request.session)
    if sticky is not None and sticky.model == turn.candidates[turn.index].model:
        _end(draft, turn.request.session, sticky.model, "STICK-3")


def after_answer(draft: Draft, turn: Turn, policy: Policy, ruleset: Ruleset) -> None:
    """A turn was answered: a fallback becomes sticky, goes on being so, or changes nothing."""
    request = turn.request
    if request is None or turn.answered == turn.selected:
        return
    if request.kind not in _ORDINARY or request.rerouted or request.image or turn.strict:
        return
    if draft.session(request.session).switched != turn.switched:
        return
    held = _held(draft, request.session)
    now = draft.stamp.at_ms
    extends = (
        held is not None
        and held.model == turn.answered
        and held.selected == turn.selected
        and (now < held.until_ms or turn.candidates[0].origin == "sticky")
    )
    if not extends and not _rate_limited(turn):
        return
    first = held.first_ms if extends and held is not None else now
    settings = policy.stickiness
    idle = ruleset.sticky_idle_ms if settings.idle_ms is None else settings.idle_ms
    cap = ruleset.sticky_cap_ms if settings.cap_ms is None else settings.cap_ms
    until = min(now + idle, first + cap)
    if until <= now:
        return
    draft.emit(
        StickySet(
            rules=("STICK-2",) if extends else ("STICK-1",),
            session=request.session,
            model=turn.answered,
            selected=turn.selected,
            first_ms=first,
            until_ms=until,
        )
    )


def _rate_limited(turn: Turn) -> bool:
    """Whether the selected model was left, or passed over, because of a rate limit. A call that its provider
    answered with another model was left by a refusal (ADV-13), whatever had failed before."""
    tried = [a.reason for a in turn.attempts if a.model == turn.selected]
    if tried:
        return tried[-1] is Failure.RATE_LIMIT
    return any(
        skip.model == turn.selected
        and skip.reason is Failure.RATE_LIMIT
        and skip.because in (SkipBecause.COOLDOWN, SkipBecause.PROBED_ALREADY, SkipBecause.GATE)
        for skip in turn.skips
    )

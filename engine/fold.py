"""Folding events into a view: the only way in which anything becomes true.

`fold` takes one event, in a live view as in a draft. Facts never fail here: a report that cannot move its turn
leaves it where it is. A decision that the turn table does not allow raises `Refused`. Folds read no policy and
no clock; the moment comes with the stamp.
"""

from collections.abc import Callable
from typing import Any

from standby.engine import turn as turns
from standby.engine.machine import DECISIONS, MOVES, TERMINAL
from standby.engine.turn import Turn
from standby.engine.view import Readable
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.commit import Stamp
from standby.events.errors import Refused
from standby.events.vocabulary import KeptBecause
from standby.projections import health, runtimes, sessions

Fold = Callable[[Any, Any, Stamp], None]

_TURN_FOLDS: dict[type, Callable[[Turn, Any, int], None] | None] = {
    f.TurnRequested: turns.fold_requested,
    f.CallSucceeded: turns.fold_succeeded,
    f.CallFailed: turns.fold_failed,
    f.CallUnknown: turns.fold_lost,
    f.LiveSwitchRequested: turns.fold_lost,
    f.ResponseCompleted: turns.fold_response,
    f.EffectsBegun: turns.fold_effects,
    f.RuntimeRecovering: turns.fold_recovering,
    f.NoProgressSeen: turns.fold_recovering,
    f.WaitEnded: turns.fold_wait_ended,
    f.RepairFinished: turns.fold_wait_ended,
    f.TurnCancelled: None,
    f.DeadlinePassed: None,
    f.TurnTakenOver: None,
    d.ChainPlanned: turns.fold_planned,
    d.CandidateSkipped: turns.fold_skipped,
    d.AttemptStarted: turns.fold_started,
    d.FailureClassified: turns.fold_classified,
    d.DoubtDismissed: None,
    d.RetryScheduled: turns.fold_retry,
    d.RepairOrdered: turns.fold_repair,
    d.ChainAdvanced: turns.fold_advanced,
    d.ChainReordered: turns.fold_reordered,
    d.TurnAnswered: turns.fold_answered,
    d.TurnFailed: turns.fold_end,
}

TURN_FACTS = frozenset(
    kind
    for kind in _TURN_FOLDS
    if kind.__struct_config__.tag not in DECISIONS  # type: ignore[attr-defined]  # msgspec gives it to each type
)
"""Facts that the turn table knows."""

_CALL_REPORTS = (f.CallSucceeded, f.CallFailed, f.CallUnknown, f.LiveSwitchRequested)
_REPORTS = (*_CALL_REPORTS, f.ResponseCompleted, f.EffectsBegun, f.RuntimeRecovering, f.NoProgressSeen)
_OF_OWNER = frozenset({*_REPORTS, f.WaitEnded, f.RepairFinished})


def tag_of(event: object) -> str:
    """The type tag of an event as it stands in the log."""
    return str(type(event).__struct_config__.tag)  # type: ignore[attr-defined]  # msgspec gives it to each type


_TAGS: dict[type, str] = {kind: str(kind.__struct_config__.tag) for kind in _TURN_FOLDS}  # type: ignore[attr-defined]  # msgspec gives it to each type


def admission(turn: Turn, fact: Any, stamp: Stamp) -> KeptBecause | None:
    """Why a fact about this turn cannot move it, or None when it can."""
    kind = type(fact)
    if kind in _OF_OWNER and (stamp.runtime, stamp.epoch) != (turn.runtime, turn.epoch):
        return KeptBecause.FORMER_OWNER
    move = MOVES.get((turn.state, _TAGS[kind]))
    if move is not None and (move.guard is None or move.guard(turn, fact)):
        return None
    if isinstance(fact, _CALL_REPORTS):
        return KeptBecause.LATE if _is_first(turn, fact) else KeptBecause.DOUBLED
    return KeptBecause.LATE if turn.state in TERMINAL else KeptBecause.UNEXPECTED


def _is_first(turn: Turn, fact: Any) -> bool:
    """Whether nothing was reported before of how this attempt's call ended."""
    return not any(
        isinstance(report, _CALL_REPORTS) and report.attempt == fact.attempt for report in turn.reports
    )


def _turn_fact(kind: type) -> Fold:
    """Fold a fact about a turn: it moves the turn if the table lets it, and never fails."""
    tag, folded, reports = _TAGS[kind], _TURN_FOLDS[kind], kind in _REPORTS
    owns = kind in (f.TurnRequested, f.TurnTakenOver)

    def fold_fact(view: Readable, fact: Any, stamp: Stamp) -> None:
        turn = view.turns.edit(fact.turn)
        if kind is f.TurnRequested:
            turn.policy = view.policy_at
        if admission(turn, fact, stamp) is not None:
            if reports:
                turns.fold_claims(turn, fact, first=_is_first(turn, fact))
            return
        if owns:
            turn.runtime, turn.epoch = stamp.runtime, stamp.epoch
        turn.state = MOVES[turn.state, tag].dest
        if folded is not None:
            folded(turn, fact, stamp.at_ms)

    return fold_fact


def _turn_decision(kind: type) -> Fold:
    """Fold a decision about a turn: one that the table does not allow is refused."""
    tag, folded = _TAGS[kind], _TURN_FOLDS[kind]

    def fold_decision(view: Readable, decision: Any, stamp: Stamp) -> None:
        turn = view.turns.edit(decision.turn)
        move = MOVES.get((turn.state, tag))
        if move is None or (move.guard is not None and not move.guard(turn, decision)):
            raise Refused(f"the turn table does not allow {tag} in state {turn.state} of turn {decision.turn}")
        turn.state = move.dest
        if folded is not None:
            folded(turn, decision, stamp.at_ms)

    return fold_decision


_MOVING: dict[type, Fold] = {
    kind: _turn_fact(kind) if kind in TURN_FACTS else _turn_decision(kind) for kind in _TURN_FOLDS
}


def _requested(view: Readable, event: f.TurnRequested, stamp: Stamp) -> None:
    _MOVING[f.TurnRequested](view, event, stamp)
    session = view.sessions.edit(event.session)
    session.turn, session.agent = event.turn, event.agent
    if not event.hidden:
        session.user_turn = event.turn
    turn = view.turns.edit(event.turn)
    turn.switched, turn.chosen_live = session.switched, session.chosen_live
    session.chosen_live = False


def _selected(view: Readable, event: f.ModelSelected, stamp: Stamp) -> None:
    session = view.sessions.edit(event.session)
    turn = view.turns.get(session.turn) if session.turn else None
    sessions.fold_selected(session, event, turn is not None and turn.state not in TERMINAL)


def _pinned(view: Readable, event: f.ProfilePinned, stamp: Stamp) -> None:
    if event.agent:
        view.sessions.edit(event.session).agent = event.agent


def _runtime_started(view: Readable, event: f.RuntimeStarted, stamp: Stamp) -> None:
    runtimes.fold_start(view.runtimes.edit(event.instance), event.epoch)


def _policy_adopted(view: Readable, event: f.PolicyAdopted, stamp: Stamp) -> None:
    position = view.position + 1
    turns_now = (view.turns.get(key) for key in view.turns.keys_now())
    kept = {turn.policy for turn in turns_now if turn is not None}
    view.policies = {at: policy for at, policy in view.policies.items() if at in kept}
    view.policies[position] = event.policy
    view.policy_at = position


def _profiles_observed(view: Readable, event: f.ProfilesObserved, stamp: Stamp) -> None:
    seen = {profile.alias: profile for profile in event.profiles}
    for alias in view.profiles.keys_now():
        if alias not in seen:
            view.profiles.edit(alias).observed = None
    known_profiles: dict[str, tuple[str, ...]] = {}
    for alias, profile in seen.items():
        view.profiles.edit(alias).observed = profile
        known_profiles[profile.provider] = (*known_profiles.get(profile.provider, ()), alias)
    view.known_profiles = known_profiles
    view.order = dict(event.order)


def _credential_removed(view: Readable, event: f.CredentialRemoved, stamp: Stamp) -> None:
    known = view.profiles.get(event.profile)
    if known is None or known.observed is None:
        return
    if event.agent and known.observed.agent not in ("", event.agent):
        # The name is another agent's credential, too, and that one stays (PIN-5).
        return
    provider = known.observed.provider
    view.profiles.edit(event.profile).observed = None
    left = tuple(alias for alias in view.known_profiles.get(provider, ()) if alias != event.profile)
    view.known_profiles = {**view.known_profiles, provider: left}
    view.order = {
        key: tuple(alias for alias in order if alias != event.profile) for key, order in view.order.items()
    }


def _probe_admitted(view: Readable, event: d.ProbeAdmitted, stamp: Stamp) -> None:
    turns.fold_probe(view.turns.edit(event.turn), event, stamp.at_ms)
    if event.primary:
        runtimes.fold_probe(view.runtimes.edit(stamp.runtime), event.provider, stamp.at_ms)


def _answered(view: Readable, event: d.TurnAnswered, stamp: Stamp) -> None:
    _MOVING[d.TurnAnswered](view, event, stamp)
    if event.profile:
        health.fold_use(view.profiles.edit(event.profile), event.model, event.evidence_ms, stamp.at_ms)


def _kept(view: Readable, event: d.ReportKept, stamp: Stamp) -> None:
    if event.succeeded and event.profile:
        health.fold_use(view.profiles.edit(event.profile), event.model, event.evidence_ms, stamp.at_ms)


def _writer_admitted(view: Readable, event: f.WriterAdmitted, stamp: Stamp) -> None:
    if view.turns.get(event.turn) is not None:
        view.turns.edit(event.turn).unannounced = False


def _event_recorded(view: Readable, event: f.TranscriptEventRecorded, stamp: Stamp) -> None:
    if view.turns.get(event.turn) is not None:
        view.turns.edit(event.turn).divider = None


def _notice_due(view: Readable, event: d.NoticeDue, stamp: Stamp) -> None:
    sessions.fold_notice(view.sessions.edit(event.session), event)
    if view.turns.get(event.turn) is not None:
        view.turns.edit(event.turn).divider = event if event.divider else None


def _nothing(view: Readable, event: Any, stamp: Stamp) -> None:
    """The event is history only."""


_FOLDS: dict[type, Fold] = {
    **_MOVING,
    f.TurnRequested: _requested,
    f.RuntimeStarted: _runtime_started,
    f.PolicyAdopted: _policy_adopted,
    f.ProfilesObserved: _profiles_observed,
    f.CredentialRemoved: _credential_removed,
    f.QuotaObserved: lambda view, e, _: health.fold_quota(view.profiles.edit(e.profile), e),
    f.SubjectErased: _nothing,
    f.NoticeDelivered: _nothing,
    f.SessionCreated: lambda view, e, _: sessions.fold_created(view.sessions.edit(e.session), e),
    f.TranscriptEventRecorded: _event_recorded,
    f.WriterAdmitted: _writer_admitted,
    f.ModelSelected: _selected,
    f.ProfilePinned: _pinned,
    f.SessionReset: _nothing,
    f.CompactionCompleted: lambda view, e, _: sessions.fold_compaction(view.sessions.edit(e.session), e),
    d.TurnAnswered: _answered,
    d.ReportKept: _kept,
    d.ProbeAdmitted: _probe_admitted,
    d.BlockSet: lambda view, e, s: health.fold_block_set(view.profiles.edit(e.profile), e, s.at_ms),
    d.BlockCleared: lambda view, e, _: health.fold_block_cleared(view.profiles.edit(e.profile), e),
    d.SkipMarked: lambda view, e, s: sessions.fold_mark(
        view.sessions.edit(e.session), e, s.runtime, s.epoch, s.at_ms
    ),
    d.PinSet: lambda view, e, _: sessions.fold_pin_set(view.sessions.edit(e.session), e),
    d.PinCleared: lambda view, e, _: sessions.fold_pin_cleared(view.sessions.edit(e.session), e),
    d.SelectionInherited: lambda view, e, _: sessions.fold_inherited(view.sessions.edit(e.session), e),
    d.SelectionCleared: lambda view, e, _: sessions.fold_selection_cleared(view.sessions.edit(e.session)),
    d.StickySet: lambda view, e, s: sessions.fold_sticky_set(
        view.sessions.edit(e.session), e, s.runtime, s.epoch
    ),
    d.StickyEnded: lambda view, e, s: sessions.fold_sticky_ended(
        view.sessions.edit(e.session), e.instance or s.runtime
    ),
    d.NoticeDue: _notice_due,
}


def fold(view: Readable, event: Any, stamp: Stamp) -> None:
    """Fold one event into a view or draft."""
    _FOLDS[type(event)](view, event, stamp)

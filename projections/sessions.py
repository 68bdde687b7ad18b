"""Sessions: the selected model, pins, the sticky fallback and what the user was last told.

A fallback never writes the selection (FLOW-4): only `model_selected` and `selection_cleared` do.
"""

import msgspec

from standby.events.decisions import NoticeDue, PinCleared, PinSet, SelectionInherited, SkipMarked, StickySet
from standby.events.facts import CompactionCompleted, ModelSelected, SessionCreated
from standby.events.vocabulary import Failure, SelectionSource


class Pin(msgspec.Struct, gc=False, frozen=True):
    """The profile that a session keeps to for one provider."""

    profile: str
    user: bool
    displaced: bool


class Sticky(msgspec.Struct, gc=False, frozen=True):
    """A fallback that stays first for a while. It lives in the memory of the runtime that set it."""

    model: str
    selected: str
    first_ms: int
    until_ms: int
    runtime: str
    epoch: int


class Announced(msgspec.Struct, gc=False, frozen=True):
    """The fallback that the user was last told of; persisted, so that it is told once (NOTE-2)."""

    selected: str
    active: str
    reason: Failure | None
    turn: str = ""
    attempt: int = 0
    """The failed attempt that explains the change; 0 if there was none."""


class Marker(msgspec.Struct, gc=False, frozen=True):
    """A fallback that is passed over after it failed to authenticate (SKIP-2)."""

    model: str
    profile: str
    until_ms: int
    runtime: str
    epoch: int
    reason: Failure = Failure.AUTH


class Session(msgspec.Struct, gc=False):
    """What is true of one session."""

    model: str = ""
    """The override; "" follows configuration."""
    source: SelectionSource = SelectionSource.DEFAULT
    """Where the override came from. With an empty model, `user` never stands here."""
    chose_default: bool = False
    """The user chose "Default" on purpose: no pin of a parent is inherited (SEL-8)."""
    pins: dict[str, Pin] = {}
    """By provider."""
    sticky: dict[str, Sticky] = {}
    """By runtime slot."""
    announced: Announced | None = None
    markers: tuple[Marker, ...] = ()
    switched: int = 0
    """How many explicit switches there were: a turn under way sees a newer one (LIVE-3)."""
    compactions: int = 0
    turn: str = ""
    """The turn that was requested last."""
    user_turn: str = ""
    """The same without hidden continuation prompts, which are no turns of the user's (NOTE-12)."""
    agent: str = ""
    """The agent whose session it is; "" until something said so."""
    parent: str = ""
    """The session whose child this one is."""
    chosen_live: bool = False
    """The user chose a model while the last turn was under way (LIVE-3)."""


def fold_created(session: Session, event: SessionCreated) -> None:
    """Whose session it is, and whose child."""
    session.agent, session.parent = event.agent, event.parent


def fold_selected(session: Session, event: ModelSelected, running: bool) -> None:
    """An explicit switch: the user's word replaces whatever was selected (LIVE-1, LIVE-8, SEL-8, SEL-18).

    Nothing else counts as a switch: not a fallback, not a compaction, not a model that comes with one turn.
    """
    session.agent = event.agent
    session.chosen_live = running
    session.model = event.model
    session.source = event.source if event.model else SelectionSource.DEFAULT
    session.chose_default = not event.model and event.source is SelectionSource.DEFAULT
    session.switched += 1


def fold_inherited(session: Session, event: SelectionInherited) -> None:
    """A new session takes over a selection."""
    session.model, session.source = event.model, event.source


def fold_selection_cleared(session: Session) -> None:
    """The override is gone."""
    session.model = ""
    session.source = SelectionSource.DEFAULT


def fold_pin_set(session: Session, event: PinSet) -> None:
    """One pin per provider."""
    session.pins = {**session.pins, event.provider: Pin(event.profile, event.user, event.displaced)}


def fold_pin_cleared(session: Session, event: PinCleared) -> None:
    """The provider has no pin any more."""
    session.pins = {key: pin for key, pin in session.pins.items() if key != event.provider}


def fold_compaction(session: Session, event: CompactionCompleted) -> None:
    """Compactions are counted; they change nothing else (PIN-9)."""
    session.compactions = max(session.compactions, event.count)


def fold_sticky_set(session: Session, event: StickySet, runtime: str, epoch: int) -> None:
    """The slot that writes remembers the fallback."""
    sticky = Sticky(event.model, event.selected, event.first_ms, event.until_ms, runtime, epoch)
    session.sticky = {**session.sticky, runtime: sticky}


def fold_sticky_ended(session: Session, runtime: str) -> None:
    """This slot forgets it."""
    session.sticky = {key: value for key, value in session.sticky.items() if key != runtime}


def fold_notice(session: Session, event: NoticeDue) -> None:
    """What the user knows now."""
    session.announced = (
        None
        if event.returned
        else Announced(event.selected, event.active, event.reason, event.turn, event.attempt)
    )


def fold_mark(session: Session, event: SkipMarked, runtime: str, epoch: int, at_ms: int) -> None:
    """A marker replaces its older twin; expired ones are swept."""
    kept = [
        marker
        for marker in session.markers
        if marker.until_ms > at_ms
        and not (marker.model == event.model and marker.profile == event.profile and marker.runtime == runtime)
    ]
    kept.append(Marker(event.model, event.profile, event.until_ms, runtime, epoch, event.reason))
    session.markers = tuple(kept)

"""The draft that `plan` thinks in.

A draft is a view seen through changes of its own. `plan` folds the fact into it and then each decision as it
is made, with the same handlers that `apply` uses, so that a later decision sees the earlier ones: the block
that has just been set, the candidate that has just been left. The view below stays untouched. Who stores the
commit may `settle` the draft instead of folding the same events a second time; a test holds the two equal. A
decision that the turn table does not allow raises here, before anything is written.
"""

from typing import Any

from standby.engine.fold import TURN_FACTS, admission, fold
from standby.engine.turn import Turn
from standby.engine.view import Readable, View
from standby.events.commit import Stamp
from standby.events.decisions import Decision, NoticeDue
from standby.events.vocabulary import KeptBecause
from standby.projections.health import Health
from standby.projections.runtimes import Runtime
from standby.projections.sessions import Session
from standby.projections.tables import Overlay


class Draft(Readable):
    """A view with changes of its own; `decisions` grows as `plan` goes."""

    def __init__(self, view: View, stamp: Stamp) -> None:
        self.stamp = stamp
        self.position = view.position
        self.policy_at = view.policy_at
        self.policies = view.policies
        self.order = view.order
        self.known_profiles = view.known_profiles
        self.profiles: Overlay[Health] = Overlay(view.profiles)
        self.sessions: Overlay[Session] = Overlay(view.sessions)
        self.runtimes: Overlay[Runtime] = Overlay(view.runtimes)
        self.turns: Overlay[Turn] = Overlay(view.turns)
        self.decisions: list[Decision] = []
        self.refused: KeptBecause | None = None
        """Why the fact could not move its turn."""
        self.owed: NoticeDue | None = None
        """The divider that the fact's turn was waiting for before the fact."""

    def take(self, fact: Any) -> None:
        """Fold the fact that is being decided about."""
        key = getattr(fact, "turn", None)
        turn = self.turns.get(key) if key is not None else None
        if turn is not None and type(fact) in TURN_FACTS:
            self.refused = admission(turn, fact, self.stamp)
        self.owed = turn.divider if turn is not None else None
        fold(self, fact, self.stamp)

    def emit(self, decision: Decision) -> None:
        """Make a decision: it counts from here on."""
        fold(self, decision, self.stamp)
        self.decisions.append(decision)

    def settle(self, view: View) -> None:
        """Let everything that counts here be true in the view below, once the commit is stored."""
        self.profiles.settle()
        self.sessions.settle()
        self.runtimes.settle()
        self.turns.settle()
        view.policy_at, view.policies = self.policy_at, self.policies
        view.order, view.known_profiles = self.order, self.known_profiles

    def turn(self, key: str) -> Turn:
        """A turn that is known to exist."""
        turn = self.turns.get(key)
        if turn is None:
            raise KeyError(key)
        return turn

    def session(self, key: str) -> Session:
        """A session, new or known."""
        return self.sessions.get(key) or Session()

"""The view: what is true now, folded from the log, and the short list of questions that `plan` asks.

`View` is the live state; `apply` is the only thing that changes it. `plan` thinks in a `Draft`, the same state
seen through changes of its own (`standby.engine.deciding`). Both answer the questions of `Reading`.
"""

from collections import deque

from standby.engine.turn import Turn
from standby.events.codec import GENESIS
from standby.events.policy import Policy
from standby.projections.health import Health
from standby.projections.runtimes import Runtime
from standby.projections.sessions import Session
from standby.projections.tables import Editable, LazyTable, Table


class Readable:
    """What can be asked of a view or a draft."""

    position: int
    policy_at: int
    """Position of the policy in force; 0 before any was adopted."""
    policies: dict[int, Policy]
    order: dict[str, tuple[str, ...]]
    """Stored order of profile aliases by provider."""
    known_profiles: dict[str, tuple[str, ...]]
    """Known profile aliases by provider, in stored order."""
    profiles: Editable[Health]
    sessions: Editable[Session]
    runtimes: Editable[Runtime]
    turns: Editable[Turn]

    def policy(self) -> Policy:
        """The policy in force."""
        return self.policies[self.policy_at] if self.policy_at else Policy()

    def policy_of(self, turn: Turn) -> Policy:
        """The policy that planned the turn's chain (design point 5)."""
        return self.policies.get(turn.policy) or self.policy()

    def local(self, runtime: str, epoch: int) -> bool:
        """Whether something that this slot set in this epoch is still in its memory."""
        found = self.runtimes.get(runtime)
        return found is not None and found.epoch == epoch


class View(Readable):
    """The live state of a log at `position`."""

    def __init__(self) -> None:
        self.position = 0
        self.hash = GENESIS
        self.policy_at = 0
        self.policies = {}
        self.order = {}
        self.known_profiles = {}
        self.profiles: Table[Health] = Table(Health)
        self.sessions: LazyTable[Session] = LazyTable(Session)
        self.runtimes: Table[Runtime] = Table(Runtime)
        self.turns: LazyTable[Turn] = LazyTable(Turn)
        self.settled: deque[tuple[int, str]] = deque()
        """(moment, turn) of settled turns that are still kept, oldest first."""

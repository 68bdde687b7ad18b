"""What comes of a played scenario."""

from dataclasses import dataclass, field

from standby.engine.texts.decision_records import ChainStep
from standby.engine.turn import Turn
from standby.engine.verify import Report
from standby.events.commit import Commit
from standby.events.errors import TurnFailed
from standby.events.store import Store
from standby.hosts.runner.outcomes import TurnResult
from standby.hosts.simulate.scenario import Loaded, Step


@dataclass(slots=True, kw_only=True)
class PlayedTurn:
    """One turn of a scenario and how it ended."""

    id: str
    number: int
    """Of the step that requests it."""
    step: Step
    owner: str
    """The runtime that has it."""
    state: Turn = field(default_factory=Turn)
    """Its state when it ended, or as it was last; the view forgets settled turns after a while."""
    profiles: list[str] = field(default_factory=list)
    """Names of the profiles that were called with, in order."""
    result: TurnResult | None = None
    failure: TurnFailed | None = None
    ended_ms: int | None = None
    commits: list[Commit] = field(default_factory=list)
    """Every commit about it."""
    records: list[ChainStep] = field(default_factory=list)
    """The decision records of those commits (OBS-3)."""
    statuses: list[str] = field(default_factory=list)
    """The passing lines, each as it first appeared."""


@dataclass(slots=True, kw_only=True)
class Played:
    """A played scenario."""

    loaded: Loaded
    store: Store
    turns: list[PlayedTurn]
    problems: list[str]
    """Expectations that did not hold, outcomes that no call came to, rules that nothing showed."""
    report: Report
    now_ms: int

"""The turn machine: everything that moves a turn stands in this table.

Theory of operation
-------------------
A turn is a conversation between facts (what a host reports) and decisions (what the engine concludes). States
are of two kinds. In a *resting* state the turn waits for the world, and only facts leave it. In any other
state it owes a decision, and only decisions leave it. A commit is one fact and its decisions, so each commit
begins and ends in a resting state, and no state in between is ever seen from outside.

    fact              decisions                                            the host then
    ----------------  ---------------------------------------------------  -----------------------------
    turn_requested    chain_planned, (candidate_skipped)*, attempt_started  calls the model
    call_succeeded    turn_answered                                        has its answer
    call_failed       failure_classified, retry_scheduled                  waits, then reports wait_ended
    call_failed       failure_classified, chain_advanced, attempt_started   calls the next model
    call_failed       failure_classified, turn_failed                      tells the user

`choosing` is the crossroads: the chain stands at a candidate and the next move is open. The way out of
`judging` leads through it. `orphaned` is `calling` after another runtime took the turn over: the
call may still be going on somewhere, and the new owner has to say how it ended as far as it can tell.

Guards look at the turn and the event only. A *decision* that the table does not allow is refused with its
position, live and in replay; a *fact* never is: a report whose guard fails has happened all the same, and is
kept beside the turn without moving it (`report_kept`).

Decisions about profiles, pins and notices move no turn and do not stand here.

Two forms of one table
----------------------
`ROWS` is declared in the form that `transitions` takes. One shared `transitions.Machine` is built from it, for
introspection, tests and the diagram in `specs/machine.md`; a flat dict is compiled from that Machine, and the
dict runs, since a Machine costs a hundred times as much per move. A test draws every state, event and guard
outcome and holds the two against each other.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from standby.engine.turn import Turn


class TransitionRow(NamedTuple):
    """One row: in `source`, `event` leads to `dest` if `guard` (a name in `guards`) allows it."""

    source: str
    event: str
    dest: str
    guard: str = ""


ROWS: tuple[TransitionRow, ...] = (
    # A turn comes into being and its chain is planned.
    TransitionRow("new", "turn_requested", "open"),
    TransitionRow("open", "chain_planned", "choosing"),
    # At the crossroads: pass a candidate over, go on to another, call, wait, repair, or give up.
    TransitionRow("choosing", "candidate_skipped", "choosing", "at_the_candidate"),
    TransitionRow("choosing", "chain_advanced", "choosing", "another_candidate"),
    TransitionRow("choosing", "chain_reordered", "choosing", "same_candidates"),
    TransitionRow("choosing", "attempt_started", "calling", "may_be_tried"),
    TransitionRow("choosing", "retry_scheduled", "waiting", "next_retry"),
    TransitionRow("choosing", "repair_ordered", "repairing"),
    TransitionRow("choosing", "turn_failed", "failed"),
    # A call is under way.
    TransitionRow("calling", "effects_begun", "calling", "of_this_attempt"),
    TransitionRow("calling", "response_completed", "calling", "of_this_attempt"),
    TransitionRow("calling", "runtime_recovering", "calling", "of_this_attempt"),
    TransitionRow("calling", "no_progress_seen", "doubting", "of_this_attempt"),
    TransitionRow("calling", "call_succeeded", "served", "of_this_attempt"),
    TransitionRow("calling", "call_failed", "judging", "of_this_attempt"),
    TransitionRow("calling", "call_unknown", "judging", "of_this_attempt"),
    TransitionRow("calling", "live_switch_requested", "choosing", "of_this_attempt"),
    TransitionRow("calling", "turn_taken_over", "orphaned"),
    TransitionRow("calling", "turn_cancelled", "stopping"),
    TransitionRow("calling", "deadline_passed", "stopping"),
    # A breaker asks whether the run ends: the attempt goes on, or the turn stops.
    TransitionRow("doubting", "doubt_dismissed", "calling", "of_this_attempt"),
    TransitionRow("doubting", "turn_failed", "failed"),
    # The same, but its owner changed and nobody here saw the call.
    TransitionRow("orphaned", "effects_begun", "orphaned", "of_this_attempt"),
    TransitionRow("orphaned", "response_completed", "orphaned", "of_this_attempt"),
    TransitionRow("orphaned", "call_succeeded", "served", "of_this_attempt"),
    TransitionRow("orphaned", "call_failed", "judging", "of_this_attempt"),
    TransitionRow("orphaned", "call_unknown", "judging", "of_this_attempt"),
    TransitionRow("orphaned", "live_switch_requested", "choosing", "of_this_attempt"),
    TransitionRow("orphaned", "turn_taken_over", "orphaned"),
    TransitionRow("orphaned", "turn_cancelled", "stopping"),
    TransitionRow("orphaned", "deadline_passed", "stopping"),
    # A failed call is read, whatever follows: the turn chooses again, or ends from there.
    TransitionRow("judging", "failure_classified", "choosing", "of_this_attempt"),
    # Waits and repairs end by a fact; another runtime may wait in the owner's place.
    TransitionRow("waiting", "wait_ended", "choosing"),
    TransitionRow("waiting", "turn_taken_over", "waiting"),
    TransitionRow("waiting", "turn_cancelled", "stopping"),
    TransitionRow("waiting", "deadline_passed", "stopping"),
    TransitionRow("repairing", "repair_finished", "choosing"),
    TransitionRow("repairing", "turn_taken_over", "repairing"),
    TransitionRow("repairing", "turn_cancelled", "stopping"),
    TransitionRow("repairing", "deadline_passed", "stopping"),
    # The ends.
    TransitionRow("served", "turn_answered", "answered", "of_this_attempt"),
    TransitionRow("served", "repair_ordered", "repairing"),
    TransitionRow("served", "failure_classified", "choosing", "of_this_attempt"),
    TransitionRow("served", "turn_failed", "failed"),
    TransitionRow("stopping", "turn_failed", "failed"),
)

RESTING = frozenset({"new", "calling", "orphaned", "waiting", "repairing", "answered", "failed"})
TERMINAL = frozenset({"answered", "failed"})
DECISIONS = frozenset(
    {
        "chain_planned",
        "candidate_skipped",
        "chain_advanced",
        "chain_reordered",
        "attempt_started",
        "failure_classified",
        "doubt_dismissed",
        "retry_scheduled",
        "repair_ordered",
        "turn_answered",
        "turn_failed",
    }
)
"""The events of the table that the engine makes; all others are facts."""


def of_this_attempt(turn: Turn, event: Any) -> bool:
    """The event speaks about the attempt that is under way."""
    return bool(event.attempt == turn.attempt)


def at_the_candidate(turn: Turn, event: Any) -> bool:
    """The event speaks about the candidate that the chain stands at."""
    return turn.standing and bool(event.index == turn.index)


def another_candidate(turn: Turn, event: Any) -> bool:
    """The chain goes forward, to a candidate that exists (OURS-11: no way leads back)."""
    return bool(turn.index < event.index < len(turn.candidates))


def same_candidates(turn: Turn, event: Any) -> bool:
    """A new order holds the same candidates and leaves those already passed in their place."""
    passed = turn.index + 1
    return bool(
        event.candidates[:passed] == turn.candidates[:passed]
        and sorted(event.candidates, key=str) == sorted(turn.candidates, key=str)
    )


def may_be_tried(turn: Turn, event: Any) -> bool:
    """The next attempt in number, at this candidate, with nothing used up and nothing replayed unsafely."""
    return bool(
        turn.standing
        and event.attempt == turn.attempt + 1
        and event.index == turn.index
        and event.model == turn.candidates[turn.index].model
        and (event.model, event.profile) not in turn.used
        and (turn.replayable or event.continuation)
    )


def next_retry(turn: Turn, event: Any) -> bool:
    """Retries are counted without gaps and stay in their budget; nothing is retried after an unsafe try
    unless the host can continue (REC-6, REC-8)."""
    return bool(
        turn.retries < event.retry <= turn.retries + 1 <= event.of
        and (turn.replayable or turn.request is None or turn.request.continuable)
    )


GUARDS: dict[str, Callable[[Any, Any], bool]] = {
    guard.__name__: guard
    for guard in (
        of_this_attempt,
        at_the_candidate,
        another_candidate,
        same_candidates,
        may_be_tried,
        next_retry,
    )
}
"""Guards by the names that the table uses."""


class Move(NamedTuple):
    """Where an event leads, if `guard` (None for no guard) allows it."""

    dest: str
    guard: Callable[[Any, Any], bool] | None


class _Cursor:
    """The model that `transitions` moves: a place in the table, and the turn that guards look at."""

    state: str

    def __init__(self, turn: Any = None) -> None:
        self.turn = turn


def _condition(name: str) -> Callable[[Any], bool]:
    guard = GUARDS[name]

    def allowed(data: Any) -> bool:
        return guard(data.model.turn, data.kwargs.get("event"))

    allowed.__name__ = name
    return allowed


def _states(rows: tuple[TransitionRow, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(state for row in rows for state in (row.source, row.dest)))


def _build(rows: tuple[TransitionRow, ...]) -> Any:
    from transitions import Machine

    return Machine(
        model=None,
        states=list(_states(rows)),
        initial="new",
        auto_transitions=False,
        send_event=True,
        transitions=[
            {
                "trigger": row.event,
                "source": row.source,
                "dest": row.dest,
                "conditions": [_condition(row.guard)] if row.guard else [],
            }
            for row in rows
        ],
    )


STATES = _states(ROWS)
machine = _build(ROWS)
"""The one Machine; add a `_Cursor`-like model to walk it."""


def _compile(built: Any) -> dict[tuple[str, str], Move]:
    moves: dict[tuple[str, str], Move] = {}
    for name, event in built.events.items():
        for source, ways in event.transitions.items():
            if len(ways) != 1:
                raise AssertionError(f"two ways lead out of {source} by {name}")
            (way,) = ways
            guards = [condition.func.__name__ for condition in way.conditions]
            moves[source, name] = Move(way.dest, GUARDS[guards[0]] if guards else None)
    return moves


MOVES = _compile(machine)
"""(state, event) -> Move: the table as it runs."""


def _check(rows: tuple[TransitionRow, ...], moves: dict[tuple[str, str], Move]) -> None:
    """What must hold of the table whatever rows are added."""
    for row in rows:
        resting = row.source in RESTING
        if (row.event in DECISIONS) == resting:
            raise AssertionError(f"{row.event} may not leave {row.source}")
        if row.source in TERMINAL:
            raise AssertionError(f"{row.source} is terminal but has a way out")
    if len(moves) != len(rows):
        raise AssertionError("two rows share a state and an event")
    reached = {"new"}
    while more := {row.dest for row in rows if row.source in reached} - reached:
        reached |= more
    if lost := set(_states(rows)) - reached:
        raise AssertionError(f"states that no turn reaches: {sorted(lost)}")
    left = {row.source for row in rows}
    if stuck := set(_states(rows)) - left - TERMINAL:
        raise AssertionError(f"states that no turn leaves: {sorted(stuck)}")


_check(ROWS, MOVES)

"""The turn table is a total function, in both of its forms, and its checks at import can fail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import MachineError

from standby.engine import machine as m
from standby.engine.machine import GUARDS
from standby.engine.turn import Attempt, Turn
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.evidence import Evidence
from standby.events.vocabulary import Effects, Failure, SelectionSource, SkipBecause, TurnEnd

CHAIN = tuple(d.Candidate(model=f"p{n}/m", origin="fallback") for n in range(3))
TAGS = {kind.__struct_config__.tag for union in (f.Fact, d.Decision) for kind in union.__args__}
GUARDED = sorted({(row.event, row.guard) for row in m.ROWS if row.guard})


class Cursor:
    """What `transitions` moves: it gets its state from the Machine."""

    state: str

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


def turn(
    attempts: int = 1,
    index: int = 0,
    *,
    retries: int = 0,
    effects: Effects = Effects.NONE,
    used: frozenset[tuple[str, str]] = frozenset(),
) -> Turn:
    made = tuple(Attempt(n + 1, 0, "p0/m", "p-a", 0) for n in range(attempts))
    return Turn(
        candidates=CHAIN, index=index, attempts=made, retries=retries, effects=effects, used=used,
        request=f.TurnRequested(turn="t", session="s"),
    )  # fmt: skip


def event(tag: str, number: int, index: int, *, retry: int = 1, of: int = 3, swap: bool = False) -> Any:
    """An event of this tag that speaks about attempt `number` and candidate `index`."""
    call: dict[str, Any] = {"turn": "t", "attempt": number}
    said: dict[str, Any] = {"rules": ("FLOW-1",), "turn": "t"}
    order = (CHAIN[0], CHAIN[2], CHAIN[1]) if not swap else (CHAIN[2], CHAIN[0], CHAIN[1])
    effects = Effects.NONE
    made: dict[str, Any] = {
        "effects_begun": lambda: f.EffectsBegun(**call),
        "response_completed": lambda: f.ResponseCompleted(**call),
        "call_succeeded": lambda: f.CallSucceeded(**call, started_ms=0, effects=effects),
        "call_failed": lambda: f.CallFailed(
            **call, started_ms=0, received_ms=0, evidence=Evidence(), effects=effects
        ),
        "call_unknown": lambda: f.CallUnknown(**call, effects=effects),
        "live_switch_requested": lambda: f.LiveSwitchRequested(**call, model="p1/m", effects=effects),
        "runtime_recovering": lambda: f.RuntimeRecovering(**call, evidence=Evidence()),
        "no_progress_seen": lambda: f.NoProgressSeen(**call),
        "doubt_dismissed": lambda: d.DoubtDismissed(**said, attempt=number),
        "failure_classified": lambda: d.FailureClassified(**said, attempt=number, reason=Failure.TIMEOUT),
        "turn_answered": lambda: d.TurnAnswered(**said, attempt=number, model="p0/m", evidence_ms=0),
        "candidate_skipped": lambda: d.CandidateSkipped(
            **said, index=index, model="p0/m", because=SkipBecause.COOLDOWN
        ),
        "chain_advanced": lambda: d.ChainAdvanced(**said, index=index, model="p1/m", after="p0/m"),
        "chain_reordered": lambda: d.ChainReordered(**said, candidates=order),
        "attempt_started": lambda: d.AttemptStarted(
            **said, attempt=number, index=index, model=f"p{index}/m", profile="p-a"
        ),
        "retry_scheduled": lambda: d.RetryScheduled(
            **said, until_ms=1, reason=Failure.RATE_LIMIT, retry=retry, of=of
        ),
        "chain_planned": lambda: d.ChainPlanned(
            **said, selected="p0/m", source=SelectionSource.DEFAULT, candidates=CHAIN
        ),
        "turn_failed": lambda: d.TurnFailed(**said, end=TurnEnd.EXHAUSTED),
        "repair_ordered": lambda: d.RepairOrdered(**said, reason=Failure.FORMAT),
    }
    return made[tag]() if tag in made else object()


def by_dict(state: str, tag: str, now: Turn, said: Any) -> str | None:
    """Where the compiled dict leads; None when it allows nothing."""
    move = m.MOVES.get((state, tag))
    return None if move is None or (move.guard is not None and not move.guard(now, said)) else move.dest


def by_machine(state: str, tag: str, now: Turn, said: Any) -> str | None:
    """Where the Machine leads."""
    cursor = Cursor(now)
    m.machine.add_model(cursor, initial=state)
    try:
        moved = m.machine.events[tag].trigger(cursor, event=said)
    except (MachineError, KeyError):
        moved = False
    finally:
        m.machine.remove_model(cursor)
    return cursor.state if moved else None


YES: dict[str, tuple[Turn, dict[str, Any]]] = {
    "of_this_attempt": (turn(2), {"number": 2, "index": 0}),
    "at_the_candidate": (turn(1, 1), {"number": 1, "index": 1}),
    "another_candidate": (turn(1, 0), {"number": 1, "index": 2}),
    "same_candidates": (turn(1, 0), {"number": 1, "index": 0}),
    "may_be_tried": (turn(1, 0), {"number": 2, "index": 0}),
    "next_retry": (turn(1, 0, retries=1), {"number": 1, "index": 0, "retry": 2}),
}
NO: dict[str, list[tuple[Turn, dict[str, Any]]]] = {
    "of_this_attempt": [(turn(2), {"number": 1, "index": 0}), (turn(2), {"number": 3, "index": 0})],
    "at_the_candidate": [(turn(1, 1), {"number": 1, "index": 0}), (turn(1, 3), {"number": 1, "index": 3})],
    "another_candidate": [(turn(1, 1), {"number": 1, "index": n}) for n in (0, 1, 3)],
    "same_candidates": [(turn(1, 0), {"number": 1, "index": 0, "swap": True})],
    "may_be_tried": [
        (turn(1, 0), {"number": 1, "index": 0}),
        (turn(1, 0), {"number": 3, "index": 0}),
        (turn(1, 0), {"number": 2, "index": 1}),
        (turn(1, 3), {"number": 2, "index": 3}),
        (turn(1, 0, used=frozenset({("p0/m", "p-a")})), {"number": 2, "index": 0}),
        (turn(1, 0, effects=Effects.POSSIBLE), {"number": 2, "index": 0}),
    ],
    "next_retry": [
        (turn(1, 0, retries=1), {"number": 1, "index": 0, "retry": 1}),
        (turn(1, 0, retries=1), {"number": 1, "index": 0, "retry": 3}),
        (turn(1, 0, retries=3), {"number": 1, "index": 0, "retry": 4}),
        (turn(1, 0, effects=Effects.COMMITTED), {"number": 1, "index": 0, "retry": 1}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("state", m.STATES)
def test_every_state_event_and_guard_outcome_agrees(state: str) -> None:
    """All states, all tags of the vocabulary, and both outcomes of every guard."""
    table = {(row.source, row.event): row for row in m.ROWS}
    drawn = 0
    for tag in sorted(TAGS):
        row = table.get((state, tag))
        cases: list[tuple[Turn, dict[str, Any], bool]] = [(turn(), {"number": 1, "index": 0}, row is not None)]
        if row is not None and row.guard:
            cases = [(*YES[row.guard], True), *((*case, False) for case in NO[row.guard])]
        for now, said, allowed in cases:
            happened = event(tag, **said)
            expected = row.dest if allowed and row is not None else None
            assert by_dict(state, tag, now, happened) == expected, (tag, said)
            assert by_machine(state, tag, now, happened) == expected, (tag, said)
            drawn += 1
    assert drawn >= len(TAGS)


@given(
    state=st.sampled_from(m.STATES),
    guarded=st.sampled_from(GUARDED),
    attempts=st.integers(1, 3),
    stands=st.integers(0, 3),
    retries=st.integers(0, 3),
    effects=st.sampled_from(Effects),
    said=st.fixed_dictionaries(
        {
            "number": st.integers(0, 4), "index": st.integers(0, 2), "retry": st.integers(0, 4),
            "swap": st.booleans(),
        }
    ),
)  # fmt: skip
def test_the_two_forms_agree_on_drawn_turns(
    state: str, guarded: tuple[str, str], attempts: int, stands: int, retries: int, effects: Effects, said: Any
) -> None:
    tag, _ = guarded
    now = turn(attempts, stands, retries=retries, effects=effects)
    happened = event(tag, **said)
    assert by_dict(state, tag, now, happened) == by_machine(state, tag, now, happened)


def test_every_guard_of_the_table_is_drawn_both_ways() -> None:
    assert set(YES) == set(NO) == set(GUARDS) == {guard for _, guard in GUARDED}


def test_every_event_of_the_table_is_a_tag_of_the_vocabulary() -> None:
    assert {row.event for row in m.ROWS} <= TAGS
    decisions = {kind.__struct_config__.tag for kind in d.Decision.__args__}
    assert {row.event for row in m.ROWS if row.event in decisions} == set(m.DECISIONS)


def check(rows: tuple[m.TransitionRow, ...]) -> None:
    """What is done at import, for any rows."""
    m._check(rows, m._compile(m._build(rows)))


BROKEN = {
    "two ways lead out of calling by call_failed": m.TransitionRow("calling", "call_failed", "failed"),
    "turn_answered may not leave calling": m.TransitionRow("calling", "turn_answered", "answered"),
    "call_failed may not leave judging": m.TransitionRow("judging", "call_failed", "failed"),
    "answered is terminal but has a way out": m.TransitionRow("answered", "turn_requested", "open"),
    "states that no turn reaches": m.TransitionRow("limbo", "turn_failed", "failed"),
    "states that no turn leaves": m.TransitionRow("choosing", "chain_planned", "limbo"),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_a_broken_table_is_refused_at_import(problem: str) -> None:
    check(m.ROWS)
    with pytest.raises(AssertionError, match=problem):
        check((*m.ROWS, BROKEN[problem]))


def test_a_row_with_an_unknown_guard_is_refused() -> None:
    with pytest.raises(KeyError, match="no_such_guard"):
        check((*m.ROWS, m.TransitionRow("choosing", "chain_planned", "failed", "no_such_guard")))

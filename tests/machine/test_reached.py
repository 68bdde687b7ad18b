"""Every row of the turn table is walked by a real turn: nothing in it is only on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from standby.engine.fold import tag_of
from standby.engine.machine import MOVES, RESTING, ROWS, STATES
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.decisions import ReportKept
from standby.events.evidence import Evidence
from standby.events.policy import Recovery
from standby.events.vocabulary import Effects, StopKind
from tests.golden.histories import STORIES
from tests.properties.play import Play, chain

ALPHA, BETA = "openai/alpha", "anthropic/beta"
OVERFLOW, FORMAT, RATE = 12, 13, 0


def begun(*, over: bool = False, **request: Any) -> Play:
    """A turn whose call is under way, or was taken over by the other runtime in the middle of it."""
    play = Play(known_profiles=1, naive=False)
    play.request(**request)
    play.sleep(100)
    if over:
        play.take_over(0, 1)
    return play


def waiting() -> Play:
    play = begun()
    play.fail(kind=RATE, wait_s=5)
    return play


def repairing() -> Play:
    play = begun()
    play.fail(kind=OVERFLOW, repairable=True)
    return play


def owner(play: Play) -> str:
    return str(play.shadow.turns["t-1"].runtime)


def call(play: Play, fact: type[Any], **fields: Any) -> None:
    play.submit(owner(play), fact(turn="t-1", attempt=1, **fields))


def succeeds(play: Play) -> None:
    play.succeed()


def fails(play: Play) -> None:
    play.fail(kind=3)


def unknown(play: Play) -> None:
    play.unknown()


def effects(play: Play) -> None:
    play.effects()


def response(play: Play) -> None:
    play.response()


def switched(play: Play) -> None:
    play.switch(model=1)


def cancels(play: Play) -> None:
    play.cancel()


def late(play: Play) -> None:
    play.deadline()


def taken(play: Play) -> None:
    play.take_over(0, 0 if owner(play) == "other" else 1)


def recovering(play: Play) -> None:
    call(play, f.RuntimeRecovering, evidence=Evidence(status=503))


def no_progress(play: Play) -> None:
    call(play, f.NoProgressSeen)


def no_progress_for_long(play: Play) -> None:
    play.sleep(86_400_000)
    call(play, f.NoProgressSeen)


def incomplete(worthy: bool, **fields: Any) -> Callable[[Play], None]:
    def happens(play: Play) -> None:
        started = play.shadow.turns["t-1"].attempts[0].started_ms
        call(
            play, f.CallSucceeded, started_ms=started, effects=Effects.NONE, stop=StopKind.INCOMPLETE,
            fallback_worthy=worthy, **fields,
        )  # fmt: skip

    return happens


def overflow_with_known_windows() -> Play:
    """A candidate that is known to be large enough goes ahead of one that is not."""
    windows = {ALPHA: 8_000, BETA: 8_000, "openai/gamma": 200_000}
    play = Play(known_profiles=1)
    policy = chain(ALPHA, BETA, "openai/gamma", windows=windows, recovery=Recovery(max_retries=0))
    play.submit(0, f.PolicyAdopted(policy=policy))
    play.request()
    play.fail(kind=OVERFLOW)
    return play


def plays() -> Iterator[Play]:
    yield from (story() for story in STORIES.values())
    yield overflow_with_known_windows()
    often: list[Callable[[Play], None]] = [
        succeeds, fails, unknown, effects, response, switched, cancels, late, taken,
    ]  # fmt: skip
    for over in (False, True):
        for happens in often:
            play = begun(over=over)
            happens(play)
            yield play
    rare: list[Callable[[Play], None]] = [recovering, no_progress, no_progress_for_long, incomplete(True)]
    for happens in [*rare, incomplete(False)]:
        play = begun()
        happens(play)
        yield play
    play = begun(continuable=True)
    incomplete(False)(play)
    yield play
    play = begun()
    play.fail(kind=FORMAT, format_repair=True)
    yield play
    for make in (waiting, repairing):
        for go_on in (cancels, late, taken, lambda play: (play.wait(), play.repair())):
            play = make()
            go_on(play)
            yield play


def walked(commits: list[Commit]) -> Iterator[tuple[str, str, str]]:
    """Each move of each turn: (state, event, state), through the states that nobody sees from outside."""
    states: dict[str, str] = {}
    for commit in commits:
        key = getattr(commit.fact, "turn", None)
        kept = any(isinstance(one, ReportKept) for one in commit.decisions)
        if key is None or kept:
            continue
        for event in (commit.fact, *commit.decisions):
            state, tag = states.get(key, "new"), tag_of(event)
            if getattr(event, "turn", None) == key and (state, tag) in MOVES:
                states[key] = MOVES[state, tag].dest
                yield state, tag, states[key]
        assert states.get(key, "new") in RESTING, f"{commit} leaves its turn in {states[key]}"


@pytest.fixture(scope="module")
def moves() -> set[tuple[str, str, str]]:
    return {move for play in plays() for move in walked(play.commits())}


def test_every_row_is_walked_by_a_real_turn(moves: set[tuple[str, str, str]]) -> None:
    table = {(row.source, row.event, row.dest) for row in ROWS}
    assert moves <= table
    assert table - moves == set()


def test_every_state_is_reached_by_a_real_turn(moves: set[tuple[str, str, str]]) -> None:
    assert {state for source, _, dest in moves for state in (source, dest)} == set(STATES)

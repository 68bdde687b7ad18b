"""SIGKILL at any moment loses nothing that was acknowledged and sends nothing twice."""

from pathlib import Path
from typing import Any

import pytest

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.vocabulary import Effects, Failure
from tests.kill.arena import Arena, explained_attempts, scripted_process

pytestmark = pytest.mark.invariant(6, 10, 11)


def fought(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    arena = Arena(folder, seed)
    with scripted_process(arena.script, arena.requests) as base_url:
        arena.fight(base_url, kills)
    return arena.after_failure()


def test_twenty_kills_lose_nothing_and_send_nothing_twice(tmp_path: Path) -> None:
    figures = fought(tmp_path, 20, seed=1)
    assert figures["kills"] == 20
    assert figures["calls nobody saw end"] > 0


@pytest.mark.long
def test_two_hundred_kills_lose_nothing_and_send_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = fought(tmp_path, 200, seed=2)
    with capsys.disabled():
        print("\n" + "\n".join(f"{name}: {value}" for name, value in figures.items()))
    assert figures["kills"] == 200
    assert figures["calls nobody saw end"] >= 40


# ---- the judge itself can say no -----------------------------------------------------------------------------


def commit(fact: Any, *decisions: Any) -> Commit:
    return Commit(0, "worker", 1, 0, fact, tuple(decisions))


def attempt(number: int, profile: str = "p") -> d.AttemptStarted:
    return d.AttemptStarted(rules=(), turn="t", attempt=number, index=0, model="openai/alpha", profile=profile)


def failure(number: int, *, replayable: bool = True) -> d.FailureClassified:
    return d.FailureClassified(
        rules=(), turn="t", attempt=number, reason=Failure.OVERLOADED, replayable=replayable
    )


RETRY = d.RetryScheduled(rules=(), turn="t", until_ms=1, reason=Failure.OVERLOADED, retry=1, of=1)
LOST = f.CallUnknown(turn="t", attempt=1, effects=Effects.NONE)
BEGIN = commit(f.TurnRequested(turn="t", session="s"), attempt(1))


def test_a_second_attempt_with_its_reason_is_explained() -> None:
    ended = commit(f.WaitEnded(turn="t"), attempt(2))
    assert explained_attempts([BEGIN, commit(LOST, failure(1), RETRY), ended]) == {"t/1", "t/2"}


@pytest.mark.parametrize(
    "decisions",
    [
        (failure(1), attempt(2)),
        (failure(1, replayable=False), RETRY, attempt(2)),
        (failure(1), RETRY, attempt(3)),
    ],
    ids=["no reason", "unsafe", "one left out"],
)
def test_a_second_attempt_without_a_reason_is_found(decisions: tuple[Any, ...]) -> None:
    with pytest.raises(AssertionError):
        explained_attempts([BEGIN, commit(LOST, *decisions)])

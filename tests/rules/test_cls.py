"""What a decision about a failure says of its reading: by which rules it was made, and what users are told."""

from __future__ import annotations

import pytest

from standby.engine.steps import Settled, Wait
from standby.engine.texts.failures import failure_message
from standby.events import decisions as d
from standby.events.vocabulary import Effects
from standby.hosts.reports import Unknown
from tests.harness import A, B, World, chain, of, reply


def rules(status: int | None, body: object, **fields: object) -> tuple[str, ...]:
    """The rules of the decision about one failure."""
    w = World(chain(A, B))
    turn = w.turn()
    w.fail(turn, reply(status, body, **fields))
    (classified,) = of(turn, d.FailureClassified)
    found: tuple[str, ...] = classified.rules
    return found


@pytest.mark.rule("OURS-5", "OURS-12")
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (402, "Weekly usage limit exhausted, try again later", ("OURS-5", "CLS-13", "CLS-29", "COOL-25")),
        (500, "insufficient credits", ("OURS-5", "CLS-12", "OURS-2")),
        (503, "", ("OURS-5", "CLS-7", "CLS-29")),
        (None, "some words that mean nothing", ("OURS-5", "CLS-16")),
        (401, "", ("OURS-5", "CLS-29")),
    ],
)
def test_a_decision_names_the_rules_of_its_reading(status: int | None, body: str, expected: object) -> None:
    assert rules(status, body) == expected


@pytest.mark.rule("OURS-5", "REC-8")
def test_a_call_that_nobody_saw_end_was_read_by_no_row() -> None:
    w = World(chain(A, B))
    w.turn()
    w.restart()
    (turn,) = [w.service.reopen(one) for one in w.service.unfinished()]
    turn.report(Unknown(effects=Effects.NONE))
    (classified,) = of(turn, d.FailureClassified)
    assert classified.rules == ("REC-8",)


@pytest.mark.rule("CLS-34", "CLS-23")
@pytest.mark.parametrize(
    ("status", "body", "what"),
    [
        (500, "Internal server error in rack 7", "have trouble right now"),
        (502, "Bad gateway at rack 7", "have trouble right now"),
        (503, "Service unavailable: rack 7", "are overloaded"),
        (503, "rack 7", "have trouble right now"),
        (504, "Gateway timeout at rack 7", "have trouble right now"),
        (524, "rack 7", "have trouble right now"),
        (529, "Overloaded: rack 7", "are overloaded"),
    ],
)
def test_overload_and_server_failures_get_advice_that_fits_what_passes(
    status: int, body: str, what: str
) -> None:
    w = World(chain(A, B))
    turn = w.turn()
    while not isinstance(turn.step, Settled):
        if isinstance(turn.step, Wait):
            w.wait(turn)
        else:
            w.fail(turn, reply(status, body))
    told = failure_message(turn.state, w.now_ms)
    assert told == f"⚠️ The providers {what}. Please try again in a few minutes."
    assert "rack 7" not in told

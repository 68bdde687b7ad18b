"""A turn keeps the policy that planned its chain until it settles; only removals apply at once."""

import pytest

from standby.engine.steps import CallModel
from standby.events.decisions import CandidateSkipped
from standby.events.vocabulary import SkipBecause
from tests.harness import A, B, C, World, chain, of


@pytest.mark.rule("CHAIN-2")
def test_a_fallback_that_is_removed_meanwhile_is_passed_over() -> None:
    world = World(chain(A, B, C))
    turn = world.turn()
    world.adopt(chain(A, C))
    step = world.give_up(turn, "auth")
    assert isinstance(step, CallModel)
    assert step.model == C
    (skip,) = of(turn, CandidateSkipped)
    assert (skip.model, skip.because) == (B, SkipBecause.REMOVED)
    world.answer(turn)
    world.proved()


@pytest.mark.rule("CHAIN-2")
def test_a_fallback_that_is_added_meanwhile_waits_for_the_next_turn() -> None:
    world = World(chain(A, B))
    turn = world.turn()
    world.adopt(chain(A, C, B))
    step = world.give_up(turn, "auth")
    assert isinstance(step, CallModel)
    assert step.model == B
    world.answer(turn)
    later = world.turn("another")
    assert [candidate.model for candidate in later.state.candidates] == [A, C, B]
    world.proved()


@pytest.mark.rule("CHAIN-7")
def test_an_override_of_the_run_is_nobody_elses_to_remove() -> None:
    world = World(chain(A, B, C))
    turn = world.turn(fallbacks=[B])
    world.adopt(chain(A, C))
    step = world.give_up(turn, "auth")
    assert isinstance(step, CallModel)
    assert step.model == B

"""FLOW, closer: what a turn used, however its reports come in."""

import pytest

from standby.engine.steps import CallModel
from standby.events.facts import Usage
from standby.events.policy import Recovery
from standby.hosts.reports import Failed, Succeeded
from standby.projections.costs import TurnUsage, usage_of
from tests.harness import FAILURES, A, B, World, chain


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
def test_a_report_that_comes_late_counts_what_it_used_once() -> None:
    w = World(chain(A, B, recovery=Recovery(max_retries=0)))
    turn = w.turn()
    turn.cancel()
    late = Usage(input=10, output=5)
    turn.report(Succeeded(usage=late))
    assert turn.state.usages == ((A, late),)
    turn.report(Succeeded(usage=Usage(input=99, output=99)))
    assert turn.state.usages == ((A, late),), "the same call cannot be paid twice"


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
def test_a_late_answer_that_counted_nothing_leaves_the_cost_unknown_and_a_late_failure_does_not() -> None:
    w = World(chain(A, B, recovery=Recovery(max_retries=0)))
    answered, failed = w.turn("one"), w.turn("two")
    answered.cancel()
    failed.cancel()
    answered.report(Succeeded())
    failed.report(Failed(reply=FAILURES["overloaded"]))
    assert answered.state.usages == ((A, None),)
    assert failed.state.usages == ()


@pytest.mark.rule("FLOW-2")
def test_a_step_names_provider_and_model_apart_and_is_an_ordinary_call_unless_it_says_otherwise() -> None:
    step = CallModel(turn="t", attempt=1, model="openai/org/alpha")
    assert (step.provider, step.model_id, step.instruction) == ("openai", "org/alpha", "")
    assert (step.probe, step.continuation, step.finalize) == (False, False, False)


@pytest.mark.rule("FLOW-13")
def test_a_turn_that_completed_no_call_used_nothing_and_cost_nothing() -> None:
    assert usage_of((), {}) == TurnUsage()
    assert TurnUsage().cost == 0
    assert (TurnUsage().input, TurnUsage().output, TurnUsage().context) == (0, 0, None)

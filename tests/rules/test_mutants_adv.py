"""ADV, closer."""

import pytest

from standby.engine.steps import CallModel, Settled
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import Effects, Failure, SkipBecause, TurnEnd
from standby.hosts.reports import Unknown
from tests.harness import A, B, C, World, chain, of

A2 = "openai/alpha-two"


@pytest.mark.rule("ADV-1")
def test_a_bad_certificate_passes_over_what_is_left_of_its_provider_and_no_other() -> None:
    w = World(chain(A, A2, B, C, recovery=Recovery(max_retries=0)))
    turn = w.turn()
    step = w.fail(turn, "tls")
    assert isinstance(step, CallModel)
    assert step.model == B
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.model, skip.because, skip.reason) == (A2, SkipBecause.TLS, Failure.TLS_CERTIFICATE)
    step = w.fail(turn, "overloaded")
    assert isinstance(step, CallModel)
    assert step.model == C


@pytest.mark.rule("ADV-2", "FLOW-14")
@pytest.mark.parametrize(
    ("blocked", "end"), [(A, TurnEnd.SURFACED), (C, TurnEnd.EXHAUSTED), ("", TurnEnd.SURFACED)]
)
def test_an_unknown_error_is_shown_as_itself_where_no_candidate_was_passed_over_after_it(
    blocked: str, end: TurnEnd
) -> None:
    models = (A, C) if blocked else (C,)
    w = World(chain(*models, recovery=Recovery(max_retries=0)))
    if blocked:
        w.fail(w.turn("before", model=blocked), "auth")
    turn = w.turn()
    step = w.fail(turn, "unclassified")
    assert isinstance(step, Settled)
    assert (step.end, len(step.attempts), len(step.skips)) == (end, 1, 1 if blocked else 0)


@pytest.mark.rule("FLOW-14")
def test_a_call_that_nobody_saw_end_is_no_error_that_could_be_shown() -> None:
    w = World(chain(A, recovery=Recovery(max_retries=0)))
    step = w.turn().report(Unknown(effects=Effects.NONE))
    assert isinstance(step, Settled)
    assert (step.end, step.reason) == (TurnEnd.EXHAUSTED, Failure.INTERRUPTED)

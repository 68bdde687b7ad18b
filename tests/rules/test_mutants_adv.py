"""ADV, closer."""

import pytest

from standby.engine.steps import CallModel
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import Failure, SkipBecause
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

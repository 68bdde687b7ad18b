"""SKIP, closer: whom a marker is about, and for how long it counts."""

import msgspec
import pytest

from standby.engine.steps import CallModel
from standby.engine.texts.failures import skip_detail
from standby.events import decisions as d
from standby.events.policy import Policy, Recovery
from standby.events.vocabulary import Failure, SkipBecause
from tests.harness import A, B, World, chain, of

B2 = "anthropic/beta-two"


def policy(*fallbacks: str) -> Policy:
    return chain(A, *fallbacks, recovery=Recovery(max_retries=0), skip_ttl_ms=300_000)


def mark(w: World) -> None:
    """B has failed to authenticate, and its cooldown is over."""
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "auth")
    w.sleep(31_000)


def second(w: World) -> str:
    turn = w.turn()
    step = w.fail(turn, "overloaded")
    assert isinstance(step, CallModel)
    return step.model


@pytest.mark.rule("SKIP-2")
def test_a_marker_is_about_its_model_alone() -> None:
    w = World(policy(B, B2))
    mark(w)
    assert second(w) == B2


@pytest.mark.rule("SKIP-1")
def test_markers_that_were_made_before_it_was_switched_off_do_not_count() -> None:
    w = World(policy(B, B2))
    mark(w)
    w.adopt(msgspec.structs.replace(policy(B, B2), skip_ttl_ms=0))
    assert second(w) == B


@pytest.mark.rule("SKIP-2", "OBS-5")
def test_the_marker_of_a_candidate_is_named_as_why_it_was_passed_over() -> None:
    w = World(policy(B, B2))
    mark(w)
    turn = w.turn()
    w.fail(turn, "overloaded")
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.model, skip.because, skip.reason) == (B, SkipBecause.SKIP_MARKER, Failure.AUTH)
    assert skip_detail(skip.model, skip.because, skip.reason) == f"recent auth failure of {B} in this session"

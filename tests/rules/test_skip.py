"""SKIP: fallbacks that could not authenticate are passed over for a while, where that is switched on."""

from typing import Any

import pytest

from standby.engine.steps import CallModel
from standby.events import decisions as d
from standby.events.policy import Policy, Recovery
from standby.events.vocabulary import Failure, SkipBecause
from standby.hosts.settings import Settings
from standby.hosts.settings.environment import SKIP_TTL_VARIABLE, with_environment
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, C, World, chain, of

AT_ONCE = Recovery(max_retries=0)
TTL = 300_000
ONE_EACH = {"openai": ["o1"], "anthropic": ["a1"], "google": ["g1"]}


def world(ttl: int = TTL, profiles: dict[str, list[str]] | None = None, **fields: Any) -> World:
    return World(chain(A, B, C, recovery=AT_ONCE, skip_ttl_ms=ttl, **fields), profiles or ONE_EACH)


def fallback_fails(w: World, kind: str = "auth", session: str = "s") -> None:
    """The first fallback fails to authenticate; its cooldown is over afterwards, the marker is not."""
    turn = w.turn(session)
    w.fail(turn, "overloaded")
    w.fail(turn, kind)
    w.answer(turn)
    w.sleep(31_000)


def second(w: World, session: str = "s") -> tuple[TurnHandle, str, str]:
    """Which model and profile come after a failure of the primary."""
    turn = w.turn(session)
    step = w.fail(turn, "overloaded")
    assert isinstance(step, CallModel)
    return turn, step.model, step.profile


@pytest.mark.rule("SKIP-1")
def test_off_by_default_every_turn_tries_each_fallback_again() -> None:
    w = world(0)
    fallback_fails(w)
    assert w.decisions(d.SkipMarked) == []
    assert second(w)[1] == B


@pytest.mark.rule("SKIP-1")
@pytest.mark.parametrize(("ttl", "marked"), [(1, 1000), (60_000, 60_000), (10**9, 600_000)])
def test_the_time_to_live_is_brought_into_one_second_to_ten_minutes(ttl: int, marked: int) -> None:
    w = world(ttl)
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "auth")
    (mark,) = of(turn, d.SkipMarked)
    assert mark.until_ms == w.now_ms + marked


@pytest.mark.rule("SKIP-1")
def test_the_documented_variable_switches_it_on() -> None:
    for text, ttl in (("60000", 60_000), ("0", 0), ("soon", 0)):
        settings = with_environment(Settings(policy=Policy()), {SKIP_TTL_VARIABLE: text})
        assert settings.policy.skip_ttl_ms == ttl


@pytest.mark.rule("SKIP-2")
@pytest.mark.parametrize("kind", ["auth", "auth_permanent"])
def test_a_fallback_that_could_not_authenticate_is_passed_over_in_its_session(kind: str) -> None:
    w = world()
    fallback_fails(w, kind)
    turn, model, _ = second(w)
    assert model == C
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.model, skip.because) == (B, SkipBecause.SKIP_MARKER)
    assert skip.reason is Failure(kind)
    assert skip.until_ms == w.decisions(d.SkipMarked)[0].until_ms
    assert "SKIP-2" in skip.rules
    if kind == "auth":
        assert second(w, "another")[1] == B, "other sessions do not share it"
    w.now_ms = skip.until_ms + 600_000
    assert second(w)[1] == B


@pytest.mark.rule("SKIP-2")
@pytest.mark.parametrize("kind", ["billing", "model_not_found", "rate_limit", "unclassified"])
def test_other_failures_leave_no_marker(kind: str) -> None:
    w = world()
    fallback_fails(w, kind)
    assert w.decisions(d.SkipMarked) == []


@pytest.mark.rule("SKIP-2")
def test_another_profile_does_not_inherit_the_marker() -> None:
    w = world(profiles={**ONE_EACH, "anthropic": ["a1", "a2"]})
    turn = w.turn()
    w.fail(turn, "overloaded")
    step = w.fail(turn, "auth")
    assert isinstance(step, CallModel)
    assert (step.model, step.profile) == (B, "a2"), "in the same turn"
    w.answer(turn)
    w.sleep(31_000)
    assert second(w)[1:] == (B, "a2")
    w.service.pin("s", "anthropic", "a1")
    assert second(w)[1:] == (B, "a2"), "the marked one is the user's first choice, and is passed over"
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "auth")
    w.answer(turn)
    w.sleep(31_000)
    assert second(w)[1] == C, "now both are marked"


@pytest.mark.rule("SKIP-2")
def test_a_marked_profile_is_not_rotated_to() -> None:
    w = world(profiles={**ONE_EACH, "anthropic": ["a1", "a2"]})
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "auth")
    w.answer(turn)
    w.sleep(31_000)
    turn, model, profile = second(w)
    assert (model, profile) == (B, "a2")
    step = w.fail(turn, "server_error")
    assert isinstance(step, CallModel)
    assert step.model == C


@pytest.mark.rule("SKIP-2")
def test_a_restart_forgets_it() -> None:
    w = world()
    fallback_fails(w)
    assert second(w)[1] == C
    w.restart()
    assert second(w)[1] == B
    w.proved()


@pytest.mark.rule("SKIP-3")
def test_the_selected_model_is_never_passed_over() -> None:
    w = world()
    w.run("s", "auth")
    w.sleep(31_000)
    assert w.decisions(d.SkipMarked) == []
    assert isinstance(w.turn().step, CallModel)
    # A fallback that is marked and then selected is tried, so that its real error shows.
    fallback_fails(w)
    w.service.select_model("s", B)
    turn = w.turn()
    assert isinstance(turn.step, CallModel)
    assert turn.step.model == B

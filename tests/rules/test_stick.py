"""STICK: a fallback that a rate limit led to stays first for a while."""

from typing import Any

import pytest

from standby.engine.steps import CallModel
from standby.engine.texts.status import status_of
from standby.events import decisions as d
from standby.events.policy import Recovery, Stickiness
from standby.events.vocabulary import TurnKind
from standby.hosts.service import Standby
from standby.hosts.turns import TurnHandle
from tests.harness import START_MS, A, B, C, World, chain, of

AT_ONCE = Recovery(max_retries=0)
MINUTE = 60_000


def fallen_back(*models: str, kind: str = "rate_limit", **fields: Any) -> World:
    """A world whose session "s" fell back from A to B a moment ago."""
    w = World(chain(*(models or (A, B)), recovery=AT_ONCE, **fields))
    w.run("s", kind)
    return w


def first(turn: TurnHandle) -> str:
    step = turn.step
    assert isinstance(step, CallModel), step
    return step.model


def start(w: World, session: str = "s", **fields: Any) -> str:
    """The model that a new turn starts with; the turn is given up."""
    turn = w.turn(session, **fields)
    model = first(turn)
    turn.cancel()
    return model


@pytest.mark.rule("STICK-1")
def test_after_a_rate_limit_the_next_turns_try_the_fallback_first_and_the_selected_model_next() -> None:
    w = fallen_back(A, B, C)
    (sticky,) = w.decisions(d.StickySet)
    assert (sticky.model, sticky.selected) == (B, A)
    turn = w.turn()
    planned = of(turn, d.ChainPlanned)[0]
    assert [one.model for one in planned.candidates] == [B, A, C]
    assert (planned.selected, "STICK-1" in planned.rules) == (A, True)
    assert first(turn) == B
    w.fail(turn, "overloaded")
    assert first(turn) == A, "a failing fallback still reaches it in the same turn"
    w.proved()


@pytest.mark.rule("STICK-1")
@pytest.mark.parametrize("kind", ["overloaded", "auth", "billing", "model_not_found", "server_error"])
def test_other_reasons_make_nothing_sticky(kind: str) -> None:
    w = fallen_back(kind=kind)
    assert w.decisions(d.StickySet) == []


@pytest.mark.rule("STICK-1")
def test_a_selected_model_that_was_passed_over_for_a_rate_limit_counts_as_well() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    limited = w.turn("elsewhere")
    w.fail(limited, "rate_limit", retry_after=900)
    limited.cancel()
    w.run("s")
    assert [one.model for one in w.decisions(d.StickySet)] == [B]
    broke = World(chain(A, B, recovery=AT_ONCE))
    turn = broke.turn("elsewhere")
    broke.fail(turn, "billing")
    turn.cancel()
    broke.run("s")
    assert broke.decisions(d.StickySet) == []


@pytest.mark.rule("STICK-2")
def test_ten_idle_minutes_end_it() -> None:
    w = fallen_back()
    w.sleep(10 * MINUTE - 1)
    assert start(w) == B
    w.sleep(1)
    turn = w.turn()
    assert first(turn) == A
    (ended,) = of(turn, d.StickyEnded)
    assert "STICK-2" in ended.rules


@pytest.mark.rule("STICK-2")
def test_each_success_extends_it_to_at_most_thirty_minutes_after_the_first() -> None:
    w = fallen_back()
    for _ in range(3):
        w.sleep(9 * MINUTE)
        assert w.run("s").model == B
    untils = [one.until_ms - START_MS for one in w.decisions(d.StickySet)]
    assert [ms // MINUTE for ms in untils] == [10, 19, 28, 30]
    assert {one.first_ms for one in w.decisions(d.StickySet)} == {START_MS}
    w.sleep(3 * MINUTE - 1)
    assert start(w) == B
    w.sleep(1)
    assert start(w) == A


@pytest.mark.rule("STICK-2")
def test_the_windows_are_settings() -> None:
    w = fallen_back(stickiness=Stickiness(idle_ms=5000, cap_ms=7000))
    w.sleep(4000)
    w.run("s")
    w.sleep(2999)
    assert start(w) == B
    w.sleep(1)
    assert start(w) == A


@pytest.mark.rule("STICK-3")
def test_a_restart_ends_it() -> None:
    w = fallen_back()
    assert start(w) == B
    assert start(w.restart()) == A


@pytest.mark.rule("STICK-3")
@pytest.mark.parametrize("kind", ["overloaded", "format", "refusal"])
def test_a_failure_of_the_fallback_ends_it(kind: str) -> None:
    w = fallen_back()
    turn = w.turn()
    assert first(turn) == B
    w.fail(turn, kind)
    (ended,) = of(turn, d.StickyEnded)
    assert (ended.model, "STICK-3" in ended.rules) == (B, True)
    assert start(w) == A


@pytest.mark.rule("STICK-3")
def test_a_change_of_the_selected_model_ends_it() -> None:
    w = fallen_back(A, B, C)
    w.service.select_model("s", C)
    assert [one.rules for one in w.decisions(d.StickyEnded)] == [("STICK-3",)]
    w.service.select_model("s", None)
    assert start(w) == A


@pytest.mark.rule("STICK-3")
def test_a_chain_that_no_longer_allows_it_ends_it() -> None:
    w = fallen_back(A, B, C)
    w.adopt(chain(A, C, recovery=AT_ONCE))
    turn = w.turn()
    assert first(turn) == A
    assert "STICK-3" in of(turn, d.StickyEnded)[0].rules


@pytest.mark.rule("STICK-4")
def test_it_is_the_sessions_own_and_the_processs() -> None:
    w = fallen_back()
    assert start(w, "another") == A

    def elsewhere(service: Standby) -> str:
        return first(service.start_turn(session="s"))

    assert elsewhere(w.other()) == A


@pytest.mark.rule("STICK-4")
def test_strict_turns_and_turns_that_a_hook_rerouted_neither_make_nor_use_it() -> None:
    w = fallen_back()
    assert start(w, fallbacks=[]) == A
    assert start(w, locked=True) == A
    assert start(w, rerouted=True) == A
    assert start(w) == B, "they do not end it either"
    fresh = World(chain(A, B, recovery=AT_ONCE))
    fresh.run("s", "rate_limit", rerouted=True)
    assert fresh.decisions(d.StickySet) == []


@pytest.mark.rule("STICK-4")
def test_it_adds_no_cooldown() -> None:
    w = fallen_back()
    assert w.decisions(d.BlockSet) == []
    assert start(w, "another") == A


@pytest.mark.rule("STICK-5")
@pytest.mark.parametrize(
    ("kind", "ordinary"),
    [
        (TurnKind.INTERACTIVE, True),
        (TurnKind.SUBAGENT, True),
        (TurnKind.COMPACTION, False),
        (TurnKind.BACKGROUND, False),
        (TurnKind.CRON, False),
    ],
)
def test_internal_calls_fall_back_for_their_own_turn_only(kind: TurnKind, ordinary: bool) -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    assert w.run("s", "rate_limit", kind=kind).model == B
    assert bool(w.decisions(d.StickySet)) is ordinary
    held = fallen_back()
    assert start(held, kind=kind) == (B if ordinary else A)


@pytest.mark.rule("STICK-6")
def test_a_sticky_turn_is_a_fallback_turn_like_any_other() -> None:
    w = fallen_back()
    turn = w.turn()
    w.answer(turn)
    (answered,) = of(turn, d.TurnAnswered)
    assert (answered.fallback, "STICK-6" in answered.rules) == (True, True)
    assert turn.due == [], "announced when it began"
    alias = w.service.core.known_alias("session", "main/s")
    assert alias is not None
    shown = status_of(w.view, alias, "main", w.now_ms)
    assert (shown.selected, shown.active) == (A, B)

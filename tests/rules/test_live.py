"""LIVE: overrides, and switches of the model while a turn is under way."""

import pytest

from standby.engine.steps import CallModel, Settled
from standby.engine.texts.status import SessionStatus
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import Failure, SelectionSource, Surface, TurnEnd, TurnKind
from standby.hosts.reports import Switched
from standby.hosts.turns import TurnHandle
from standby.projections.sessions import Session
from tests.harness import A, B, C, World, chain, of

D = "groq/delta"


def world(*fallbacks: str) -> World:
    return World(chain(A, *(fallbacks or (B, C)), recovery=Recovery(max_retries=0)))


def session_of(w: World, name: str = "s") -> Session:
    alias = w.service.core.known_alias("session", f"main/{name}")
    found = w.view.sessions.get(alias or "")
    assert found is not None
    return found


def selected_of(turn: TurnHandle) -> str:
    selected: str = of(turn, d.ChainPlanned)[0].selected
    return selected


def models_of(turn: TurnHandle) -> list[str]:
    return [candidate.model for candidate in of(turn, d.ChainPlanned)[0].candidates]


def stuck(w: World) -> None:
    """The session is on its sticky fallback B."""
    turn = w.turn()
    w.fail(turn, "rate_limit")
    w.answer(turn)
    assert models_of(w.turn())[0] == B


@pytest.mark.rule("LIVE-1")
def test_only_an_explicit_switch_is_pending() -> None:
    w = world()
    turn = w.turn()
    assert turn.pending_switch is None
    w.fail(turn, "auth")
    assert (turn.pending_switch, session_of(w).switched) == (None, 0), "a fallback's rotation"
    w.service.compacted("s", 1)
    heartbeat = w.turn(model=C, kind=TurnKind.BACKGROUND)
    assert selected_of(heartbeat) == C
    w.answer(heartbeat)
    assert (turn.pending_switch, session_of(w).switched) == (None, 0), "a compaction, a heartbeat's own model"
    w.service.select_model("s", D)
    assert (turn.pending_switch, session_of(w).switched) == (D, 1)
    w.service.select_model("s", B)
    assert turn.pending_switch is None, "the turn is calling just that model by now"
    w.service.clear_model("s")
    assert turn.pending_switch == A


@pytest.mark.rule("LIVE-1")
def test_after_the_turn_nothing_is_pending() -> None:
    w = world()
    turn = w.turn()
    w.service.select_model("s", D)
    w.answer(turn)
    assert turn.pending_switch is None


@pytest.mark.rule("LIVE-2")
def test_a_stored_override_is_preferred_to_what_a_runtime_still_carries() -> None:
    w = world()
    carried = w.turn(model=B, source=SelectionSource.AUTO)
    assert selected_of(carried) == B
    w.answer(carried)
    w.service.select_model("s", D)
    turn = w.turn(model=B, source=SelectionSource.AUTO)
    assert selected_of(turn) == D
    assert "LIVE-2" in of(turn, d.ChainPlanned)[0].rules
    assert selected_of(w.turn(model=B, source=SelectionSource.USER)) == B, "an explicit one is another thing"


@pytest.mark.rule("LIVE-3")
def test_a_choice_during_a_run_decides_the_next_turn() -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "rate_limit")
    w.service.select_model("s", D)
    assert w.answer(turn).model == B
    assert of(turn, d.StickySet) == [], "the fallback does not go before the newer choice"
    following = w.turn()
    assert models_of(following) == [D]
    assert "LIVE-3" in of(following, d.ChainPlanned)[0].rules
    assert session_of(w).model == D
    w.answer(following)
    assert "LIVE-3" not in of(w.turn(), d.ChainPlanned)[0].rules
    w.proved()


@pytest.mark.rule("LIVE-3")
@pytest.mark.parametrize("choice", [A, None], ids=["the selected model", "the default"])
def test_a_choice_of_the_selected_model_during_a_run_goes_before_a_sticky_fallback(choice: str | None) -> None:
    w = world()
    stuck(w)
    turn = w.turn()
    assert models_of(turn)[0] == B
    w.service.select_model("s", choice)
    w.answer(turn)
    following = w.turn()
    assert models_of(following)[0] == A
    assert [one.rules for one in of(following, d.StickyEnded)] == [("LIVE-3",)]
    w.answer(following)
    assert models_of(w.turn())[0] == A
    w.proved()


@pytest.mark.rule("LIVE-5")
def test_the_status_shows_what_is_selected_and_what_answers_instead() -> None:
    w = world()
    plain = SessionStatus(selected=A, source=SelectionSource.DEFAULT, strict=False)
    assert w.service.status("s") == plain
    turn = w.turn()
    w.fail(turn, "billing")
    w.answer(turn)
    assert w.service.status("s") == SessionStatus(
        selected=A, source=SelectionSource.DEFAULT, strict=False, active=B, reason=Failure.BILLING
    )
    assert w.service.status("another") == plain
    w.sleep(3_600_000)
    w.answer(w.turn())
    assert w.service.status("s") == plain, "it came back"


@pytest.mark.rule("LIVE-5")
def test_a_fallback_from_another_selection_is_not_shown() -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "billing")
    w.answer(turn)
    w.service.select_model("s", D)
    assert w.service.status("s") == SessionStatus(selected=D, source=SelectionSource.USER, strict=True)


@pytest.mark.rule("LIVE-5", "NOTE-10")
def test_a_channel_keeps_the_state_that_the_status_shows() -> None:
    w = world()
    turn = w.turn(surface=Surface.CHANNEL)
    w.fail(turn, "auth")
    w.answer(turn)
    assert (w.service.status("s").active, turn.notices) == (B, [])


@pytest.mark.rule("LIVE-7")
def test_a_run_carries_its_candidate_and_only_a_switch_that_is_reported_changes_it() -> None:
    w = world()
    kept, left = w.turn("kept"), w.turn("left")
    for session in ("kept", "left"):
        w.service.select_model(session, C)
    assert isinstance(kept.step, CallModel)
    assert kept.step.model == A, "choosing changes nothing of the call"
    w.fail(kept, "auth")
    assert w.tried(kept)[-1][0] == B, "the turn's own chain goes on"
    left.report(Switched(model=C))
    assert w.tried(left)[-1][0] == C
    assert "LIVE-7" in of(left, d.ChainAdvanced)[0].rules
    # There was no temporary override, so nothing had to be rolled back.
    for session in ("kept", "left"):
        assert (session_of(w, session).model, session_of(w, session).switched) == (C, 1)
    w.proved()


@pytest.mark.rule("LIVE-7")
def test_a_switch_out_of_the_chain_is_handed_back() -> None:
    w = world()
    turn = w.turn()
    w.service.select_model("s", D)
    assert turn.pending_switch == D
    step = turn.report(Switched(model=D))
    assert isinstance(step, Settled)
    assert (step.end, step.target) == (TurnEnd.RETURNED, D)
    assert "LIVE-7" in of(turn, d.TurnFailed)[0].rules


@pytest.mark.rule("LIVE-8")
def test_every_writer_works_on_the_same_entry() -> None:
    w = world()
    gateway = w.other("gateway")
    stuck(w)
    # Another process switches, pins and compacts; the runner's next turn sees all of it.
    gateway.select_model("s", "openai/other", profile="openai:one")
    gateway.compacted("s", 3)
    w.service.select_model("another", B)  # the runner reads the log before it writes
    assert (session_of(w).model, session_of(w).compactions) == ("openai/other", 3)
    assert session_of(w).sticky == {}, "the runner's sticky fallback was ended by the gateway's switch"
    turn = w.turn()
    assert (models_of(turn), w.tried(turn)[0][1]) == (["openai/other"], "openai:one")
    assert selected_of(w.turn(kind=TurnKind.COMPACTION)) == "openai/other"
    # And the other way round.
    w.service.clear_model("s")
    assert gateway.status("s").selected == A
    w.proved()

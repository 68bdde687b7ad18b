"""NOTE: what the user is shown of fallbacks, waits and failures."""

from collections.abc import Callable
from typing import Any

import pytest

from standby.engine.steps import CallModel, Settled, Wait
from standby.engine.texts.notices import NoticeKind, fallback_note, notice_of, notice_text, reason_text
from standby.engine.texts.progress import (
    TRYING_FALLBACK,
    FallbackAttempted,
    Offer,
    ReturnedToSelected,
    fallback_attempted,
    retry_line,
    returned,
)
from standby.events import decisions as d
from standby.events.errors import BadReport
from standby.events.policy import Recovery
from standby.events.vocabulary import Effects, Failure, StopKind, Surface, TurnEnd, TurnKind, WaitBecause
from standby.hosts.reports import Succeeded, Switched
from standby.hosts.turns import TurnHandle
from standby.projections.history import History, TurnHistory, hidden_attempts
from standby.projections.sessions import Announced, Session
from tests.harness import A, B, C, World, chain, of, reply

AT_ONCE = Recovery(max_retries=0)
MOVED = f"↪️ Model Fallback: {B} (selected {A}; HTTP 529: Overloaded)"


def world(*models: str, **fields: Any) -> World:
    return World(chain(*(models or (A, B)), recovery=AT_ONCE, **fields))


def turn_of(w: World, *script: str, session: str = "s", **fields: Any) -> TurnHandle:
    """A turn with these failures, then an answer."""
    turn = w.turn(session, **fields)
    for kind in script:
        w.fail(turn, kind)
    w.answer(turn)
    return turn


def history_of(w: World, turn: TurnHandle) -> TurnHistory:
    history = History()
    for position, commit in enumerate(w.commits(), 1):
        history.fold(position, commit)
    return history.turns[turn.id]


@pytest.mark.rule("NOTE-1")
def test_a_move_to_a_fallback_is_told_with_both_models_and_the_reason() -> None:
    turn = turn_of(world(), "overloaded")
    assert turn.notices == [MOVED]
    (due,) = of(turn, d.NoticeDue)
    assert (due.selected, due.active, due.reason) == (A, B, Failure.OVERLOADED)
    assert "NOTE-1" in due.rules
    assert turn_of(world()).notices == []


@pytest.mark.rule("NOTE-1")
def test_the_reason_is_why_the_selected_model_was_left_and_says_how_many_more_failed() -> None:
    turn = turn_of(world(A, B, C), "model_not_found", "auth")
    assert turn.notices == [f"↪️ Model Fallback: {C} (selected {A}; model not found (+1 more attempts))"]


@pytest.mark.rule("NOTE-1")
def test_the_providers_words_stand_where_they_tell_more() -> None:
    words = "Too Many Requests: usage limit reached, try again in 6 minutes."
    told = reason_text(Failure.RATE_LIMIT, words, 429)
    assert told == f"HTTP 429: {words}"
    assert (
        reason_text(Failure.RATE_LIMIT, "x" * 20 + " quota " + "y" * 90)
        == "x" * 20 + " quota " + "y" * 52 + "…"
    )
    assert reason_text(Failure.RATE_LIMIT, f"429 {words}") == f"HTTP 429: {words}"
    cut = '{"error": {"message": "the \\"daily\\" quota is used up", "det'
    assert reason_text(Failure.RATE_LIMIT, cut) == 'the "daily" quota is used up'
    assert reason_text(Failure.RATE_LIMIT, '{"code": 429}', 429) == "rate limit", "no raw bodies"
    assert reason_text(None, "boom", None, "ECONNRESET") == "ECONNRESET"
    assert reason_text(Failure.AUTH, words, 401) == "auth"
    assert reason_text(None) == "selected model unavailable"
    w = world()
    turn = w.turn()
    body = {"error": {"message": "Too  many requests,\nslow down", "code": "rate_limit_exceeded"}}
    w.fail(turn, reply(429, body))
    w.answer(turn)
    assert "HTTP 429" in turn.notices[0]
    assert "Too many requests, slow down" in turn.notices[0]


@pytest.mark.rule("NOTE-2")
def test_the_same_pair_is_told_once_also_across_a_restart() -> None:
    w = world(A, B, C)
    assert turn_of(w, "overloaded").notices == [MOVED]
    assert turn_of(w, "auth_permanent").notices == []
    assert turn_of(w.restart(), session="s").notices == []
    assert turn_of(w, session="other").notices == [f"↪️ Model Fallback: {B} (selected {A}; auth permanent)"]
    moved_on = w.turn()
    w.fail(moved_on, "overloaded")
    w.answer(moved_on)
    assert moved_on.notices == [f"↪️ Model Fallback: {C} (selected {A}; auth permanent (+1 more attempts))"]


@pytest.mark.rule("NOTE-2")
@pytest.mark.parametrize("stop", [StopKind.TOOL_CALLS, StopKind.EMPTY])
def test_a_turn_with_nothing_but_side_effects_tells_it_too(stop: StopKind) -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "overloaded")
    turn.report(Succeeded(stop=stop, effects=Effects.COMMITTED))
    assert turn.notices == [MOVED]


@pytest.mark.rule("NOTE-3")
def test_a_notice_is_operational() -> None:
    w = world()
    moved = turn_of(w, "overloaded")
    back = turn_of(w)
    overflowed = turn_of(w, "context_overflow")
    due = [*moved.due, *back.due, *overflowed.due]
    assert [notice.kind for notice in due] == [
        NoticeKind.FALLBACK,
        NoticeKind.RETURNED,
        NoticeKind.FALLBACK,
        NoticeKind.WARNING,
    ]
    for notice in due:
        assert not notice.assistant_content
        assert not notice.suppressible
        assert not notice.takes_reply_slot
        assert not notice.spoken


@pytest.mark.rule("NOTE-4")
def test_the_control_ui_shows_a_divider_where_one_was_stored_and_the_notice_where_not() -> None:
    def told(surface: Surface, stored: bool | None) -> list[str]:
        turn = turn_of(world(), "overloaded", surface=surface)
        if stored is not None:
            turn.event_recorded(stored)
        return turn.notices

    assert told(Surface.CONTROL, None) == []
    assert told(Surface.CONTROL, True) == []
    assert told(Surface.CONTROL, False) == [MOVED]
    assert told(Surface.DIRECT, None) == told(Surface.DIRECT, True) == [MOVED]
    w = world()
    turn = turn_of(w, "overloaded", surface=Surface.CONTROL)
    turn.event_recorded(False)
    turn.event_recorded(False)
    assert [one.rules for one in of(turn, d.NoticeDue)][1:] == [("NOTE-4",)]
    assert turn_of(w, "overloaded").notices == [], "told is told"
    w.proved()


def waiting(kind: str = "rate_limit", **fields: Any) -> tuple[World, TurnHandle, Wait]:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, kind, **fields)
    assert isinstance(step, Wait)
    return w, turn, step


@pytest.mark.rule("NOTE-5")
def test_one_passing_line_while_it_recovers() -> None:
    w, turn, step = waiting(retry_after=30)
    assert retry_line(step, w.now_ms) == "Retrying… 2/16 (in 30 s)"
    assert retry_line(step, w.now_ms + 29_001) == "Retrying… 2/16 (in 1 s)"
    w.wait(turn)
    third = w.fail(turn, "rate_limit")
    assert isinstance(third, Wait)
    assert retry_line(third, w.now_ms) == "Retrying… 3/16 (in 2 s)"
    w, _, step = waiting("overloaded")
    assert retry_line(step, w.now_ms) == "Retrying… (in 1 s)", "only rate limits are counted out"
    gate = Wait(turn="t", until_ms=w.now_ms + 1, because=WaitBecause.GATE)
    assert retry_line(gate, w.now_ms) == ""
    assert TRYING_FALLBACK == "Trying fallback model…"


@pytest.mark.rule("NOTE-5")
def test_failed_attempts_of_a_recovered_turn_are_no_notices() -> None:
    w, turn, _ = waiting("overloaded")
    w.wait(turn)
    w.fail(turn, "overloaded")
    w.wait(turn)
    w.answer(turn)
    assert turn.due == []
    assert turn.failure is None
    assert history_of(w, turn).notices == [], "nor after the history was read again"


@pytest.mark.rule("NOTE-6")
def test_a_fallback_event_names_what_was_left_what_is_tried_and_why() -> None:
    w = world(A, B, C)
    turn = w.turn()
    assert fallback_attempted(turn.state, 1) is None
    w.fail(turn, "overloaded")
    event = FallbackAttempted(attempt=2, previous=A, trying=B, reason=Failure.OVERLOADED)
    assert fallback_attempted(turn.state, 2) == event
    w.fail(turn, "model_not_found")
    assert fallback_attempted(turn.state, 3) == FallbackAttempted(
        attempt=3, previous=B, trying=C, reason=Failure.MODEL_NOT_FOUND
    )
    w.fail(turn, "auth")
    assert isinstance(turn.step, Settled)
    assert fallback_attempted(turn.state, 2) == event, "it stays, and never claimed a success"


@pytest.mark.rule("NOTE-6")
def test_a_selected_model_that_was_passed_over_is_left_too_and_another_profile_is_no_fallback() -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": ["o1", "o2"], "anthropic": ["a1", "a2"]})
    turn = w.turn()
    w.fail(turn, "billing")
    assert fallback_attempted(turn.state, 2) is None
    w.fail(turn, "billing")
    assert fallback_attempted(turn.state, 3) is not None
    w.fail(turn, "auth")
    assert w.tried(turn)[-2:] == [(B, "a1"), (B, "a2")]
    assert fallback_attempted(turn.state, 4) is None, "the same fallback with another profile"
    passed_over = w.turn("other")
    assert fallback_attempted(passed_over.state, 1) == FallbackAttempted(
        attempt=1, previous=A, trying=B, reason=Failure.BILLING
    )


def told_of(**fields: Any) -> Session:
    return Session(announced=Announced(A, B, Failure.OVERLOADED, "t-1", 1))


@pytest.mark.rule("NOTE-7")
def test_a_notice_of_another_selected_model_is_stale_and_nothing_is_looked_up() -> None:
    def forbidden(_: Announced) -> str:
        raise AssertionError("looked up")

    assert fallback_note(told_of(), C, forbidden) is None
    assert fallback_note(Session(), A, forbidden) is None
    note = fallback_note(told_of(), A, lambda told: f"{told.turn}/{told.attempt}")
    assert note is not None
    assert (note.selected, note.active, note.reason, note.detail) == (A, B, Failure.OVERLOADED, "t-1/1")


@pytest.mark.rule("NOTE-7")
def test_missing_storage_leaves_the_details_out_and_unexpected_errors_go_through() -> None:
    note = fallback_note(told_of(), A, lambda _: None)
    assert note is not None
    assert note.detail == ""

    def broken(_: Announced) -> str:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        fallback_note(told_of(), A, broken)


@pytest.mark.rule("NOTE-7")
def test_the_lookup_only_reads() -> None:
    w = world()
    assert w.service.fallback_note("s", A) is None
    turn_of(w, "overloaded")
    before = (w.store.head(), len(list(w.store.side_entries())), w.view.position)
    note = w.service.fallback_note("s", A)
    assert note is not None
    assert "Overloaded" in note.detail
    assert w.service.fallback_note("s", B) is None
    assert w.service.fallback_note("never seen", A) is None
    assert (w.store.head(), len(list(w.store.side_entries())), w.view.position) == before
    with w.store.transaction() as transaction:
        for commit in w.commits():
            request = getattr(commit.fact, "session", "")
            if request:
                transaction.erase(request)
    erased = w.service.fallback_note("s", A)
    assert erased is None or erased.detail == ""


@pytest.mark.rule("NOTE-8")
def test_history_hides_recovered_errors_that_left_nothing_to_read() -> None:
    def hidden(bare: bool, kind: object = "overloaded", answered: bool = True) -> tuple[int, ...]:
        w = world()
        turn = w.turn()
        w.fail(turn, kind, bare=bare)  # type: ignore[arg-type]  # the harness takes it
        if answered:
            w.answer(turn)
        else:
            w.fail(turn, "auth")
        before = w.store.head()
        found = hidden_attempts(history_of(w, turn))
        assert len(history_of(w, turn).attempts) == 2, "stored as it was"
        assert w.store.head() == before
        return found

    assert hidden(True) == (1,)
    assert hidden(False) == ()
    assert hidden(False, reply(None, "")) == (1,), "an empty response"
    assert hidden(True, answered=False) == (), "not recovered"


@pytest.mark.rule("NOTE-9")
def test_the_return_is_told_with_the_fallback_that_was_left() -> None:
    w = world()
    turn_of(w, "overloaded")
    back = turn_of(w)
    assert back.notices == [f"↪️ Model Fallback cleared: {A} (was {B})"]
    assert "NOTE-9" in of(back, d.NoticeDue)[0].rules
    assert turn_of(w).notices == [], "once"
    assert turn_of(w, "overloaded").notices == [MOVED], "and told anew when it happens anew"


@pytest.mark.rule("NOTE-9")
def test_an_unknown_or_equal_former_model_is_not_named() -> None:
    due = d.NoticeDue(rules=(), session="s", turn="t", selected=A, active=A, returned=True)
    assert notice_text(due) == f"↪️ Model Fallback cleared: {A}"


@pytest.mark.rule("NOTE-10")
@pytest.mark.parametrize("surface", [Surface.GROUP, Surface.CHANNEL])
def test_groups_and_channels_keep_the_state_and_show_nothing(surface: Surface) -> None:
    w = world()
    turn = turn_of(w, "overloaded", surface=surface)
    assert turn.notices == []
    (due,) = of(turn, d.NoticeDue)
    assert (due.quiet, "NOTE-10" in due.rules, notice_of(due)) == (True, True, None)
    assert of(turn, d.ChainAdvanced)
    assert w.service.fallback_note("s", A) is not None
    back = turn_of(w, surface=surface)
    assert back.notices == []
    assert of(back, d.NoticeDue)[0].returned


@pytest.mark.rule("NOTE-11")
def test_a_fallback_before_admission_tells_its_transition_once_it_is_admitted() -> None:
    def passed_over(*, admitted: bool) -> tuple[World, TurnHandle]:
        w = world()
        blocker = w.turn("blocker")
        w.fail(blocker, "billing")
        blocker.cancel()
        turn = w.turn()
        turn.report(Succeeded(writer_admitted=admitted))
        return w, turn

    w, early = passed_over(admitted=False)
    assert early.notices == []
    early.writer_admitted()
    assert early.notices == [f"↪️ Model Fallback: {B} (selected {A}; billing)"]
    assert "NOTE-11" in of(early, d.NoticeDue)[0].rules
    early.writer_admitted()
    assert len(of(early, d.NoticeDue)) == 1
    w.proved()
    _, held = passed_over(admitted=True)
    assert len(held.notices) == 1


@pytest.mark.rule("NOTE-12")
def test_a_hidden_continuation_is_no_turn_of_the_users() -> None:
    w = world()
    hidden = turn_of(w, "overloaded", hidden=True)
    assert hidden.due == []
    assert turn_of(w, "overloaded").notices == [MOVED], "the next turn of the user's tells it"
    assert turn_of(w, hidden=True).due == [], "nor does it tell of a return"
    failed = w.turn()
    w.fail(failed, "refusal")
    turn_of(w, hidden=True)
    assert failed.failure is not None
    assert failed.failure.offers, "it is still the latest run"


@pytest.mark.rule("NOTE-12")
@pytest.mark.parametrize("kind", [TurnKind.COMPACTION, TurnKind.BACKGROUND])
def test_internal_turns_tell_nothing(kind: TurnKind) -> None:
    assert turn_of(world(), "overloaded", kind=kind).due == []


@pytest.mark.rule("NOTE-13")
def test_a_final_failure_is_shown_once_with_what_can_be_done() -> None:
    w = world(A, B, C)
    turn = w.turn()
    for kind in ("overloaded", "overloaded", "overloaded"):
        assert turn.failure is None, "not per attempt"
        w.fail(turn, kind)
    assert turn.failure is not None
    assert turn.failure.offers == (Offer.TRY_AGAIN, Offer.CHANGE_MODEL)
    assert turn.failure.text == "⚠️ The providers are overloaded. Please try again in a few minutes."
    assert len(history_of(w, turn).attempts) == 3, "diagnostics of each attempt stay"
    w.turn()
    assert not turn.failure.offers, "a later run is under way"


@pytest.mark.rule("NOTE-13")
@pytest.mark.parametrize(
    ("end", "ending"),
    [
        (TurnEnd.CANCELLED, lambda turn: turn.cancel()),
        (TurnEnd.RETURNED, lambda turn: turn.report(Switched(model=C, effects=Effects.NONE))),
    ],
)
def test_a_run_that_was_stopped_or_handed_back_shows_no_failure(
    end: TurnEnd, ending: Callable[[TurnHandle], object]
) -> None:
    turn = world().turn()
    ending(turn)
    assert (turn.state.end, turn.failure) == (end, None)


@pytest.mark.rule("NOTE-13")
def test_try_again_continues_and_looks_for_finished_work() -> None:
    w = world()
    failed = w.turn()
    w.fail(failed, "refusal", effects=Effects.COMMITTED)
    again = w.turn(continues=failed.id)
    step = again.step
    assert isinstance(step, CallModel)
    assert (step.continuation, step.model) == (True, A)
    assert step.instruction
    assert "NOTE-13" in of(again, d.AttemptStarted)[0].rules
    moved = w.fail(again, "auth")
    assert isinstance(moved, CallModel)
    assert moved.continuation, "the prompt is sent by none of its attempts"
    plain = w.turn("s").step
    assert isinstance(plain, CallModel)
    assert not plain.continuation
    w.proved()


@pytest.mark.rule("NOTE-13")
def test_only_the_latest_failed_run_can_be_tried_again() -> None:
    w = world()
    failed = w.turn()
    w.fail(failed, "refusal")
    head = w.store.head()
    with pytest.raises(BadReport, match="not the latest"):
        w.turn("other", continues=failed.id)
    later = w.turn()
    with pytest.raises(BadReport, match="not the latest"):
        w.turn(continues=failed.id)
    with pytest.raises(BadReport, match="has not failed"):
        w.turn(continues=later.id)
    assert w.store.head().position == head.position + 1, "nothing but the ordinary turn was written"


@pytest.mark.rule("NOTE-14")
def test_a_return_needs_an_answer_of_the_selected_model() -> None:
    w = world()
    turn_of(w, "overloaded")
    tried = w.turn()
    assert of(tried, d.NoticeDue) == [], "not the attempt"
    w.fail(tried, "refusal")
    assert of(tried, d.NoticeDue) == [], "nor its failure"
    back = turn_of(w)
    (due,) = of(back, d.NoticeDue)
    assert returned(due) == ReturnedToSelected(fallback=B, selected=A)
    assert "NOTE-14" in due.rules
    away = of(turn_of(w, "overloaded"), d.NoticeDue)[0]
    assert returned(away) is None

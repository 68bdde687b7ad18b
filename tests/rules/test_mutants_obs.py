"""OBS, closer: the records of a turn's way along its chain, whole."""

import pytest

from standby.engine.steps import Settled
from standby.engine.texts.decision_records import ChainStep, chain_steps
from standby.events.policy import Recovery
from standby.events.vocabulary import Failure, SkipBecause, TurnEnd
from standby.hosts.reports import Switched
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, C, World, chain

D = "groq/delta"


def world(*models: str) -> World:
    return World(chain(*models, recovery=Recovery(max_retries=0)))


def trail(turn: TurnHandle) -> list[ChainStep]:
    """The records of all commits of a turn, in order."""
    return [step for commit in turn.commits for step in chain_steps(commit, turn.state)]


def cooling(w: World, model: str, kind: str) -> None:
    """`model`'s provider is blocked after this failure of another session's turn."""
    turn = w.turn("before", model=model)
    w.fail(turn, kind)


@pytest.mark.rule("OBS-3")
def test_an_answer_names_what_was_left_last_also_where_that_was_passed_over() -> None:
    w = world(A, B, C, D)
    cooling(w, C, "auth")
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "overloaded")
    w.answer(turn)
    failed, left, skipped, answered = trail(turn)
    assert (failed.candidate, failed.attempt, failed.position, failed.to) == (A, 1, 1, B)
    assert (left.candidate, left.attempt, left.position, left.to) == (B, 2, 2, C)
    assert (skipped.candidate, skipped.attempt, skipped.position, skipped.to) == (C, 0, 3, D)
    assert (skipped.because, skipped.left_reason) == (SkipBecause.AUTH, Failure.AUTH)
    assert (answered.candidate, answered.attempt, answered.position) == (D, 3, 4)
    assert (answered.left, answered.left_reason, answered.to) == (C, Failure.AUTH, D)
    assert [step.outcome for step in (failed, left, skipped, answered)] == ["next_fallback"] * 3 + ["succeeded"]


@pytest.mark.rule("OBS-3")
def test_an_answer_after_a_failed_attempt_names_that_attempt_and_not_an_earlier_skip() -> None:
    w = world(A, B, C)
    cooling(w, A, "auth")
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.answer(turn)
    skipped, failed, answered = trail(turn)
    assert (skipped.candidate, skipped.to) == (A, B)
    assert (failed.candidate, failed.reason, failed.status) == (B, Failure.OVERLOADED, 529)
    assert (answered.left, answered.left_reason, answered.attempt) == (B, Failure.OVERLOADED, 2)


@pytest.mark.rule("OBS-3")
def test_the_last_of_several_skips_is_what_was_left() -> None:
    w = world(A, B, C)
    cooling(w, A, "auth")
    cooling(w, B, "auth_permanent")
    turn = w.turn()
    w.answer(turn)
    first, second, answered = trail(turn)
    assert [(one.candidate, one.reason) for one in (first, second)] == [
        (A, Failure.AUTH),
        (B, Failure.AUTH_PERMANENT),
    ]
    assert (answered.left, answered.left_reason) == (B, Failure.AUTH_PERMANENT)


@pytest.mark.rule("OBS-3")
def test_a_check_names_the_candidate_that_is_checked() -> None:
    w = world(A, B)
    w.run("s", "rate_limit")
    w.fail(w.turn("before", model=A), "rate_limit", retry_after=60)
    turn = w.turn("another")
    (check,) = trail(turn)
    assert check == ChainStep(decision="probe_cooldown_candidate", candidate=A, position=1, attempt=1)


@pytest.mark.rule("OBS-3")
def test_the_end_of_a_chain_and_a_surfaced_failure_are_told_apart_and_a_cancel_is_neither() -> None:
    w = world(A, B)
    gone, surfaced, cancelled = w.turn("one"), w.turn("two"), w.turn("three")
    w.fail(gone, "overloaded")
    w.fail(gone, "server_error")
    w.fail(surfaced, "refusal")
    cancelled.cancel()
    last, refused = trail(gone)[-1], trail(surfaced)[-1]
    assert (last.candidate, last.to, last.outcome) == (B, "", "chain_exhausted")
    assert (last.reason, last.left_reason) == (Failure.SERVER_ERROR, Failure.SERVER_ERROR)
    assert (refused.candidate, refused.outcome, refused.reason) == (A, "stopped", Failure.REFUSAL)
    assert trail(cancelled) == []
    assert isinstance(cancelled.step, Settled)
    assert cancelled.step.end is TurnEnd.CANCELLED


@pytest.mark.rule("OBS-3")
def test_an_ordinary_answer_leaves_no_record() -> None:
    w = world(A, B)
    turn = w.turn()
    w.answer(turn)
    assert trail(turn) == []


@pytest.mark.rule("OBS-3")
def test_a_run_that_was_out_of_time_or_went_back_to_its_owner_says_nothing_of_its_candidate() -> None:
    w = world(A, B)
    late, returned = w.turn("one"), w.turn("two")
    assert isinstance(late.deadline_passed(), Settled)
    assert isinstance(returned.report(Switched(model=D)), Settled)
    assert (trail(late), trail(returned)) == ([], [])

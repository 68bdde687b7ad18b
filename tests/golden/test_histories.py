"""Recorded histories verify, are still written byte by byte, and tell the stories that they are named for."""

from __future__ import annotations

from typing import Any

import pytest

from standby.engine.apply import apply
from standby.engine.checkpoint import dump
from standby.engine.verify import verify
from standby.engine.view import View
from standby.events import decisions as d
from standby.events.codec import decode
from standby.events.vocabulary import KeptBecause, TurnEnd
from tests.golden.histories import FOLDER, REFUSED, STORIES, read
from tests.properties.naive import Naive


def told(name: str) -> list[Any]:
    """Every decision of a recorded history, in order."""
    return [one for row in read(name) for one in decode(row.body).decisions]


def test_every_recorded_history_is_known_by_name() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == {*STORIES, *REFUSED}


@pytest.mark.invariant(11)
@pytest.mark.parametrize("name", STORIES)
def test_a_recorded_history_is_proved(name: str) -> None:
    rows = read(name)
    report = verify(rows)
    assert report.holds, report.problem
    assert report.proved == len(rows)
    naive = Naive()
    for row in rows:
        naive.see(decode(row.body))


@pytest.mark.invariant(15)
@pytest.mark.parametrize("name", STORIES)
def test_the_same_story_is_written_byte_by_byte(name: str) -> None:
    """The same facts, moments and draws give the bytes that were recorded."""
    play = STORIES[name]()
    written = [row.body.decode() for row in play.store.read()]
    assert written == [row.body.decode() for row in read(name)], (
        "decisions changed: that needs a new `logic` number; before the first release record the histories "
        "anew: python -m tests.golden.histories --again"
    )
    assert list(play.store.read()) == read(name)
    view = View()
    for row in read(name):
        apply(view, decode(row.body))
    view.hash = play.cores["main"].view.hash
    with play.cores["main"].group():
        assert dump(view) == dump(play.cores["main"].view)


POSITIONS = {
    "altered_by_a_millisecond": "decision 2 is not the one that follows from the log",
    "forged_commit": "decision",
    "impossible_fact": "turn t-1 has no attempt 9",
    "former_epoch": "runtime other wrote in epoch 1",
}


@pytest.mark.invariant(11)
@pytest.mark.parametrize("name", REFUSED)
def test_a_history_with_a_valid_chain_is_refused_by_its_position(name: str) -> None:
    rows = read(name)
    whole = list(
        (STORIES["two_runtimes"] if name == "former_epoch" else STORIES["rate_limit_wait"])().store.read()
    )
    expected = next(
        (n for n, pair in enumerate(zip(whole, rows, strict=False), 1) if pair[0] != pair[1]), len(rows)
    )
    report = verify(rows)
    assert report.refused_at == expected
    assert POSITIONS[name] in report.problem
    assert f"position {expected}" in report.problem
    assert report.commits == expected - 1


# ---- what the stories tell -----------------------------------------------------------------------------


def kinds(name: str, *shown: type[Any]) -> list[str]:
    return [type(one).__name__ for one in told(name) if isinstance(one, shown)]


def test_the_rate_limit_was_waited_for() -> None:
    (block,) = [one for one in told("rate_limit_wait") if isinstance(one, d.BlockSet)]
    (wait,) = [one for one in told("rate_limit_wait") if isinstance(one, d.RetryScheduled)]
    assert wait.until_ms == block.until_ms
    assert wait.floor_ms == 7_000
    assert kinds("rate_limit_wait", d.AttemptStarted, d.TurnAnswered) == ["AttemptStarted"] * 2 + [
        "TurnAnswered"
    ]


def test_the_empty_wallet_was_left_and_the_other_profile_pinned() -> None:
    tried = [one.profile for one in told("billing_rotation") if isinstance(one, d.AttemptStarted)]
    assert len(set(tried)) == 2
    assert tried[1] == tried[2]
    (block,) = [one for one in told("billing_rotation") if isinstance(one, d.BlockSet)]
    assert (block.kind.value, block.model) == ("disabled", "")


def test_the_fallback_was_announced_once_and_its_end_once() -> None:
    notices = [one for one in told("overload_fallback_and_return") if isinstance(one, d.NoticeDue)]
    assert [one.returned for one in notices] == [False, True]
    answered = [one.model for one in told("overload_fallback_and_return") if isinstance(one, d.TurnAnswered)]
    assert answered == ["anthropic/beta", "anthropic/beta", "openai/alpha"]


def test_the_cancelled_turns_made_no_further_attempt() -> None:
    ends = [one.end for one in told("cancelled") if isinstance(one, d.TurnFailed)]
    assert ends == [TurnEnd.CANCELLED, TurnEnd.CANCELLED]
    assert len(kinds("cancelled", d.AttemptStarted)) == 2
    assert [one.because for one in told("cancelled") if isinstance(one, d.ReportKept)] == [KeptBecause.LATE]


def test_the_dead_owners_report_was_kept() -> None:
    (kept,) = [one for one in told("taken_over") if isinstance(one, d.ReportKept)]
    assert kept.because is KeptBecause.FORMER_OWNER
    assert kinds("taken_over", d.TurnAnswered) == ["TurnAnswered"]


def test_the_fallback_stayed_first_for_half_an_hour_and_not_over_a_restart() -> None:
    first = [one.candidates[0].origin for one in told("sticky") if isinstance(one, d.ChainPlanned)]
    assert first == ["requested", "sticky", "sticky", "sticky", "requested", "requested", "requested"]
    until = [one.until_ms - one.first_ms for one in told("sticky") if isinstance(one, d.StickySet)]
    assert until[0] == 600_000
    assert max(until) == 1_800_000


def test_the_blocked_model_was_checked_near_its_end_and_not_faster_than_the_throttle() -> None:
    tried = [(one.model, one.probe) for one in told("check_in_cooldown") if isinstance(one, d.AttemptStarted)]
    assert [check for model, check in tried if model == "openai/alpha"] == [False, True, True]
    skipped = kinds("check_in_cooldown", d.CandidateSkipped)
    assert len(skipped) == 2
    assert kinds("check_in_cooldown", d.BlockCleared) == ["BlockCleared"]


def test_nothing_was_replayed_after_an_effect() -> None:
    ends = [one.end for one in told("unsafe") if isinstance(one, d.TurnFailed)]
    assert ends == [TurnEnd.UNSAFE, TurnEnd.UNSAFE]
    tried = [one.continuation for one in told("unsafe") if isinstance(one, d.AttemptStarted)]
    assert tried == [False, False, True, False]


def test_the_other_runtimes_block_was_seen() -> None:
    blocks = [one.until_ms for one in told("two_runtimes") if isinstance(one, d.BlockSet)]
    assert len(blocks) == 1, "the earlier deadline that came second shortens nothing"
    assert kinds("two_runtimes", d.CandidateSkipped) != []

"""Invariants 10, 11 and 15: the log is enough, told right from wrong, and one question has one answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standby.engine.apply import apply
from standby.engine.checkpoint import VERSION, dump, load
from standby.engine.plan import is_noop, plan
from standby.engine.verify import verify
from standby.engine.view import View
from standby.events.codec import decode, encode
from standby.events.commit import Commit, Stamp
from standby.events.errors import LogTooNew
from standby.events.facts import CallFailed, CallSucceeded, CompactionCompleted, PolicyAdopted, TurnRequested
from standby.events.policy import Policy
from standby.events.store import CheckpointRow, StoredRow
from tests.properties.play import Play, digest
from tests.properties.strategies import FOCUS, History
from tests.properties.tamper import TAMPERINGS, chained, head_of, refused, tampered

ANY = st.builds(
    History,
    policy=st.integers(0, 5),
    known_profiles=st.integers(0, 3),
    steps=st.lists(st.one_of([step for steps in FOCUS.values() for step in steps]), min_size=1, max_size=12),
)


def check_fold(history: History) -> None:
    """Live views, the fold of each prefix, and a fold that was interrupted by checkpoints are the same."""
    play = history.play()
    rows = list(play.store.read())
    whole, hopping = View(), View()
    for row, seen in zip(rows, play.digests, strict=True):
        commit = decode(row.body, row.position)
        apply(whole, commit)
        apply(hopping, commit)
        assert digest(whole) == seen
        loaded = load(CheckpointRow(row.position, row.hash, VERSION, dump(hopping)))
        assert loaded is not None
        hopping = loaded
        assert digest(hopping) == seen, f"a checkpoint at every position differs at {row.position}"
    for core in play.cores.values():
        with core.group():
            pass
        assert digest(core.view) == play.digests[-1]


def check_accepted(history: History) -> None:
    """Whatever two runtimes write is proved commit by commit, from the facts, and counted."""
    play = history.play()
    report = play.verified()
    commits = play.commits()
    assert (report.commits, report.proved, report.not_provable) == (len(commits), len(commits), [])
    assert report.decisions == sum(len(commit.decisions) for commit in commits)
    assert report.head == play.store.head()


def check_refused(history: History, name: str, at: int, how: int) -> None:
    """A log that was tampered with is refused, at the first position that differs or right after it."""
    rows = list(history.play().store.read())
    made = tampered(name, rows, at, how)
    if made is None:
        return
    report = refused(made, head_of(rows))
    assert not report.holds, f"{name} was accepted"
    first = next((n for n, pair in enumerate(zip(rows, made, strict=False), 1) if pair[0] != pair[1]), None)
    expected = first if first is not None else min(len(rows), len(made)) + 1
    assert report.refused_at == expected
    assert report.commits == expected - 1


def check_same(history: History) -> None:
    """Facts, moments and draws give the same bytes again; nothing else goes into a decision."""
    view, other = View(), View()
    for commit in history.play().commits():
        stamp = commit.stamp()
        before = dump(view)
        assert not is_noop(view, commit.fact, stamp)
        decisions = plan(view, commit.fact, stamp)
        assert dump(view) == before, "plan changed the view"
        again = plan(other, commit.fact, stamp)
        made = Commit(commit.at_ms, commit.runtime, commit.epoch, commit.entropy, commit.fact, decisions)
        assert encode(made) == encode(commit)
        assert encode(msgspec.structs.replace(made, decisions=again)) == encode(commit)
        apply(view, made)
        apply(other, commit)
        loaded = load(CheckpointRow(view.position, b"", VERSION, dump(other)))
        assert loaded is not None
        other = loaded


CHECKS: dict[int, Any] = {10: check_fold, 11: check_accepted, 15: check_same}


def holds(check: Any, **options: Any) -> None:
    settings(**options)(given(history=ANY)(check))()


@pytest.mark.invariant(10)
def test_the_log_is_enough() -> None:
    holds(check_fold)


@pytest.mark.invariant(11)
def test_what_the_system_writes_is_proved() -> None:
    holds(check_accepted)


@pytest.mark.invariant(11)
@pytest.mark.parametrize("name", sorted(TAMPERINGS))
def test_what_was_tampered_with_is_refused(name: str) -> None:
    given(history=ANY, at=st.integers(0, 200), how=st.integers(0, 4000))(
        lambda history, at, how: check_refused(history, name, at, how)
    )()


@pytest.mark.invariant(15)
def test_the_same_question_has_the_same_answer() -> None:
    holds(check_same)


@pytest.mark.invariant(15)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(history=ANY, entropy=st.integers(0, 2**32 - 1))
def test_a_draw_moves_waits_and_nothing_else(history: History, entropy: int) -> None:
    """Under another draw each commit decides the same, up to the moment at which a wait ends."""
    view = View()
    for commit in history.play().commits():
        stamp = commit.stamp()
        other = plan(view, commit.fact, Stamp(stamp.at_ms, entropy, stamp.runtime, stamp.epoch))
        assert [type(one) for one in other] == [type(one) for one in commit.decisions] or any(
            # A wait that a jitter makes too long for its window or deadline is not waited for.
            getattr(one, "reason", None) is not None
            for one in commit.decisions
        )
        for mine, stored in zip(other, commit.decisions, strict=False):
            if type(mine) is not type(stored):
                break
            moved = {"until_ms"} if type(mine).__name__ == "RetryScheduled" else set()
            for field in set(mine.__struct_fields__) - moved:
                assert getattr(mine, field) == getattr(stored, field)
        apply(view, commit)


# ---- examples that a property would not find by chance ------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> list[StoredRow]:
    play = Play()
    play.story([0, 2], wait_s=90)
    play.story([1])
    play.drain()
    return list(play.store.read())


def with_commit(rows: list[StoredRow], commit: Commit) -> list[StoredRow]:
    return chained([*(row.body for row in rows), encode(commit)])


@pytest.mark.invariant(11)
def test_a_forged_commit_at_the_end_is_refused(rows: list[StoredRow]) -> None:
    last = decode(rows[-1].body)
    compaction = CompactionCompleted(session="s", count=1)
    good = Commit(last.at_ms, last.runtime, last.epoch, 0, compaction)
    assert verify(with_commit(rows, good)).holds
    for forged, says in (
        (msgspec.structs.replace(good, epoch=9), "wrote in epoch 9"),
        (msgspec.structs.replace(good, runtime="stranger"), "stranger"),
        (msgspec.structs.replace(good, at_ms=last.at_ms - 86_400_000), "went back in time"),
        (
            msgspec.structs.replace(good, decisions=last.decisions or decode(rows[-2].body).decisions),
            "decisions",
        ),
    ):
        report = verify(with_commit(rows, forged))
        assert report.refused_at == len(rows) + 1
        assert says in report.problem


@pytest.mark.invariant(11)
def test_a_report_that_is_there_twice_is_refused_although_the_chain_fits(rows: list[StoredRow]) -> None:
    """The same report twice is one commit, so that no log of ours holds it twice."""
    seen = 0
    for index, row in enumerate(rows):
        if isinstance(decode(row.body).fact, CallFailed | CallSucceeded | TurnRequested):
            bodies = [one.body for one in rows[: index + 1]]
            report = verify(chained([*bodies, row.body]))
            assert (report.refused_at, "repeats what the log already says" in report.problem) == (
                index + 2,
                True,
            )
            seen += 1
    assert seen >= 5


@pytest.mark.invariant(11)
def test_a_log_that_goes_on_contains_the_kept_head(rows: list[StoredRow]) -> None:
    for kept in (rows[0], rows[len(rows) // 2], rows[-1]):
        assert verify(rows, head=head_of([kept])).holds
    other = head_of(rows)._replace(hash=b"\0" * 32)
    report = verify(rows, head=other)
    assert (report.refused_at, "kept head" in report.problem) == (len(rows), True)
    cut = verify(rows[:-3], head=head_of(rows))
    assert (cut.refused_at, "cut off" in cut.problem) == (len(rows) - 2, True)
    assert verify(rows[:-3]).holds, "without a head a chain shows consistency only"


@pytest.mark.invariant(11)
def test_a_checkpoint_that_the_log_does_not_give_is_refused(rows: list[StoredRow]) -> None:
    view = View()
    for row in rows[:5]:
        apply(view, decode(row.body))
    good = CheckpointRow(5, rows[4].hash, VERSION, dump(view))
    assert verify(rows, checkpoint=good, encode_view=dump).holds
    for wrong in (good._replace(body=good.body + b"x"), good._replace(hash=b"\0" * 32)):
        report = verify(rows, checkpoint=wrong, encode_view=dump)
        assert (report.refused_at, "the checkpoint at position 5" in report.problem) == (5, True)


@pytest.mark.invariant(11)
def test_a_policy_of_newer_logic_is_no_refusal_but_too_new(rows: list[StoredRow]) -> None:
    last = decode(rows[-1].body)
    newer = Commit(last.at_ms, last.runtime, last.epoch, 0, PolicyAdopted(policy=Policy(logic=99)))
    with pytest.raises(LogTooNew, match="logic 99"):
        verify(with_commit(rows, newer))

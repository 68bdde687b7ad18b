"""The core on every store: who may write, what is atomic, what is never touched."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from standby.engine.apply import LOGIC
from standby.engine.checkpoint import VERSION, dump
from standby.engine.verify import verify
from standby.events.codec import decode, encode
from standby.events.errors import BadReport, DamagedLog, LogTooNew, RuntimeEnded
from standby.events.facts import (
    CallFailed,
    CallSucceeded,
    CallUnknown,
    CompactionCompleted,
    ObservedProfile,
    PolicyAdopted,
    SubjectErased,
    TurnRequested,
)
from standby.events.memory import MemoryStore
from standby.events.policy import ModelChain, Policy
from standby.events.store import CheckpointRow, Store
from standby.events.vocabulary import Effects
from standby.hosts.core import Core, load_view
from tests.properties.play import Play

Opener = Callable[[], Store]
POLICY = Policy(models=ModelChain(primary="openai/alpha", fallbacks=("anthropic/beta",)))
START = 1_800_000_000_000


def core(store: Store, instance: str = "main") -> Core:
    return Core(store, instance=instance, clock=lambda: START, entropy=lambda: 500)


def compaction(count: int) -> CompactionCompleted:
    return CompactionCompleted(session="s", count=count)


def test_a_former_epoch_is_refused(opened: Opener) -> None:
    former = core(opened())
    former.submit(compaction(1))
    present = core(opened())
    with pytest.raises(RuntimeEnded, match="runtime main wrote in epoch 1, but its slot is in epoch 2"):
        former.submit(compaction(2))
    assert present.submit(compaction(3)) is not None
    other = core(opened(), "other")
    assert other.submit(compaction(4)) is not None
    with pytest.raises(RuntimeEnded):
        former.submit(compaction(5))
    commits = [decode(row.body) for row in opened().read()]
    assert [c.fact.count for c in commits if isinstance(c.fact, CompactionCompleted)] == [1, 3, 4]
    assert verify(opened().read()).holds


def test_two_cores_decide_on_each_others_commits(opened: Opener) -> None:
    """The head rule: each commit is decided on the whole log before it."""
    one, two = core(opened(), "one"), core(opened(), "two")
    one.submit(PolicyAdopted(policy=POLICY))
    one.observe((ObservedProfile(alias="p-1", provider="openai"),))
    commit = two.submit(TurnRequested(turn="t", session="s"))
    assert commit is not None
    assert commit.decisions[0].candidates[0].model == "openai/alpha"  # type: ignore[union-attr]  # the story made it
    assert one.submit(TurnRequested(turn="t", session="s")) is None
    assert one.view.position == two.view.position
    assert verify(opened().read()).holds


def test_a_group_is_there_wholly_or_not_at_all(opened: Opener) -> None:
    writer = core(opened())
    before = opened().head()
    with pytest.raises(BadReport, match="turn t-none is not known"), writer.group() as transaction:  # noqa: PT012 - the block is what fails
        writer.submit(compaction(1))
        writer.alias("session", "Ann", transaction)
        writer.submit(CallUnknown(turn="t-none", attempt=1, effects=Effects.NONE))
    assert opened().head() == before
    assert list(opened().side_entries()) == []
    assert writer.known_alias("session", "Ann") is None
    with writer.group() as transaction:
        writer.submit(compaction(2))
        alias = writer.alias("session", "Ann", transaction)
    assert opened().head().position == before.position + 1
    assert writer.name_of(alias) == "Ann"
    view = load_view(opened())
    assert (view.position, dump(view)) == (writer.view.position, dump(writer.view))


def test_what_makes_no_sense_is_refused_before_anything_is_written(opened: Opener) -> None:
    writer = core(opened())
    before = opened().head()
    with pytest.raises(BadReport, match="selects no model"):
        writer.submit(TurnRequested(turn="t", session="s"))
    writer.submit(PolicyAdopted(policy=POLICY))
    writer.submit(TurnRequested(turn="t", session="s"))
    with pytest.raises(BadReport, match="has no attempt 2"):
        writer.submit(CallUnknown(turn="t", attempt=2, effects=Effects.NONE))
    with pytest.raises(BadReport, match="with other words"):
        writer.submit(TurnRequested(turn="t", session="other"))
    long = Policy(models=ModelChain(primary="p/m", fallbacks=tuple(f"p/{'m' * 80}{n}" for n in range(900))))
    with pytest.raises(BadReport, match="at most 65536 are allowed"):
        writer.submit(PolicyAdopted(policy=long))
    assert opened().head().position == before.position + 2
    assert writer.submit(compaction(1)) is not None


def test_a_rebuilt_view_is_the_live_one_after_a_failed_transaction(opened: Opener) -> None:
    """Commits of a group that was rolled back must not stay in the view either."""
    writer = core(opened())
    with pytest.raises(KeyError), writer.group():  # noqa: PT012 - the block is what fails
        writer.submit(compaction(7))
        raise KeyError
    session = writer.view.sessions.get("s") if writer.submit(compaction(3)) is not None else None
    assert session is not None
    assert session.compactions == 3


def test_erasing_is_a_commit_and_takes_the_names_along(opened: Opener) -> None:
    one, two = core(opened(), "one"), core(opened(), "two")
    with one.group() as transaction:
        alias = one.alias("session", "Ann", transaction)
        text = one.text_entry("what Ann saw", alias)
        transaction.put_side_entry(text)
    assert two.known_alias("session", "Ann") == alias
    assert one.erase("session", "Ann") == 2
    assert isinstance([decode(row.body) for row in opened().read()][-1].fact, SubjectErased)
    assert (one.name_of(alias), one.text_of(text.alias)) == (alias, "")
    with two.group() as transaction:
        again = two.alias("session", "Ann", transaction)
    assert again != alias
    with pytest.raises(BadReport, match="no session 'Bob'"):
        one.erase("session", "Bob")


@pytest.mark.invariant(10)
def test_a_checkpoint_is_believed_only_where_the_log_holds_it(opened: Opener) -> None:
    writer = core(opened())
    for count in range(1, 6):
        writer.submit(compaction(count))
    view, store = writer.view, opened()
    good = CheckpointRow(view.position, view.hash, VERSION, dump(view))
    for wrong in (
        good._replace(hash=b"\0" * 32),
        good._replace(position=view.position + 10),
        good._replace(body=good.body[:-1] + b"\0"),
        good._replace(version="view 0"),
    ):
        store.save_checkpoint(wrong)
        loaded = load_view(opened())
        assert (loaded.position, loaded.hash, dump(loaded)) == (view.position, view.hash, dump(view)), wrong
    store.save_checkpoint(good._replace(position=view.position + 11, body=b""))
    assert core(opened()).submit(compaction(9)) is not None
    assert verify(opened().read()).holds


@pytest.mark.invariant(10)
def test_a_core_from_a_checkpoint_goes_on_like_one_from_the_whole_log(opened: Opener) -> None:
    writer = core(opened())
    writer.submit(PolicyAdopted(policy=POLICY))
    writer.submit(TurnRequested(turn="t", session="s"))
    writer.checkpoint()
    writer.submit(compaction(1))
    fresh = load_view(opened())
    whole = load_view(opened(), checkpointed=False)
    assert dump(fresh) == dump(whole) == dump(writer.view)


def with_newer_logic(store: Store) -> None:
    writer = core(store)
    body = msgspec.json.decode(
        encode(
            msgspec.structs.replace(
                decode(next(iter(store.read())).body), fact=PolicyAdopted(policy=Policy(logic=LOGIC + 1))
            )
        )
    )
    with store.transaction() as transaction:
        transaction.append(msgspec.json.encode(body))
    assert writer.view.position == 1


def test_opening_a_log_of_newer_logic_touches_nothing(opened: Opener) -> None:
    with_newer_logic(opened())
    before = list(opened().read())
    with pytest.raises(LogTooNew, match=f"decision logic {LOGIC + 1}"):
        core(opened())
    with pytest.raises(LogTooNew):
        verify(opened().read())
    assert list(opened().read()) == before


def test_opening_a_log_of_a_newer_shape_touches_nothing(opened: Opener) -> None:
    store = opened()
    core(store)
    with store.transaction() as transaction:
        transaction.append(b'{"at_ms":1,"shape":99,"anything":[]}')
    before = list(store.read())
    with pytest.raises(LogTooNew, match="position 2 is of shape 99"):
        core(opened())
    with pytest.raises(LogTooNew, match="position 2 is of shape 99"):
        verify(opened().read())
    assert list(opened().read()) == before


def test_a_policy_of_newer_logic_is_not_adopted(opened: Opener) -> None:
    writer = core(opened())
    before = opened().head()
    with pytest.raises(LogTooNew, match="use a newer standby"):
        writer.adopt(Policy(logic=LOGIC + 1))
    assert opened().head() == before


def test_a_damaged_memory_log_is_named_by_position() -> None:
    store = MemoryStore()
    writer = core(store)
    for count in range(1, 6):
        writer.submit(compaction(count))
    store.rows[3] = store.rows[3]._replace(body=store.rows[3].body.replace(b"count", b"cuont"))
    with pytest.raises(DamagedLog, match="position 4 ") as caught:
        core(store)
    assert caught.value.position == 4


def test_moments_never_fall_within_a_runtime(opened: Opener) -> None:
    """A clock that is set back does not show in the log."""
    timestamps = iter([START, START + 5, START - 1_000, START + 2, START + 9])
    writer = Core(opened(), instance="main", clock=lambda: next(timestamps), entropy=lambda: 0)
    for count in range(1, 5):
        writer.submit(compaction(count))
    stamped = [decode(row.body).at_ms - START for row in opened().read()]
    assert stamped == [0, 5, 5, 5, 9]


@pytest.mark.invariant(11)
def test_a_long_story_is_the_same_on_every_store(opened: Opener) -> None:
    """The same facts at the same moments give the same bytes, whatever keeps them."""
    here, there = Play(opened()), Play(MemoryStore())
    for play in (here, there):
        for number in range(6):
            play.story([0, number, 1], session=number, instance=number, wait_s=30, pause=700)
            play.restart(number, checkpoint=bool(number % 2))
        play.drain()
        assert any(isinstance(commit.fact, CallFailed) for commit in play.commits())
    assert list(here.store.read()) == list(there.store.read())
    assert here.verified().commits == len(here.digests)


def test_a_checkpoint_after_the_end_of_the_log_is_refused(opened: Opener) -> None:
    store = opened()
    with Core(store, instance="main") as core:
        view = core.view
        row = CheckpointRow(view.position + 3, view.hash, VERSION, dump(view))
        report = verify(store.read(), checkpoint=row, encode_view=dump)
    assert report.refused_at == view.position + 1
    assert "after the log's end" in report.problem


def test_a_refused_report_costs_no_second_reading_of_the_log(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Core(opened(), instance="main") as core:
        view = core.view
        with pytest.raises(BadReport):
            core.submit(CallSucceeded(turn="t-none", attempt=1, started_ms=1, effects=Effects.NONE))
        core.adopt(Policy(models=ModelChain(primary="openai/alpha")))
        assert core.view is view
        with pytest.raises(RuntimeError), core.group():  # noqa: PT012 - the block is what fails
            core.adopt(Policy(models=ModelChain(primary="openai/beta")))
            raise RuntimeError("the caller fails")
        core.adopt(Policy(models=ModelChain(primary="openai/gamma")))
        assert core.view is not view
        assert core.view.policy().models.primary == "openai/gamma"
        assert verify(core.store.read()).holds

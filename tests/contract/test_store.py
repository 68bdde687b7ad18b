"""What every store promises: transactions, tails, appends, the side table, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standby.events.codec import GENESIS, link
from standby.events.names import SideEntry, alias_for
from standby.events.store import START, CheckpointRow, Head, Store

Opener = Callable[[], Store]


class Broken(Exception):
    pass


def fill(store: Store, *bodies: bytes) -> None:
    with store.transaction() as transaction:
        for body in bodies:
            transaction.append(body)


def name(text: str, kind: str = "session") -> SideEntry:
    alias = alias_for(kind, b"salt", text)
    return SideEntry(alias, kind, alias, b"salt", text)


def test_an_empty_log_begins_at_genesis(store: Store) -> None:
    assert store.head() == START == Head(0, GENESIS)
    assert list(store.read()) == []
    assert store.checkpoint() is None


def test_rows_are_dense_chained_and_come_back_as_given(store: Store) -> None:
    bodies = [b"{}", b"\x00\xff raw", b"x" * 70_000, b""]
    fill(store, *bodies[:2])
    fill(store, *bodies[2:])
    previous = GENESIS
    rows = list(store.read())
    assert [row.body for row in rows] == bodies
    for position, row in enumerate(rows, 1):
        assert row.position == position
        assert row.hash == link(previous, row.body)
        previous = row.hash
    assert store.head() == Head(4, previous)


def test_a_tail_misses_nothing_and_sees_what_was_appended(store: Store) -> None:
    fill(store, b"1", b"2", b"3")
    for after in range(4):
        assert [row.body for row in store.read(after)] == [b"1", b"2", b"3"][after:]
    with store.transaction() as transaction:
        assert [row.position for row in transaction.tail(1)] == [2, 3]
        added = transaction.append(b"4")
        assert added.position == 4
        assert [row.position for row in transaction.tail(1)] == [2, 3, 4]
        assert list(transaction.tail(4)) == []


def test_nobody_sees_a_transaction_before_its_end(opened: Opener) -> None:
    store = opened()
    fill(store, b"1")
    with store.transaction() as transaction:
        transaction.append(b"2")
        assert [row.body for row in store.read()] == [b"1"]
    assert [row.body for row in store.read()] == [b"1", b"2"]


def test_a_rollback_leaves_nothing(opened: Opener) -> None:
    store = opened()
    fill(store, b"1")
    before = (store.head(), list(store.read()))
    with pytest.raises(Broken), store.transaction() as transaction:  # noqa: PT012 - the block is what fails
        transaction.append(b"2")
        transaction.append(b"3")
        transaction.put_side_entry(name("gone"))
        raise Broken
    again = opened()
    assert (again.head(), list(again.read())) == before
    assert again.side_entry(name("gone").alias) is None
    fill(store, b"4")
    assert [row.body for row in again.read()] == [b"1", b"4"]


def test_an_erasure_that_is_rolled_back_erases_nothing(store: Store) -> None:
    kept = name("kept")
    with store.transaction() as transaction:
        transaction.put_side_entry(kept)
    with pytest.raises(Broken), store.transaction() as transaction:  # noqa: PT012 - the block is what fails
        assert transaction.erase(kept.alias) == 1
        raise Broken
    assert store.side_entry(kept.alias) == kept


def test_the_side_table_is_written_with_the_commits(opened: Opener) -> None:
    store = opened()
    with store.transaction() as transaction:
        assert transaction.alias("session", "Ann") is None
        transaction.append(b"1")
        transaction.put_side_entry(name("Ann"))
        assert transaction.alias("session", "Ann") == name("Ann").alias
        assert transaction.alias("profile", "Ann") is None
    again = opened()
    assert again.side_entry(name("Ann").alias) == name("Ann")
    assert list(again.side_entries()) == [name("Ann")]
    with again.transaction() as transaction:
        assert transaction.alias("session", "Ann") == name("Ann").alias


def test_a_text_is_no_name(store: Store) -> None:
    """Two failures with the same words have an alias each: a text is never looked up by its words."""
    with store.transaction() as transaction:
        transaction.put_side_entry(name("boom", "text"))
        assert transaction.alias("text", "boom") is None
    with store.transaction() as transaction:
        assert transaction.alias("text", "boom") is None


def test_erasing_takes_a_subject_and_all_that_belongs_to_it(opened: Opener) -> None:
    store = opened()
    ann, bob = name("Ann"), name("Bob")
    text = SideEntry(alias_for("text", b"1", "words"), "text", ann.alias, b"1", "words")
    with store.transaction() as transaction:
        for side_entry in (ann, bob, text):
            transaction.put_side_entry(side_entry)
    with store.transaction() as transaction:
        assert transaction.erase(ann.alias) == 2
        assert transaction.erase("s-nobody") == 0
    again = opened()
    assert list(again.side_entries()) == [bob]
    with again.transaction() as transaction:
        assert transaction.alias("session", "Ann") is None
        assert transaction.alias("session", "Bob") == bob.alias


def test_the_newest_checkpoint_is_given_back(opened: Opener) -> None:
    store = opened()
    fill(store, b"1", b"2", b"3")
    for position in (1, 2, 3):
        store.save_checkpoint(CheckpointRow(position, bytes([position]), "v", b"state %d" % position))
    assert opened().checkpoint() == CheckpointRow(3, b"\x03", "v", b"state 3")


def test_a_closed_log_has_lost_nothing(opened: Opener) -> None:
    store = opened()
    fill(store, b"1", b"2")
    store.close()
    assert [row.body for row in opened().read()] == [b"1", b"2"]


def test_four_threads_append_densely(opened: Opener) -> None:
    """The head rule: under the lock each writer sees all that was committed, and takes the next position."""
    each, start = 40, Barrier(4)
    wrong: list[str] = []

    def write(number: int) -> None:
        store = opened()
        start.wait()
        seen = 0
        for turn in range(each):
            with store.transaction() as transaction:
                tail = [row.position for row in transaction.tail(seen)]
                if tail != list(range(seen + 1, seen + 1 + len(tail))):
                    wrong.append(f"{number} saw {tail} after {seen}")
                seen = transaction.append(b"%d %d" % (number, turn)).position
                if tail and seen != tail[-1] + 1:
                    wrong.append(f"{number} appended at {seen} after {tail[-1]}")

    threads = [Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    rows = list(opened().read())
    assert [row.position for row in rows] == list(range(1, 4 * each + 1))
    assert {row.body for row in rows} == {b"%d %d" % (n, t) for n in range(4) for t in range(each)}


def test_a_transaction_sees_its_own_erasures(opened: Opener) -> None:
    """A name that is erased and comes again in one transaction is there afterwards, under its new alias."""
    store = opened()
    old, new = name("Ann"), SideEntry("s-new", "session", "s-new", b"other", "Ann")
    with store.transaction() as transaction:
        transaction.put_side_entry(old)
    with store.transaction() as transaction:
        transaction.put_side_entry(SideEntry("t-fresh", "text", old.alias, b"", "fresh"))
        assert transaction.erase(old.alias) == 2
        assert transaction.erase(old.alias) == 0
        assert transaction.alias("session", "Ann") is None
        transaction.put_side_entry(new)
        assert transaction.alias("session", "Ann") == "s-new"
    again = opened()
    assert list(again.side_entries()) == [new]
    with again.transaction() as transaction:
        assert transaction.alias("session", "Ann") == "s-new"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(groups=st.lists(st.tuples(st.lists(st.binary(max_size=40), max_size=4), st.booleans()), max_size=8))
def test_stores_agree_with_a_list(opened: Opener, groups: list[tuple[list[bytes], bool]]) -> None:
    """Any sequence of transactions, kept or rolled back, gives the rows that a plain list would."""
    store = opened()
    expected = [row.body for row in store.read()]
    for bodies, kept in groups:
        try:
            with store.transaction() as transaction:
                for body in bodies:
                    transaction.append(body)
                if not kept:
                    raise Broken
        except Broken:
            continue
        expected += bodies
    rows = list(store.read())
    assert [row.body for row in rows] == expected
    assert [row.position for row in rows] == list(range(1, len(expected) + 1))
    assert store.head() == (Head(rows[-1].position, rows[-1].hash) if rows else START)

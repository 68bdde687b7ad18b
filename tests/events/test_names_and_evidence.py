"""Aliases say nothing without their salt; evidence is bounded whatever a provider sends."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.engine.reading.extract import Reply, extract
from standby.events.codec import COMMIT_LIMIT, encode
from standby.events.commit import Commit
from standby.events.evidence import worst
from standby.events.facts import CallFailed
from standby.events.names import KINDS, SideEntry, alias_for
from standby.events.vocabulary import Effects

KIND = st.sampled_from(sorted(KINDS))


def entry(kind: str, salt: bytes, text: str) -> SideEntry:
    if kind == "text":
        return SideEntry(alias_for(kind, salt, text, "s-x"), kind, "s-x", salt, text)
    alias = alias_for(kind, salt, text)
    return SideEntry(alias, kind, alias, salt, text)


@given(kind=KIND, salt=st.binary(min_size=16, max_size=16), text=st.text())
def test_an_alias_is_of_its_kind_and_holds_its_text(kind: str, salt: bytes, text: str) -> None:
    side_entry = entry(kind, salt, text)
    assert re.fullmatch(rf"{KINDS[kind]}-[0-9a-f]{{24}}", side_entry.alias)
    assert side_entry.intact()


@given(kind=KIND, salt=st.binary(min_size=16, max_size=16), text=st.text(), other=st.text())
def test_an_altered_text_salt_or_kind_is_seen(kind: str, salt: bytes, text: str, other: str) -> None:
    side_entry = entry(kind, salt, text)
    assert side_entry._replace(text=other).intact() == (other == text)
    assert not side_entry._replace(salt=salt[:-1] + bytes([salt[-1] ^ 1])).intact()
    assert not side_entry._replace(kind="text" if kind != "text" else "session").intact()
    assert not side_entry._replace(subject="s-y").intact()
    assert not side_entry._replace(kind="zzz").intact()
    assert not side_entry._replace(salt="abc").intact()


@given(text=st.text(), one=st.binary(min_size=16, max_size=16), two=st.binary(min_size=16, max_size=16))
def test_the_same_text_under_another_salt_has_another_alias(text: str, one: bytes, two: bytes) -> None:
    assert (alias_for("text", one, text) == alias_for("text", two, text)) == (one == two)


def test_a_session_and_a_profile_of_one_name_have_nothing_in_common() -> None:
    digests = {alias_for(kind, b"salt", "Ann")[2:] for kind in KINDS}
    assert len(digests) == len(KINDS)


def test_a_lone_surrogate_in_a_name_is_no_error() -> None:
    assert entry("session", b"salt", "\ud800").intact()


@pytest.mark.parametrize("one", Effects)
@pytest.mark.parametrize("other", Effects)
def test_of_two_claims_the_worse_stands(one: Effects, other: Effects) -> None:
    rank = [Effects.NONE, Effects.POSSIBLE, Effects.COMMITTED]
    assert worst(one, other) is max(one, other, key=rank.index)


BODY = st.one_of(
    st.text(max_size=6000),
    st.binary(max_size=6000),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=20), inner, max_size=6),
        max_leaves=40,
    ),
)  # fmt: skip


@given(
    body=BODY,
    message=st.none() | st.text(max_size=4000),
    status=st.none() | st.integers(-1, 700),
    code=st.none() | st.text(max_size=400),
    limit=st.sampled_from([0, 1, 7, 256, 2048]),
)
def test_evidence_of_any_reply_is_bounded(
    body: object, message: str | None, status: int | None, code: str | None, limit: int
) -> None:
    """Never an exception; the kept text fits its limit in whole characters, and the event fits a commit."""
    found = extract(
        Reply(provider="openai", model="openai/alpha", status=status, code=code, body=body, message=message),
        limit_bytes=limit,
    )
    assert len(found.text.encode()) <= limit
    evidence = found.evidence
    assert evidence.text == ""
    assert max(map(len, (evidence.code, evidence.error_type, evidence.param)), default=0) <= 100
    assert len(evidence.tokens) <= 16
    fact = CallFailed(turn="t", attempt=1, started_ms=0, received_ms=0, evidence=evidence, effects=Effects.NONE)
    assert len(encode(Commit(1, "r", 1, 0, fact))) < COMMIT_LIMIT / 4


@pytest.mark.parametrize("size", [1_000, 100_000, 2_000_000])
def test_a_huge_reply_leaves_little_behind(size: int) -> None:
    found = extract(Reply(status=429, body="Rate limit reached. " + "é" * size + " try again in 7s"))
    assert len(found.text.encode()) <= 2048
    assert found.evidence.size >= size
    assert [wait.ms for wait in found.evidence.waits] == [7_000]


def test_no_text_is_kept_where_none_is_wanted_and_the_reading_is_the_same() -> None:
    reply = Reply(status=429, body='{"error": {"message": "Rate limit reached, try again in 7s"}}')
    kept, withheld = extract(reply), extract(reply, limit_bytes=0)
    assert kept.text
    assert withheld.text == ""
    assert kept.evidence == withheld.evidence

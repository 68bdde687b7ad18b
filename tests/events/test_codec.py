"""The codec is canonical, the chain is over stored bytes, and old shapes are read."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standby.events import codec
from standby.events.codec import GENESIS, decode, encode, link
from standby.events.commit import SHAPE, Commit
from standby.events.errors import DamagedLog, LogTooNew
from standby.events.facts import PolicyAdopted, RuntimeStarted, WaitEnded
from standby.events.policy import ModelChain, Policy, ProfileRule
from standby.events.upcasters import UPCASTERS, upcast
from tests.events.samples import KINDS, commits, sample_commit


@pytest.mark.invariant(15)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(commit=commits())
def test_any_commit_comes_back_as_the_same_value_and_the_same_bytes(commit: Commit) -> None:
    body = encode(commit)
    again = decode(body)
    assert again == commit
    assert encode(again) == body
    assert again.stamp() == commit.stamp()


@given(names=st.lists(st.text(max_size=5), unique=True, min_size=2, max_size=6), data=st.data())
def test_the_order_in_which_a_mapping_was_filled_leaves_no_trace(names: list[str], data: Any) -> None:
    def policy(order: list[str]) -> Commit:
        rules = {name: ProfileRule(provider=f"p-{name}") for name in order}
        return Commit(1, "r", 1, 0, PolicyAdopted(policy=Policy(profiles=rules)))

    shuffled = data.draw(st.permutations(names))
    assert encode(policy(names)) == encode(policy(shuffled))


PRINT = """
from hashlib import sha256
from standby.events.codec import encode
from tests.events.samples import KINDS, sample_commit
from tests.properties.play import Play
play = Play(policy=0)
for number in range(5):
    play.story([0, number, 2], session=number, instance=number, wait_s=45)
play.drain()
digest = sha256()
for tag in sorted(KINDS):
    digest.update(encode(sample_commit(tag)))
for row in play.store.read():
    digest.update(row.body)
for one in play.digests:
    digest.update(one)
print(digest.hexdigest())
"""


@pytest.mark.invariant(15)
def test_bytes_and_views_are_the_same_under_any_hash_seed() -> None:
    """Encoded commits, decisions of a story, and the folded views after each commit."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PRINT],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
        )
        for seed in ("0", "1", "4711")
    ]
    printed = {process.communicate(timeout=60)[0] for process in processes}
    assert len(printed) == 1
    assert len(printed.pop().strip()) == 64


@pytest.mark.parametrize("tag", sorted(KINDS))
def test_defaults_are_left_out_and_numbers_are_integers(tag: str) -> None:
    plain = msgspec.json.decode(encode(sample_commit(tag)))
    assert "shape" not in plain

    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [n for one in value.values() for n in numbers(one)]
        if isinstance(value, list):
            return [n for one in value for n in numbers(one)]
        return [value] if isinstance(value, float) else []

    assert numbers(plain) == []
    bare = Commit(1, "r", 1, 0, WaitEnded(turn="t"))
    assert (
        encode(bare)
        == b'{"at_ms":1,"runtime":"r","epoch":1,"entropy":0,"fact":{"type":"wait_ended","turn":"t"}}'
    )


def test_the_chain_begins_with_the_name_of_the_format() -> None:
    assert GENESIS.hex() == sha256(b"standby log, format 1").hexdigest()
    first = link(GENESIS, b"a")
    assert first == sha256(GENESIS + b"a").digest()
    assert link(first, b"b") != link(GENESIS, b"b")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"at_ms":1}',
        b'{"at_ms":1.5,"runtime":"r","epoch":1,"entropy":0,"fact":{"type":"wait_ended","turn":"t"}}',
        b'{"at_ms":1,"runtime":"r","epoch":1,"entropy":0,"fact":{"type":"no_such_fact","turn":"t"}}',
        b'{"at_ms":1,"runtime":"r","epoch":1,"entropy":0,"fact":{"type":"wait_ended","turn":"t","more":1}}',
        b'{"at_ms":1,"runtime":"r","epoch":1,"entropy":0,"fact":{"type":"wait_ended","turn":"t"},"shape":0}',
    ],
)
def test_what_is_no_commit_is_damaged_and_named(body: bytes) -> None:
    with pytest.raises(DamagedLog, match="position 41 ") as caught:
        decode(body, 41)
    assert caught.value.position == 41


def test_a_newer_shape_is_too_new_and_named() -> None:
    body = b'{"shape":%d,"whatever":true}' % (SHAPE + 1)
    with pytest.raises(LogTooNew, match=f"position 7 is of shape {SHAPE + 1}, this version reads shapes up to"):
        decode(body, 7)


# ---- older shapes --------------------------------------------------------------------------------------
# There is none yet, so two are made up: shape -1 said `moment` for `at_ms` and `slot` for `runtime`, and a step
# later shape 0 still said `slot`.


def _from_nought(plain: dict[str, Any]) -> dict[str, Any]:
    plain["at_ms"] = plain.pop("timestamp")
    return plain


def _from_one(plain: dict[str, Any]) -> dict[str, Any]:
    plain["runtime"] = plain.pop("instance")
    return plain


REST = (
    b'"instance":"r","epoch":1,"entropy":9,"fact":{"type":"runtime_started","instance":"r","epoch":1},"shape":'
)
OLD, LESS_OLD = b'{"timestamp":5,' + REST + b"0}", b'{"at_ms":5,' + REST + b"1}"


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPCASTERS, 0, _from_nought)
    monkeypatch.setitem(UPCASTERS, 1, _from_one)


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize("body", [OLD, LESS_OLD])
def test_old_shapes_are_brought_to_the_present_one_step_by_step(body: bytes) -> None:
    assert decode(body) == Commit(5, "r", 1, 9, RuntimeStarted(instance="r", epoch=1), shape=SHAPE)


@pytest.mark.usefixtures("older")
def test_the_chain_is_over_the_old_bytes() -> None:
    """Upcasting changes a decoded copy only: hash and verification go by what was stored."""
    from standby.engine.verify import verify
    from standby.events.store import StoredRow

    report = verify([StoredRow(1, OLD, link(GENESIS, OLD))])
    assert report.holds, report.problem
    assert not verify([StoredRow(1, encode(decode(OLD)), link(GENESIS, OLD))]).holds


def test_an_old_shape_without_its_upcaster_is_damaged() -> None:
    with pytest.raises(DamagedLog, match="position 3 is of shape 0, which no version ever wrote"):
        decode(OLD, 3)


def test_a_shape_of_the_future_is_upcast_from_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the day when the next shape comes, commits of this one are upcast, though they could be read."""
    monkeypatch.setattr(codec, "SHAPE", SHAPE + 1)
    monkeypatch.setitem(UPCASTERS, SHAPE, lambda plain: {**plain, "entropy": plain["entropy"] + 1})
    stored = encode(Commit(5, "r", 1, 9, WaitEnded(turn="t")))
    assert decode(stored) == Commit(5, "r", 1, 10, WaitEnded(turn="t"), shape=SHAPE + 1)


def test_upcast_says_the_shape_that_it_reached() -> None:
    assert upcast({"a": 1}, SHAPE) == {"a": 1, "shape": SHAPE}


def test_a_policy_in_the_log_reads_like_json_for_people() -> None:
    body = encode(Commit(1, "r", 1, 0, PolicyAdopted(policy=Policy(models=ModelChain(primary="openai/alpha")))))
    assert b'"policy":{"models":{"primary":"openai/alpha"}}' in body

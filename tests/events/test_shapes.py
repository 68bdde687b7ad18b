"""What a log may hold only grows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from standby.events.codec import decode, encode
from tests.events import pin
from tests.events.samples import KINDS, sample_commit


def test_nothing_that_was_pinned_is_lost() -> None:
    assert pin.lost(pin.now(), pin.pinned()) == []


def test_everything_new_is_pinned() -> None:
    assert pin.new(pin.now(), pin.pinned()) == [], "say: python -m tests.events.pin"


def _rename_tag(shapes: pin.Shapes) -> None:
    shapes["tags"]["type=turn_asked"] = shapes["tags"].pop("type=turn_requested")


def _drop_field(shapes: pin.Shapes) -> None:
    del shapes["structs"]["BlockSet"]["until_ms"]


def _retype_field(shapes: pin.Shapes) -> None:
    shapes["structs"]["BlockSet"]["until_ms"] = "str"


def _drop_value(shapes: pin.Shapes) -> None:
    shapes["enums"]["Failure"].remove("billing")


def _new_without_default(shapes: pin.Shapes) -> None:
    shapes["structs"]["WaitEnded"]["timestamp"] = "int"


def _drop_struct(shapes: pin.Shapes) -> None:
    del shapes["structs"]["Usage"]


def _older_format(shapes: pin.Shapes) -> None:
    shapes["shape"]["newest"] = 0


@pytest.mark.parametrize(
    "change",
    [_rename_tag, _drop_field, _retype_field, _drop_value, _new_without_default, _drop_struct, _older_format],
)
def test_each_kind_of_loss_is_seen(change: Callable[[pin.Shapes], None]) -> None:
    code = copy.deepcopy(pin.pinned())
    change(code)
    assert len(pin.lost(code, pin.pinned())) == 1


def test_growth_is_seen_as_such() -> None:
    code = copy.deepcopy(pin.pinned())
    code["structs"]["WaitEnded"]["timestamp"] = "optional int"
    code["enums"]["Failure"].append("bored")
    code["tags"]["type=yawned"] = "Yawned"
    code["structs"]["Yawned"] = {"turn": "str"}
    assert pin.lost(code, pin.pinned()) == []
    assert pin.new(code, pin.pinned()) == ["tag type=yawned", "WaitEnded.timestamp", "Yawned", "Failure.bored"]


def test_every_fact_and_decision_has_pinned_bytes() -> None:
    assert set(pin.stored()) == set(KINDS), "say: python -m tests.events.pin"


@pytest.mark.parametrize("tag", sorted(pin.stored()))
def test_pinned_bytes_are_read_and_written_as_ever(tag: str) -> None:
    """Bytes from when the tag was new still decode, to what they said, and encode to themselves."""
    body = pin.stored()[tag].encode()
    commit = decode(body)
    assert encode(commit) == body
    event = commit.decisions[0] if commit.decisions else commit.fact
    assert type(event) is KINDS[tag]
    # Fields that came later were not written then; all others say what the sample says today.
    assert within(msgspec.json.decode(body), msgspec.json.decode(encode(sample_commit(tag))))


def within(old: Any, today: Any) -> bool:
    """Whether everything that `old` says stands in `today`, too."""
    if isinstance(old, dict):
        return all(key in today and within(value, today[key]) for key, value in old.items())
    if isinstance(old, list):
        return len(old) == len(today) and all(map(within, old, today))
    return bool(old == today)

"""Moments and lengths of time, as people write and read them."""

import pytest

from standby.events.errors import BadInput
from standby.hosts.cli.output import clean, local_time, span, timed, utc_time
from standby.hosts.cli.reading import length_ms, timestamp_ms

NOW = 1_800_000_000_123


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10m", 600_000),
        ("2h30m", 9_000_000),
        ("1d", 86_400_000),
        ("500ms", 500),
        ("5 min", 300_000),
        ("3s", 3000),
    ],
)
def test_lengths(text: str, ms: int) -> None:
    assert length_ms(text) == ms
    assert timestamp_ms(text, NOW) == NOW - ms
    assert timestamp_ms(text + " ago", NOW) == NOW - ms


@pytest.mark.parametrize("text", ["", "m", "10", "10x", "10m!", "-3s", "tomorrow", "2026-13-01", "25:00"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(BadInput, match="is no moment"):
        timestamp_ms(text, NOW)


def test_moments_come_back_as_they_are_shown() -> None:
    assert timestamp_ms(local_time(NOW), NOW) == NOW
    assert timestamp_ms(utc_time(NOW), NOW) == NOW
    assert timestamp_ms(str(NOW)) == NOW
    assert utc_time(NOW) == "2027-01-15T08:00:00.123Z"
    assert timestamp_ms(local_time(NOW)[11:23], NOW) == NOW
    assert local_time(10**18) == f"{10**18} ms"
    assert local_time(None) == "-"


def test_spans() -> None:
    assert [span(ms) for ms in (0, 999, 1000, 1500, 59_999, 60_000, 3_600_000, 200_000_000)] == [
        "0 ms", "999 ms", "1 s", "1.5 s", "59.999 s", "1 min 0 s", "1 h 0 min", "2 d 7 h",
    ]  # fmt: skip


def test_json_has_moments_twice_and_lengths_once() -> None:
    assert timed({"a": [{"until_ms": 1000, "timeout_ms": 5}]}) == {
        "a": [{"until_ms": 1000, "until": "1970-01-01T00:00:01.000Z", "timeout_ms": 5}]
    }
    assert timed({"until_ms": None}) == {"until_ms": None}


def test_control_characters_are_shown() -> None:
    assert clean("a\x1b[0m\r\n\t\x9b\u202eé") == "a\\x1b[0m\\r\\n\\t\\x9b\\u202eé"

"""What the environment sets (SKIP-1)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.hosts.settings import parse_settings, with_environment

VARIABLE = "OPENCLAW_FALLBACK_SKIP_TTL_MS"
CASES = {
    "": 0,
    "0": 0,
    "000": 0,
    "1": 1000,
    "500": 1000,
    "999": 1000,
    "1000": 1000,
    "1001": 1001,
    " 60000 ": 60_000,
    "\t0060000\n": 60_000,
    "600000": 600_000,
    "600001": 600_000,
    "9" * 5000: 600_000,
    "1.5": 0,
    "-1": 0,
    "+5": 0,
    "1e3": 0,
    "1_000": 0,
    "60 000": 0,
    "٥٠٠٠": 0,
    "on": 0,
}
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "scenarios.jsonl"


def ttl(value: str) -> int:
    return with_environment(parse_settings(""), {VARIABLE: value}).policy.skip_ttl_ms


@pytest.mark.rule("SKIP-1")
@pytest.mark.parametrize("value", CASES)
def test_the_skip_cache_is_switched_by_the_environment(value: str) -> None:
    assert ttl(value) == CASES[value]


@pytest.mark.rule("SKIP-1")
@given(st.text(max_size=12))
def test_whatever_it_holds_the_time_is_off_or_in_bounds(value: str) -> None:
    found = ttl(value)
    assert found == 0 or 1000 <= found <= 600_000


@pytest.mark.rule("SKIP-1")
def test_it_beats_the_file_when_it_says_something() -> None:
    settings = parse_settings("standby.skipTtlMs = 5000")
    assert with_environment(settings, {}) == settings
    assert with_environment(settings, {VARIABLE: " "}) == settings
    assert with_environment(settings, {VARIABLE: "0"}).policy.skip_ttl_ms == 0
    assert with_environment(settings, {VARIABLE: "7000"}).policy.skip_ttl_ms == 7000


def test_what_is_no_number_is_said() -> None:
    settings = with_environment(parse_settings(""), {VARIABLE: "one minute"})
    assert [warning.split(" is ")[0] for warning in settings.warnings] == [
        f"the environment variable {VARIABLE}"
    ]
    assert with_environment(parse_settings(""), {VARIABLE: "5000"}).warnings == ()


@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded cases are not here")
def test_recorded_cases() -> None:
    cases = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    recorded = {
        case["input"]["value"]: case["expected"]["new"]["ttlMs"] for case in cases if case["kind"] == "skip_ttl"
    }
    assert len(recorded) == 6
    assert {value: ttl(value) for value in recorded} == recorded

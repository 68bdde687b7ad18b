"""Every recorded failure is read as recorded, or stands here with the rule that contradicts it."""

import json
from collections import Counter

import pytest

from standby.engine.classify.classifier import effective_wait, status_of
from standby.engine.reading.extract import Reply, extract
from standby.events.vocabulary import Failure
from tests.classify.cases import DATA, Case, is_read, load, reading_of, said, wait_of

CASES = load("failures_recorded.jsonl")

CONTRADICTED = {
    # The record lost the error type that decided these: the same words are read once as a server error, once as
    # overload and once as nothing. "Not available" alone says nothing about the model.
    "new-0225": ("CLS-21", None),
    "new-0229": ("CLS-21", None),
    # Here too the type is missing, and two words without any other evidence name no class.
    "new-0308": ("CLS-16", None),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_failure(case: Case) -> None:
    reading = reading_of(case)
    if case["id"] in CONTRADICTED:
        assert said(reading) == CONTRADICTED[case["id"]][1]
        assert not is_read(case, reading), "no longer contradicted: take it off the list"
        return
    assert is_read(case, reading), f"{said(reading)} by {reading.row} {reading.matched}"
    if (wait := wait_of(case)) is not None:
        assert reading.retry_after_ms == wait


def test_number_of_recorded_and_contradicted_failures(capsys: pytest.CaptureFixture[str]) -> None:
    rulesets = Counter(case["ruleset"] for case in CASES)
    assert rulesets == {"2026-10": 238, "2026-04": 183}
    rules = Counter(rule for rule, _ in CONTRADICTED.values())
    with capsys.disabled():
        listed = ", ".join(f"{rule}: {number}" for rule, number in sorted(rules.items()))
        print(f"\n{len(CASES)} recorded failures, {len(CONTRADICTED)} contradicted by a rule ({listed})")


def test_every_stated_wait_is_read_to_the_millisecond() -> None:
    stated = [case for case in CASES if wait_of(case) is not None]
    assert len(stated) == 6
    assert {c["id"]: reading_of(c).retry_after_ms for c in stated} == {c["id"]: wait_of(c) for c in stated}


def test_shipped_cases_equal_the_recorded_ones() -> None:
    corpus = DATA.parents[2] / "shared" / "corpus" / "failures.jsonl"
    if not corpus.exists():
        pytest.skip("the recorded cases are not beside this checkout")
    recorded = {row["id"]: row for row in map(json.loads, corpus.read_text("utf-8").splitlines())}
    shipped = {case["id"]: case for case in CASES}
    assert shipped.keys() == recorded.keys()
    for id, case in shipped.items():
        row = recorded[id]
        assert [case.get(name) for name in ("provider", "status", "code", "body", "reason")] == [
            row[name] for name in ("provider", "status", "code", "body", "reason")
        ]


# Timing cases of the recorded scenarios: (id, text, headers, milliseconds). What a document says goes before
# what the released code answered, and OURS-4 before both (s-0131: a fraction of a second is a wait).
NOW_MS = 1_700_000_000_000
RETRY_TIMING = [
    ("s-0119", "Rate limit reached for gpt-x. Please try again in 6s.", {}, 6_000),
    ("s-0120", "Please try again in 3.5s.", {}, 3_500),
    ("s-0121", "Please try again in 320ms", {}, 320),
    ("s-0123", "Please retry in 32s", {}, 32_000),
    ("s-0124", "Please retry in 32.812s.", {}, 32_812),
    ("s-0125", "429", {"retry-after": "17"}, 17_000),
    ("s-0126", "429", {"retry-after": "0"}, 0),
    ("s-0130", "429", {"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0),
    ("s-0131", "429", {"retry-after": "1.5"}, 1_500),
    ("s-0132", "429", {"retry-after": "soon"}, None),
    ("s-0135", "Please try again in 6s", {"retry-after": "20"}, 20_000),
    (
        "s-0136",
        "429",
        {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"},
        360_000,
    ),
    (
        "s-0137",
        "429",
        {
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:20Z",
        },
        60_000,
    ),
    (
        "s-0138",
        '429 {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":'
        '[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"32s"}]}}',
        {},
        32_000,
    ),
    ("s-0140", "429 You exceeded your daily request limit. Please try again in 24 hours.", {}, 86_400_000),
]


@pytest.mark.rule("TIME-1", "TIME-2", "OURS-4")
@pytest.mark.parametrize(("id", "text", "headers", "ms"), RETRY_TIMING, ids=[row[0] for row in RETRY_TIMING])
def test_recorded_timing(id: str, text: str, headers: dict[str, str], ms: int | None) -> None:
    evidence = extract(Reply(message=text, headers=headers, received_ms=NOW_MS)).evidence
    wait = effective_wait(evidence.waits)
    assert (None if wait is None else wait.ms) == ms


# Statuses that reasons stand for, as recorded (s-0169 to s-0181) and in the reference tables.
STATUSES = {
    "billing": 402, "rate_limit": 429, "overloaded": 503, "auth": 401, "auth_permanent": 403, "timeout": 408,
    "format": 400, "model_not_found": 404, "session_expired": 410, "server_error": 500, "tls_certificate": 502,
    "context_overflow": 413, "unknown": None, "empty_response": None, "no_error_details": None,
    "unclassified": None,
}  # fmt: skip


@pytest.mark.parametrize(("reason", "status"), STATUSES.items())
def test_status_of_a_reason(reason: str, status: int | None) -> None:
    assert status_of(Failure(reason)) == status

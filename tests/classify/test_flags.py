"""What a reading says besides its class: kinds of refusal, aborts, windows and shared limits."""

import json
from typing import Any

import pytest

from standby.engine.classify.classifier import Reading, recognised
from standby.engine.reading.extract import Reply, read
from standby.events.vocabulary import Failure, Origin, RefusalKind

F = Failure

NEW, OLD = "2026-10", "2026-04"
BOTH = (NEW, OLD)


def reading(
    text: object = None, status: int | None = None, provider: str = "", ruleset: str = NEW, **fields: Any
) -> Reading:
    reply = Reply(body=text, status=status, provider=provider, **fields)
    return read(reply, ruleset=ruleset)


def reason(text: object = None, status: int | None = None, provider: str = "", ruleset: str = NEW) -> F | None:
    found = reading(text, status, provider, ruleset)
    return found.reason if recognised(found) else None


@pytest.mark.rule("CYB-5")
@pytest.mark.parametrize("status", [400, 200, None])
def test_structured_cyber_refusals(status: int | None) -> None:
    error = {"type": "invalid_request", "code": "cyber_policy", "message": "flagged"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    for body in (
        {"error": error},
        {"type": "error", "error": error},
        failed,
        f"event: response.failed\ndata: {json.dumps(failed)}\n\n",
    ):
        found = reading(body, status, "openai")
        assert (found.reason, found.kind) == (F.REFUSAL, RefusalKind.CYBER_POLICY)


@pytest.mark.rule("CYB-2")
def test_prose_about_cyber_policy_is_no_structured_refusal() -> None:
    found = reading("This violates our usage policies on cyber_policy matters", 400, "openai")
    assert found.kind is RefusalKind.GENERIC


@pytest.mark.rule("MIS-1")
def test_misalignment_refusals() -> None:
    found = reading({"error": {"code": "misalignment_policy_violation", "message": "stopped"}}, 400)
    assert (found.reason, found.kind) == (F.REFUSAL, RefusalKind.MISALIGNMENT)


@pytest.mark.rule("ADV-9")
def test_plain_refusals() -> None:
    found = reading({"error": {"code": "content_filter", "message": "filtered"}}, 400, "azure-openai")
    assert (found.reason, found.kind) == (F.REFUSAL, RefusalKind.GENERIC)


@pytest.mark.rule("ADV-2")
@pytest.mark.parametrize("ruleset", BOTH)
def test_aborts_are_told_apart_from_failures(ruleset: str) -> None:
    stopped = read(Reply(message="CancelledError", origin=Origin.ABORT), ruleset=ruleset)
    assert stopped.aborted
    assert not recognised(stopped)
    for text in ("TimeoutError: request timed out", "request was aborted", "request aborted"):
        shaped = read(Reply(message=text, origin=Origin.ABORT), ruleset=ruleset)
        assert (shaped.aborted, shaped.reason) == (False, F.TIMEOUT), text


@pytest.mark.rule("GATE-1")
def test_organisation_tokens_per_minute() -> None:
    text = (
        "Rate limit reached for m in organization org-x on tokens per min (TPM): Limit 30, Used 29, Requested 4"
    )
    assert reading(text, 429, "openai").organisation_tpm
    words = "This request would exceed your organization's rate limit of 30,000 input tokens per minute"
    anthropic = {"type": "error", "error": {"type": "rate_limit_error", "message": words}}
    assert reading(anthropic, 429, "anthropic").organisation_tpm
    assert not reading("Rate limit reached on requests per min (RPM): Limit 3", 429, "openai").organisation_tpm
    assert not reading("Rate limit reached for your key on tokens per min", 429).organisation_tpm


@pytest.mark.rule("COOL-13")
def test_usage_windows_are_told_apart() -> None:
    window = {"error": {"type": "usage_limit_reached", "resets_in_seconds": 13872}}
    found = reading(window, 429, "openai-codex")
    assert (found.reason, found.subscription, found.long_window) == (F.RATE_LIMIT, True, True)
    assert found.retry_after_ms == 13_872_000
    plain = reading("Rate limit reached. Please try again in 6s.", 429)
    assert (plain.subscription, plain.long_window) == (False, False)


def test_names_of_quotas_tell_their_window() -> None:
    violations = [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}]
    error = {"code": 429, "message": "Rate limit exceeded", "details": [{"violations": violations}]}
    assert reading({"error": error}, 429, "google").long_window
    violations[0]["quotaId"] = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
    assert not reading({"error": error}, 429, "google").long_window


@pytest.mark.rule("CLS-1")
def test_codes_that_no_table_knows_are_read_by_their_parts() -> None:
    assert reason({"error": {"code": "user_weekly_rate_limited", "message": "..."}}) is F.RATE_LIMIT
    assert reason({"error": {"code": "acme_insufficient_balance_v2", "message": "..."}}) is F.BILLING


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("You exceeded your daily request limit", True),
        ("weekly usage limit reached", True),
        ("Rate limit reached on tokens per day (TPD): Limit 100000", True),
        ("Quota exceeded for requests per minute", False),
        ("Rate limit reached on requests per min", False),
        ("rate limit exceeded", False),
        ("rate limit exceeded, try again in 2 hours", True),
    ],
)
def test_long_windows(text: str, is_long: bool) -> None:
    assert reading(text, 429).long_window is is_long

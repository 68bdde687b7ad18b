"""What a failure is: the CLS rules, one after another, in both rulesets where they differ."""

import json
from typing import Any

import pytest

from standby.engine.classify.classifier import Reading, recognised
from standby.engine.reading.extract import Reply, read
from standby.events.vocabulary import Failure, Origin, Stage

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


@pytest.mark.rule("CLS-1")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "Too many concurrent requests",
        "ThrottlingException: Rate exceeded",
        "concurrency limit reached",
        "workers_ai gateway error: quota limit exceeded",
        "Request was throttled.",
        "resource exhausted",
        "RESOURCE_EXHAUSTED: try later",
        "weekly limit reached",
        "monthly limit exhausted",
        "Weekly/Monthly limit reached",
    ],
)
def test_throttles_are_wider_than_429(text: str, ruleset: str) -> None:
    assert reason(text, ruleset=ruleset) is F.RATE_LIMIT


TOOL_CALL_ID = (
    "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"  # Cloud Code Assist
)


@pytest.mark.rule("CLS-2", "CLS-3", "CLS-33")
@pytest.mark.parametrize("ruleset", BOTH)
def test_invalid_requests_are_format_failures(ruleset: str) -> None:
    assert reason(TOOL_CALL_ID, 400, ruleset=ruleset) is F.FORMAT
    assert reason("invalid request format", ruleset=ruleset) is F.FORMAT
    assert reason({"error": {"message": "nonsense"}}, 422, ruleset=ruleset) is F.FORMAT


@pytest.mark.rule("CLS-4")
@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "body",
    [
        "",
        "   ",
        "{}",
        "null",
        "[REDACTED]",
        "<redacted>",
        "***",
        "400 status code (no body)",
        "[response body redacted]",
    ],
)
def test_no_body_is_no_evidence_of_a_format_failure(status: int, body: str) -> None:
    assert reason(body, status) is None
    assert reading(body, status).reason is F.UNCLASSIFIED
    assert reason("[redacted] is not a valid role", status) is F.FORMAT


@pytest.mark.rule("CLS-4")
def test_the_earlier_ruleset_calls_a_bare_400_a_format_failure() -> None:
    assert reason("", 400, ruleset=OLD) is F.FORMAT


@pytest.mark.rule("CLS-5", "CLS-6")
@pytest.mark.parametrize(
    "text", ["Unhandled stop reason: error", "stop reason: error", "reason: error", "finish_reason: error"]
)
def test_a_stop_reason_of_error(text: str) -> None:
    assert reason(text, ruleset=OLD) is F.TIMEOUT
    found = reading(text)
    assert (found.reason, found.status) == (F.SERVER_ERROR, 500)


@pytest.mark.rule("CLS-6")
def test_a_finish_reason_of_error_is_a_server_error() -> None:
    assert reason("Provider finish_reason: error") is F.SERVER_ERROR


@pytest.mark.rule("CLS-7")
@pytest.mark.parametrize(
    ("status", "expected"),
    [(s, F.TIMEOUT) for s in (408, 499, 504, 522, 524)]
    + [(s, F.SERVER_ERROR) for s in (500, 501, 502, 503, 505, 507, 520, 521, 523, 525, 530, 599)]
    + [(529, F.OVERLOADED)],
)
def test_status_map(status: int, expected: F) -> None:
    assert reason("", status) is expected
    assert reason({"error": {"message": "something happened"}}, status) is expected


@pytest.mark.rule("CLS-7", "OURS-2")
def test_something_more_specific_beats_the_status_map() -> None:
    assert reason("The model is overloaded", 500) is F.OVERLOADED
    assert reason("prompt is too long: 9 tokens > 8 maximum", 500) is F.CONTEXT_OVERFLOW


@pytest.mark.rule("CLS-8")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Google Generative AI API error (503): upstream said no", F.SERVER_ERROR),
        ("Azure OpenAI API error (502): Bad gateway from upstream", F.SERVER_ERROR),
        ("Acme API error (504): it took its time", F.TIMEOUT),
        ("Acme API error (529): come back", F.OVERLOADED),
        ("Acme API error (401): no", F.AUTH),
        ("Acme API error (404): no", F.MODEL_NOT_FOUND),
    ],
)
def test_a_text_envelope_maps_like_its_status(text: str, expected: F) -> None:
    assert reason(text) is expected
    assert reading(text).status == int(text.split("(")[1][:3])


@pytest.mark.rule("CLS-9")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize(
    "words",
    ["Internal server error", "unknown error, 520 (1000)", "upstream error", "backend error", "server error"],
)
def test_api_errors_with_transient_words(words: str, ruleset: str) -> None:
    body = {"type": "error", "error": {"type": "api_error", "message": words}}
    assert reason(body, ruleset=ruleset) is F.TIMEOUT
    assert reason(json.dumps(body), ruleset=ruleset) is F.TIMEOUT
    wallet = {"type": "error", "error": {"type": "api_error", "message": f"{words}: insufficient balance"}}
    assert reason(wallet, ruleset=ruleset) is F.BILLING


@pytest.mark.rule("CLS-10", "CLS-31")
@pytest.mark.parametrize("ruleset", BOTH)
def test_provider_returned_error_means_something_at_openrouter_only(ruleset: str) -> None:
    assert reason("Provider returned error", provider="openrouter", ruleset=ruleset) is F.TIMEOUT
    assert reason("Provider returned error", provider="openai", ruleset=ruleset) is None
    assert reason("Provider returned error", ruleset=ruleset) is None


@pytest.mark.rule("CLS-11")
@pytest.mark.parametrize("ruleset", BOTH)
def test_the_run_that_failed_with_an_unknown_error_means_nothing(ruleset: str) -> None:
    assert reason("LLM request failed with an unknown error.", ruleset=ruleset) is None


@pytest.mark.rule("CLS-12")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    "text", ["insufficient credits", "Your credit balance is too low", "Insufficient Balance"]
)
def test_wallets_under_401_and_403(text: str, status: int, ruleset: str) -> None:
    assert reason(text, status, ruleset=ruleset) is F.BILLING


@pytest.mark.rule("CLS-13")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "Weekly usage limit exhausted",
        "Daily limit reached, resets tomorrow",
        "Organization spending limit exceeded",
        "Workspace spend limit reached",
        "You reached your rate limit, retry later",
        "subscription quota limit: wait for the automatic quota refresh, or upgrade",
    ],
)
def test_a_402_that_looks_retryable_is_a_throttle(text: str, ruleset: str) -> None:
    assert reason(text, 402, ruleset=ruleset) is F.RATE_LIMIT
    assert reason(f"402 Payment Required: {text}", ruleset=ruleset) is F.RATE_LIMIT


@pytest.mark.rule("CLS-13")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "insufficient credits",
        "Weekly/Monthly Limit Exhausted",
        "Your usage limit is reached, upgrade your plan",
        "reached its maximum allowed monthly spending limit",
        "Insufficient credits. Organization limit reached.",
    ],
)
def test_other_402s_are_billing(text: str, ruleset: str) -> None:
    assert reason(text, 402, ruleset=ruleset) is F.BILLING


def test_answers_that_talk_about_money_are_no_wallets() -> None:
    article = "## Plans\nWhen your credit balance is too low, add credits.\n## Limits\nThere are some."
    assert reason(article) is None
    long = "Your credit balance is too low, they said. " + "And then the story went on. " * 30
    assert reason(long, ruleset=OLD) is None
    assert reason(long) is F.BILLING


@pytest.mark.rule("CLS-13", "CLS-29")
def test_the_number_402_in_prose() -> None:
    for text in ("Room 402 is available", "See ticket #402 for details", "processed 402 records"):
        assert reason(text) is None
        assert reason(text, ruleset=OLD) is None
    assert reason("402 items found in the database") is None
    assert reason("402 items found in the database", ruleset=OLD) is F.BILLING
    for text in ("returned 402", "status: 402", "error code 402", "got a 402 from the API"):
        assert reason(text) is F.BILLING
        assert reason(text, ruleset=OLD) is F.BILLING


@pytest.mark.rule("CLS-14")
@pytest.mark.parametrize("ruleset", BOTH)
def test_a_model_that_is_not_ready_is_overloaded(ruleset: str) -> None:
    assert reason("ModelNotReadyException", ruleset=ruleset) is F.OVERLOADED
    headers = {"x-amzn-ErrorType": "ModelNotReadyException:http://internal.example/coral/"}
    found = read(Reply(provider="amazon-bedrock", status=429, body="{}", headers=headers), ruleset=NEW)
    assert found.reason is F.OVERLOADED


@pytest.mark.rule("CLS-15")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", F.MODEL_NOT_FOUND),
        ("Not Found", F.MODEL_NOT_FOUND),
        ("rate limit exceeded", F.MODEL_NOT_FOUND),
        ("INVALID_ARGUMENT: input exceeds the maximum number of tokens", F.CONTEXT_OVERFLOW),
        ("session not found", F.SESSION_EXPIRED),
        ("insufficient credits", F.BILLING),
        ("This API key has been revoked", F.AUTH_PERMANENT),
        ("Invalid API key", F.AUTH),
        ("invalid request format", F.FORMAT),
    ],
)
def test_a_404_is_a_missing_model_unless_it_says_more(body: str, expected: F) -> None:
    assert reason(body, 404) is expected


@pytest.mark.rule("CLS-15")
def test_only_what_names_the_model_counts_as_missing() -> None:
    assert reading({"error": {"code": "model_not_found", "message": "no"}}, 404).missing_model
    assert reading("The model `x-1` has been decommissioned", 400).missing_model
    assert reading("Unknown model: x-1", 400).missing_model
    assert not reading("", 404).missing_model
    assert not reading("Not Found", 404).missing_model
    assert not reading("The model x does not exist or you do not have access to it", 404).missing_model
    closed = {"error": {"code": "model_not_found", "message": "Project p does not have access to model x"}}
    assert not reading(closed, 403).missing_model


@pytest.mark.rule("CLS-16")
def test_too_little_detail_is_still_labelled() -> None:
    assert reading(None).reason is F.EMPTY_RESPONSE
    assert reading("").reason is F.EMPTY_RESPONSE
    assert reading("Unknown error (no error details in response)").reason is F.NO_ERROR_DETAILS
    assert reading("some random error").reason is F.UNCLASSIFIED
    assert reading("some random error", ruleset=OLD).reason is F.UNKNOWN
    assert reading("Unknown error (no error details in response)", ruleset=OLD).reason is F.UNKNOWN


@pytest.mark.rule("CLS-17")
@pytest.mark.parametrize("ruleset", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "request_too_large",
        "INVALID_ARGUMENT: input exceeds the maximum number of tokens",
        "input token count exceeds the maximum number of input tokens",
        "The input is too long for the model",
        "ollama error: context length exceeded",
    ],
)
def test_context_overflow(text: str, ruleset: str) -> None:
    assert reason(text, ruleset=ruleset) is F.CONTEXT_OVERFLOW
    assert reason(text, 400, ruleset=ruleset) is F.CONTEXT_OVERFLOW


TPM = "Request too large for model `m` on tokens per minute (TPM): Limit {}, Requested {}"


@pytest.mark.rule("CLS-18")
@pytest.mark.parametrize("status", [413, 429, None])
def test_one_request_that_asks_for_more_than_a_whole_minute(status: int | None) -> None:
    found = reading(TPM.format(8000, 8098), status, "groq")
    assert (found.reason, found.size_ceiling) == (F.REQUEST_SIZE_CEILING, True)
    fits = reading(TPM.format(8000, 7000), status, "groq")
    assert (fits.reason, fits.size_ceiling) == (F.RATE_LIMIT, False)
    used = reading("tokens per minute (TPM): Limit 8000, Used 7000, Requested 2000", status)
    assert used.reason is F.RATE_LIMIT


@pytest.mark.rule("CLS-19")
@pytest.mark.parametrize(
    "text",
    [
        "api key revoked",
        "This API key has been deactivated",
        "key has been disabled",
        "deactivated_workspace",
        {"detail": {"code": "deactivated_workspace"}},
        {"error": {"code": "account_deactivated", "message": "The account has been deactivated."}},
    ],
)
@pytest.mark.parametrize("status", [401, 403, None])
def test_high_confidence_permanent_auth_failures(text: object, status: int | None) -> None:
    assert reason(text, status) is F.AUTH_PERMANENT
    assert reason("Invalid API key", status) is F.AUTH


@pytest.mark.rule("CLS-20")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rate_limit_error", F.RATE_LIMIT),
        ("overloaded_error", F.OVERLOADED),
        ("authentication_error", F.AUTH),
        ("permission_error", F.AUTH),
    ],
)
def test_streamed_errors_keep_their_type(kind: str, expected: F) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "An error happened"}}
    stream = f"event: error\ndata: {json.dumps(event)}\n\n"
    assert read(Reply(provider="anthropic", body=stream, stage=Stage.STREAM)).reason is expected
    assert read(Reply(provider="anthropic", status=200, body=stream, stage=Stage.STREAM)).reason is expected
    assert reason(event) is expected


@pytest.mark.rule("CLS-21")
@pytest.mark.parametrize(
    "text", ["The model is not available.", "The model is not available. Please try again later."]
)
def test_not_available_alone_says_nothing_about_the_model(text: str) -> None:
    assert reason(text) is None
    assert reason(text, 503) is F.SERVER_ERROR
    assert not reading(text, 503).missing_model
    busy = {"error": {"type": "overloaded_error", "message": text}}
    assert reason(busy) is F.OVERLOADED


@pytest.mark.rule("CLS-22")
def test_reasoning_is_named_only_by_its_parameter() -> None:
    effort = {
        "error": {"message": "Unsupported value", "param": "reasoning_effort", "code": "unsupported_value"}
    }
    assert reading(effort, 400).names_reasoning
    assert reading("thinking_budget must be a positive integer", 400).names_reasoning
    other = {"error": {"message": "Unsupported parameter: 'logprobs'", "param": "logprobs"}}
    found = reading(other, 400)
    assert (found.reason, found.names_reasoning) == (F.FORMAT, False)
    closed = {
        "error": {"message": "Your plan does not include this reasoning model", "code": "model_not_found"}
    }
    assert not reading(closed, 403).names_reasoning
    assert not reading("Rate limit reached: lower your reasoning_effort", 429).names_reasoning


@pytest.mark.rule("CLS-23")
def test_shown_status_and_reason_are_apart() -> None:
    found = reading("Internal server error", 500)
    assert (found.reason, found.status) == (F.SERVER_ERROR, 500)
    wallet = reading("insufficient credits", 500)
    assert (wallet.reason, wallet.status) == (F.BILLING, 500)
    assert reading("connection reset by peer").status == 408


@pytest.mark.rule("CLS-24")
@pytest.mark.parametrize(
    "text",
    [
        "Responses WebSocket connection expired",
        "WebSocket closed (1000) before response.completed",
        "OpenAI Responses stream ended before a terminal response event",
    ],
)
@pytest.mark.parametrize("stage", list(Stage))
def test_a_websocket_that_ends_early_is_transient(text: str, stage: Stage) -> None:
    assert read(Reply(provider="openai", message=text, stage=stage)).reason is F.TIMEOUT


@pytest.mark.rule("CLS-25")
def test_local_transcript_failures_and_expired_sessions() -> None:
    local = read(Reply(message="Invalid session transcript entry 17: role missing", origin=Origin.LOCAL))
    assert local.reason is F.FORMAT
    assert reason("Failed to authenticate: OAuth session expired", provider="custom-cli") is F.SESSION_EXPIRED


@pytest.mark.rule("CLS-26")
@pytest.mark.parametrize("ruleset", BOTH)
def test_a_timeout_shaped_like_a_throttle_is_one(ruleset: str) -> None:
    assert reason("Request timed out: rate limit exceeded", 408, ruleset=ruleset) is F.RATE_LIMIT
    assert reason("Request timed out: too many requests", ruleset=ruleset) is F.RATE_LIMIT
    assert reason("Request timed out", 408, ruleset=ruleset) is F.TIMEOUT


@pytest.mark.rule("CLS-27", "CLS-28")
def test_a_bare_unknown_error() -> None:
    for provider in ("anthropic", "openai", ""):
        assert reason("An unknown error occurred", provider=provider) is F.TIMEOUT
    assert reason("An unknown error occurred while you were out") is not F.TIMEOUT
    assert reason("An unknown error occurred", provider="anthropic", ruleset=OLD) is F.TIMEOUT
    assert reason("An unknown error occurred", provider="openai", ruleset=OLD) is None


@pytest.mark.rule("CLS-29")
def test_a_status_field_beats_a_number_in_the_text() -> None:
    assert reason("404 was answered earlier", 503) is F.SERVER_ERROR
    assert reading("429 Too Many Requests", 500).status == 500
    for text in ("It worked 500 times", "model gpt-503-preview said hello", "error in line 429 of the file"):
        assert reading(text).status is None, text


@pytest.mark.rule("CLS-30")
@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("serverOverloaded", F.OVERLOADED),
        ({"httpConnectionFailed": {"httpStatusCode": 503}}, F.SERVER_ERROR),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, F.RATE_LIMIT),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 529}}, F.OVERLOADED),
    ],
)
def test_codex_turn_errors_keep_what_they_know(info: object, expected: F) -> None:
    body = {"error": {"message": "exceeded retry limit", "codexErrorInfo": info}, "willRetry": False}
    assert reason(body, provider="openai-codex") is expected
    assert reason("exceeded retry limit, last status: 529", provider="openai-codex") is F.OVERLOADED


@pytest.mark.rule("CLS-31")
def test_a_key_limit_is_billing_at_openrouter_only() -> None:
    for ruleset in BOTH:
        assert reason("Key limit exceeded", 403, "openrouter", ruleset) is F.BILLING
        assert reason("Key limit exceeded", 403, "openai", ruleset) is F.AUTH
    assert reason("Key limit exceeded", 403, "my-openrouter") is F.AUTH
    assert reason("Key limit exceeded", 403, "my-openrouter", OLD) is F.BILLING


@pytest.mark.rule("CLS-32")
@pytest.mark.parametrize("word", ["abort", "network_error", "malformed_response", "MALFORMED_RESPONSE"])
def test_transport_shaped_finish_reasons(word: str) -> None:
    found = reading(f"Provider finish_reason: {word}")
    assert (found.reason, found.status) == (F.TIMEOUT, 408)

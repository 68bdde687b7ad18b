"""The one function that reads a raw reply: shapes, bounds, masking, and what it keeps."""

import json
from typing import Any

import msgspec
import pytest

from standby.engine.classify.classifier import classify
from standby.engine.reading.extract import Reply, extract, read
from standby.engine.reading.known_secrets import MASK
from standby.engine.reading.masking import mask
from standby.events.evidence import Evidence
from standby.events.vocabulary import Failure

F = Failure

SHAPES = {
    "OpenAI": {"error": {"message": "m", "type": "t", "param": "p", "code": "insufficient_quota"}},
    "bare OpenAI": {"message": "m", "type": "t", "param": "p", "code": "insufficient_quota"},
    "Anthropic": {"type": "error", "error": {"type": "billing_error", "message": "m"}},
    "Google": {"error": {"code": 400, "status": "X", "details": [{"reason": "BILLING_DISABLED"}]}},
    "Vertex array": [{"error": {"code": 400, "details": [{"reason": "BILLING_DISABLED"}]}}],
    "Bedrock": {"__type": "com.example.coral#PaymentRequired", "message": "m"},
    "Azure inner error": {"error": {"code": "Bad", "innererror": {"code": "insufficient_balance"}}},
    "OpenRouter nested": {
        "error": {"message": "m", "metadata": {"raw": '{"error":{"code":"insufficient_balance"}}'}}
    },
    "MiniMax": {"base_resp": {"status_code": 1, "status_msg": "insufficient balance"}},
    "FastAPI": {"detail": [{"loc": ["body", "x"], "msg": "insufficient balance", "type": "t"}]},
    "Cloudflare": {"success": False, "errors": [{"code": 9, "message": "insufficient balance"}]},
    "problem document": {"title": "Payment Required", "status": 402, "type": "https://x.example/probs/payment"},
    "error as text": {"error": "You have insufficient credits"},
    "message as JSON text": {"message": json.dumps({"error": {"code": "insufficient_quota"}})},
    "GraphQL-like": {"errors": [{"message": "m", "extensions": {"code": "INSUFFICIENT_BALANCE"}}]},
    "AWS query": {"Response": {"Error": {"Code": "InsufficientBalance", "Message": "m"}}},
    "plain text": "insufficient balance",
    "status in front": "402 Payment Required",
    "JSON in text": 'Codex error: {"error":{"code":"insufficient_quota","message":"m"}}',
    "JSON behind a status": '429 {"error":{"code":"insufficient_quota","message":"m"}}',
    "Python repr": "Error code: 429 - {'error': {'message': \"it's\", 'code': 'insufficient_quota'}}",
    "cut JSON": '{"error": {"code": "insufficient_quota", "message": "You exceeded your cur',
    "SSE": 'event: error\ndata: {"type":"error","error":{"code":"insufficient_quota"}}\n\n',
    "SSE after content": (
        'data: {"choices":[{"delta":{"content":"rate limit exceeded"}}]}\n\n'
        'data: {"error":{"code":"insufficient_quota","message":"m"}}\n\n'
    ),
    "HTML": "<html><head><style>p{x:y}</style></head><body><h1>Insufficient balance</h1></body></html>",
    "quoted text": '"insufficient balance"',
}


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_every_shape_is_read(body: object) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    for form in (body, text, text.encode(), bytearray(text.encode())):
        assert read(Reply(body=form)).reason is F.BILLING, form


def test_what_echoes_the_request_is_not_read() -> None:
    echo = {"error": {"message": "bad field", "type": "invalid_request_error"}}
    for name in ("input", "messages", "request", "prompt", "tools"):
        body = {**echo, name: [{"content": "rate limit exceeded, insufficient credits"}]}
        assert read(Reply(status=400, body=body)).reason is F.FORMAT, name


def test_what_a_large_body_echoes_is_not_read() -> None:
    echo = [{"content": "insufficient credits, rate limit exceeded " * 30_000}]
    body = json.dumps({"error": {"message": "bad field", "type": "invalid_request_error"}, "messages": echo})
    assert len(body) > 1_000_000
    assert read(Reply(status=400, body=body)).reason is F.FORMAT


def test_a_stream_is_read_by_the_events_that_tell_of_an_error() -> None:
    before = {"type": "note", "message": "Rate limit exceeded"}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = f"data: {json.dumps(before)}\n\ndata: {json.dumps(error)}\n\n"
    found = read(Reply(body=stream))
    assert (found.reason, found.also_matched) == (F.OVERLOADED, ("overloaded.prose (overloaded.word)",))


def test_links_are_not_read() -> None:
    text = "Bad field. See https://docs.example/rate-limit-exceeded and https://x.example/insufficient-credits"
    assert read(Reply(status=400, body=text)).reason is F.FORMAT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You’ve run out of credits", F.BILLING),
        ("Ｒａｔｅ　ｌｉｍｉｔ　ｅｘｃｅｅｄｅｄ", F.RATE_LIMIT),
        ("rate‑limit exceeded", F.RATE_LIMIT),
        ("RATE_LIMIT_EXCEEDED", F.RATE_LIMIT),
        ("RateLimitExceeded", F.RATE_LIMIT),
        ("余额不足，请充值", F.BILLING),
        ("请求过于频繁，请稍后重试", F.RATE_LIMIT),
        ("服务过载，请稍后重试", F.OVERLOADED),
        ("上下文长度超出模型最大限制", F.CONTEXT_OVERFLOW),
        ("无效的令牌", F.AUTH),
        ("模型不存在", F.MODEL_NOT_FOUND),
        ("请求超时", F.TIMEOUT),
    ],
)
def test_text_of_any_script(text: str, expected: F) -> None:
    assert read(Reply(body=text)).reason is expected


def test_evidence_is_typed_and_decides_without_the_text() -> None:
    body = {
        "error": {
            "message": "Rate limit reached, try again in 6s",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        }
    }
    reply = Reply(provider="openai", model="m", status=429, body=body, headers={"retry-after": "3"})
    extracted = extract(reply)
    evidence = extracted.evidence
    assert (evidence.provider, evidence.model, evidence.status) == ("openai", "m", 429)
    assert (evidence.code, evidence.error_type, evidence.text) == ("rate_limit_exceeded", "tokens", "")
    assert [w.ms for w in evidence.waits] == [3_000, 6_000]
    assert "rate.limit" in evidence.hits
    assert evidence.size == len(json.dumps(body, separators=(",", ":")))
    assert "Rate limit reached" in extracted.text
    assert extract(reply, limit_bytes=0).text == ""
    assert extract(reply, limit_bytes=0).evidence == evidence
    assert classify(evidence).retry_after_ms == 6_000


def test_hand_made_evidence_is_enough() -> None:
    assert classify(Evidence(status=429)).reason is F.RATE_LIMIT
    assert classify(Evidence(code="insufficient_quota", status=429)).reason is F.BILLING
    assert classify(Evidence(error_type="overloaded_error")).reason is F.OVERLOADED
    assert classify(Evidence(code="ECONNRESET")).reason is F.TIMEOUT
    assert classify(Evidence()).reason is F.EMPTY_RESPONSE
    with pytest.raises(KeyError):
        classify(Evidence(), ruleset="2027-01")


@pytest.mark.parametrize("limit", [0, 1, 7, 100, 2048])
def test_the_text_is_cut_to_whole_characters(limit: int) -> None:
    text = extract(Reply(body="错误" * 5_000), limit_bytes=limit).text
    assert len(text.encode()) <= limit
    assert set(text) <= {"错", "误"}


def test_a_large_body_is_read_at_both_ends() -> None:
    filler = json.dumps("x" * 1_000_000)
    early = '{"error":{"code":"insufficient_quota","message":"m"},"echo":' + filler + "}"
    late = '{"echo":' + filler + ',"error":{"code":"insufficient_quota","message":"m"}}'
    for body in (early, late):
        assert read(Reply(status=429, body=body)).reason is F.BILLING
        assert extract(Reply(body=body)).evidence.size == len(body)


# --- masking ---------------------------------------------------------------------------------------------

SECRETS = [
    "sk-test-PLACEHOLDER1234567890",
    "sk-ant-api03-PLACEHOLDER-abcdef123456",
    "sk-proj-****abcd",
    "gsk_PLACEHOLDER1234567890abcdef",
    "xai-PLACEHOLDER1234567890",
    "hf_PLACEHOLDER1234567890",
    "ghp_PLACEHOLDER1234567890PLACE",
    "AIzaPLACEHOLDER-1234567890abcdef",
    "AKIAPLACEHOLDER12345",
    "eyJhbGciOiJub25lIn0.eyJwbGFjZSI6ImhvbGRlciJ9.c2ln",
    "someone@mail.example",
    "0123456789abcdef0123456789abcdef",
]


@pytest.mark.invariant(12)
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "frame",
    [
        "Incorrect API key provided: {}. You can find yours elsewhere.",
        '{{"error": {{"message": "bad key {}"}}}}',
        "Authorization: Bearer {}",
        "{}",
        "Key={} was refused",
    ],
)
def test_everything_that_looks_like_a_secret_is_masked(secret: str, frame: str) -> None:
    text = extract(Reply(status=401, body=frame.format(secret))).text
    assert secret not in text
    assert MASK in text


@pytest.mark.invariant(12)
def test_known_secrets_are_masked_whatever_they_look_like() -> None:
    body = {"error": {"message": "no such key: tea time", "code": "tea time", "param": "x.tea time"}}
    extracted = extract(Reply(status=401, body=body), secrets=("tea time", "no"))
    assert "tea time" not in extracted.text
    assert "tea time" not in repr(extracted.evidence)
    assert "no such key" in extracted.text, "too short to be a secret"


@pytest.mark.invariant(12)
def test_codes_that_are_secrets_are_masked() -> None:
    secret = "sk-test-PLACEHOLDER1234567890"
    evidence = extract(Reply(code=secret, error_type=secret, param=secret, body="x")).evidence
    assert secret not in repr(evidence)


@pytest.mark.invariant(12)
@pytest.mark.parametrize("secret", ["sk-test-PLACEHOLDER1234567890", "tea-time"])
def test_keys_where_a_code_should_be_do_not_come_in_squashed(secret: str) -> None:
    body = {"error": {"code": "first", "type": "second", "inner": {"code": secret, "type": secret}}}
    evidence = extract(Reply(body=body, code="given"), secrets=("tea-time",)).evidence
    assert "second" in evidence.tokens or evidence.error_type == "second"
    letters = "".join(filter(str.isalnum, secret)).lower()
    assert letters not in repr(evidence).lower().replace("-", "")


@pytest.mark.invariant(12)
@pytest.mark.parametrize("cut", range(2030, 2060))
def test_a_secret_across_the_cut_does_not_leak(cut: int) -> None:
    secret = "sk-test-PLACEHOLDER" + "1a" * 60
    text = extract(Reply(body="." * cut + " " + secret)).text
    assert "PLACEHOLDER" not in text


@pytest.mark.invariant(12)
@pytest.mark.parametrize("cut", range(2030, 2048))
def test_a_known_secret_across_the_cut_does_not_leak(cut: int) -> None:
    text = extract(Reply(body="." * cut + "plain old words of a passphrase"), secrets=("plain old words",)).text
    assert "plain" not in text


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached for gpt-4.1 on tokens per min (TPM): Limit 30000, Used 29012",
        "The model claude-3-5-sonnet-20240620-v1:0 does not exist",
        "Invalid Authentication: bearer token is missing",
        "key: invalid",
        "See https://platform.example/docs/guides/error-codes for more",
        "Requested 8098 tokens at 2026-02-25T06:14:20Z",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


def test_hostile_objects_do_not_raise() -> None:
    ring: dict[str, Any] = {}
    ring["error"] = ring
    for body in (ring, {1: {2: 3}}, [[[[]]]], {"error": {None: 1}}, object(), {"message": b"x"}, 1.5, True):
        extracted = extract(Reply(body=body))
        assert isinstance(extracted.text, str)


HALF = json.loads('"bad \\ud800"')
"""Half a character, as JSON may spell it: text that no store can take."""


@pytest.mark.parametrize(
    "reply",
    [
        Reply(code=HALF),
        Reply(error_type=HALF),
        Reply(param=HALF),
        Reply(provider="openai", body={"error": {"code": HALF, "type": HALF, "param": HALF, "message": HALF}}),
        Reply(headers={"x-ratelimit-\ud800reset": "1", "x-ratelimit-\ud800remaining": "0"}),
    ],
    ids=["code", "type", "param", "body", "header"],
)
def test_half_characters_do_not_get_into_evidence(reply: Reply) -> None:
    evidence = extract(reply).evidence
    assert msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence) == evidence

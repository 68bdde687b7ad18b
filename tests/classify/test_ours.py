"""What no document asks for: OURS-2, 3, 5 and 6."""

from typing import Any

import msgspec
import pytest

from standby.engine.classify.classifier import classify
from standby.engine.classify.tables import TABLE
from standby.engine.reading.extract import Reply, extract, read
from standby.events.errors import BadPolicy
from standby.events.evidence import Evidence, OperatorRow
from standby.events.vocabulary import Failure, RefusalKind

F = Failure


@pytest.mark.rule("OURS-2")
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (500, {"error": {"message": "wallet balance insufficient"}}, F.BILLING),
        (503, {"error": {"message": "You have insufficient credits"}}, F.BILLING),
        (500, {"error": {"message": "Invalid API key"}}, F.AUTH),
        (502, {"error": {"message": "The model is overloaded"}}, F.OVERLOADED),
        (503, {"error": {"message": "Rate limit exceeded"}}, F.RATE_LIMIT),
        (429, {"error": {"message": "The engine is currently overloaded"}}, F.OVERLOADED),
        (400, {"error": {"message": "Rate limit exceeded"}}, F.RATE_LIMIT),
        (200, {"base_resp": {"status_code": 1, "status_msg": "insufficient balance"}}, F.BILLING),
    ],
)
def test_a_specific_body_beats_a_generic_status(status: int, body: object, expected: F) -> None:
    assert read(Reply(status=status, body=body)).reason is expected


@pytest.mark.rule("OURS-2")
@pytest.mark.parametrize(
    ("code", "message", "status", "expected"),
    [
        ("insufficient_quota", "Rate limit exceeded, slow down", 429, F.BILLING),
        ("context_length_exceeded", "Invalid API key", 400, F.CONTEXT_OVERFLOW),
        ("invalid_api_key", "Too many requests", 400, F.AUTH),
        ("model_not_found", "The service is overloaded", 404, F.MODEL_NOT_FOUND),
        ("rate_limit_exceeded", "The model x does not exist", 400, F.RATE_LIMIT),
        ("content_filter", "Something timed out", 400, F.REFUSAL),
    ],
)
def test_a_telling_code_beats_prose(code: str, message: str, status: int, expected: F) -> None:
    if expected is F.RATE_LIMIT:
        message = "Something else"
    body = {"error": {"code": code, "message": message}}
    assert read(Reply(status=status, body=body)).reason is expected


@pytest.mark.rule("OURS-2")
@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("invalid_request_error", "Service tier capacity exceeded for this model.", F.OVERLOADED),
        ("rate_limit_error", "Insufficient balance. Please recharge.", F.BILLING),
        ("rate_limit_error", "The engine is currently overloaded", F.OVERLOADED),
        ("invalid_request_error", "Your credit balance is too low", F.BILLING),
    ],
)
def test_prose_beats_a_vague_type(kind: str, message: str, expected: F) -> None:
    assert read(Reply(body={"error": {"type": kind, "message": message}})).reason is expected


@pytest.mark.rule("OURS-3")
def test_the_same_words_mean_different_things_at_different_providers() -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    body = {"error": {"message": words, "type": "insufficient_quota", "code": "insufficient_quota"}}
    reasons = {p: read(Reply(provider=p, status=429, body=body)).reason for p in ("openai", "dashscope", "")}
    assert reasons == {"openai": F.BILLING, "dashscope": F.RATE_LIMIT, "": F.BILLING}
    google = {"error": {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED"}}
    assert read(Reply(provider="google", status=429, body=google)).reason is F.RATE_LIMIT


@pytest.mark.rule("OURS-3")
@pytest.mark.parametrize(
    ("provider", "code", "expected"),
    [
        ("zai", "1113", F.BILLING),
        ("zhipu", "1302", F.RATE_LIMIT),
        ("zai", "1305", F.OVERLOADED),
        ("minimax", 1008, F.BILLING),
        ("minimax", 1002, F.RATE_LIMIT),
        ("cloudflare", 3040, F.OVERLOADED),
        ("openai", "1113", F.RATE_LIMIT),
        ("", "1008", F.RATE_LIMIT),
    ],
)
def test_numbers_of_a_provider_count_there_only(provider: str, code: object, expected: F) -> None:
    body = {"error": {"code": code, "message": "no words that say anything"}}
    assert read(Reply(provider=provider, status=429, body=body)).reason is expected


@pytest.mark.rule("OURS-5")
def test_a_reading_tells_what_won_what_lost_and_what_they_matched() -> None:
    body = {"error": {"message": "Rate limit reached", "code": "insufficient_quota"}}
    found = read(Reply(status=429, body=body))
    assert (found.row, found.matched) == ("billing.code", ("insufficientquota",))
    assert "rate.prose (rate.limit, rate.window)" in found.also_matched
    assert "rate.status (429)" in found.also_matched
    assert found.table == TABLE
    nothing = read(Reply(body="some random error"))
    assert (nothing.row, nothing.also_matched) == ("nothing", ())


OWN = OperatorRow(
    id="acme.wallet",
    reason=F.BILLING,
    providers=("acme",),
    statuses=(418,),
    text=("The “Teapot Fund” is dry",),
    flags=("long_window",),
    note="seen at Acme in May",
)


@pytest.mark.rule("OURS-6")
def test_operator_rows_go_first() -> None:
    reply = Reply(
        provider="acme", status=418, body={"error": {"message": 'Rate limit: THE "TEAPOT FUND" IS DRY.'}}
    )
    assert read(reply).reason is F.RATE_LIMIT
    found = read(reply, extra_rows=(OWN,))
    assert (found.reason, found.row, found.long_window) == (F.BILLING, "acme.wallet", True)
    assert any(loser.startswith("rate.prose") for loser in found.also_matched)
    other = msgspec.structs.replace(reply, provider="openai")
    assert read(other, extra_rows=(OWN,)).reason is F.RATE_LIMIT


@pytest.mark.rule("OURS-6")
def test_operator_rows_are_decided_again_from_the_evidence_alone() -> None:
    reply = Reply(provider="acme", status=418, body="x" * 5_000 + " the 'teapot fund' is dry")
    row = msgspec.structs.replace(OWN, text=("teapot fund",))
    evidence = extract(reply, limit_bytes=0, extra_rows=(row,)).evidence
    assert classify(evidence, extra_rows=(row,)).reason is F.BILLING
    again = msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence)
    assert classify(again, extra_rows=(row,)) == classify(evidence, extra_rows=(row,))


@pytest.mark.rule("OURS-6")
@pytest.mark.parametrize("ruleset", ["2026-10", "2026-04"])
def test_every_matcher_of_an_operator_row_has_to_match(ruleset: str) -> None:
    row = OperatorRow(
        id="acme.all",
        reason=F.REFUSAL,
        codes=("E_17",),
        types=("odd_error",),
        params=("q",),
        kind=RefusalKind.GENERIC,
    )
    full = {"code": "e-17", "type": "OddError", "param": "q", "message": "no"}
    assert read(Reply(status=400, body=full), ruleset=ruleset, extra_rows=(row,)).reason is F.REFUSAL
    for missing in ("code", "type", "param"):
        part = {name: value for name, value in full.items() if name != missing}
        assert read(Reply(status=400, body=part), ruleset=ruleset, extra_rows=(row,)).reason is F.FORMAT


@pytest.mark.rule("OURS-6")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "no matcher"),
        ({"id": "Has Space", "statuses": (400,)}, "its id must be"),
        ({"statuses": (42,)}, "no HTTP status"),
        ({"text": ("ab",)}, "fewer than 3 characters"),
        ({"text": ("  ",)}, "empty or longer"),
        ({"codes": ("---",)}, "no letters or digits"),
        ({"statuses": (400,), "flags": ("shiny",)}, "flag 'shiny' is unknown"),
        ({"statuses": (400,), "reason": F.INTERRUPTED}, "cannot be given by a row"),
        ({"statuses": (400,), "id": "rate.status"}, "built-in row has this id"),
        ({"statuses": (400,), "id": "402.owner"}, "built-in row has this id"),
    ],
)
def test_operator_rows_are_checked_when_they_are_loaded(fields: dict[str, Any], words: str) -> None:
    row = OperatorRow(**{"id": "own.row", "reason": F.BILLING, **fields})
    with pytest.raises(BadPolicy, match="row 1") as caught:
        read(Reply(status=400), extra_rows=(row,))
    assert words in str(caught.value)


@pytest.mark.rule("OURS-6")
def test_operator_ids_are_used_once() -> None:
    row = OperatorRow(id="own.row", reason=F.BILLING, statuses=(418,))
    with pytest.raises(BadPolicy, match=r"row 2 .* used twice"):
        read(Reply(status=400), extra_rows=(row, row))

"""By which documented rules a failure was read: what rows name, and what a reading adds to that."""

from pathlib import Path
from typing import Any

import pytest

from standby.engine.classify.tables import RULESETS
from standby.engine.reading.extract import Reply, read
from standby.events.evidence import OperatorRow
from standby.events.vocabulary import Failure, Origin, Stage

NEW, OLD = "2026-10", "2026-04"
PAGE = Path(__file__).resolve().parents[2] / "specs" / "rules.md"


def rules(body: object = None, status: int | None = None, ruleset: str = NEW, **fields: Any) -> tuple[str, ...]:
    return read(Reply(body=body, status=status, **fields), ruleset=ruleset).rules


@pytest.mark.checkout
@pytest.mark.parametrize("ruleset", RULESETS)
def test_rows_name_rules_of_their_own_ruleset(ruleset: str) -> None:
    from specs.catalogue import parse_rules

    known = parse_rules(PAGE.read_text("utf-8")).rules
    table = RULESETS[ruleset]
    named = {rule for row in table.rows for rule in row.rules} | table.general | {*table.nothing_rules}
    assert len(named) > 10
    for rule in named:
        assert known[rule].sets in ("both", ruleset[-2:], "any") or rule.startswith("OURS"), rule


BOTH_SETS: dict[str, tuple[object, int | None, str]] = {
    "CLS-1": ("too many concurrent requests", None, ""),
    "CLS-9": ({"type": "api_error", "message": "internal server error"}, None, ""),
    "CLS-10": ("Provider returned error", None, "openrouter"),
    "CLS-11": ("LLM request failed with an unknown error.", None, ""),
    "CLS-12": ("insufficient credits", 403, ""),
    "CLS-13": ("daily limit reached, resets tomorrow", 402, ""),
    "CLS-14": ("ModelNotReadyException: the model is not ready", None, ""),
    "CLS-17": ("The input is too long for the model", 400, ""),
    "CLS-26": ("Request timed out: rate limit exceeded", 408, ""),
    "CLS-31": ("Key limit exceeded", 403, "openrouter"),
    "ADV-2": ("stopped by the user", None, ""),
}


@pytest.mark.rule(
    "CLS-1", "CLS-9", "CLS-10", "CLS-11", "CLS-12", "CLS-13", "CLS-14", "CLS-17", "CLS-26", "CLS-31"
)
@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("rule", BOTH_SETS)
def test_readings_by_rules_of_both_documents(rule: str, ruleset: str) -> None:
    body, status, provider = BOTH_SETS[rule]
    origin = Origin.ABORT if rule == "ADV-2" else Origin.PROVIDER
    assert rule in rules(body, status, ruleset, provider=provider, origin=origin)


LATER: dict[str, tuple[object, int | None]] = {
    "CLS-3": ("invalid request format", None),
    "CLS-4": ("[redacted]", 400),
    "CLS-6": ("Provider finish_reason: error", None),
    "CLS-7": ("", 502),
    "CLS-8": ("Google Generative AI API error (503): busy bees", None),
    "CLS-15": ("", 404),
    "CLS-16": ("Unknown error (no error details in response)", None),
    "CLS-18": ("tokens per minute (TPM): Limit 8000, Requested 8098", 413),
    "CLS-19": ("This API key has been revoked", 401),
    "CLS-21": ("Unknown model: x-1", 400),
    "CLS-24": ("Responses WebSocket connection expired", None),
    "CLS-25": ("Failed to authenticate: OAuth session expired", None),
    "CLS-28": ("An unknown error occurred", None),
    "CLS-29": ("", 429),
    "CLS-32": ("Provider finish_reason: network_error", None),
}


@pytest.mark.rule("CLS-3", "CLS-4", "CLS-6", "CLS-7", "CLS-8", "CLS-15", "CLS-16", "CLS-18", "CLS-19")
@pytest.mark.rule("CLS-21", "CLS-24", "CLS-25", "CLS-28", "CLS-29", "CLS-32")
@pytest.mark.parametrize("rule", LATER)
def test_readings_by_rules_of_the_later_document(rule: str) -> None:
    body, status = LATER[rule]
    assert rule in rules(body, status)
    assert rule not in rules(body, status, OLD)


EARLIER: dict[str, tuple[object, int | None, str]] = {
    "CLS-2": ("invalid request format", 400, ""),
    "CLS-5": ("Unhandled stop reason: error", None, ""),
    "CLS-27": ("An unknown error occurred", None, "anthropic"),
}


@pytest.mark.rule("CLS-2", "CLS-5", "CLS-27")
@pytest.mark.parametrize("rule", EARLIER)
def test_readings_by_rules_of_the_earlier_document(rule: str) -> None:
    body, status, provider = EARLIER[rule]
    assert rule in rules(body, status, OLD, provider=provider)
    assert rule not in rules(body, status, NEW, provider=provider)


@pytest.mark.rule("CLS-8", "CLS-29")
def test_where_the_status_stood() -> None:
    assert rules("", 503) == ("CLS-7", "CLS-29")
    assert rules("API error (503): busy bees") == ("CLS-7", "CLS-8")
    assert rules({"error": {"code": 503, "message": "busy bees"}}) == ("CLS-7",)
    assert rules("402 things were found") == ("CLS-29",), "a number in unrelated text"
    assert rules("invalid request format") == ("CLS-3",), "no status had a say"


@pytest.mark.rule("CLS-20")
def test_a_type_that_came_in_a_stream() -> None:
    event = {"type": "error", "error": {"type": "rate_limit_error", "message": "An error happened"}}
    assert rules(event, stage=Stage.STREAM) == ("CLS-1", "CLS-20")
    assert rules(event) == ("CLS-1",)
    assert rules("The model is overloaded right now", stage=Stage.STREAM) == ("CLS-14",), "words are no type"
    assert "CLS-20" not in rules(event, ruleset=OLD, stage=Stage.STREAM)


@pytest.mark.rule("CLS-30")
def test_what_a_codex_turn_kept() -> None:
    for info in ("serverOverloaded", {"httpConnectionFailed": {"httpStatusCode": 503}}):
        body = {"error": {"message": "exceeded retry limit", "codexErrorInfo": info}}
        assert "CLS-30" in rules(body, provider="openai-codex")
        assert "CLS-30" not in rules(body, provider="anthropic")
    assert "CLS-30" not in rules("", 503, provider="openai-codex")


@pytest.mark.rule("OURS-2")
def test_what_gave_way_to_a_closer_look() -> None:
    assert rules("insufficient credits", 500) == ("CLS-12", "OURS-2"), "prose beats a status"
    assert rules({"error": {"code": "insufficient_quota"}}, 429) == ("OURS-2",), "a code beats a status"
    code = {"error": {"code": "insufficient_quota", "message": "rate limit exceeded"}}
    assert rules(code) == ("OURS-2",), "a code beats prose"
    assert "OURS-2" not in rules("insufficient credits", 402)
    assert "OURS-2" not in rules("rate limit exceeded", 429), "both say the same"
    assert "OURS-2" not in rules("", 500)


@pytest.mark.rule("OURS-3", "CLS-31")
def test_words_that_mean_something_else_there() -> None:
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
    assert {"OURS-3", "CLS-31"} <= {*rules(body, 429, provider="dashscope")}
    assert not {"OURS-3", "CLS-31"} & {*rules(body, 429, provider="openai")}


@pytest.mark.rule("OURS-6")
def test_a_row_of_the_operator() -> None:
    own = (OperatorRow(id="mine", reason=Failure.BILLING, text=("no more marbles",)),)
    assert read(Reply(body="no more marbles"), extra_rows=own).rules == ("OURS-6",)


def test_no_rule_stands_behind_what_is_only_known_of_providers() -> None:
    assert rules({"error": {"code": "insufficient_quota"}}) == ()
    assert rules("some words that mean nothing") == ("CLS-16",)
    assert rules("some words that mean nothing", ruleset=OLD) == ()

"""`standby classify`: one failure, many, or the tables."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from standby.hosts.cli.classify import classify_command
from tests.classify.cases import load

app = typer.Typer()
app.command("classify")(classify_command)
runner = CliRunner()


def run(*args: str, stdin: str | bytes = "") -> Any:
    return runner.invoke(app, list(args), input=stdin)


def answers(stdin: str, *args: str) -> list[dict[str, Any]]:
    result = run("--jsonl", *args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_many_failures_answered_in_order_with_their_ids() -> None:
    cases = load("failures_recorded.jsonl")
    lines = [json.dumps({**case, "extra": 1}) for case in cases]
    found = answers("\n".join(lines) + "\n\n")
    assert [answer["id"] for answer in found] == [case["id"] for case in cases]
    assert {answer["ruleset"] for answer in found} == {"2026-10", "2026-04"}
    first = found[0]
    assert {"reason", "retry_after_ms", "row", "also_matched", "table"} <= first.keys()
    assert (first["reason"], first["row"]) == ("billing", "billing.code")
    assert "OURS-2" in first["rules"]
    assert all(isinstance(answer["rules"], list) for answer in found)
    assert isinstance(first["also_matched"], list)


def test_reason_is_null_when_nothing_is_recognised() -> None:
    found = answers('{"body": "some random error"}\n{"status": 400}\n{"body": "x", "ruleset": "2026-04"}')
    assert [answer["reason"] for answer in found] == [None, None, None]
    assert [answer["label"] for answer in found] == ["unclassified", "unclassified", "unknown"]
    assert "id" not in found[0]


def test_ids_of_any_kind_are_echoed() -> None:
    found = answers('{"id": 7, "status": 429}\n{"id": null, "status": 429}\n{"id": {"a": 1}, "status": 429}')
    assert [answer["id"] for answer in found] == [7, None, {"a": 1}]


def test_waits_and_marks_are_told() -> None:
    line = {"status": 429, "headers": {"Retry-After": "90"}, "body": "daily limit reached"}
    (found,) = answers(json.dumps(line))
    assert (found["retry_after_ms"], found["wait_source"], found["long_window"]) == (
        90_000,
        "retry_after",
        True,
    )
    line = {"received_ms": 1_772_000_000_000, "body": {"error": {"resets_at": 1_772_000_060}}}
    (found,) = answers(json.dumps(line))
    assert found["retry_after_ms"] == 60_000


def test_dates_of_unknown_age() -> None:
    old = {"body": "Weekly limit exhausted. Your limit will reset at 2020-03-06 22:19:54 UTC"}
    soon = {"body": {"error": {"resets_at": time.time_ns() // 1_000_000_000 + 3600}}}
    dated = {
        "headers": {"Date": "Wed, 25 Feb 2026 06:13:20 GMT", "Retry-After": "Wed, 25 Feb 2026 06:14:20 GMT"}
    }
    first, second, third = answers("\n".join(map(json.dumps, (old, soon, dated))))
    assert first["retry_after_ms"] is None
    assert 3_500_000 < second["retry_after_ms"] <= 3_600_000
    assert third["retry_after_ms"] == 60_000


def test_a_ruleset_for_all_lines() -> None:
    lines = '{"body": "stop reason: error"}\n{"body": "stop reason: error", "ruleset": "2026-10"}'
    found = answers(lines, "--ruleset", "2026-04")
    assert [answer["reason"] for answer in found] == ["timeout", "server_error"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{not json", "line 2 is not JSON"),
        ("[1, 2]", "line 2 must hold a JSON object"),
        ('{"status": "many"}', "line 2: status must be"),
        ('{"status": true}', "line 2: status must be"),
        ('{"status": 429, "headers": []  , "body": 1, "headers": ["x"]}', "line 2: headers must be"),
        ('{"provider": 3}', "line 2: provider must be text"),
        ('{"ruleset": "2027-01", "status": 1}', "line 2: ruleset '2027-01' is unknown"),
        ('{"origin": "moon", "status": 1}', "line 2: origin must be one of"),
        ('{"received_ms": "now", "status": 1}', "line 2: received_ms must be"),
        ('{"stauts": 429}', "line 2: no known field"),
        ('{"body": "\\ud800"}', "line 2"),
        ("\x00", "line 2 is not JSON"),
    ],
)
def test_a_bad_line_is_named(line: str, words: str) -> None:
    result = run("--jsonl", stdin='{"status": 429}\n' + line + "\n")
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not isinstance(result.exception, ValueError | TypeError)


def test_bytes_that_are_no_text() -> None:
    result = run("--jsonl", stdin=b'{"status": 429, "body": "\xff\xfe"}\n')
    assert result.exit_code == 2
    assert "line 1" in result.stderr


def test_one_failure_by_flags() -> None:
    body = '{"error": {"code": "insufficient_quota", "message": "no"}}'
    result = run("--status", "429", "--provider", "openai", "--body", body, "-H", "Retry-After: 3")
    assert result.exit_code == 0
    assert "reason        billing" in result.stdout
    assert "row           billing.code  insufficientquota" in result.stdout
    assert "rules         OURS-2\n" in result.stdout
    assert "also matched  rate.status (429)" in result.stdout
    assert "wait          3 s, by retry_after" in result.stdout
    long = ("--status", "429", "-H", "Retry-After: 46803")
    assert "wait          13 h 0 min, by retry_after" in run(*long).stdout
    assert json.loads(run(*long, "--json").stdout)["retry_after_ms"] == 46_803_000


def test_one_failure_as_json_from_standard_input() -> None:
    result = run("--status", "503", "--body", "-", "--json", stdin="The model is overloaded")
    assert json.loads(result.stdout)["reason"] == "overloaded"


def test_nothing_recognised_for_people() -> None:
    result = run("--body", "some random error")
    assert "reason        none (unclassified)" in result.stdout
    assert "rules         CLS-16" in result.stdout
    assert "rules   " not in run("--code", "insufficient_quota").stdout, "nothing to show"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "nothing to classify"),
        (
            ("--status", "429", "--ruleset", "2027-01"),
            "ruleset '2027-01' is unknown; known are 2026-10, 2026-04",
        ),
        (("--status", "429", "-H", "no colon"), "'no colon' is not of the form"),
        (("--rows", "--extra-rows", "/nowhere/rows.json"), "cannot be read"),
    ],
)
def test_bad_flags(args: tuple[str, ...], words: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.rule("OURS-6")
def test_rows_of_ones_own(tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text('[{"id": "own.tea", "reason": "billing", "text": ["teapot fund"], "note": "Acme"}]')
    result = run("--body", "The Teapot Fund is dry", "--extra-rows", str(rows))
    assert "own.tea" in result.stdout
    assert run("--rows", "--extra-rows", str(rows)).stdout.index("own.tea") < 200
    rows.write_text('[{"id": "own.tea", "reason": "tea"}]')
    bad = run("--body", "x", "--extra-rows", str(rows))
    assert (bad.exit_code, "cannot be used" in bad.stderr) == (2, True)
    rows.write_text('[{"id": "own.tea", "reason": "billing"}]')
    bad = run("--body", "x", "--extra-rows", str(rows))
    assert (bad.exit_code, "no matcher" in bad.stderr) == (2, True)


def test_the_tables_are_listed() -> None:
    result = run("--rows")
    assert result.exit_code == 0
    assert "billing.code" in result.stdout
    (payment,) = [line.split() for line in result.stdout.splitlines() if line.startswith("402.payment ")]
    assert payment == ["402.payment", "billing", "CLS-13", "status", "402"]
    assert "insufficient ~3 credit|balance|fund" in result.stdout
    listing = json.loads(run("--rows", "--json", "--ruleset", "2026-04").stdout)
    assert listing["ruleset"] == "2026-04"
    assert {row["id"]: row["rules"] for row in listing["rows"]}["04.429"] == ["CLS-1"]
    assert len(listing["phrases"]) > 100
    assert "insufficientquota" in listing["codes"]["billing"]

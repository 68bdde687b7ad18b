"""Failures that were found to be read wrongly, each with the row that has to read it and what follows.

In `tests/data/failures_found.jsonl`: beside the fields of every case (see `cases`) `row`, and `flags` with the
facts that decide what is blocked. A `wait_ms` of null says that no wait may be read.
"""

import pytest

from tests.classify.cases import Case, load, reading_of

CASES = load("failures_found.jsonl")


@pytest.mark.rule("TIME-1", "OURS-3", "OURS-4", "CLS-21")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_found_failure(case: Case) -> None:
    found = reading_of(case)
    assert (found.reason.value, found.row) == (case["reason"], case["row"])
    assert found.retry_after_ms == case["wait_ms"]
    assert {name: getattr(found, name) for name in case["flags"]} == case["flags"]


def test_a_closed_model_shuts_neither_the_account_nor_the_other_credentials() -> None:
    closed = {case["id"]: reading_of(case) for case in CASES if case["row"] == "openai.unverified"}
    assert len(closed) == 4
    assert not any(reading.missing_model or reading.subscription for reading in closed.values())
    assert all("CLS-21" in reading.rules for reading in closed.values())

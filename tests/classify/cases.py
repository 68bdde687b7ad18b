"""Recorded failures and how they are read: one case a line in `tests/data`.

Fields of a case: id, ruleset (2026-10 when left out), provider, model, status, code, headers, body,
received_ms; `reason` is the expected class (null: nothing is recognised), `or` (or `also_accepted`) lists
readings that can be defended too, `wait_ms` (or `retry_after_s`) the stated wait.
"""

import json
from pathlib import Path
from typing import Any

from standby.engine.classify.classifier import Reading, recognised
from standby.engine.reading.extract import Reply, read

DATA = Path(__file__).resolve().parent.parent / "data"
NOTHING = {"unclassified", "empty_response", "no_error_details", "unknown"}

Case = dict[str, Any]


def load(name: str) -> list[Case]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def reply_of(case: Case) -> Reply:
    return Reply(
        provider=case.get("provider") or "",
        model=case.get("model") or "",
        status=case.get("status"),
        code=case.get("code"),
        headers=case.get("headers") or {},
        body=case.get("body"),
        received_ms=case.get("received_ms") or 0,
    )


def reading_of(case: Case) -> Reading:
    return read(reply_of(case), ruleset=case.get("ruleset", "2026-10"))


def said(reading: Reading) -> str | None:
    """The reason as the command line says it: None where nothing was recognised."""
    return reading.reason.value if recognised(reading) else None


def is_read(case: Case, reading: Reading) -> bool:
    got = said(reading)
    accepted = [case["reason"], *case.get("or", ()), *case.get("also_accepted", ())]
    nothing_wanted = case["reason"] is None or case["reason"] in NOTHING
    return got in accepted or reading.reason.value in accepted or (got is None and nothing_wanted)


def wait_of(case: Case) -> int | None:
    if case.get("wait_ms") is not None:
        return int(case["wait_ms"])
    seconds = case.get("retry_after_s")
    return None if seconds is None else round(seconds * 1000)

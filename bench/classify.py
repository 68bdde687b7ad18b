"""Classification measured: what is read how, by provider and by reason, and what it costs.

Run by `make bench-classify`. The cases are those that the tests read (`tests/data`): recorded ones, and the two
held-out sets. The costs stand beside their limits; a figure over its limit is marked.
"""

import json
import time
import timeit
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from standby.engine.classify.classifier import classify, recognised
from standby.engine.classify.codes import TOKENS
from standby.engine.classify.tables import RULESETS, TABLE
from standby.engine.reading.extract import Reply, extract, read
from standby.engine.reading.phrase_lines import SAYS

__all__ = ["main"]

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
FILES = (
    "failures_recorded.jsonl",
    "failures_heldout.jsonl",
    "failures_reports.jsonl",
    "failures_plausible.jsonl",
)
NOTHING = {"unclassified", "empty_response", "no_error_details", "unknown"}
TYPICAL_US = 60.0
HOSTILE_MS = 5.0

Case = dict[str, Any]


def load(name: str) -> list[Case]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def reading(case: Case) -> tuple[str | None, str]:
    """What is said of a case, and its label."""
    reply = Reply(
        provider=case.get("provider") or "",
        status=case.get("status"),
        code=case.get("code"),
        headers=case.get("headers") or {},
        body=case.get("body"),
    )
    found = read(reply, ruleset=case.get("ruleset", "2026-10"))
    return (found.reason.value if recognised(found) else None), found.reason.value


def holds(case: Case) -> bool:
    got, label = reading(case)
    accepted = [case["reason"], *case.get("or", ()), *case.get("also_accepted", ())]
    nothing = case["reason"] is None or case["reason"] in NOTHING
    return got in accepted or label in accepted or (got is None and nothing)


def by(console: Console, title: str, key: Callable[[Case], str], cases: list[Case]) -> None:
    """One line a group: cases, how many are read as labelled, and what the others are read as."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    table = Table(title=title, title_justify="left")
    for name in (title.split()[-1], "cases", "as labelled", "otherwise read as"):
        table.add_column(name, justify="left" if name.startswith(("o", "p", "r", "s")) else "right")
    for name, group in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        missed = Counter(str(reading(case)[0]) for case in group if not holds(case))
        others = ", ".join(f"{reason} ({number})" for reason, number in missed.most_common())
        table.add_row(name, str(len(group)), str(len(group) - missed.total()), others)
    console.print(table)


# --- costs --------------------------------------------------------------------------------------------------

TYPICAL = json.dumps({
    "error": {
        "message": "Rate limit reached for model-1 in organization org-PLACEHOLDER on tokens per min (TPM): "
        "Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s. Visit https://x.example/limits "
        "to learn more. " + "You can increase your rate limit by adding a payment method to your account. " * 5,
        "type": "tokens", "param": None, "code": "rate_limit_exceeded",
    },
    "request_id": "req_PLACEHOLDER", "documentation": "https://provider.example/" + "x" * 160,
})  # fmt: skip
HEADERS = {
    "content-type": "application/json", "retry-after": "2", "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "500", "x-ratelimit-reset-tokens": "59s",
}  # fmt: skip
MEGABYTE = 1_000_000
HOSTILE = {
    "one word": "a" * MEGABYTE,
    "a phrase's first word": "insufficient " * (MEGABYTE // 13),
    "waits": "retry in " + "1 s " * (MEGABYTE // 4),
    "open brackets": "[" * MEGABYTE,
    "open quotes": '{"' * (MEGABYTE // 2),
    "keys without end": '"a":' * (MEGABYTE // 4),
    "escapes": '{"message":"' + '\\"a\\":' * (MEGABYTE // 6),
    "many keys": json.dumps({f"key{number}": number for number in range(60_000)}),
    "a long message": json.dumps({"error": {"message": "model not found " * (MEGABYTE // 16)}}),
    "open tags": "<html>" + "<" * MEGABYTE,
    "events": 'data: {"a":1}\n' * (MEGABYTE // 14),
    "Chinese": "余额" * (MEGABYTE // 2),
    "addresses": "a@" * (MEGABYTE // 2),
    "keys to mask": "sk-" * (MEGABYTE // 3),
}


def cost_us(work: Callable[[], object], number: int, repeat: int = 25) -> float:
    """Processor time of one call in microseconds, the least of several rounds: others may share the machine."""
    work()
    return min(timeit.repeat(work, timer=time.process_time, number=number, repeat=repeat)) / number * 1e6


def read_and_keep(reply: Reply) -> object:
    """All of it: typed evidence, the masked text, the reading."""
    return classify(extract(reply).evidence)


def costs(console: Console) -> None:
    """Print the costs beside their limits."""
    table = Table(title="What it costs", title_justify="left")
    for name in ("what", "measured", "at most", ""):
        table.add_column(name, justify="left" if name in ("what", "") else "right")
    reply = Reply(provider="openai", model="model-1", status=429, headers=HEADERS, body=TYPICAL, received_ms=1)
    evidence = extract(reply).evidence
    reading_only = cost_us(lambda: classify(extract(reply, limit_bytes=0).evidence), 500)
    rows: list[tuple[str, float, float | None, str]] = [
        (f"extract and classify, {len(TYPICAL)} bytes of JSON", reading_only, TYPICAL_US, "us"),
        (
            "the same, and the masked text kept",
            cost_us(partial(read_and_keep, reply), 500),
            None,
            "us",
        ),
        ("classify again from the evidence", cost_us(lambda: classify(evidence), 1000), None, "us"),
    ]
    for name, body in HOSTILE.items():
        hostile = Reply(status=500, body=body)
        spent = cost_us(partial(read_and_keep, hostile), 1, 5) / 1000
        rows.append((f"hostile megabyte: {name}", spent, HOSTILE_MS, "ms"))
    for what, spent, limit, unit in rows:
        over = limit is not None and spent > limit
        table.add_row(
            what, f"{spent:.2f} {unit}", "" if limit is None else f"{limit:.0f} {unit}", "OVER" if over else ""
        )
    console.print(table)


def main() -> int:
    """Print everything. A cost over its limit is marked and no failure: it may be the machine's."""
    console = Console(width=112)
    lines, codes = len(SAYS), sum(len(set(group.split())) for group in TOKENS.values())
    patterns = sum(len(line.patterns) for line in SAYS)
    rows = " and ".join(f"{len(table.rows)} rows in {name}" for name, table in RULESETS.items())
    console.print(f"Table {TABLE}: {rows}, {patterns} patterns in {lines} phrase lines, {codes} codes\n")
    cases = [case for name in FILES for case in load(name)]
    current = [case for case in cases if case.get("ruleset", "2026-10") == "2026-10"]
    by(console, "2026-10 by provider", lambda case: case.get("provider") or "(none)", current)
    by(console, "2026-10 by reason", lambda case: str(case["reason"]), current)
    earlier = [case for case in cases if case.get("ruleset") == "2026-04"]
    by(console, "2026-04 by reason", lambda case: str(case["reason"]), earlier)
    for name in FILES:
        group = load(name)
        good = sum(map(holds, group))
        console.print(f"{name}: {good} of {len(group)} as labelled ({good / len(group):.1%})")
    console.print()
    costs(console)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

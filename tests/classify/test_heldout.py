"""Failures that were written or gathered after the tables: do the tables generalise?

Three sets. `failures_heldout.jsonl` holds 280 bodies of some forty providers, from their error documentation,
from public reports and paraphrased; on the day it was written, before any line was changed for it, 271 of 280
(96.8 %) were read as labelled. `failures_reports.jsonl` holds 67 bodies gathered from public reports after
that; 65 of them (97.0 %) held at first sight. `failures_plausible.jsonl` holds 168 that were written last, of
which 159 (94.6 %) held: some forty of them are traps, requests that are merely wrong and use the words of
other failures; two of these are misread still (and one label has been corrected: a browser challenge under 403
is a gateway's page, and says nothing about the key). The tables have learnt from the other misses since, so
these shares can only show that nothing got worse; the first ones are what generalisation was worth.
"""

from collections import Counter

import pytest

from tests.classify.cases import Case, is_read, load, reading_of, said, wait_of

SETS = {
    "failures_heldout.jsonl": 0.98,
    "failures_reports.jsonl": 0.98,
    "failures_plausible.jsonl": 0.98,
}
"""File -> the share of readings that has to hold."""


def _holds(case: Case) -> bool:
    reading = reading_of(case)
    wait = wait_of(case)
    return is_read(case, reading) and (wait is None or reading.retry_after_ms == wait)


@pytest.mark.parametrize(("name", "floor"), SETS.items())
def test_share_of_held_out_readings_that_hold(
    name: str, floor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = load(name)
    missed = {case["id"]: said(reading_of(case)) for case in cases if not _holds(case)}
    share = 1 - len(missed) / len(cases)
    with capsys.disabled():
        print(f"\n{name}: {len(cases) - len(missed)} of {len(cases)} hold ({share:.1%})")
    assert share >= floor, missed


def test_the_held_out_sets_are_wide() -> None:
    cases = [case for name in SETS for case in load(name)]
    assert len(cases) >= 500
    assert len({case["provider"] for case in cases}) >= 40
    assert len(Counter(case["reason"] for case in cases)) >= 13
    assert len({case["id"] for case in cases}) == len(cases)

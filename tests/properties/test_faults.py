"""A planted fault per invariant shows that its property can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.events.test_codec import (
    test_the_order_in_which_a_mapping_was_filled_leaves_no_trace as mapping_order,
)
from tests.properties import holds, test_log, test_secrets
from tests.properties.faults import FAULTS, planted
from tests.properties.tamper import TAMPERINGS

LIMITED: dict[str, Any] = {
    "max_examples": 2000,
    "phases": [Phase.generate],
    "database": None,
    "derandomize": True,
    "deadline": None,
    "report_multiple_bugs": False,
    "suppress_health_check": list(HealthCheck),
}
"""Enough to find each fault; what is found is not made smaller."""


def _tampering(*names: str) -> Callable[[], None]:
    def look() -> None:
        @settings(**LIMITED)
        @given(
            history=test_log.ANY, name=st.sampled_from(names), at=st.integers(0, 99), how=st.integers(0, 999)
        )
        def looked_for(history: Any, name: str, at: int, how: int) -> None:
            test_log.check_refused(history, name, at, how)

        looked_for()

    return look


def _mappings() -> None:
    names = st.lists(st.text(max_size=5), unique=True, min_size=2, max_size=6)
    inner = mapping_order.hypothesis.inner_test  # type: ignore[attr-defined]  # set at run time
    settings(**LIMITED)(given(names=names, data=st.data())(inner))()


def _masking() -> None:
    @settings(**LIMITED)
    @given(secret=test_secrets.SECRETS, place=st.sampled_from(test_secrets.PLACES), told=st.booleans())
    def looked_for(secret: str, place: str, told: bool) -> None:
        test_secrets.check_masked(secret, place, 401, told)

    looked_for()


PROPERTIES: dict[str, Callable[[], None]] = {
    "the chain is not checked": _tampering("changed_hash", "removed_and_renumbered"),
    "decisions are not recomputed": _tampering(*(name for name in TAMPERINGS if name.startswith("forged"))),
    "mappings are written as they were filled": _mappings,
    "a secret is kept as the provider quotes it": _masking,
    "secrets that the host names are not looked for": _masking,
}
"""For faults that the histories of their invariant do not look for."""


def look_for(name: str, invariant: int) -> None:
    if name in PROPERTIES:
        PROPERTIES[name]()
    elif invariant in test_log.CHECKS:
        test_log.holds(test_log.CHECKS[invariant], **LIMITED)
    else:
        holds.holds(invariant, **LIMITED)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    with planted(name) as fault:
        with pytest.raises(AssertionError) as found:
            look_for(name, fault.invariant)
        by_the_log = fault.invariant in (10, 11, 12, 15)
        assert by_the_log or getattr(found.value, "number", None) == fault.invariant, str(found.value)


def test_every_invariant_that_has_properties_has_a_fault() -> None:
    assert {fault.invariant for fault in FAULTS.values()} == {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15}


def test_nothing_stays_planted() -> None:
    for name in FAULTS:
        with planted(name):
            pass
    holds.holds(8, **{**LIMITED, "max_examples": 20})
    test_log.holds(test_log.check_same, **{**LIMITED, "max_examples": 10})

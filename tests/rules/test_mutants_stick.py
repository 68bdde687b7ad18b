"""STICK, closer: what holds for one run passes, and the sticky fallback is still there."""

from typing import Any

import pytest

from standby.events import decisions as d
from standby.events.policy import Recovery
from tests.harness import A, B, C, World, chain, of


def stuck() -> World:
    """The session is on its sticky fallback B."""
    w = World(chain(A, B, C, recovery=Recovery(max_retries=0)))
    w.run("s", "rate_limit")
    return w


@pytest.mark.rule("STICK-3")
@pytest.mark.parametrize(
    "fields",
    [{"locked": True}, {"selected_only": True}, {"fallbacks": [C]}, {"model": C}],
    ids=str,
)
def test_a_run_with_limits_of_its_own_neither_uses_the_sticky_fallback_nor_ends_it(
    fields: dict[str, Any],
) -> None:
    w = stuck()
    w.sleep(120_000)
    limited = w.turn(**fields)
    assert B not in [candidate.model for candidate in limited.state.candidates[:1]]
    assert of(limited, d.StickyEnded) == []
    limited.cancel()
    assert w.turn().state.candidates[0].model == B

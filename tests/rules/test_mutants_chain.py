"""CHAIN, closer: what is no fallback's business, and where a chain ends."""

import pytest

from standby.engine.candidates import window_of
from standby.events import decisions as d
from standby.events.policy import Policy
from standby.events.vocabulary import SelectionSource
from tests.harness import A, B, World, chain, of

ELSEWHERE = "groq/delta"
SIBLING = "anthropic/beta-mini"


@pytest.mark.rule("CHAIN-3")
@pytest.mark.parametrize(("model", "on_fallback"), [(A, False), (ELSEWHERE, False), (B, True), (SIBLING, True)])
def test_only_a_fallback_or_a_sibling_of_one_is_explained_as_the_start_on_a_fallback(
    model: str, on_fallback: bool
) -> None:
    turn = World(chain(A, B, "openai/alpha-mini")).turn(model=model, source=SelectionSource.CRON)
    (planned,) = of(turn, d.ChainPlanned)
    assert ("CHAIN-3" in planned.rules) is on_fallback


@pytest.mark.rule("CHAIN-5")
def test_a_long_chain_is_cut_at_thirty_two() -> None:
    fallbacks = [f"groq/m{number}" for number in range(40)]
    (planned,) = of(World(chain(A, *fallbacks)).turn(), d.ChainPlanned)
    assert [candidate.model for candidate in planned.candidates] == [A, *fallbacks[:31]]


@pytest.mark.rule("CHAIN-8")
@pytest.mark.parametrize(
    ("window", "cap", "known"), [(None, None, None), (9, None, 9), (None, 5, 5), (9, 5, 5), (5, 9, 5)]
)
def test_a_window_is_known_by_itself_by_its_cap_or_as_the_smaller_of_both(
    window: int | None, cap: int | None, known: int | None
) -> None:
    policy = Policy(
        windows={} if window is None else {A: window}, context_tokens={} if cap is None else {A: cap}
    )
    assert window_of(policy, A) == known

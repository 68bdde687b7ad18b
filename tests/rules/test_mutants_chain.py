"""CHAIN, closer: what is no fallback's business, and where a chain ends."""

import pytest

from standby.engine.decide.chain import reorder_for_window, window_of
from standby.engine.steps import CallModel
from standby.events import decisions as d
from standby.events.decisions import Candidate
from standby.events.policy import Policy, Recovery
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


@pytest.mark.rule("CHAIN-10", "CHAIN-8")
@pytest.mark.parametrize("tokens", [None, 50_000])
def test_a_candidate_whose_window_is_known_to_be_too_small_goes_last_and_is_tried_all_the_same(
    tokens: int | None,
) -> None:
    small, large = "google/small", "google/large"
    windows = {A: 40_000, small: 1_000, large: 100_000}
    w = World(chain(A, small, large, windows=windows, recovery=Recovery(max_retries=0)))
    turn = w.turn(input_tokens=tokens)
    tried = []
    while isinstance(step := w.fail(turn, "context_overflow"), CallModel):
        tried.append(step.model)
    assert tried == [large, small]


@pytest.mark.rule("CHAIN-8")
@pytest.mark.parametrize(
    ("needed", "windows", "expected"),
    [
        (20, {"b/same": 20, "b/less": 19}, ["b/same", "b/unknown", "b/less"]),
        (None, {A: 20, "b/same": 20, "b/less": 19}, ["b/unknown", "b/less", "b/same"]),
        (None, {A: 20, "b/same": 21, "b/less": 22}, ["b/less", "b/same", "b/unknown"]),
        (None, {"b/same": 21, "b/less": 22}, ["b/less", "b/same", "b/unknown"]),
        (None, {A: 20}, ["b/unknown", "b/less", "b/same"]),
    ],
)
def test_a_window_is_enough_when_it_holds_what_is_needed_or_else_more_than_the_one_that_did_not(
    needed: int | None, windows: dict[str, int], expected: list[str]
) -> None:
    rest = tuple(Candidate(model=model, origin="fallback") for model in ("b/unknown", "b/less", "b/same"))
    chained = (Candidate(model=A, origin="requested"), *rest)
    ordered = reorder_for_window(Policy(windows=windows), chained, 0, needed)
    assert [candidate.model for candidate in ordered] == [A, *expected]

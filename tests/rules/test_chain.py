"""CHAIN: building the list of candidates, and its order after an overflow."""

import pytest

from standby.engine.decide.chain import CHAIN_LIMIT
from standby.events import decisions as d
from standby.events.policy import ModelChain, Policy, Price, Recovery
from standby.events.vocabulary import SelectionSource
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, C, World, chain, of, reply

D, E = "groq/delta", "mistral/epsilon"


def models_of(turn: TurnHandle) -> list[str]:
    return [candidate.model for candidate in of(turn, d.ChainPlanned)[0].candidates]


def rules_of(turn: TurnHandle) -> tuple[str, ...]:
    rules: tuple[str, ...] = of(turn, d.ChainPlanned)[0].rules
    return rules


@pytest.mark.rule("CHAIN-1")
@pytest.mark.parametrize("requested", [A, B, C, D])
def test_the_requested_model_stands_first(requested: str) -> None:
    turn = World(chain(A, B, C)).turn(model=requested, source=SelectionSource.CRON)
    assert models_of(turn)[0] == requested
    assert "CHAIN-1" in rules_of(turn)


@pytest.mark.rule("CHAIN-1", "STICK-1")
def test_only_a_sticky_fallback_goes_before_it() -> None:
    w = World(chain(A, B, C, recovery=Recovery(max_retries=0)))
    first = w.turn()
    w.fail(first, "rate_limit")
    w.answer(first)
    assert models_of(w.turn()) == [B, A, C]
    assert models_of(w.turn("another")) == [A, B, C]


@pytest.mark.rule("CHAIN-2")
def test_fallbacks_follow_in_configured_order_once_each() -> None:
    turn = World(chain(A, C, B, C, A, D)).turn()
    assert models_of(turn) == [A, C, B, D]
    assert "CHAIN-2" in rules_of(turn)
    assert models_of(World(chain(A, D, B, C)).turn()) == [A, D, B, C]


@pytest.mark.rule("CHAIN-2")
def test_what_is_known_of_models_filters_no_fallback() -> None:
    policy = chain(A, B, D, windows={A: 1000, B: 10}, prices={A: Price(input=1, output=1)}, aliases={"a": A})
    turn = World(policy).turn()
    assert models_of(turn) == [A, B, D]
    w = World(policy)
    tried = w.turn()
    w.fail(tried, "auth")
    w.fail(tried, "auth")
    assert [model for model, _ in w.tried(tried)] == [A, B, D]


def test_a_chain_has_a_limit() -> None:
    many = [f"groq/m{n}" for n in range(100)]
    assert len(models_of(World(chain(A, *many)).turn())) == CHAIN_LIMIT


@pytest.mark.rule("CHAIN-3")
@pytest.mark.parametrize(
    ("on", "expected"),
    [(B, [B, C, A]), (C, [C, B, A]), ("anthropic/other", ["anthropic/other", B, C, A])],
    ids=["fallback", "later fallback", "same family"],
)
def test_a_run_on_a_configured_fallback_keeps_the_whole_chain(on: str, expected: list[str]) -> None:
    w = World(chain(A, B, C))
    turn = w.turn(model=on, source=SelectionSource.AUTO)
    assert models_of(turn) == expected
    assert "CHAIN-3" in rules_of(turn)
    assert "CHAIN-3" not in rules_of(w.turn("t"))


@pytest.mark.rule("CHAIN-5", "CHAIN-9")
@pytest.mark.parametrize("source", [SelectionSource.CRON, SelectionSource.AUTO, SelectionSource.HOOK])
def test_configured_fallbacks_come_before_the_primary_also_for_another_provider(
    source: SelectionSource,
) -> None:
    turn = World(chain(A, B, C)).turn(model=D, source=source)
    assert models_of(turn) == [D, B, C, A]
    assert {"CHAIN-5", "CHAIN-9"} <= set(rules_of(turn))
    origins = [candidate.origin for candidate in of(turn, d.ChainPlanned)[0].candidates]
    assert origins == ["requested", "fallback", "fallback", "primary"]


@pytest.mark.rule("CHAIN-9")
def test_the_primary_is_last_even_without_fallbacks() -> None:
    w = World(Policy(models=ModelChain(primary=A)))
    turn = w.turn(model=D, source=SelectionSource.CRON)
    assert models_of(turn) == [D, A]
    w.fail(turn, "auth")
    assert [model for model, _ in w.tried(turn)] == [D, A]


@pytest.mark.rule("CHAIN-7")
@pytest.mark.parametrize(("given", "expected"), [((C,), [D, C]), ((), [D]), ((D, B, B), [D, B])])
def test_an_override_list_is_the_whole_chain(given: tuple[str, ...], expected: list[str]) -> None:
    w = World(chain(A, B))
    turn = w.turn(model=D, source=SelectionSource.HOOK, fallbacks=given)
    assert models_of(turn) == expected
    assert "CHAIN-7" in rules_of(turn)
    assert "CHAIN-9" not in rules_of(turn)


def _after_overflow(input_tokens: int | None = None, **fields: dict[str, int]) -> list[str]:
    """The models in the order in which they are called, the first one having overflowed."""
    w = World(chain(A, B, C, D, E, **fields))
    turn = w.turn(input_tokens=input_tokens)
    w.fail(turn, "context_overflow")
    for _ in range(3):
        w.fail(turn, "context_overflow")
    w.proved()
    return [model for model, _ in w.tried(turn)]


@pytest.mark.rule("CHAIN-8")
def test_known_large_windows_go_ahead_after_an_overflow_in_configured_order() -> None:
    windows = {A: 8_000, B: 8_000, C: 32_000, E: 200_000}
    assert _after_overflow(20_000, windows=windows) == [A, C, E, B, D]
    # With more to fit C does not do any more, and stays in its place among the rest.
    assert _after_overflow(100_000, windows=windows) == [A, E, B, C, D]


@pytest.mark.rule("CHAIN-8")
def test_without_a_count_the_larger_known_window_goes_first() -> None:
    assert _after_overflow(windows={A: 8_000, B: 4_000, C: 32_000, E: 200_000}) == [A, E, C, B, D]
    assert _after_overflow(windows={A: 8_000, B: 4_000}) == [A, B, C, D, E]
    assert _after_overflow(windows={A: 8_000, C: 32_000, D: 32_000}) == [A, C, D, B, E]


def _told(message: str, input_tokens: int | None = None) -> list[str]:
    """The models in their new order after an overflow in these words."""
    w = World(chain(A, B, C, D, windows={A: 8_000, B: 16_000, C: 32_000, D: 200_000}))
    turn = w.turn(input_tokens=input_tokens)
    w.fail(turn, reply(400, {"error": {"message": message, "code": "context_length_exceeded"}}))
    return [candidate.model for candidate in turn.state.candidates]


@pytest.mark.rule("CHAIN-8")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("prompt is too long: 20001 tokens > 8000 maximum", [A, C, D, B]),
        ("maximum context length is 8,000 tokens, your messages resulted in 40,000 tokens", [A, D, B, C]),
        ("input length and max_tokens exceed context limit: 7000 + 4000 > 8000", [A, B, C, D]),
        ("maximum context length is 8000 tokens", [A, D, C, B]),
    ],
    ids=["count", "thousands", "sum", "no count"],
)
def test_the_providers_own_count_says_what_is_large_enough(message: str, expected: list[str]) -> None:
    assert _told(message) == expected


@pytest.mark.rule("CHAIN-8")
def test_the_providers_count_goes_before_the_hosts_estimate() -> None:
    assert _told("prompt is too long: 40000 tokens > 8000 maximum", input_tokens=10_000) == [A, D, B, C]
    assert _told("maximum context length is 8000 tokens", input_tokens=10_000) == [A, B, C, D]


@pytest.mark.rule("CHAIN-8")
def test_an_effective_cap_on_the_context_counts_as_the_window() -> None:
    windows = {A: 8_000, B: 200_000, C: 32_000}
    assert _after_overflow(20_000, windows=windows) == [A, B, C, D, E]
    assert _after_overflow(20_000, windows=windows, context_tokens={B: 16_000}) == [A, C, B, D, E]


@pytest.mark.rule("CHAIN-8")
def test_the_new_order_is_said_and_other_failures_keep_the_old_one() -> None:
    w = World(chain(A, B, C, windows={A: 8_000, B: 4_000, C: 32_000}))
    turn = w.turn()
    w.fail(turn, "context_overflow")
    (reordered,) = of(turn, d.ChainReordered)
    assert [candidate.model for candidate in reordered.candidates] == [A, C, B]
    assert "CHAIN-8" in reordered.rules
    other = w.turn("t")
    w.fail(other, "auth")
    assert of(other, d.ChainReordered) == []
    assert w.tried(other)[-1][0] == B


@pytest.mark.rule("CHAIN-10")
def test_a_window_that_looks_too_small_is_a_hint_and_excludes_nobody() -> None:
    w = World(chain(A, B, C, windows={A: 8_000, B: 4_000, C: 2_000}))
    turn = w.turn(input_tokens=20_000)
    w.fail(turn, "context_overflow")
    assert w.tried(turn)[-1][0] == B
    settled = w.answer(turn)
    assert settled.model == B, "the candidate checked for itself and could"
    # Nor does a hint pass over a candidate before it was called.
    assert w.tried(w.turn("t", input_tokens=1_000_000))[0][0] == A

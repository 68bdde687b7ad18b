"""COOL, closer: reports that came too late to move their turn, and calls without a profile."""

import pytest

from standby.events import decisions as d
from standby.events import facts as f
from standby.events.policy import Recovery
from standby.events.vocabulary import BlockKind, Effects, Failure
from standby.hosts.reports import Succeeded, Unknown
from standby.projections.health import CooldownEntry, Health, enforced
from tests.harness import START_MS, A, B, World, chain, given, of

AT_ONCE = Recovery(max_retries=0)


@pytest.mark.rule("COOL-9")
def test_a_success_that_is_reported_late_ends_the_block_and_an_unknown_end_does_not() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    limited, answered, lost = w.turn("one"), w.turn("two"), w.turn("three")
    w.fail(limited, "rate_limit", retry_after=60)
    lost.cancel()
    lost.report(Unknown(effects=Effects.NONE))
    assert w.decisions(d.BlockCleared) == []
    answered.cancel()
    answered.report(Succeeded())
    (cleared,) = w.decisions(d.BlockCleared)
    assert (cleared.profile, cleared.model) == (w.alias("openai:one"), A)
    w.proved()


@pytest.mark.rule("COOL-25")
@pytest.mark.parametrize("profiles", [[], ["openai:one"]])
def test_that_no_cooldown_is_invented_is_said_of_profiles_only(profiles: list[str]) -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": profiles, "anthropic": ["anthropic:one"]})
    turn = w.turn()
    w.fail(turn, "rate_limit")
    (classified,) = of(turn, d.FailureClassified)
    assert ("COOL-25" in classified.rules) is bool(profiles)
    assert of(turn, d.BlockSet) == []


@pytest.mark.rule("COOL-11")
@pytest.mark.parametrize("model", ["openrouter/alpha", "kilocode/alpha", "openai/alpha", "own/alpha"])
def test_that_a_provider_looks_after_its_capacity_itself_is_said_where_it_spares_a_profile(model: str) -> None:
    provider = model.partition("/")[0]
    w = World(
        chain(model, B, recovery=AT_ONCE, self_managed=("own",)), {provider: ["one"], "anthropic": ["two"]}
    )
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=60)
    (classified,) = of(turn, d.FailureClassified)
    managed = provider != "openai"
    assert ("COOL-11" in classified.rules, bool(of(turn, d.BlockSet))) == (managed, not managed)


@pytest.mark.rule("OURS-8")
@pytest.mark.parametrize("stated", [None, 5])
def test_a_cooldown_of_our_own_is_marked_as_such_and_no_other(stated: int | None) -> None:
    w = World(chain(A, B, recovery=AT_ONCE, local_cooldown_ms=10_000))
    w.fail(w.turn(), "rate_limit", retry_after=stated)
    (entry,) = w.view.profiles.edit(w.alias("openai:one")).cooldowns
    assert (entry.ours, entry.until_ms) == (stated is None, START_MS + (10_000 if stated is None else 5_000))
    assert not CooldownEntry(A, entry.reason, entry.kind, entry.until_ms, entry.evidence_ms).ours


@pytest.mark.rule("COOL-10")
@pytest.mark.parametrize("effects", [Effects.NONE, Effects.POSSIBLE])
def test_a_timeout_cools_at_once_where_the_same_model_may_not_be_tried_again(effects: Effects) -> None:
    w = World(chain(A, B))
    turn = w.turn()
    w.fail(turn, "stream_timeout", effects=effects)
    assert len(of(turn, d.BlockSet)) == (1 if effects is Effects.POSSIBLE else 0)


@pytest.mark.rule("COOL-11", "COOL-24")
@pytest.mark.parametrize("reason", list(Failure))
@pytest.mark.parametrize("kind", list(BlockKind))
def test_where_a_gateway_looks_after_capacity_only_cooldowns_for_capacity_do_not_count(
    reason: Failure, kind: BlockKind
) -> None:
    entry = CooldownEntry("", reason, kind, START_MS + 1, START_MS)
    capacity = kind is BlockKind.COOLDOWN and reason in (Failure.RATE_LIMIT, Failure.OVERLOADED)
    assert enforced(Health(cooldowns=(entry,)), True) == (() if capacity else (entry,))
    assert enforced(Health(cooldowns=(entry,)), False) == (entry,)


def checked(checked_ms: int, valid: bool = True, resets_at_ms: int | None = None) -> f.QuotaObserved:
    return f.QuotaObserved(
        profile="p",
        checked_ms=checked_ms,
        valid=valid,
        exhausted=resets_at_ms is not None,
        resets_at_ms=resets_at_ms,
    )


@pytest.mark.rule("COOL-19")
@pytest.mark.parametrize("valid", [True, False])
def test_an_older_check_says_nothing_after_a_newer_one_unless_that_was_invalid(valid: bool) -> None:
    late = given(checked(START_MS + 2, valid)).when(checked(START_MS + 1, resets_at_ms=START_MS + 9_000))
    late.then(*([] if valid else [d.BlockSet]))


@pytest.mark.rule("COOL-9")
@pytest.mark.parametrize("kind", ["rate_limit", "auth", "billing", "model_not_found", "unclassified"])
@pytest.mark.parametrize("later_ms", [0, 1])
def test_a_failure_of_a_call_that_began_before_a_newer_success_blocks_nothing(kind: str, later_ms: int) -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    older = w.turn("one")
    newer = w.sleep(later_ms).turn("two")
    w.sleep(500).answer(newer)
    w.sleep(500).fail(older, kind, retry_after=60)
    assert len(of(older, d.BlockSet)) == (1 if later_ms == 0 else 0)


@pytest.mark.rule("COOL-2")
@pytest.mark.parametrize(("late_ms", "blocks"), [(4_999, 1), (5_000, 0), (5_001, 0)])
def test_a_wait_that_is_over_when_it_is_reported_blocks_nothing_any_more(late_ms: int, blocks: int) -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    turn = w.turn()
    w.sleep(late_ms).fail(turn, "rate_limit", retry_after=5, received_ms=START_MS)
    assert len(of(turn, d.BlockSet)) == blocks

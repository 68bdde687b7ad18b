"""BILL: accounts that are disabled for a while."""

import pytest

from standby.engine.steps import CallModel
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import BlockKind, Failure, SkipBecause
from standby.hosts.reports import Profile
from tests.harness import START_MS, A, B, World, chain, of

AT_ONCE = Recovery(max_retries=0)
MINUTE = 60_000


def broke(kind: str = "billing", *, inline: bool = False) -> World:
    profiles = [
        Profile(name="openai:one", provider="openai", inline=inline),
        Profile(name="anthropic:one", provider="anthropic"),
    ]
    w = World(chain(A, B, recovery=AT_ONCE), profiles)
    w.run("first", kind)
    return w


def model_of(w: World, session: str) -> str:
    step = w.turn(session).step
    assert isinstance(step, CallModel)
    return step.model


@pytest.mark.rule("BILL-2")
def test_ten_minutes_then_eligible_and_the_next_failure_starts_ten_more() -> None:
    w = broke()
    (block,) = w.decisions(d.BlockSet)
    assert (block.until_ms, block.reason) == (START_MS + 10 * MINUTE, Failure.BILLING)
    assert "BILL-2" in block.rules
    w.sleep(10 * MINUTE)
    for _ in range(3):
        turn = w.turn()
        assert isinstance(turn.step, CallModel)
        assert (turn.step.model, turn.step.probe) == (A, False)
        w.fail(turn, "billing")
        (again,) = of(turn, d.BlockSet)
        assert again.until_ms == w.now_ms + 10 * MINUTE
        w.answer(turn)
        w.sleep(10 * MINUTE)


@pytest.mark.rule("BILL-3")
def test_permanent_auth_failures_begin_with_the_same_ten_minutes() -> None:
    w = broke("auth_permanent")
    lengths = [w.decisions(d.BlockSet)[0].until_ms - START_MS]
    for _ in range(4):
        w.now_ms = w.decisions(d.BlockSet)[-1].until_ms
        turn = w.turn()
        w.fail(turn, "auth_permanent")
        lengths.append(of(turn, d.BlockSet)[0].until_ms - w.now_ms)
        w.answer(turn)
    assert [ms // MINUTE for ms in lengths] == [10, 20, 40, 60, 60]
    assert "BILL-3" in w.decisions(d.BlockSet)[0].rules


@pytest.mark.rule("BILL-4")
def test_a_key_from_configuration_cannot_retry_inside_its_window() -> None:
    w = broke(inline=True)
    w.sleep(9 * MINUTE)
    assert model_of(w, "inside") == B
    w.sleep(1 * MINUTE)
    assert model_of(w, "after") == A


@pytest.mark.rule("BILL-4")
def test_a_cooldown_of_such_a_key_is_no_such_window() -> None:
    profiles = [
        Profile(name="openai:one", provider="openai", inline=True),
        Profile(name="anthropic:one", provider="anthropic"),
    ]
    w = World(chain(A, B, recovery=AT_ONCE), profiles)
    turn = w.turn("limited")
    w.fail(turn, "rate_limit", retry_after=60)
    step = w.turn("other").step
    assert isinstance(step, CallModel)
    assert (step.model, step.probe) == (A, True)


@pytest.mark.rule("BILL-5")
def test_the_account_is_disabled_without_a_cooldown_and_the_run_rotates() -> None:
    w = World(chain(A, B), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn()
    step = w.fail(turn, "billing")
    assert isinstance(step, CallModel)
    assert (step.model, step.profile) == (A, "o2")
    (block,) = of(turn, d.BlockSet)
    assert block.kind is BlockKind.DISABLED
    assert "BILL-5" in block.rules
    entry = w.service.usage_stats()["o1"]
    assert (entry["disabledUntil"], entry["disabledReason"]) == (START_MS + 10 * MINUTE, "billing")
    assert "cooldownUntil" not in entry
    step = w.fail(turn, "billing")
    assert isinstance(step, CallModel)
    assert step.model == B
    (advanced,) = of(turn, d.ChainAdvanced)
    assert "BILL-5" in advanced.rules


@pytest.mark.rule("BILL-6")
def test_a_stored_profile_recovers_inside_its_window_by_the_check_of_the_primary() -> None:
    w = broke()
    w.sleep(8 * MINUTE)
    turn = w.turn("check")
    (admitted,) = of(turn, d.ProbeAdmitted)
    assert "BILL-6" in admitted.rules
    w.answer(turn)
    (cleared,) = of(turn, d.BlockCleared)
    assert cleared.profile == w.alias("openai:one")
    step = w.turn("next").step
    assert isinstance(step, CallModel)
    assert (step.model, step.probe) == (A, False)
    w.proved()


@pytest.mark.rule("BILL-6")
def test_a_check_that_fails_leaves_the_window_where_it_ends() -> None:
    w = broke()
    w.sleep(9 * MINUTE)
    turn = w.turn("check")
    w.fail(turn, "billing")
    assert of(turn, d.BlockSet)[0].until_ms == START_MS + 10 * MINUTE
    (skip,) = of(w.turn("next"), d.CandidateSkipped)
    assert (skip.because, skip.reason) == (SkipBecause.COOLDOWN, Failure.BILLING)

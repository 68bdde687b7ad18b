"""COOL: what a failure does to its profile, for how long, and what ends it."""

from typing import Any

import msgspec
import pytest

from standby.engine.reading.extract import extract
from standby.engine.steps import CallModel, Settled, Wait
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.policy import Recovery
from standby.events.vocabulary import BlockKind, Effects, Failure, Origin, SkipBecause
from standby.hosts.cli.reading import Names
from standby.hosts.cli.state import state_of
from standby.hosts.reports import Failed, Succeeded
from tests.harness import FAILURES, START_MS, A, B, World, chain, given, of, reply

AT_ONCE = Recovery(max_retries=0)
"""No same-model recovery: what comes after it is looked at."""
A2 = "openai/alpha-two"
SUBSCRIPTION = reply(
    429,
    {
        "error": {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "resets_in_seconds": 7200,
        }
    },
)
HOUR = 3_600_000


def at_once(*models: str, **fields: Any) -> World:
    return World(chain(*models, recovery=AT_ONCE, **fields))


def stats(w: World, name: str = "openai:one") -> dict[str, int | str]:
    return w.service.usage_stats().get(name, {})


@pytest.mark.rule("COOL-2")
@pytest.mark.parametrize("seconds", [7, 7200])
def test_a_rate_limit_blocks_exactly_as_long_as_the_provider_said(seconds: int) -> None:
    w = at_once(A, B)
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=seconds)
    (block,) = of(turn, d.BlockSet)
    assert (block.until_ms, block.kind) == (START_MS + seconds * 1000, BlockKind.COOLDOWN)
    assert "COOL-2" in block.rules
    w.answer(turn)
    w.sleep(seconds * 1000)
    assert w.run("other").model == A, "at the stated moment it is over"


@pytest.mark.rule("COOL-3")
def test_a_later_deadline_extends_a_rate_limit_and_an_earlier_one_cannot_shorten_it() -> None:
    w = at_once(A, B)
    turns = [w.turn(name) for name in ("one", "two", "three", "four")]
    for turn, seconds in zip(turns, (50, 20, 50, 90), strict=True):
        w.fail(turn, "rate_limit", retry_after=seconds)
    first, last = w.decisions(d.BlockSet)
    assert (first.until_ms, last.until_ms) == (START_MS + 50_000, START_MS + 90_000)
    assert "COOL-3" in last.rules
    assert stats(w)["cooldownUntil"] == START_MS + 90_000
    assert "errorCount" not in stats(w), "rate limits are not counted"


@pytest.mark.rule("COOL-4")
@pytest.mark.parametrize("kind", ["auth", "unclassified", "model_not_found"])
def test_other_cooldowns_grow_with_recent_failures_up_to_five_minutes(kind: str) -> None:
    w = at_once(A, B)
    lengths = []
    for _ in range(4):
        turn = w.turn()
        w.fail(turn, kind)
        (block,) = of(turn, d.BlockSet)
        lengths.append(block.until_ms - w.now_ms)
        assert "COOL-4" in block.rules
        w.answer(turn)
        w.now_ms = block.until_ms
    assert lengths == [30_000, 60_000, 300_000, 300_000]


@pytest.mark.rule("COOL-4")
def test_a_failure_inside_an_open_cooldown_is_counted_and_does_not_move_its_end() -> None:
    w = at_once(A, B)
    one, two = w.turn("one"), w.turn("two")
    w.fail(one, "auth")
    w.sleep(10_000)
    w.fail(two, "auth")
    (block,) = of(two, d.BlockSet)
    assert (block.until_ms, block.count) == (START_MS + 30_000, 2)


@pytest.mark.rule("COOL-5")
def test_counters_start_anew_once_the_failure_window_has_passed_and_not_before() -> None:
    def second(after_ms: int) -> d.BlockSet:
        w = at_once(A, B)
        w.run("s", "auth")
        w.sleep(after_ms)
        turn = w.turn()
        w.fail(turn, "auth")
        block: d.BlockSet = of(turn, d.BlockSet)[0]
        return block

    day = 24 * HOUR
    assert (second(day).count, second(day).until_ms) == (2, START_MS + day + 60_000)
    late = second(day + 1)
    assert (late.count, late.until_ms) == (1, START_MS + day + 1 + 30_000)
    assert "COOL-5" in late.rules


@pytest.mark.rule("COOL-5")
def test_the_window_ends_every_counter_of_the_profile() -> None:
    w = at_once(A, B)
    for _ in range(3):
        w.run("s", "auth")
        w.sleep(300_000)
    w.sleep(25 * HOUR)
    w.run("s", "billing")
    w.sleep(HOUR)
    turn = w.turn()
    w.fail(turn, "auth")
    assert of(turn, d.BlockSet)[0].count == 1, "the three failures of yesterday are forgotten"


@pytest.mark.rule("COOL-6")
def test_a_rate_limit_names_its_model_and_leaves_the_others_free() -> None:
    w = at_once(A, A2)
    turn = w.turn()
    step = w.fail(turn, "rate_limit", retry_after=50)
    assert isinstance(step, CallModel)
    assert (step.model, step.profile, step.probe) == (A2, "openai:one", False)
    assert stats(w)["cooldownModel"] == "alpha"
    w.fail(turn, "rate_limit", retry_after=40)
    assert "cooldownModel" not in stats(w), "two models cool: none of them alone"


@pytest.mark.rule("COOL-7")
def test_the_state_of_a_profile_has_the_documented_shape() -> None:
    w = at_once(A, B)
    w.run()
    assert stats(w) == {"lastUsed": START_MS}
    w.sleep(1000)
    one, two = w.turn("one"), w.turn("two")
    w.fail(one, "auth")
    w.fail(two, "billing")
    assert stats(w) == {
        "lastUsed": START_MS,
        "errorCount": 2,
        "lastFailureAt": START_MS + 1000,
        "cooldownUntil": START_MS + 31_000,
        "cooldownReason": "auth",
        "disabledUntil": START_MS + 601_000,
        "disabledReason": "billing",
    }


@pytest.mark.rule("COOL-8")
def test_a_retry_records_the_profile_before_it_waits() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, "rate_limit", retry_after=20)
    assert isinstance(step, Wait)
    kinds = [type(one) for one in turn.commits[-1].decisions]
    assert kinds.index(d.BlockSet) < kinds.index(d.RetryScheduled)
    assert of(turn, d.BlockSet)[0].until_ms == step.until_ms == START_MS + 20_000
    other = w.turn("other")
    assert isinstance(other.step, CallModel)
    assert other.step.probe, "the block is seen: nothing but a check may go there"


@pytest.mark.rule("COOL-9")
def test_a_success_clears_the_rate_limit_of_its_profile_and_model_only() -> None:
    w = at_once(A, A2, B)
    early = w.turn("early")
    turn = w.turn("late")
    w.fail(turn, "rate_limit", retry_after=50)
    w.fail(turn, "rate_limit", retry_after=50)
    w.sleep(1)
    early.report(Succeeded(started_ms=w.now_ms))
    (cleared,) = of(early, d.BlockCleared)
    assert "COOL-9" in cleared.rules
    assert stats(w)["cooldownModel"] == "alpha-two"
    w.proved()


@pytest.mark.rule("COOL-9")
def test_a_success_ends_the_count_of_failures() -> None:
    w = at_once(A, B)
    w.run("s", "auth")
    w.sleep(30_000)
    w.run("s")
    assert "errorCount" not in stats(w)
    w.run("s", "auth")
    assert w.decisions(d.BlockSet)[-1].count == 1


@pytest.mark.rule("COOL-10")
def test_a_timeout_cools_only_after_recovery_and_only_where_another_way_leads_on() -> None:
    def blocks(w: World) -> list[d.BlockSet]:
        turn = w.turn()
        assert isinstance(w.fail(turn, "stream_timeout"), Wait)
        assert not of(turn, d.BlockSet), "recovery goes first"
        w.give_up(turn, "stream_timeout") if isinstance(turn.step, CallModel) else w.wait(turn)
        w.give_up(turn, "stream_timeout")
        return of(turn, d.BlockSet)

    recovery = Recovery(max_retries=1)
    (cooled,) = blocks(World(chain(A, B, recovery=recovery)))
    assert (cooled.reason, cooled.model) == (Failure.TIMEOUT, A)
    assert "COOL-10" in cooled.rules
    assert blocks(World(chain(A, recovery=recovery))) == []
    (replaced,) = blocks(World(chain(A, recovery=recovery), {"openai": ["o1", "o2"]}))
    assert replaced.model == A


@pytest.mark.rule("COOL-10")
def test_a_spared_timeout_leaves_the_profile_for_the_next_turn() -> None:
    w = at_once(A)
    turn = w.turn()
    assert isinstance(w.fail(turn, "stream_timeout"), Settled)
    (classified,) = of(turn, d.FailureClassified)
    assert "COOL-10" in classified.rules
    assert w.run("s").model == A


@pytest.mark.rule("COOL-11")
def test_a_provider_that_manages_its_capacity_skips_cooldowns_for_it_and_no_others() -> None:
    router = "openrouter/alpha"
    profiles = {"openrouter": ["r1"], "anthropic": ["a1"], "openai": ["o1"]}

    def after(kind: object, model: str = router, **policy: Any) -> list[d.BlockSet]:
        w = World(chain(model, B, recovery=AT_ONCE, **policy), profiles)
        turn = w.turn()
        w.fail(turn, kind, **({"retry_after": 600} if kind == "rate_limit" else {}))  # type: ignore[arg-type]  # the harness takes it
        return of(turn, d.BlockSet)

    assert after("rate_limit") == []
    assert after("rate_limit", A) != []
    assert after("rate_limit", A, self_managed=("openai",)) == [], "declared by its plugin"
    assert [block.kind for block in after("billing")] == [BlockKind.DISABLED]
    assert [block.reason for block in after("auth")] == [Failure.AUTH]
    assert [block.kind for block in after("auth_permanent")] == [BlockKind.DISABLED]
    assert [block.kind for block in after(SUBSCRIPTION)] == [BlockKind.WINDOW]


@pytest.mark.rule("COOL-12")
def test_health_is_settled_only_when_the_runtime_has_ended_its_own_recovery() -> None:
    w = at_once(A, B)
    turn = w.turn(harness="cli")
    for _ in range(3):
        turn.runtime_recovering(FAILURES["auth"])
        assert turn.commits[-1].decisions == ()
    assert stats(w) == {}
    assert isinstance(turn.step, CallModel)
    assert turn.step.attempt == 1
    w.fail(turn, "auth")
    (block,) = of(turn, d.BlockSet)
    assert w.service.core.name_of(block.profile) == "openai:one"
    kinds = [type(one) for one in turn.commits[-1].decisions]
    assert kinds.index(d.BlockSet) < kinds.index(d.ChainAdvanced), "before the fallback"
    w.sleep(30_000)
    w.run("s")
    assert set(stats(w)) <= {"lastUsed", "lastFailureAt"}, "success clears stale failure state"


@pytest.mark.rule("COOL-13")
def test_a_reported_usage_window_is_a_block_of_its_own() -> None:
    w = at_once(A, A2, B)
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=50)
    step = w.fail(turn, SUBSCRIPTION)
    assert isinstance(step, CallModel)
    assert step.model == B
    limit, window = of(turn, d.BlockSet)
    assert (window.kind, window.model, window.until_ms) == (BlockKind.WINDOW, "", START_MS + 2 * HOUR)
    assert limit.kind is BlockKind.COOLDOWN
    assert stats(w)["blockedUntil"] == START_MS + 2 * HOUR
    assert stats(w)["blockedReason"] == "subscription_limit"
    assert stats(w)["cooldownUntil"] == START_MS + 50_000


def quota(**fields: Any) -> f.QuotaObserved:
    return f.QuotaObserved(profile="p", **fields)


def exhausted(checked_ms: int, resets_at_ms: int) -> f.QuotaObserved:
    return quota(checked_ms=checked_ms, exhausted=True, resets_at_ms=resets_at_ms)


@pytest.mark.rule("COOL-14")
def test_a_check_that_finds_capacity_adds_no_delay_and_ends_the_window() -> None:
    given().when(quota(checked_ms=START_MS)).then()
    blocked = given(exhausted(START_MS, START_MS + HOUR))
    blocked.when(quota(checked_ms=START_MS + 5), after_ms=5).then(
        {"kind": d.BlockCleared, "reason": Failure.RATE_LIMIT, "rules": ("COOL-14", "COOL-19")}
    )
    assert blocked.view.profiles["p"].cooldowns == ()


@pytest.mark.rule("COOL-17")
@pytest.mark.parametrize("kind", ["billing", "auth_permanent"])
def test_a_disabled_profile_is_blocked_for_every_model(kind: str) -> None:
    w = at_once(A, A2, B)
    turn = w.turn()
    step = w.fail(turn, kind)
    (block,) = of(turn, d.BlockSet)
    assert (block.kind, block.model) == (BlockKind.DISABLED, "")
    assert "COOL-17" in block.rules
    assert isinstance(step, CallModel)
    assert step.model == B
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.model, skip.until_ms) == (A2, block.until_ms)


@pytest.mark.rule("COOL-18")
def test_after_a_rate_limit_the_session_goes_back_to_an_earlier_profile_of_an_explicit_order() -> None:
    def profiles(order: dict[str, list[str]] | None, kind: str) -> list[str]:
        w = World(chain(A, recovery=AT_ONCE), {"openai": ["o1", "o2"]}, order=order)
        used = []
        for failures in ([kind], [], []):
            turn = w.turn()
            for one in failures:
                w.fail(turn, one, **({"retry_after": 40} if one == "rate_limit" else {}))
            assert isinstance(turn.step, CallModel)
            used.append(turn.step.profile)
            back = [one for one in of(turn, d.PinSet) if "COOL-18" in one.rules]
            assert bool(back) == (order is not None and kind == "rate_limit" and len(used) == 3)
            w.answer(turn)
            w.sleep(20_000)
        return used

    assert profiles({"openai": ["o1", "o2"]}, "rate_limit") == ["o2", "o2", "o1"]
    assert profiles(None, "rate_limit") == ["o2", "o2", "o2"], "no order, no earlier profile"
    assert profiles({"openai": ["o1", "o2"]}, "auth") == ["o2", "o2", "o2"], "nor after other failures"


@pytest.mark.rule("COOL-19")
def test_a_successful_check_replaces_the_saved_reset_and_no_other_answer_does() -> None:
    saved = START_MS + 9 * HOUR
    for current in (START_MS + HOUR, START_MS + 20 * HOUR):
        given(exhausted(START_MS, saved)).when(exhausted(START_MS + 1, current), after_ms=1).then(
            {"kind": d.BlockSet, "until_ms": current, "rules": ("COOL-13", "COOL-19")}
        )
    for answer in (
        quota(checked_ms=START_MS + 1, valid=False, exhausted=True, resets_at_ms=START_MS + HOUR),
        quota(checked_ms=START_MS + 1, valid=False),
        quota(checked_ms=START_MS + 1, exhausted=True),
    ):
        left = given(exhausted(START_MS, saved))
        left.when(answer, after_ms=1).then()
        assert left.view.profiles["p"].cooldowns[0].until_ms == saved


@pytest.mark.rule("COOL-19")
def test_the_profile_stays_blocked_until_the_replaced_reset() -> None:
    w = at_once(A, B)
    w.run("s", SUBSCRIPTION)  # type: ignore[arg-type]  # the harness takes it
    w.sleep(10)
    w.service.core.submit(
        f.QuotaObserved(
            profile=w.alias("openai:one"),
            checked_ms=w.now_ms,
            exhausted=True,
            resets_at_ms=w.now_ms + 600_000,
        )
    )
    w.sleep(400_000)
    assert w.run("other").model == B
    w.sleep(200_000)
    assert w.run("third").model == A
    w.proved()


@pytest.mark.rule("COOL-20")
def test_a_late_check_cannot_bring_an_exhaustion_back_after_a_newer_success() -> None:
    w = at_once(A, B)
    turn = w.turn()
    w.sleep(100)
    turn.report(Succeeded(started_ms=w.now_ms))
    alias = w.alias("openai:one")
    late = f.QuotaObserved(profile=alias, checked_ms=w.now_ms - 1, exhausted=True, resets_at_ms=w.now_ms + HOUR)
    assert w.service.core.submit(late).decisions == ()  # type: ignore[union-attr]  # the story made it
    newer = msgspec.structs.replace(late, checked_ms=w.now_ms + 1)
    assert [type(one) for one in w.service.core.submit(newer).decisions] == [d.BlockSet]  # type: ignore[union-attr]  # the story made it


@pytest.mark.rule("COOL-20")
def test_a_check_older_than_the_refusal_that_blocks_says_nothing() -> None:
    w = at_once(A, B)
    w.sleep(1000)
    w.run("s", SUBSCRIPTION)  # type: ignore[arg-type]  # the harness takes it
    old = f.QuotaObserved(profile=w.alias("openai:one"), checked_ms=w.now_ms - 500)
    assert w.service.core.submit(old).decisions == ()  # type: ignore[union-attr]  # the story made it
    assert stats(w)["blockedUntil"] == w.now_ms + 2 * HOUR


@pytest.mark.rule("COOL-22")
def test_an_auth_failure_cools_the_profile_and_the_next_one_is_tried() -> None:
    w = World(chain(A), {"openai": ["o1", "o2"]})
    turn = w.turn()
    step = w.fail(turn, "auth")
    assert isinstance(step, CallModel)
    assert step.profile == "o2"
    (block,) = of(turn, d.BlockSet)
    assert (block.kind, block.model) == (BlockKind.COOLDOWN, "")
    assert "COOL-22" in block.rules


TRANSCRIPT = reply(None, None, message="session transcript entry 4 is invalid", origin=Origin.LOCAL)


@pytest.mark.rule("COOL-23")
def test_failures_that_say_nothing_of_a_credential_change_no_shared_health() -> None:
    def blocks(kind: object, **fields: Any) -> tuple[list[d.BlockSet], tuple[str, ...]]:
        w = at_once(A, B)
        turn = w.turn(harness="cli")
        w.fail(turn, kind, **fields)  # type: ignore[arg-type]  # the harness takes it
        return of(turn, d.BlockSet), of(turn, d.FailureClassified)[0].rules

    for kind in (TRANSCRIPT, "format", "context_overflow"):
        assert blocks(kind)[0] == []
    spared, rules = blocks("auth", selected_profile=False)
    assert spared == []
    assert "COOL-23" in rules
    assert len(blocks("auth")[0]) == 1
    spared, rules = blocks("timeout", provider_started=False)
    assert spared == []
    assert "COOL-23" in rules
    assert len(blocks("timeout")[0]) == 1


@pytest.mark.rule("COOL-24")
def test_routing_and_status_read_the_same_blocks_of_a_provider_that_manages_itself() -> None:
    w = at_once(A, B)
    w.run("s", "rate_limit")
    turn = w.turn("limited")
    w.fail(turn, "rate_limit", retry_after=900)
    assert "cooldownUntil" in stats(w)
    assert w.turn("blocked").step.model == B  # type: ignore[union-attr]  # the story made it
    # Declared later, with a cooldown in the log already: it counts nowhere any more.
    w.adopt(chain(A, B, recovery=AT_ONCE, self_managed=("openai",)))
    assert "cooldownUntil" not in stats(w)
    names = Names(w.store)
    shown = state_of(w.view, names, w.now_ms)["profiles"]
    (profile,) = [one for one in shown if one["profile"] == "openai:one"]
    assert profile["blocks"] == []
    assert w.turn("routed").step.model == A  # type: ignore[union-attr]  # the story made it
    w.proved()


@pytest.mark.rule("COOL-25")
def test_without_timing_the_profile_is_there_for_the_next_turn_and_this_one_moves_on() -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn(kind="cron")
    assert w.fail(turn, "rate_limit").profile == "o2"  # type: ignore[union-attr]  # the story made it
    assert w.fail(turn, "rate_limit").model == B  # type: ignore[union-attr]  # the story made it
    assert of(turn, d.BlockSet) == []
    assert all("COOL-25" in one.rules for one in of(turn, d.FailureClassified))
    assert not of(turn, d.CandidateSkipped)
    following = w.turn("next").step
    assert isinstance(following, CallModel)
    assert (following.model, following.probe) == (A, False)


def test_a_call_that_was_stopped_on_purpose_blames_no_profile() -> None:
    w = at_once(A, B)
    turn = w.turn()
    w.fail(turn, reply(None, None, message="cancelled by the user", origin=Origin.ABORT))
    assert of(turn, d.BlockSet) == []


def test_late_evidence_of_a_settled_turn_counts_for_health() -> None:
    w = at_once(A, B)
    turn = w.turn()
    turn.cancel()
    turn.report(Failed(reply=FAILURES["auth"], effects=Effects.NONE))
    assert of(turn, d.BlockSet)[0].reason is Failure.AUTH
    assert extract(FAILURES["auth"]).evidence.status == 401
    assert w.turn("other").step.model == B  # type: ignore[union-attr]  # the story made it
    assert of(w.turn("third"), d.CandidateSkipped)[0].because is SkipBecause.AUTH

"""REC: bounded recovery of the same model, before anything is rotated or left."""

from typing import Any

import pytest

from standby.engine.steps import CallModel, Settled, Step, Wait
from standby.events import decisions as d
from standby.events.policy import Consent, Recovery
from standby.events.vocabulary import Effects, Failure, ToolReceipt, TurnEnd
from standby.hosts.turns import TurnHandle
from tests.harness import FAILURES, START_MS, A, B, C, World, chain, of, reply

AT_ONCE = Recovery(max_retries=0)
TPM = reply(
    429,
    {
        "error": {
            "message": "Rate limit reached for alpha in organization org-x on tokens per min (TPM): "
            "Limit 30000, Used 29000, Requested 2000.",
            "type": "tokens",
            "code": "rate_limit_exceeded",
        }
    },
    provider="openai",
)


def outage(w: World, turn: TurnHandle, kind: object) -> list[int]:
    """Fail until the turn leaves its candidate and profile; the delays that were waited."""
    step = turn.step
    assert isinstance(step, CallModel), step
    here, delays = (step.model, step.profile), []
    while isinstance(step, CallModel) and (step.model, step.profile) == here:
        step = w.fail(turn, kind)  # type: ignore[arg-type]  # the harness takes it
        if isinstance(step, Wait):
            delays.append(step.until_ms - w.now_ms)
            step = w.wait(turn)
    return delays


@pytest.mark.rule("REC-1")
def test_a_rate_limit_gets_sixteen_attempts_that_back_off_to_a_minute() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    assert outage(w, turn, "rate_limit") == [
        *(1000 << n for n in range(6)),
        *([60_000] * 9),
    ]
    assert [model for model, _ in w.tried(turn)] == [A] * 16 + [B]
    assert all("REC-1" in one.rules and one.of == 15 for one in of(turn, d.RetryScheduled))
    w.proved()


@pytest.mark.rule("REC-1")
@pytest.mark.parametrize(("entropy", "first", "ninth"), [(0, 500, 30_000), (999, 1499, 60_000)])
def test_delays_are_jittered_by_the_recorded_draw(entropy: int, first: int, ninth: int) -> None:
    w = World(chain(A), entropy=entropy)
    delays = outage(w, w.turn(), "rate_limit")
    assert (delays[0], delays[8]) == (first, ninth)


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize("kind", ["overloaded", "server_error", "stream_timeout"])
def test_other_transient_failures_get_eight_retries_in_ninety_seconds(kind: str) -> None:
    w = World(chain(A, B))
    turn = w.turn()
    # 1 + 2 + 4 + 8 + 16 + 30 = 61 s; the seventh delay would end after the window.
    assert outage(w, turn, kind) == [1000, 2000, 4000, 8000, 16_000, 30_000]
    assert {one.of for one in of(turn, d.RetryScheduled)} == {8}
    assert all("REC-2" in one.rules for one in of(turn, d.RetryScheduled))
    quick = World(chain(A, B), entropy=0)
    assert outage(quick, quick.turn(), kind) == [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]


@pytest.mark.rule("REC-2")
def test_the_window_counts_from_the_first_failure_of_the_outage() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.wait(turn)
    w.sleep(88_000)
    assert isinstance(w.fail(turn, "overloaded"), CallModel), "89 s have passed, 2 s more do not fit"


@pytest.mark.rule("REC-3")
def test_a_completed_response_starts_the_outage_anew_and_nothing_less_does() -> None:
    def third(report: str) -> Wait:
        w = World(chain(A, B))
        turn = w.turn(continuable=True)
        for _ in range(2):
            w.fail(turn, "overloaded")
            w.wait(turn)
        w.sleep(80_000)
        if report == "response":
            turn.response_completed()
        elif report == "tool":
            turn.effects_begun()
        step = w.fail(turn, "overloaded", delivered=report == "partial")
        assert isinstance(step, Wait) or report != "response"
        return step  # type: ignore[return-value]  # the loop saw it

    assert third("response").retry == 1
    assert third("response").until_ms == START_MS + 83_000 + 1000
    for lesser in ("tool", "partial", "nothing"):
        step = third(lesser)
        assert isinstance(step, Wait)
        assert step.retry == 3


@pytest.mark.rule("REC-4")
def test_max_retries_overrides_the_count_and_rate_limits_keep_their_cap() -> None:
    def retries(kind: str, policy: int | None, turn: int | None) -> int:
        w = World(chain(A, recovery=Recovery(max_retries=policy)), entropy=0)
        return len(outage(w, w.turn(max_retries=turn), kind))

    assert (retries("overloaded", 3, None), retries("rate_limit", 3, None)) == (3, 3)
    assert (retries("overloaded", 0, None), retries("rate_limit", 0, None)) == (0, 0)
    assert retries("rate_limit", 40, None) == 15
    assert (retries("overloaded", None, 2), retries("overloaded", 5, 2)) == (2, 2)
    assert retries("rate_limit", None, None) == 15
    w = World(chain(A, recovery=Recovery(max_retries=1)))
    turn = w.turn()
    w.fail(turn, "rate_limit")
    assert "REC-4" in of(turn, d.RetryScheduled)[0].rules


@pytest.mark.rule("REC-5")
def test_shared_token_exhaustion_is_not_sat_out_where_a_fallback_can_serve() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    assert outage(w, turn, TPM) == [1000, 2000]
    assert {one.of for one in of(turn, d.RetryScheduled)} == {2}
    assert all("REC-5" in one.rules for one in of(turn, d.RetryScheduled))
    assert isinstance(turn.step, CallModel)
    assert turn.step.model == B


@pytest.mark.rule("REC-5")
def test_the_window_of_shared_exhaustion_is_fifteen_seconds() -> None:
    def first(seconds: int) -> Step:
        w = World(chain(A, B))
        return w.fail(w.turn(), TPM, retry_after=seconds)

    assert isinstance(first(15), Wait)
    assert isinstance(first(16), CallModel)


@pytest.mark.rule("REC-5")
def test_without_an_eligible_fallback_the_longer_budget_stays() -> None:
    def budget(w: World, **fields: Any) -> int:
        turn = w.turn(**fields)
        w.fail(turn, TPM)
        return int(of(turn, d.RetryScheduled)[0].of)

    assert budget(World(chain(A, B))) == 2
    assert budget(World(chain(A))) == 15
    assert budget(World(chain(A, B)), fallbacks=[]) == 15
    assert budget(World(chain(A, B, consent=(Consent(reason=Failure.RATE_LIMIT, models=()),)))) == 15
    cooling = World(chain(A, B))
    cooling.run("s", "model_not_found", "auth_permanent")
    cooling.sleep(30_000)
    assert budget(cooling) == 15, "the fallback's only account is disabled"
    unsafe = World(chain(A, B))
    turn = unsafe.turn(continuable=True)
    turn.effects_begun()
    unsafe.fail(turn, TPM)
    assert of(turn, d.RetryScheduled)[0].of == 15, "what cannot be replayed cannot go to a fallback"


@pytest.mark.rule("REC-6")
def test_after_an_effect_the_transcript_is_continued_and_the_request_not_replayed() -> None:
    def retried(effects: Effects) -> CallModel:
        w = World(chain(A, B))
        turn = w.turn(continuable=True)
        w.fail(turn, "overloaded", effects=effects)
        step = w.wait(turn)
        assert isinstance(step, CallModel)
        assert ("REC-6" in of(turn, d.AttemptStarted)[-1].rules) is step.continuation
        w.proved()
        return step

    plain, continued = retried(Effects.NONE), retried(Effects.COMMITTED)
    assert (plain.continuation, plain.instruction) == (False, "")
    assert continued.continuation
    assert "before you decide whether to repeat it" in continued.instruction


@pytest.mark.rule("REC-6", "REC-8")
def test_a_host_that_cannot_continue_ends_the_turn() -> None:
    w = World(chain(A, B))
    step = w.fail(w.turn(), "overloaded", effects=Effects.COMMITTED)
    assert isinstance(step, Settled)
    assert step.end is TurnEnd.UNSAFE


@pytest.mark.rule("REC-7")
def test_a_wait_is_shown_can_be_cancelled_and_keeps_to_the_deadline() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, "rate_limit", retry_after=30)
    assert isinstance(step, Wait)
    assert (step.until_ms, step.retry, step.of) == (START_MS + 30_000, 1, 15)
    assert turn.resume() == step, "too early changes nothing"
    assert isinstance(turn.cancel(), Settled)
    w = World(chain(A, B))
    hurried = w.turn("hurried", deadline_ms=START_MS + 1000)
    assert isinstance(w.fail(hurried, "overloaded"), CallModel), "a wait that ends at the deadline is none"
    waiting = w.turn("waiting", deadline_ms=START_MS + 1001)
    assert isinstance(w.fail(waiting, "overloaded"), Wait)
    w.sleep(1001)
    ended = waiting.deadline_passed()
    assert isinstance(ended, Settled)
    assert ended.end is TurnEnd.DEADLINE


@pytest.mark.rule("REC-8")
@pytest.mark.parametrize(
    ("receipts", "replayed"),
    [
        ((), True),
        ((ToolReceipt.REJECTED, ToolReceipt.REJECTED), True),
        ((ToolReceipt.REJECTED, ToolReceipt.STARTED), False),
        ((ToolReceipt.FINISHED,), False),
    ],
)
def test_rotation_and_fallback_need_a_safe_replay(receipts: tuple[ToolReceipt, ...], replayed: bool) -> None:
    for profiles in ({"openai": ["o1", "o2"]}, {"openai": ["o1"], "anthropic": ["a1"]}):
        w = World(chain(A, B), profiles)
        turn = w.turn()
        step = w.fail(turn, "auth", receipts=receipts)
        assert isinstance(step, CallModel if replayed else Settled)
        (classified,) = of(turn, d.FailureClassified)
        assert classified.replayable is replayed
        if not replayed:
            assert "REC-8" in of(turn, d.TurnFailed)[0].rules
        w.proved()


@pytest.mark.rule("REC-8")
def test_an_effect_that_was_announced_and_an_answer_that_was_delivered_forbid_a_replay() -> None:
    w = World(chain(A, B))
    begun = w.turn("begun")
    begun.effects_begun()
    assert isinstance(w.fail(begun, "auth"), Settled)
    w.sleep(60_000)
    delivered = w.turn("delivered")
    assert isinstance(w.fail(delivered, "model_not_found", delivered=True), Settled)


@pytest.mark.rule("REC-9")
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_one_rotation_then_the_next_model(kind: str) -> None:
    known_profiles = {"openai": ["o1", "o2", "o3"], "anthropic": ["a1"]}
    w = World(chain(A, B, recovery=AT_ONCE), known_profiles)
    turn = w.turn()
    w.fail(turn, kind)
    w.fail(turn, kind)
    assert w.tried(turn) == [(A, "o1"), (A, "o2"), (B, "a1")]
    assert "REC-9" in of(turn, d.AttemptStarted)[1].rules
    alone = World(chain(A, recovery=AT_ONCE), known_profiles)
    turn = alone.turn()
    alone.give_up(turn, kind)
    alone.give_up(turn, kind)
    assert alone.tried(turn) == [(A, "o1"), (A, "o2"), (A, "o3")], "the cap protects a fallback only"


@pytest.mark.rule("REC-10")
def test_each_attempt_has_an_allowance_from_its_own_start() -> None:
    w = World(chain(A, B))
    turn = w.turn(allowance_ms=10_000)
    assert isinstance(turn.step, CallModel)
    assert turn.step.allowance_ms == 10_000
    w.sleep(9_999)
    w.fail(turn, "model_not_found")
    w.sleep(9_999)
    kept = turn.no_progress()
    assert isinstance(kept, CallModel), "what the first attempt did not do cannot end the second"
    (dismissed,) = of(turn, d.DoubtDismissed)
    assert "REC-10" in dismissed.rules
    w.sleep(1)
    ended = turn.no_progress()
    assert isinstance(ended, Settled)
    assert ended.end is TurnEnd.STOPPED
    w.proved()


@pytest.mark.rule("REC-10")
def test_the_allowance_is_ninety_seconds_where_the_host_says_nothing() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    w.sleep(89_999)
    assert isinstance(turn.no_progress(), CallModel)
    w.sleep(1)
    assert isinstance(turn.no_progress(), Settled)


@pytest.mark.rule("REC-11")
def test_the_timeout_counts_per_attempt() -> None:
    w = World(chain(A, B, recovery=AT_ONCE, attempt_timeout_ms=60_000))
    turn = w.turn()
    w.sleep(59_000)
    turn.response_completed()
    step = w.fail(turn, "stream_timeout")
    assert isinstance(step, CallModel)
    assert (step.model, step.timeout_ms) == (B, 60_000), "the fallback has the whole budget again"
    own = w.turn("own", timeout_ms=5000)
    assert isinstance(own.step, CallModel)
    assert own.step.timeout_ms == 5000


@pytest.mark.rule("REC-13")
def test_a_cancel_ends_the_whole_chain_and_the_outer_deadline_ends_it_by_itself() -> None:
    for timestamp in ("calling", "waiting"):
        w = World(chain(A, B, C))
        turn = w.turn()
        if timestamp == "waiting":
            w.fail(turn, "rate_limit")
        step = turn.cancel()
        assert isinstance(step, Settled)
        assert step.end is TurnEnd.CANCELLED
        assert "REC-13" in of(turn, d.TurnFailed)[0].rules
        # A report that comes after it moves nothing.
        before = len(turn.state.attempts)
        w.fail(turn, "auth") if timestamp == "calling" else turn.resume()
        assert (len(turn.state.attempts), turn.state.end) == (before, TurnEnd.CANCELLED)
        w.proved()
    outer = World(chain(A, B))
    turn = outer.turn()
    step = turn.deadline_passed()
    assert isinstance(step, Settled)
    assert step.end is TurnEnd.DEADLINE
    assert "REC-13" in of(turn, d.TurnFailed)[0].rules


@pytest.mark.rule("REC-14")
def test_finished_work_is_brought_to_its_answer_without_tools_also_with_no_retries() -> None:
    def after(*, finished: bool) -> Step:
        w = World(chain(A, B, recovery=AT_ONCE))
        turn = w.turn(continuable=True)
        step = w.fail(turn, "overloaded", effects=Effects.COMMITTED, finished_work=finished)
        if isinstance(step, CallModel):
            again = w.fail(turn, "overloaded", effects=Effects.COMMITTED, finished_work=True)
            assert isinstance(again, Settled), "once"
        w.proved()
        return step

    step = after(finished=True)
    assert isinstance(step, CallModel)
    assert (step.model, step.finalize, step.continuation) == (A, True, True)
    assert "no tools" in step.instruction
    assert isinstance(after(finished=False), Settled)


@pytest.mark.rule("REC-15")
def test_the_retry_setting_reaches_the_runs_that_take_part_in_it() -> None:
    def budget(**fields: Any) -> int:
        w = World(chain(A, B, recovery=Recovery(max_retries=2)), entropy=0)
        return len(outage(w, w.turn(**fields), "overloaded"))

    assert budget() == 2
    assert budget(harness="codex") == 2
    assert budget(local_settings=False) == 8, "a remote run keeps its budget"
    assert budget(local_settings=False, max_retries=1) == 8
    assert budget(max_retries=1) == 1


@pytest.mark.rule("REC-15")
def test_the_cap_on_delays_is_for_embedded_runs() -> None:
    def first(**fields: Any) -> Step:
        w = World(chain(A, B, recovery=Recovery(max_retry_delay_ms=5000)))
        return w.fail(w.turn(**fields), "rate_limit", retry_after=20)

    assert isinstance(first(), CallModel), "20 s are over the cap of 5 s"
    assert isinstance(first(harness="codex"), Wait)
    assert isinstance(first(local_settings=False), Wait)


@pytest.mark.rule("REC-16")
def test_a_runtime_finishes_its_own_retries_before_recovery_begins() -> None:
    w = World(chain(A, B))
    turn = w.turn(harness="codex")
    for _ in range(4):
        w.sleep(10_000)
        turn.runtime_recovering(FAILURES["overloaded"])
        assert turn.commits[-1].decisions == ()
    step = w.fail(turn, "overloaded")
    assert isinstance(step, Wait)
    assert (step.retry, step.until_ms) == (1, w.now_ms + 1000), "neither count nor window had begun"
    w.proved()


@pytest.mark.rule("REC-17")
def test_once_the_budget_is_spent_rotation_then_fallback_then_a_visible_error() -> None:
    w = World(chain(A, B, recovery=Recovery(max_retries=1)), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn()
    step: Step = turn.step
    while not isinstance(step, Settled):
        step = w.wait(turn) if isinstance(step, Wait) else w.fail(turn, "overloaded")
    assert w.tried(turn) == [(A, "o1"), (A, "o1"), (A, "o2"), (B, "a1"), (B, "a1")]
    assert "REC-17" in of(turn, d.AttemptStarted)[2].rules
    assert (step.answered, step.end) == (False, TurnEnd.EXHAUSTED)
    # Nothing starts the turn over: a late report and a resume leave it settled.
    count = len(turn.state.attempts)
    turn.resume()
    assert len(turn.state.attempts) == count
    assert turn.step == step


@pytest.mark.rule("REC-18")
def test_recovery_needs_no_configuration_and_ends_with_its_turn() -> None:
    w = World(chain(A, B))
    first = w.turn()
    w.fail(first, "overloaded")
    w.wait(first)
    w.fail(first, "overloaded")
    first.cancel()
    w.sleep(85_000)
    second = w.turn()
    step = w.fail(second, "overloaded")
    assert isinstance(step, Wait)
    assert (step.retry, step.until_ms) == (1, w.now_ms + 1000)


@pytest.mark.rule("TIME-4")
def test_provider_timing_is_the_floor_of_a_wait_up_to_the_cap() -> None:
    def first(seconds: float, cap: int | None = None, models: tuple[str, ...] = (A, B)) -> Step:
        w = World(chain(*models, recovery=Recovery(max_retry_delay_ms=cap)))
        turn = w.turn()
        step = w.fail(turn, "rate_limit", retry_after=seconds)
        if isinstance(step, Wait):
            (scheduled,) = of(turn, d.RetryScheduled)
            assert "TIME-4" in scheduled.rules
            assert scheduled.floor_ms == int(seconds * 1000)
        return step

    short = first(0.25)
    assert isinstance(short, Wait)
    assert short.until_ms == START_MS + 1000, "a floor below the backoff changes nothing"
    longer = first(60)
    assert isinstance(longer, Wait)
    assert longer.until_ms == START_MS + 60_000
    assert isinstance(first(61), CallModel), "over the cap: not shortened, not waited for"
    raised = first(300, 300_000)
    assert isinstance(raised, Wait)
    assert raised.until_ms == START_MS + 300_000
    assert isinstance(first(3600, 0), Wait), "0 is no cap"
    assert isinstance(first(6, 5000), CallModel)
    alone = first(61, None, (A,))
    assert isinstance(alone, Settled)
    assert (alone.soonest_ms, alone.soonest_model) == (START_MS + 61_000, A)


@pytest.mark.rule("TIME-4")
def test_the_floor_counts_from_the_arrival_of_the_reply() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    step = w.fail(turn, "rate_limit", retry_after=10, received_ms=START_MS - 4000)
    assert isinstance(step, Wait)
    assert step.until_ms == START_MS + 6000

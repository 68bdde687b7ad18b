"""What ends a run besides its answer: a caller who leaves, a crash, another runtime."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from standby.events import facts as f
from standby.events.errors import BadReport, RuntimeEnded, StandbyError, TurnFailed, TurnLost
from standby.events.sqlite import SQLiteStore
from standby.events.vocabulary import Effects, Failure, TurnEnd
from standby.hosts.providers import Prompt
from standby.hosts.runner import AsyncRunner, Runner
from standby.hosts.scripted import answer, hanging, no_credit, overloaded, rate_limited
from tests.hosts.runners import POLICY, House, house

BOTH = pytest.mark.parametrize("kind", ["sync", "async"])
SLOW_WAIT = rate_limited(30)


def only_turn(at: House) -> Any:
    """The one turn of a house, as the log has it."""
    (key,) = {fact.turn for fact in at.facts(f.TurnRequested)}
    turn = at.service.core.view.turns.get(key)
    assert turn is not None
    return turn


def until(done: Callable[[], bool], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


# ---- the caller leaves -----------------------------------------------------------------------------------


@pytest.mark.rule("REC-13")
@pytest.mark.invariant(6)
@pytest.mark.parametrize("reply", [hanging(), SLOW_WAIT], ids=["calling", "waiting"])
def test_a_token_cancels_the_turn(reply: Any) -> None:
    token = threading.Event()
    with house("sync", {"alpha": [reply], "beta": ["Never."]}) as at:

        def leave() -> None:
            at.server.wait_for_requests(1)
            time.sleep(0.05)
            token.set()

        thread = threading.Thread(target=leave)
        thread.start()
        started = time.monotonic()
        with pytest.raises(TurnFailed, match="cancelled") as caught:
            at.run(cancel=token, fallbacks=[])
        assert time.monotonic() - started < 20
        thread.join()
        assert caught.value.settled.end is TurnEnd.CANCELLED
        assert at.models == ["alpha"]
        assert only_turn(at).state == "failed"
        assert len(at.facts(f.TurnCancelled)) == 1


@pytest.mark.rule("REC-13")
@pytest.mark.parametrize("reply", [hanging(), SLOW_WAIT], ids=["calling", "waiting"])
def test_cancelling_the_task_cancels_the_turn(reply: Any, tmp_path: Any) -> None:
    store = SQLiteStore(tmp_path / "log.db", synchronous="normal")
    with house("async", {"alpha": [reply], "beta": ["Never."]}, store=store) as at:

        async def leave() -> None:
            async with AsyncRunner(at.service, **at.options) as runner:
                task = asyncio.create_task(runner.run(session="s", prompt="Hello?", fallbacks=[]))
                await asyncio.to_thread(at.server.wait_for_requests, 1)
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(leave())
        assert only_turn(at).end is TurnEnd.CANCELLED
        assert at.models == ["alpha"]
        assert at.server.wait_for_requests(1, ended=True)


def test_a_task_that_is_cancelled_while_the_log_is_written_leaves_a_settled_turn(tmp_path: Any) -> None:
    class Slow(SQLiteStore):
        """Takes its time over each commit, and says when it began one."""

        begun = threading.Event()

        def transaction(self) -> Any:
            self.begun.set()
            time.sleep(0.5)
            return super().transaction()

    store = Slow(tmp_path / "log.db", synchronous="normal")
    with house("async", {"alpha": ["Never."]}, store=store) as at:

        async def leave() -> None:
            async with AsyncRunner(at.service, **at.options) as runner:
                await asyncio.get_running_loop().run_in_executor(None, runner.keys.observe, at.service)
                store.begun.clear()
                task = asyncio.create_task(runner.run(session="s", prompt="Hello?"))
                while not store.begun.is_set():
                    await asyncio.sleep(0.001)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(leave())
        assert only_turn(at).end is TurnEnd.CANCELLED
        assert at.models == []


@pytest.mark.rule("REC-13")
@pytest.mark.parametrize("where", ["on_text", "on_status"])
@pytest.mark.parametrize(
    ("kind", "error"),
    # asyncio ends its whole loop on an interrupt, which cancels the task: see above.
    [("sync", KeyboardInterrupt), ("sync", ZeroDivisionError), ("async", ZeroDivisionError)],
)
def test_a_callback_that_raises_cancels_the_turn(kind: str, where: str, error: type[BaseException]) -> None:
    def fall(value: object) -> None:
        raise error

    first = answer("One two") if where == "on_text" else SLOW_WAIT
    with house(kind, {"alpha": [first, "Never."], "beta": ["Never."]}) as at:
        callbacks: dict[str, Any] = {where: fall}
        with pytest.raises(error):
            at.run(fallbacks=[], **callbacks)
        assert only_turn(at).end is TurnEnd.CANCELLED
        assert at.models == ["alpha"]


def test_an_answer_that_was_complete_beats_a_late_token() -> None:
    token = threading.Event()
    with house("sync", {"alpha": ["Done."]}) as at:
        result = at.run(cancel=token, on_text=lambda text: None)
        token.set()
    assert result.text == "Done."


# ---- after a crash ---------------------------------------------------------------------------------------


def crashed(at: House, **options: Any) -> str:
    """A turn whose process died during its first call."""
    at.service.observe({"openai": ["inline-api-key:openai"], "anthropic": ["inline-api-key:anthropic"]})
    return at.service.start_turn(session="s", **options).id


@BOTH
def test_a_call_that_nobody_saw_end_is_made_again_when_that_is_safe(kind: str) -> None:
    with house(kind, {"alpha": ["Here."]}) as at:
        key = crashed(at)
        again = at.restarted()
        result = again.resume(key)
        (unknown,) = again.facts(f.CallUnknown)
    assert result.text == "Here."
    assert unknown.effects is Effects.NONE
    assert [a.reason for a in result.settled.attempts] == [Failure.INTERRUPTED, None]
    assert [request.attempt for request in at.server.requests] == [f"{key}/2"]


@BOTH
@pytest.mark.rule("REC-8")
@pytest.mark.invariant(6)
@pytest.mark.parametrize("how", ["on_text", "stream", "tools"])
def test_it_is_not_made_again_when_something_may_have_happened(kind: str, how: str) -> None:
    ways: dict[str, dict[str, Any]] = {
        "on_text": {"on_text": lambda text: None},
        "stream": {"stream": True},
        "tools": {"prompt": Prompt(messages=({"role": "user", "content": "?"},), extra={"plugins": []})},
    }
    with house(kind, {"alpha": ["Never."], "beta": ["Never."]}) as at:
        key = crashed(at)
        again = at.restarted()
        with pytest.raises(TurnFailed) as caught:
            again.resume(key, **ways[how])
        (unknown,) = again.facts(f.CallUnknown)
    assert unknown.effects is Effects.POSSIBLE
    assert caught.value.settled.end is TurnEnd.UNSAFE
    assert at.models == []


@BOTH
def test_a_wait_goes_on_after_a_crash(kind: str) -> None:
    patient = POLICY.replace("baseMs = 10", "baseMs = 600")
    with house(kind, {"alpha": [rate_limited(0.9), "Here."]}, policy=patient) as at:
        handle = at.service.start_turn(session="s", fallbacks=[])
        first = at.restarted("dies")
        with pytest.raises(ZeroDivisionError):
            first.resume(handle.id, on_status=lambda status: _die(first))
        assert only_turn(first).state == "waiting"
        result = at.restarted("lives").resume(handle.id)
    assert result.text == "Here."
    assert len(at.models) == 2


def _die(at: House) -> None:
    """Nothing more is written by this process."""

    def gone(*arguments: Any) -> Any:
        raise RuntimeEnded("killed")

    setattr(at.service.core, "submit", gone)  # noqa: B010 - mypy refuses the plain form
    raise ZeroDivisionError


@BOTH
def test_the_same_request_twice_calls_nothing_twice(kind: str) -> None:
    with house(kind, {"alpha": ["Here."]}) as at:
        at.service.observe({"openai": ["inline-api-key:openai"], "anthropic": ["inline-api-key:anthropic"]})
        at.service.start_turn(session="s", turn="t1")
        result = at.run(turn="t1")
        assert [request.attempt for request in at.server.requests] == ["t1/2"]
        assert result.settled.attempts[0].reason is Failure.INTERRUPTED
        with pytest.raises(TurnLost, match="answered before"):
            at.run(turn="t1")
        for again in (at, at.restarted("other")):
            with pytest.raises(TurnLost, match="answered before"):
                again.resume("t1")
        assert len(at.models) == 1


def test_a_turn_that_is_being_run_cannot_be_run_beside_itself() -> None:
    with house("sync", {"alpha": [hanging()]}) as at, Runner(at.service, **at.options) as runner:
        token = threading.Event()
        errors: list[BaseException] = []

        def first() -> None:
            try:
                runner.run(session="s", prompt="Hello?", turn="t1", cancel=token)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=first)
        thread.start()
        at.server.wait_for_requests(1)
        with pytest.raises(BadReport, match="being run"):
            runner.resume("t1", prompt="Hello?")
        token.set()
        thread.join()
        assert isinstance(errors[0], TurnFailed)
        with pytest.raises(TurnFailed, match="cancelled"):
            runner.resume("t1", prompt="Hello?")


@BOTH
def test_a_turn_that_failed_before_fails_with_the_same_record(kind: str) -> None:
    with house(kind, {"alpha": [overloaded(repeat=True)]}) as at:
        with pytest.raises(TurnFailed) as first:
            at.run(fallbacks=[])
        calls = len(at.models)
        for again in (at, at.restarted("other")):
            with pytest.raises(TurnFailed) as second:
                again.resume(first.value.turn)
            assert second.value.settled == first.value.settled
        assert len(at.models) == calls


@BOTH
def test_an_unknown_turn_is_refused(kind: str) -> None:
    with house(kind, {}) as at, pytest.raises(BadReport, match="not known"):
        at.resume("t-none")


# ---- another runtime -------------------------------------------------------------------------------------


@BOTH
def test_a_turn_that_is_taken_over_during_its_call_is_left_in_peace(kind: str) -> None:
    with house(kind, {"alpha": [answer("Mine?", delay_ms=1000)]}) as at:
        other = at.restarted("other")

        def take() -> None:
            at.server.wait_for_requests(1)
            (fact,) = at.facts(f.TurnRequested)
            other.service.reopen(fact.turn)

        thread = threading.Thread(target=take)
        thread.start()
        with pytest.raises(TurnLost, match="another runtime took it over") as caught:
            at.run()
        thread.join()
        assert caught.value.turn == at.facts(f.TurnRequested)[0].turn
        assert only_turn(at).state == "orphaned"
        assert only_turn(at).runtime == "other"
        assert at.models == ["alpha"]


@BOTH
def test_a_turn_that_is_taken_over_while_it_waits_is_left_in_peace(kind: str) -> None:
    with house(kind, {"alpha": [rate_limited(0.9), "Never."]}) as at:
        other = at.restarted("other")

        def take(status: object) -> None:
            (fact,) = at.facts(f.TurnRequested)
            other.service.reopen(fact.turn)

        with pytest.raises(TurnLost, match="another runtime took it over"):
            at.run(on_status=take, fallbacks=[])
        assert only_turn(at).state == "waiting"
        assert at.models == ["alpha"]


@BOTH
def test_a_turn_that_somebody_else_cancels_ends_as_cancelled(kind: str) -> None:
    with house(kind, {"alpha": [answer("Late.", delay_ms=1000)]}) as at:
        other = at.restarted("other")

        def cancel() -> None:
            at.server.wait_for_requests(1)
            (fact,) = at.facts(f.TurnRequested)
            other.service.core.submit(f.TurnCancelled(turn=fact.turn))

        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(TurnFailed, match="cancelled"):
            at.run()
        thread.join()
        assert len(at.facts(f.CallSucceeded)) == 1


@BOTH
def test_a_runtime_whose_slot_began_anew_stops(kind: str) -> None:
    with house(kind, {"alpha": [answer("Late.", delay_ms=1000)]}) as at:
        thread = threading.Thread(target=lambda: (at.server.wait_for_requests(1), at.restarted()))
        thread.start()
        with pytest.raises(RuntimeEnded):
            at.run()
        thread.join()
        assert only_turn(at).state == "calling"


# ---- many at once ----------------------------------------------------------------------------------------


def test_many_turns_at_once_on_one_file(tmp_path: Any) -> None:
    store = SQLiteStore(tmp_path / "log.db", synchronous="normal")
    script = {"alpha": [answer("Here.", delay_ms=20, repeat=True)]}
    with house("async", script, store=store) as at:

        async def all_of_them() -> list[str]:
            async with AsyncRunner(at.service, **at.options) as runner:
                runs = [runner.run(session=f"s{n}", prompt="Hello?") for n in range(50)]
                return [result.text for result in await asyncio.gather(*runs)]

        assert asyncio.run(all_of_them()) == ["Here."] * 50


def test_threads_share_a_runner() -> None:
    script = {"alpha": [answer("Here.", delay_ms=5, repeat=True)]}
    with house("sync", script) as at, Runner(at.service, **at.options) as runner:
        texts: list[str] = []

        def some(name: str) -> None:
            texts.extend(runner.run(session=name, prompt="Hello?").text for _ in range(5))

        threads = [threading.Thread(target=some, args=(f"s{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["Here."] * 20


def test_the_event_loop_never_waits_for_the_disk(tmp_path: Any) -> None:
    threads: set[int] = set()

    class Watched(SQLiteStore):
        def transaction(self) -> Any:
            threads.add(threading.get_ident())
            return super().transaction()

        def side_entry(self, alias: str) -> Any:
            threads.add(threading.get_ident())
            return super().side_entry(alias)

    store = Watched(tmp_path / "log.db", synchronous="normal")
    with house("async", {"alpha": [overloaded(repeat=True)], "beta": ["Here."]}, store=store) as at:
        threads.clear()
        at.run(on_notice=lambda notice: None)
        assert threads
        assert threading.get_ident() not in threads


def test_errors_of_the_runner_are_standbys_own() -> None:
    assert issubclass(TurnFailed, StandbyError)
    assert issubclass(TurnLost, StandbyError)


# ---- callbacks -------------------------------------------------------------------------------------------


def test_callbacks_of_the_asynchronous_runner_may_be_coroutines() -> None:
    said: list[str] = []

    async def hear(value: object) -> None:
        await asyncio.sleep(0)
        said.append(str(value))

    with house("async", {"alpha": [no_credit()], "beta": ["Here."]}) as at:
        at.run(on_text=hear, on_status=hear, on_notice=hear)
    trying, text, normal, notice = said
    assert (trying, text, normal) == ("Trying fallback model…", "Here.", "")
    assert notice.startswith("↪️ Model Fallback: anthropic/beta")


def test_tables_are_built_before_the_log_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    with house("sync", {"alpha": [no_credit()], "beta": ["Here."]}) as at:
        locked: list[bool] = []
        monkeypatch.setattr(
            "standby.hosts.runner.driver.get_ready_to_read",
            lambda: locked.append(at.service.core.transaction is not None),
        )
        at.run()
        assert locked == [False]

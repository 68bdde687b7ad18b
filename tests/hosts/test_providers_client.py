"""Both clients over real sockets: every way in which a call can end, budgets, cancellation, connections."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from standby.events.vocabulary import Origin, Stage
from standby.hosts.providers import (
    CallFailed,
    CallSucceeded,
    Code,
    Endpoint,
    Outcome,
    Prompt,
    Secret,
    Wire,
    endpoint,
)
from standby.hosts.providers.client import AsyncProviderClient, ProviderClient
from standby.hosts.scripted import (
    Kind,
    Reply,
    ScriptedProvider,
    answer,
    closed,
    cut_stream,
    failing_stream,
    hanging,
    overloaded,
    rate_limited,
    stalled_stream,
)

KEY = "sk-test-PLACEHOLDER-0123456789"
SECRET = Secret(KEY)
PROMPT = Prompt(messages=({"role": "user", "content": "Hello?"},))
BOTH = pytest.mark.parametrize("wire", list(Wire))

Call = Callable[..., Outcome]


def where(server: ScriptedProvider, wire: Wire = Wire.OPENAI_CHAT) -> Endpoint:
    return endpoint("scripted", base_url=server.base_url, wire=wire)


def in_asyncio(*args: Any, **options: Any) -> Outcome:
    async def once() -> Outcome:
        async with AsyncProviderClient() as client:
            return await client.call(*args, **options)

    return asyncio.run(once())


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    """One call by either client."""
    if request.param == "async":
        yield in_asyncio
        return
    with ProviderClient() as client:
        yield client.call


def failed(outcome: Outcome) -> CallFailed:
    assert isinstance(outcome, CallFailed)
    return outcome


def text(outcome: Outcome) -> str:
    assert isinstance(outcome, CallSucceeded), outcome
    return outcome.answer.text


@BOTH
def test_an_answer_comes_whole_or_in_pieces(call: Call, wire: Wire) -> None:
    with ScriptedProvider({"m": [answer("one two three", repeat=True)]}) as server:
        said: list[str] = []
        outcome = call(
            where(server, wire), "m", PROMPT, SECRET, stream=True, on_text=said.append, attempt_id="at-1"
        )
        assert text(outcome) == "one two three"
        assert said == ["one", " two", " three"]
        assert outcome.delivered
        outcome = call(where(server, wire), "m", PROMPT, SECRET)
        assert text(outcome) == "one two three"
        assert not outcome.delivered
        first, second = server.requests
    assert (first.wire, first.model, first.key, first.attempt) == (wire, "m", SECRET.fingerprint, "at-1")
    assert (first.stream, second.stream, second.attempt) == (True, False, "")


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_reply_is_one_request_and_one_failure(call: Call, wire: Wire, stream: bool) -> None:
    with ScriptedProvider({"m": [rate_limited(7)]}, default="retried!") as server:
        failure = failed(call(where(server, wire), "m", PROMPT, SECRET, stream=stream))
        assert len(server.requests) == 1
    assert (failure.status, failure.headers["retry-after"]) == (429, "7")
    assert "rate limit" in failure.body.lower()
    assert (failure.stage, failure.origin, failure.delivered) == (Stage.PROMPT, Origin.PROVIDER, False)


@BOTH
def test_a_cut_stream_keeps_what_was_said(call: Call, wire: Wire) -> None:
    with ScriptedProvider({"m": [cut_stream("one two three", after=2)]}, default="retried!") as server:
        said: list[str] = []
        failure = failed(call(where(server, wire), "m", PROMPT, stream=True, on_text=said.append))
        assert len(server.requests) == 1
    assert failure.code == Code.RESET
    assert (failure.stage, failure.origin) == (Stage.STREAM, Origin.TRANSPORT)
    assert (failure.partial_text, "".join(said), failure.delivered) == ("one two", "one two", True)
    assert failure.status is None


def test_output_that_nobody_was_given_is_not_delivered(call: Call) -> None:
    with ScriptedProvider({"m": [cut_stream("one two three", after=2)]}) as server:
        failure = failed(call(where(server), "m", PROMPT, stream=True))
    assert (failure.partial_text, failure.delivered) == ("one two", False)


@BOTH
def test_a_stream_that_ends_too_early_in_good_order_is_a_failure(call: Call, wire: Wire) -> None:
    with ScriptedProvider({"m": [Reply(answer="one two", end_after=1)]}) as server:
        failure = failed(call(where(server, wire), "m", PROMPT, stream=True))
    assert (failure.code, failure.partial_text) == (Code.STREAM_ENDED, "one")


@BOTH
@pytest.mark.rule("CLS-20")
def test_an_error_event_ends_a_stream(call: Call, wire: Wire) -> None:
    with ScriptedProvider({"m": [failing_stream("one two", after=1, kind=Kind.OVERLOADED)]}) as server:
        failure = failed(call(where(server, wire), "m", PROMPT, stream=True))
    assert "overloaded" in failure.body.lower()
    assert (failure.stage, failure.origin, failure.partial_text) == (Stage.STREAM, Origin.PROVIDER, "one")


def test_a_reply_that_breaks_off_is_no_answer(call: Call) -> None:
    with ScriptedProvider({"m": [Reply(answer="one two", cut_after=1)]}) as server:
        failure = failed(call(where(server), "m", PROMPT))
    assert (failure.code, failure.stage, failure.body) == (Code.RESET, Stage.STREAM, "")


def test_a_connection_that_is_closed_in_place_of_a_reply(call: Call) -> None:
    with ScriptedProvider({"m": [closed()]}, default="retried!") as server:
        failure = failed(call(where(server), "m", PROMPT))
        assert len(server.requests) == 1
    assert (failure.code, failure.stage, failure.origin) == (Code.RESET, Stage.PROMPT, Origin.TRANSPORT)


def test_nobody_listens(call: Call) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        failure = failed(call(endpoint("openai", base_url=url), "m", PROMPT, SECRET))
    assert (failure.code, failure.stage, failure.origin) == (Code.REFUSED, Stage.PROMPT, Origin.TRANSPORT)
    assert failure.error_type == "ConnectError"


def test_tls_with_someone_who_does_not_speak_it(call: Call) -> None:
    with ScriptedProvider({}) as server:
        url = server.base_url.replace("http://", "https://")
        failure = failed(call(endpoint("openai", base_url=url), "m", PROMPT, SECRET))
        assert server.requests == ()
    assert (failure.code, failure.origin) == (Code.TLS, Origin.TRANSPORT)


def test_a_redirect_is_a_reply_and_not_followed(call: Call) -> None:
    with ScriptedProvider({}, default="followed!") as target:
        moved = Reply(status=307, headers={"location": f"{target.base_url}/chat/completions"}, body="moved")
        with ScriptedProvider({"m": [moved]}) as server:
            failure = failed(call(where(server), "m", PROMPT, SECRET))
        assert (failure.status, failure.body) == (307, "moved")
        assert target.requests == ()


def test_a_server_may_answer_in_one_piece_although_a_stream_was_asked_for(call: Call) -> None:
    body = {
        "id": "c",
        "model": "m",
        "choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}],
    }
    with ScriptedProvider({"m": [Reply(body=body)]}) as server:
        said: list[str] = []
        assert text(call(where(server), "m", PROMPT, stream=True, on_text=said.append)) == "all at once"
    assert said == ["all at once"]


def test_a_request_that_cannot_be_built_never_leaves(call: Call) -> None:
    with ScriptedProvider({}, default="ok") as server:
        failure = failed(call(where(server), "m", PROMPT, Secret(KEY + "\n")))
        assert server.requests == ()
    assert (failure.code, failure.origin) == (Code.BAD_REQUEST, Origin.LOCAL)
    assert KEY not in failure.message


@pytest.mark.invariant(12)
def test_no_log_line_shows_a_key(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    with ScriptedProvider({"m": ["ok", rate_limited(), cut_stream("a b", after=1)]}) as server:
        for _ in range(3):
            call(where(server), "m", PROMPT, SECRET, stream=True)
    assert "chat/completions" in caplog.text
    assert KEY not in caplog.text
    assert "Hello?" not in caplog.text


# Budgets


@BOTH
@pytest.mark.parametrize(
    ("reply", "stage", "partial"),
    [
        (hanging(), Stage.PROMPT, ""),
        (answer("late", delay_ms=5_000), Stage.PROMPT, ""),
        (stalled_stream("one two", after=1), Stage.STREAM, "one"),
    ],
)
@pytest.mark.rule("REC-11")
def test_silence_ends_with_the_budget(call: Call, wire: Wire, reply: Reply, stage: Stage, partial: str) -> None:
    with ScriptedProvider({"m": [reply]}) as server:
        began = time.monotonic()
        failure = failed(call(where(server, wire), "m", PROMPT, stream=True, timeout_ms=300))
        assert 0.29 < time.monotonic() - began < 4
        assert server.wait_for_requests(1, ended=True), "the connection was left open"
        assert server.requests[0].ended == "client_left"
    assert (failure.code, failure.stage, failure.partial_text) == (Code.TIMED_OUT, stage, partial)
    assert failure.origin is Origin.TRANSPORT
    assert "300 ms" in failure.message


@pytest.mark.rule("REC-11")
def test_progress_does_not_renew_the_budget(call: Call) -> None:
    words = " ".join(["word"] * 300)
    with ScriptedProvider({"m": [Reply(answer=words, chunk_delay_ms=20)]}) as server:
        began = time.monotonic()
        failure = failed(call(where(server), "m", PROMPT, stream=True, timeout_ms=250))
        assert time.monotonic() - began < 4
    assert failure.code == Code.TIMED_OUT
    assert len(failure.partial_text.split()) < 15


def test_a_stream_that_hangs_after_its_answer_is_an_answer(call: Call) -> None:
    body = 'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    headers = {"content-type": "text/event-stream", "content-length": "9999"}
    with ScriptedProvider({"m": [Reply(body=body, headers=headers)]}) as server:
        began = time.monotonic()
        assert text(call(where(server), "m", PROMPT, stream=True, timeout_ms=9_000)) == "ok"
        assert time.monotonic() - began < 4


# Cancellation


@pytest.mark.parametrize("reply", [hanging(), stalled_stream("one two", after=1)])
def test_cancelling_the_task_closes_the_connection(reply: Reply) -> None:
    async def cancelled(server: ScriptedProvider) -> None:
        async with AsyncProviderClient() as client:
            task = asyncio.create_task(client.call(where(server), "m", PROMPT, stream=True))
            assert await asyncio.to_thread(server.wait_for_requests, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Still before the client itself is closed.
            assert await asyncio.to_thread(server.wait_for_requests, 1, ended=True)

    with ScriptedProvider({"m": [reply]}) as server:
        asyncio.run(cancelled(server))
        assert server.requests[0].ended == "client_left"


@pytest.mark.parametrize(
    ("reply", "stage", "partial"),
    [(hanging(), Stage.PROMPT, ""), (stalled_stream("one two", after=1), Stage.STREAM, "one")],
)
def test_a_set_token_ends_a_synchronous_call(reply: Reply, stage: Stage, partial: str) -> None:
    token = threading.Event()
    set_at: list[float] = []
    said: list[str] = []
    begun = threading.Event()

    def take(piece: str) -> None:
        said.append(piece)
        begun.set()

    def cancel_later(server: ScriptedProvider) -> None:
        assert server.wait_for_requests(1)
        assert not partial or begun.wait(5)
        time.sleep(0.05)
        set_at.append(time.monotonic())
        token.set()

    with ScriptedProvider({"m": [reply]}) as server, ProviderClient() as client:
        canceller = threading.Thread(target=cancel_later, args=(server,))
        canceller.start()
        outcome = client.call(where(server), "m", PROMPT, stream=True, on_text=take, cancel=token)
        canceller.join()
        assert time.monotonic() - set_at[0] < 3
        assert server.wait_for_requests(1, ended=True)
        assert server.requests[0].ended == "client_left"
    failure = failed(outcome)
    assert (failure.code, failure.origin) == (Code.CANCELLED, Origin.ABORT)
    assert (failure.stage, failure.partial_text, failure.delivered) == (stage, partial, bool(partial))
    assert "".join(said) == partial


def test_a_token_that_is_set_before_the_call_sends_nothing() -> None:
    token = threading.Event()
    token.set()
    with ScriptedProvider({}, default="ok") as server, ProviderClient() as client:
        failure = failed(client.call(where(server), "m", PROMPT, cancel=token))
        assert failure.origin is Origin.ABORT
        time.sleep(0.05)
        assert server.requests == ()


def test_an_unset_token_changes_nothing() -> None:
    with ScriptedProvider({}, default=answer("ok", delay_ms=60)) as server, ProviderClient() as client:
        assert text(client.call(where(server), "m", PROMPT, cancel=threading.Event())) == "ok"


def test_what_the_caller_raises_on_text_reaches_the_caller(call: Call) -> None:
    def refuse(piece: str) -> None:
        raise TimeoutError(f"no room for {piece}")

    with ScriptedProvider({"m": [stalled_stream("one two", after=1)]}) as server:
        with pytest.raises(TimeoutError, match="no room for one"):
            call(where(server), "m", PROMPT, stream=True, on_text=refuse)
        assert server.wait_for_requests(1, ended=True)


def test_text_may_be_taken_by_a_coroutine() -> None:
    said: list[str] = []

    async def take(piece: str) -> None:
        await asyncio.sleep(0)
        said.append(piece)

    with ScriptedProvider({}, default="one two") as server:
        assert text(in_asyncio(where(server), "m", PROMPT, stream=True, on_text=take)) == "one two"
    assert said == ["one", " two"]


def test_the_calling_thread_gets_the_text() -> None:
    threads: set[int] = set()
    with ScriptedProvider({}, default="one two") as server, ProviderClient() as client:
        client.call(
            where(server), "m", PROMPT, stream=True, on_text=lambda _: threads.add(threading.get_ident())
        )
    assert threads == {threading.get_ident()}


# Connections


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_connections_are_kept_alive(wire: Wire, stream: bool) -> None:
    replies = [answer("one two"), overloaded(), answer("three four"), failing_stream("a b", after=1)]
    with ScriptedProvider({"m": replies}, default="ok") as server, ProviderClient() as client:
        for _ in range(4):
            client.call(where(server, wire), "m", PROMPT, stream=stream)
        assert {request.connection for request in server.requests} == {0}


def test_a_call_after_a_broken_one_gets_a_connection_of_its_own(call: Call) -> None:
    with ScriptedProvider({"m": [cut_stream("one two", after=1), "whole"]}) as server:
        failed(call(where(server), "m", PROMPT, stream=True))
        assert text(call(where(server), "m", PROMPT, stream=True)) == "whole"


def test_many_threads_share_a_client() -> None:
    with ScriptedProvider({}, default=answer("ok", delay_ms=400)) as server, ProviderClient() as client:
        outcomes: list[Outcome] = []
        threads = [
            threading.Thread(target=lambda: outcomes.append(client.call(where(server), "m", PROMPT)))
            for _ in range(8)
        ]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - began < 2.5, "the calls waited for each other"
    assert [text(outcome) for outcome in outcomes] == ["ok"] * 8


def test_a_synchronous_call_works_inside_an_event_loop() -> None:
    async def inside(server: ScriptedProvider) -> Outcome:
        with ProviderClient() as client:
            return client.call(where(server), "m", PROMPT)

    with ScriptedProvider({}, default="ok") as server:
        assert text(asyncio.run(inside(server))) == "ok"


def test_a_client_can_be_used_after_it_was_closed() -> None:
    with ScriptedProvider({}, default="ok") as server:
        client = ProviderClient()
        for _ in range(2):
            assert text(client.call(where(server), "m", PROMPT)) == "ok"
            client.close()
        client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "standby-providers"]


def test_a_new_event_loop_gets_new_connections() -> None:
    client = AsyncProviderClient()

    async def once(server: ScriptedProvider) -> Outcome:
        try:
            return await client.call(where(server), "m", PROMPT)
        finally:
            await client.aclose()

    with ScriptedProvider({}, default="ok") as server:
        assert [text(asyncio.run(once(server))) for _ in range(2)] == ["ok", "ok"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_its_own_connections() -> None:
    with ScriptedProvider({}, default="ok") as server, ProviderClient() as client:
        client.call(where(server), "m", PROMPT)
        child = os.fork()
        if child == 0:
            os._exit(0 if isinstance(client.call(where(server), "m", PROMPT), CallSucceeded) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert text(client.call(where(server), "m", PROMPT)) == "ok"
        assert [request.connection for request in server.requests] == [0, 1, 0]


# Proxies


def test_a_proxy_of_the_environment_is_used_except_for_loopback(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedProvider({}, default="ok") as proxy, ScriptedProvider({}, default="direct") as server:
        monkeypatch.setenv("http_proxy", proxy.root_url)
        monkeypatch.delenv("no_proxy", raising=False)
        assert text(call(where(server), "m", PROMPT)) == "direct"
        assert proxy.requests == ()
        # A name that must not be looked up: the proxy gets the whole URL.
        outside = endpoint("own", base_url="http://models.invalid/v1", wire="openai-chat")
        assert text(call(outside, "m", PROMPT)) == "ok"
        assert len(proxy.requests) == 1

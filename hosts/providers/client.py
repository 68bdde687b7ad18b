"""The two shells that move the bytes of a call: `AsyncProviderClient` and `ProviderClient`.

There is one path of I/O, the asynchronous one; the synchronous client runs it on an event loop of
its own thread. That is what makes a total budget and a prompt cancellation possible there too: a
blocking read could be neither shortened nor interrupted.

Nothing is retried here. Every try is an attempt of the engine's, so a connection that was closed
while it idled is a failure like any other.
"""

import asyncio
import contextlib
import inspect
import ipaddress
import os
import queue
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol, Self, cast
from urllib.parse import urlsplit

import httpx

from standby.events.vocabulary import Origin
from standby.hosts.providers.faults import read_fault
from standby.hosts.providers.reading import FORMATS, Reading
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.values import TIMEOUT_MS, Code, Endpoint, HttpRequest, Outcome, Prompt
from standby.hosts.providers.wire import BadRequest

OnText = Callable[[str], Awaitable[None] | None]
"""Takes output as it comes in; what it raises ends the call and reaches the caller."""

_CANCEL_POLL_S: Final = 0.02
"""How often a synchronous call looks at its cancel token."""
_DRAIN_S: Final = 0.25
"""How long to wait for the end of a stream after its terminal event, to use the connection again.
"""
_CLOSE_S: Final = 5.0
_IDLE_S: Final = 30.0


class Cancel(Protocol):
    """A token that a synchronous call watches; a `threading.Event` is one."""

    def is_set(self) -> bool:
        """The call is no longer wanted."""


class AsyncProviderClient:
    """Calls providers from asyncio, keeping one HTTP client (and its connections) per endpoint.

    Use it within one event loop and close it there; in another loop it starts afresh. Proxies of
    the environment are used, except for loopback addresses.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients: dict[tuple[str, str], httpx.AsyncClient] = {}
        self._tls: ssl.SSLContext | None = None

    async def call(
        self,
        endpoint: Endpoint,
        model: str,
        prompt: Prompt,
        secret: Secret | None = None,
        *,
        stream: bool = False,
        on_text: OnText | None = None,
        timeout_ms: int = TIMEOUT_MS,
        attempt_id: str | None = None,
    ) -> Outcome:
        """Make one call and say what it came to.

        `timeout_ms` is the budget of everything: connecting, waiting, reading and `on_text`.
        Cancelling the task closes the connection and raises CancelledError as usual. Otherwise only
        what `on_text` raises is raised; every failure of the call is a `CallFailed`.
        """
        reading = Reading(endpoint, model, secret)
        return await self._call(
            reading, endpoint, model, prompt, secret, stream, on_text, timeout_ms, attempt_id
        )

    async def _call(
        self,
        reading: Reading,
        endpoint: Endpoint,
        model: str,
        prompt: Prompt,
        secret: Secret | None,
        stream: bool,
        on_text: OnText | None,
        timeout_ms: int,
        attempt_id: str | None,
    ) -> Outcome:
        try:
            request = FORMATS[endpoint.wire].build(
                endpoint, model, prompt, secret, stream=stream, attempt_id=attempt_id
            )
        except BadRequest as fault:
            reading.fail(
                code=Code.BAD_REQUEST,
                message=str(fault),
                error_type=type(fault).__name__,
                origin=Origin.LOCAL,
            )
            return reading.outcome()
        budget = asyncio.timeout(timeout_ms / 1000)
        try:
            async with budget:
                await self._exchange(self._client(endpoint), request, reading, on_text)
        except TimeoutError:
            if not budget.expired():
                raise
            message = f"The attempt timed out after its budget of {timeout_ms} ms."
            reading.fail(code=Code.TIMED_OUT, message=message, error_type="TimeoutError")
        return reading.outcome()

    async def _exchange(
        self,
        client: httpx.AsyncClient,
        request: HttpRequest,
        reading: Reading,
        on_text: OnText | None,
    ) -> None:
        async with contextlib.AsyncExitStack() as stack:
            # All that may go wrong below is a failure of the call, whatever its class: besides its
            # own tree the HTTP client lets through those of sockets, TLS, codecs and header
            # encoding.
            try:
                response = await client.send(
                    client.build_request(
                        request.method,
                        request.url,
                        headers=request.headers,
                        content=request.content,
                    ),
                    stream=True,
                )
            except Exception as error:
                _fail(reading, error)
                return
            stack.push_async_callback(response.aclose)
            reading.begin(response.status_code, response.headers.multi_items())
            chunks = cast(AsyncGenerator[bytes, None], response.aiter_bytes())
            stack.push_async_callback(chunks.aclose)
            while not reading.finished:
                try:
                    chunk = await anext(chunks, None)
                except Exception as error:
                    _fail(reading, error)
                    return
                text = reading.end() if chunk is None else reading.feed(chunk)
                await _deliver(reading, text, on_text)
            if reading.answered:
                await _drain(chunks)

    def _client(self, endpoint: Endpoint) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._clients = loop, {}
        key = (endpoint.provider, endpoint.base_url)
        if key not in self._clients:
            self._clients[key] = self._new_client(endpoint)
        return self._clients[key]

    def _new_client(self, endpoint: Endpoint) -> httpx.AsyncClient:
        parts = urlsplit(endpoint.base_url)
        loopback = _is_loopback(parts.hostname or "")
        # Plain HTTP to this very machine meets no certificate; loading the trust store costs 20 ms.
        verify: ssl.SSLContext | bool = False
        if not (loopback and parts.scheme == "http"):
            self._tls = self._tls or httpx.create_ssl_context()
            verify = self._tls
        # No transport is given: one of our own would switch the environment's proxies off. The
        # default one retries nothing and no redirect is followed.
        return httpx.AsyncClient(
            verify=verify,
            trust_env=not loopback,
            timeout=None,
            headers={"user-agent": "standby"},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=_IDLE_S),
        )

    async def aclose(self) -> None:
        """Close all connections. The client can be used again afterwards."""
        clients, self._clients = self._clients, {}
        if self._loop is asyncio.get_running_loop():
            for client in clients.values():
                await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _deliver(reading: Reading, text: str, on_text: OnText | None) -> None:
    if not text or on_text is None:
        return
    reading.delivered = True
    waiting = on_text(text)
    if inspect.isawaitable(waiting):
        await waiting


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read to the end of the body, so that the connection can be kept; the answer is safe already."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass


def _fail(reading: Reading, error: Exception) -> None:
    fault = read_fault(error)
    reading.fail(code=fault.code, message=fault.message, error_type=fault.error_type, origin=fault.origin)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ProviderClient:
    """Calls providers from ordinary code, from any number of threads at once.

    Its connections live on an event loop in a thread of its own, which starts with the first call
    and ends with `close()`. After a fork the child starts its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._side: _Side | None = None
        self._stop: weakref.finalize[..., ProviderClient] | None = None

    def call(
        self,
        endpoint: Endpoint,
        model: str,
        prompt: Prompt,
        secret: Secret | None = None,
        *,
        stream: bool = False,
        on_text: Callable[[str], None] | None = None,
        timeout_ms: int = TIMEOUT_MS,
        attempt_id: str | None = None,
        cancel: Cancel | None = None,
    ) -> Outcome:
        """Make one call and say what it came to; see `AsyncProviderClient.call`.

        `on_text` runs in the calling thread, outside the budget. Once `cancel` is set the connection is
        closed within some 20 ms, also while nothing comes in, and the outcome is a `CallFailed` of origin
        ABORT (unless the answer was complete by then).
        """
        reading = Reading(endpoint, model, secret)
        if cancel is not None and cancel.is_set():
            return _abandoned(reading)
        side = self._started()
        texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()

        async def work() -> Outcome:
            try:
                return await side.client._call(
                    reading,
                    endpoint,
                    model,
                    prompt,
                    secret,
                    stream,
                    None if on_text is None else texts.put,
                    timeout_ms,
                    attempt_id,
                )
            finally:
                texts.put(None)

        running = asyncio.run_coroutine_threadsafe(work(), side.loop)
        try:
            while (text := _next(texts, cancel)) is not None:
                if on_text is not None:
                    on_text(text)
        except BaseException as error:
            running.cancel()
            with contextlib.suppress(queue.Empty):
                while texts.get(timeout=_CLOSE_S) is not None:
                    pass
            if not isinstance(error, _Cancelled):
                raise
            return _abandoned(reading)
        return running.result()

    def _started(self) -> "_Side":
        with self._lock:
            if self._side is None or self._side.pid != os.getpid():
                if self._stop is not None:
                    # The parent's loop and sockets: to touch them here would disturb it there.
                    self._stop.detach()
                self._side = _Side()
                self._stop = weakref.finalize(self, self._side.stop)
            return self._side

    def close(self) -> None:
        """Close all connections and end the thread. The client can be used again afterwards."""
        with self._lock:
            if self._stop is not None and self._side is not None:
                if self._side.pid == os.getpid():
                    self._stop()
                self._side = self._stop = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Cancelled(Exception):
    """The token of a synchronous call was set."""


def _abandoned(reading: Reading) -> Outcome:
    """The outcome of a call that its caller no longer wants."""
    reading.fail(code=Code.CANCELLED, message="The caller cancelled the call.", origin=Origin.ABORT)
    return reading.outcome()


def _next(texts: "queue.SimpleQueue[str | None]", cancel: Cancel | None) -> str | None:
    """The next text, None after the last; raises _Cancelled as soon as the token is seen."""
    if cancel is None:
        return texts.get()
    while True:
        if cancel.is_set():
            raise _Cancelled
        with contextlib.suppress(queue.Empty):
            return texts.get(timeout=_CANCEL_POLL_S)


class _Side:
    """An event loop in a thread of its own, with the client that lives on it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.client = AsyncProviderClient()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="standby-providers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what still runs on its loop is cancelled, as `asyncio.run` would do."""
        ending = self._end()
        try:
            asyncio.run_coroutine_threadsafe(ending, self.loop).result(_CLOSE_S)
        except (TimeoutError, RuntimeError):
            ending.close()
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self.loop.close()

    async def _end(self) -> None:
        await self.client.aclose()
        # Streams that were left early are generators whose ends wait on this loop.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.loop.shutdown_asyncgens()
        await self.loop.shutdown_default_executor()

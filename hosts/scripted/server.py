"""The scripted provider itself: a small HTTP/1.1 server on real sockets.

It lives on an event loop in a thread of its own, so that tests of any style can use it. It serves both
wire formats on one port by path, ignores what comes before the path, and speaks plain HTTP only: it is
for loopback.
"""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from standby.events.errors import BadScript
from standby.hosts.scripted.exchange import Exchange, Shared
from standby.hosts.scripted.records import Request, RequestLog
from standby.hosts.scripted.replies import Reply
from standby.hosts.scripted.script import Lane, Script, load

_START_S = 10.0
_HEAD_BYTES_MAX = 64 << 10


class ScriptedProvider:
    """A provider that replies by script; use it as a context manager, or `start()` and `stop()` it.

        with ScriptedProvider({"gpt-a": [rate_limited(2), "Hello"]}) as server:
            endpoint("openai", base_url=server.base_url)

    `script` is a Script, the path of a TOML file, or what `Script.of` takes (with `keys` and `default`).
    Raises BadScript for a script that is wrong and OSError for an address that cannot be had.
    """

    def __init__(
        self,
        script: Script | str | Path | Mapping[str, Sequence[Reply | str]] | Sequence[Lane],
        *,
        keys: Mapping[str, str] | None = None,
        default: Reply | str | None = None,
        log_path: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.script = _script(script, keys, default)
        self._log_path = log_path
        self._host = host
        self._port = port
        self._log = RequestLog(None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._shared: Shared | None = None

    @property
    def base_url(self) -> str:
        """Base URL for both wires (they add their own paths)."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """The server itself, without the version in its path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, in the order of their receipt."""
        return self._log.all()

    def wait_for_requests(self, count: int, timeout_s: float = 5.0, *, ended: bool = False) -> bool:
        """Wait until so many requests came (with `ended`: and were dealt with); False if they did not."""
        return self._log.wait_for(count, timeout_s, ended=ended)

    def start(self) -> Self:
        """Begin to listen; `base_url` is valid afterwards."""
        if self._thread is not None:
            raise RuntimeError("This scripted provider is running already.")
        self._log = RequestLog(self._log_path)
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="standby-scripted", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), loop).result(_START_S)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Close all connections and end the thread; what was logged stays readable."""
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)
        self._loop.close()
        self._log.close()
        self._loop = self._thread = self._server = None

    async def _listen(self) -> None:
        self._shared = Shared(script=self.script, log=self._log, taken=Counter())
        self._server = await asyncio.start_server(
            self._connected, self._host, self._port, limit=_HEAD_BYTES_MAX
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self._shared is not None
        self._tasks.add(task)
        try:
            await Exchange(self._shared, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the server stops
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _script(
    script: Script | str | Path | Mapping[str, Sequence[Reply | str]] | Sequence[Lane],
    keys: Mapping[str, str] | None,
    default: Reply | str | None,
) -> Script:
    if not isinstance(script, Script | str | Path):
        return Script.of(script, keys=keys, default=default)
    if keys is not None or default is not None:
        raise BadScript("keys and default belong into the script itself when it is given whole.")
    return script if isinstance(script, Script) else load(script)

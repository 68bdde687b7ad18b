"""The runner for asyncio: a shell that awaits the driver's effects.

Work on the log and on credentials may wait for a disk or a lock, so it runs in a thread: one of the runner's
own, since that work is done one after the other under the log's lock anyway, and so the loop's shared pool
stays free. What has begun there is always waited for, also when the task is cancelled meanwhile: a commit that
was made has to be known. A log in memory blocks nobody and is worked on in place.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, Unpack

from standby.events.memory import MemoryStore
from standby.hosts.providers.client import AsyncProviderClient, OnText
from standby.hosts.providers.values import Endpoint, Prompt
from standby.hosts.runner.ask import Ask, Continuing, Repairing, TurnFields, prompt_of
from standby.hosts.runner.base import Base
from standby.hosts.runner.driver import Script
from standby.hosts.runner.effects import Call, Do, Effect, Sleep, Status, Tell
from standby.hosts.runner.keys import Credentials
from standby.hosts.runner.outcomes import TurnResult
from standby.hosts.service import Standby


class AsyncRunner(Base):
    """Runs turns over HTTP from asyncio, any number at once. The arguments are those of `Runner`.

    Use it within one event loop, and close it there or use it as an asynchronous context manager.
    """

    def __init__(
        self,
        service: Standby,
        *,
        credentials: Credentials | None = None,
        endpoints: Mapping[str, Endpoint] | None = None,
        environ: Mapping[str, str] | None = None,
        client: AsyncProviderClient | None = None,
    ) -> None:
        super().__init__(service, credentials, endpoints, environ)
        self._client = client or AsyncProviderClient()
        self._own_client = client is None
        self._thread: ThreadPoolExecutor | None = None
        if credentials is not None or not isinstance(service.core.store, MemoryStore):
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="standby-log")

    async def run(
        self,
        *,
        session: str,
        prompt: Prompt | str,
        stream: bool = False,
        on_text: OnText | None = None,
        on_status: Callable[[Status], Awaitable[None] | None] | None = None,
        on_notice: Callable[[str], Awaitable[None] | None] | None = None,
        timeout_ms: int | None = None,
        deadline_ms: int | None = None,
        repair: Repairing | None = None,
        continue_with: Continuing | None = None,
        **fields: Unpack[TurnFields],
    ) -> TurnResult:
        """Run a turn to its end; see `Runner.run`. Callbacks may be coroutines, except `repair`, which runs in
        the thread that the log has.

        Cancelling the task closes the connection, reports that the turn was cancelled, and raises
        CancelledError as usual.
        """
        ask = Ask(
            prompt=prompt_of(prompt),
            session=session,
            stream=stream or on_text is not None,
            delivers=on_text is not None,
            timeout_ms=timeout_ms,
            deadline_ms=deadline_ms,
            on_status=on_status,
            on_notice=on_notice,
            repair=repair,
            continues=continue_with,
            fields=fields if continue_with is None else {**fields, "continuable": True},
        )
        return await self._drive(self._driver(ask).script(), on_text)

    async def resume(
        self,
        turn: str,
        *,
        prompt: Prompt | str,
        stream: bool = False,
        on_text: OnText | None = None,
        on_status: Callable[[Status], Awaitable[None] | None] | None = None,
        on_notice: Callable[[str], Awaitable[None] | None] | None = None,
        repair: Repairing | None = None,
        continue_with: Continuing | None = None,
    ) -> TurnResult:
        """Go on with a turn after a crash, or take it over from another runtime; see `Runner.resume`."""
        ask = Ask(
            prompt=prompt_of(prompt),
            resumes=turn,
            stream=stream or on_text is not None,
            delivers=on_text is not None,
            on_status=on_status,
            on_notice=on_notice,
            repair=repair,
            continues=continue_with,
        )
        return await self._drive(self._driver(ask).script(), on_text)

    async def _drive(self, script: Script, on_text: OnText | None) -> TurnResult:
        try:
            effect = next(script)
            while True:
                try:
                    done = await self._perform(effect, on_text)
                except BaseException as error:
                    effect = script.throw(error)
                else:
                    effect = script.send(done)
        except StopIteration as end:
            result: TurnResult = end.value
            return result

    async def _perform(self, effect: Effect, on_text: OnText | None) -> Any:
        match effect:
            case Do(work):
                return await self._work(work)
            case Call():
                return await self._client.call(
                    effect.endpoint,
                    effect.model,
                    effect.prompt,
                    effect.secret,
                    stream=effect.stream,
                    on_text=on_text,
                    timeout_ms=effect.timeout_ms,
                    attempt_id=effect.attempt_id,
                )
            case Sleep(ms):
                await asyncio.sleep(ms / 1000)
                return False
            case Tell(to, value):
                said = to(value)
                return await said if inspect.isawaitable(said) else said

    async def _work(self, work: Callable[[], Any]) -> Any:
        if self._thread is None:
            return work()
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                try:
                    await asyncio.wait({running})
                except asyncio.CancelledError:
                    continue
            running.exception()
            raise

    async def aclose(self) -> None:
        """Close the connections to providers and end the thread."""
        if self._own_client:
            await self._client.aclose()
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

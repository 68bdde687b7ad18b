"""The runner for ordinary code: a shell that does the driver's effects one after the other."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, Unpack

from standby.hosts.providers.client import Cancel, ProviderClient
from standby.hosts.providers.values import Endpoint, Prompt
from standby.hosts.runner.ask import Ask, Continuing, Repairing, TurnFields, prompt_of
from standby.hosts.runner.base import Base
from standby.hosts.runner.driver import Script
from standby.hosts.runner.effects import Call, Do, Effect, Sleep, Status, Tell
from standby.hosts.runner.keys import Credentials
from standby.hosts.runner.outcomes import TurnResult
from standby.hosts.service import Standby

_POLL_S: Final = 0.02
"""How often a sleeping run looks at its cancel token."""


class Runner(Base):
    """Runs turns over HTTP, from any number of threads at once. Close it or use it as a context manager.

    Args:
        service: the open log; it stays the caller's to close.
        credentials: where credentials are kept, such as a `CredentialStore`; None for those of the
            environment alone.
        endpoints: where providers are, in place of what the settings and the table of providers say.
        environ: the environment that keys are looked up in; the process's own by default.
        client: calls providers; one of its own by default.
    """

    def __init__(
        self,
        service: Standby,
        *,
        credentials: Credentials | None = None,
        endpoints: Mapping[str, Endpoint] | None = None,
        environ: Mapping[str, str] | None = None,
        client: ProviderClient | None = None,
    ) -> None:
        super().__init__(service, credentials, endpoints, environ)
        self._client = client or ProviderClient()
        self._own_client = client is None

    def run(
        self,
        *,
        session: str,
        prompt: Prompt | str,
        stream: bool = False,
        on_text: Callable[[str], None] | None = None,
        on_status: Callable[[Status], None] | None = None,
        on_notice: Callable[[str], None] | None = None,
        timeout_ms: int | None = None,
        deadline_ms: int | None = None,
        cancel: Cancel | None = None,
        repair: Repairing | None = None,
        continue_with: Continuing | None = None,
        **fields: Unpack[TurnFields],
    ) -> TurnResult:
        """Run a turn to its end.

        Args:
            session: the session that the turn belongs to.
            prompt: what is asked; stored nowhere.
            stream: take the answer as a stream; always so with `on_text`.
            on_text: gets output as it comes in. An attempt that failed after that is not replayed.
            on_status: gets the passing line while the turn recovers.
            on_notice: gets what the user is to be told about the answering model, on direct surfaces.
            timeout_ms: budget of each attempt (REC-11).
            deadline_ms: epoch milliseconds at which the run has to be over.
            cancel: once set, the turn is cancelled (REC-13).
            repair: repairs a request that does not fit or was refused for its form.
            continue_with: gives the prompt that goes on with a transcript after an attempt that may not be
                replayed; without it such a turn ends (REC-6). The result then holds the continuation's text.
            fields: everything else that `turn_requested` says.

        A turn id that was used before goes on with that turn, as `resume` does.

        Raises:
            TurnFailed: the turn ended without an answer.
            TurnLost: another runtime has the turn, or it was answered before.
            BadInput: the turn makes no sense; nothing was written.
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
        return self._drive(self._driver(ask).script(), on_text, cancel)

    def resume(
        self,
        turn: str,
        *,
        prompt: Prompt | str,
        stream: bool = False,
        on_text: Callable[[str], None] | None = None,
        on_status: Callable[[Status], None] | None = None,
        on_notice: Callable[[str], None] | None = None,
        cancel: Cancel | None = None,
        repair: Repairing | None = None,
        continue_with: Continuing | None = None,
    ) -> TurnResult:
        """Go on with a turn after a crash, or take it over from another runtime; see `run`.

        Give the prompt and the options that the turn was run with: the prompt is in no log, and whether a call
        that nobody saw end may be repeated depends on them. It may not if it streamed, or if its provider runs
        tools itself.
        """
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
        return self._drive(self._driver(ask).script(), on_text, cancel)

    def _drive(
        self, script: Script, on_text: Callable[[str], None] | None, cancel: Cancel | None
    ) -> TurnResult:
        try:
            effect = next(script)
            while True:
                try:
                    done = self._perform(effect, on_text, cancel)
                except BaseException as error:
                    effect = script.throw(error)
                else:
                    effect = script.send(done)
        except StopIteration as end:
            result: TurnResult = end.value
            return result

    def _perform(self, effect: Effect, on_text: Callable[[str], None] | None, cancel: Cancel | None) -> Any:
        match effect:
            case Do(work):
                return work()
            case Call():
                return self._client.call(
                    effect.endpoint,
                    effect.model,
                    effect.prompt,
                    effect.secret,
                    stream=effect.stream,
                    on_text=on_text,
                    timeout_ms=effect.timeout_ms,
                    attempt_id=effect.attempt_id,
                    cancel=cancel,
                )
            case Sleep(ms):
                return _sleep(ms, cancel)
            case Tell(to, value):
                return to(value)

    def close(self) -> None:
        """Close the connections to providers."""
        if self._own_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _sleep(ms: int, cancel: Cancel | None) -> bool:
    """Sleep; True as soon as the token is set."""
    if cancel is None:
        time.sleep(ms / 1000)
        return False
    end = time.monotonic() + ms / 1000
    while not cancel.is_set():
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, _POLL_S))
    return True

"""What `standby run` does: turns one after the other, each with what was said before it.

The answer goes to standard output while it comes in; notices and the passing line of a recovery go to standard
error, so that a piped answer is the answer alone. A conversation lives in this process: the log keeps no texts
of either side.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
from rich.console import Console
from rich.text import Text

from standby.engine.steps import Settled
from standby.events.errors import TurnFailed
from standby.events.vocabulary import SelectionSource
from standby.hosts.cli.hints import credential_warnings, what_would_help
from standby.hosts.cli.output import Out, clean, clock_time, remark
from standby.hosts.credentials import CredentialStore
from standby.hosts.providers.values import Prompt
from standby.hosts.runner import Runner, Status, TurnResult
from standby.hosts.service import open as open_service
from standby.hosts.settings import Settings, load_settings, with_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How turns are run and shown."""

    session: str
    agent: str
    model: str
    """A model for these turns only; "" for the session's."""
    system: str | None
    timeout_ms: int | None
    stream: bool
    as_json: bool


@contextmanager
def talking(policy: Path | None, log: Path, state: Path | None, manner: Manner) -> Iterator["Talk"]:
    """Open everything that a conversation needs."""
    settings = _settings(policy)
    if str(log) != ":memory:":
        log.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        service = stack.enter_context(open_service(log, settings))
        keys = stack.enter_context(CredentialStore.for_agent(manner.agent, root=state))
        runner = stack.enter_context(Runner(service, credentials=keys))
        if settings is not None:
            for warning in credential_warnings(settings, runner.keys, manner.agent, manner.model, os.environ):
                remark(warning)
        line = stack.enter_context(_passing(shown=not manner.as_json))
        yield Talk(runner, line, manner)


def _settings(given: Path | None) -> Settings | None:
    """The settings file that was named, else the user's own, if there is one."""
    path = given or Path(platformdirs.user_config_dir("standby", appauthor=False)) / "standby.toml"
    if given is None and not path.exists():
        return None
    settings = with_environment(load_settings(path), os.environ)
    for warning in settings.warnings:
        remark(warning)
    return settings


@contextmanager
def _passing(*, shown: bool) -> Iterator[Callable[[Status | None], None]]:
    """A line on the terminal that says what is going on, and goes away; None takes it away, too."""
    console = Console(stderr=True)
    spinner = console.status("")
    running = False

    def show(status: Status | None) -> None:
        nonlocal running
        text = "" if status is None else status.text
        if running and not text:
            spinner.stop()
        elif text:
            spinner.update(Text(text))
            spinner.start()
        running = bool(text)

    if not shown or not console.is_terminal:
        yield lambda status: None
        return
    try:
        yield show
    finally:
        show(None)


class Talk:
    """Turns one after the other; what was said so far goes along with each."""

    def __init__(self, runner: Runner, line: Callable[[Status | None], None], manner: Manner) -> None:
        self._runner = runner
        self._line = line
        self._manner = manner
        self._said: list[dict[str, Any]] = []
        self._open = False
        """Text was written and its line is not finished."""

    def loop(self) -> None:
        """Ask for prompts until the input ends."""
        while True:
            try:
                text = input("> ")
            except (EOFError, KeyboardInterrupt):
                print()
                return
            if not text.strip():
                continue
            try:
                self.turn(text)
            except KeyboardInterrupt:
                self._finish_line()
                remark("The turn was cancelled.")

    def turn(self, text: str) -> bool:
        """Run one turn and show how it ended; says whether it was answered."""
        manner, asked = self._manner, {"role": "user", "content": text}
        try:
            result = self._runner.run(
                session=manner.session,
                agent=manner.agent,
                model=manner.model,
                source=SelectionSource.CALLER if manner.model else SelectionSource.DEFAULT,
                prompt=Prompt(messages=(*self._said, asked), system=manner.system),
                timeout_ms=manner.timeout_ms,
                on_text=self._text if manner.stream else None,
                on_status=self._line,
                on_notice=self._notice,
            )
        except TurnFailed as error:
            self._failed(error)
            return False
        self._said += [asked, {"role": "assistant", "content": result.text}]
        self._answered(result)
        return True

    def _text(self, text: str) -> None:
        self._line(None)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._open = not text.endswith("\n")

    def _finish_line(self) -> None:
        self._line(None)
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False

    def _notice(self, notice: str) -> None:
        self._finish_line()
        if not self._manner.as_json:
            remark(notice)

    def _answered(self, result: TurnResult) -> None:
        self._finish_line()
        if self._manner.as_json:
            usage = result.usage
            Out().json(
                {
                    **_record(result.settled, self._manner.session),
                    "text": result.text,
                    "tool_calls": list(result.tool_calls),
                    "stop": result.stop,
                    "notices": result.notices,
                    "usage": {"input": usage.input, "output": usage.output, "cached": usage.cached},
                    "cost": None if usage.cost is None else str(usage.cost),
                }
            )
        elif not self._manner.stream:
            print(result.text)

    def _failed(self, error: TurnFailed) -> None:
        self._finish_line()
        if self._manner.as_json:
            first = None if error.__cause__ is None else str(error.__cause__)
            record = _record(error.settled, self._manner.session)
            Out().json({**record, "message": str(error), "first_failure": first})
        remark(str(error))
        if error.soonest_ms is not None:
            remark(f"{clean(error.soonest_model)} can be tried again at {clock_time(error.soonest_ms)}.")
        for hint in what_would_help(error.settled, self._runner.keys):
            remark(hint)
        remark(f"Why: standby explain {error.turn}")


def _record(settled: Settled, session: str) -> dict[str, Any]:
    """The record of a turn as plain values."""
    plain: dict[str, Any] = msgspec.to_builtins(settled)
    for attempt in plain["attempts"]:
        attempt.pop("text", None)
    plain.pop("usages", None)
    return {"session": session, **plain}

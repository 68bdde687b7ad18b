"""The play itself: two providers on loopback, a log, the public runner, and somebody who asks questions.

What is shown as the timeline is read from the log while it grows, by a connection of its own: nothing is shown
that does not stand there.
"""

import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from standby.engine.verify import Report, verify
from standby.events.codec import decode
from standby.events.errors import TurnFailed
from standby.events.sqlite import SQLiteStore
from standby.hosts.cli.output import span
from standby.hosts.credential_values import api_key
from standby.hosts.credentials import CredentialStore
from standby.hosts.demo.steps_shown import Stage
from standby.hosts.providers.table import endpoint
from standby.hosts.runner import Runner
from standby.hosts.scripted import Script, ScriptedProvider
from standby.hosts.scripted.script import parse
from standby.hosts.service import Standby
from standby.hosts.service import open as open_service
from standby.hosts.settings import parse_settings
from standby.projections.costs import TurnUsage, usage_of

_POLL_S: Final = 0.03
_CREDENTIALS: Final = (("openai", "work"), ("openai", "private"), ("anthropic", "work"))


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that the user says, and how long they wait before."""

    say: str
    pause_ms: int = 0


class _Conversation(msgspec.Struct, forbid_unknown_fields=True):
    turn: tuple[Line, ...]


def _file(name: str) -> str:
    return files("standby.hosts.demo").joinpath(name).read_text("utf-8")


def conversation() -> tuple[Line, ...]:
    """What the user says."""
    return msgspec.convert(tomllib.loads(_file("conversation.toml")), _Conversation).turn


def play(log: Path, stage: Stage, script: Script | None = None, lines: Sequence[Line] | None = None) -> Report:
    """Run a conversation on a new log at this path and show what happens; gives the proof of the log.

    Without a script or lines of one's own, those of the demo are played.
    """
    script = script or parse(_file("script.toml"), "script.toml")
    settings = parse_settings(_file("policy.toml"), "policy.toml")
    with ExitStack() as stack:
        first, second = (stack.enter_context(ScriptedProvider(script)) for _ in range(2))
        keys = stack.enter_context(_credentials())
        service = stack.enter_context(open_service(log, settings, instance="demo"))
        runner = stack.enter_context(
            Runner(
                service,
                credentials=keys,
                environ={},
                endpoints={
                    "openai": endpoint("openai", base_url=first.base_url),
                    "anthropic": endpoint("anthropic", base_url=second.root_url),
                },
            )
        )
        stage.remark(
            "start",
            f"Two scripted providers: openai at {first.base_url}, anthropic at {second.root_url}\nLog: {log}",
            log=str(log),
            providers={"openai": first.base_url, "anthropic": second.root_url},
        )
        follower = stack.enter_context(_Follower(log, stage))
        usages = [_turn(runner, follower, stage, n, turn) for n, turn in enumerate(lines or conversation(), 1)]
        follower.drain()
        _stats(service, stage)
        _usage([usage for usage in usages if usage is not None], service, stage)
    return _prove(log, stage)


@contextmanager
def _credentials() -> Iterator[CredentialStore]:
    """A store with three keys that open nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="standby-demo-keys-") as folder,
        CredentialStore(Path(folder) / "keys.sqlite") as store,
    ):
        for provider, name in _CREDENTIALS:
            store.add(api_key(provider, f"sk-demo-PLACEHOLDER-{name}"), name=name)
        store.set_order("openai", ["openai:work", "openai:private"])
        yield store


def _turn(runner: Runner, follower: "_Follower", stage: Stage, number: int, turn: Line) -> TurnUsage | None:
    time.sleep(turn.pause_ms / 1000)
    stage.say(number, turn.say)

    def notice(text: str) -> None:
        follower.drain()
        stage.notice(text)

    try:
        result = runner.run(session="demo", prompt=turn.say, on_status=stage.status, on_notice=notice)
    except TurnFailed as error:
        follower.drain()
        stage.failure(str(error), error.turn)
        return None
    follower.drain()
    stage.answer(result.settled.model, result.text, result.turn)
    return result.usage


class _Follower(threading.Thread):
    """Shows every commit once, as soon as it can be read."""

    def __init__(self, log: Path, stage: Stage) -> None:
        super().__init__(name="standby-demo-follower", daemon=True)
        self._store = SQLiteStore(log, create=False)
        self._stage = stage
        self._lock = threading.Lock()
        self._seen = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(_POLL_S):
            self.drain()

    def drain(self) -> None:
        """Show what is new."""
        with self._lock:
            for row in self._store.read(self._seen):
                self._stage.commit(row.position, decode(row.body, row.position), self._named)
                self._seen = row.position

    def _named(self, alias: str) -> str:
        side_entry = self._store.side_entry(alias) if alias else None
        return alias if side_entry is None else side_entry.text

    def __enter__(self) -> "_Follower":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._store.close()


def _stats(service: Standby, stage: Stage) -> None:
    """The documented usage stats, as they stand at the end (COOL-7)."""
    now = service.core.clock()
    stats = service.usage_stats(now)
    rows = []
    for profile, entry in stats.items():
        said = []
        for key, value in entry.items():
            if isinstance(value, int) and key.endswith(("Until", "Used", "At")):
                far = span(abs(value - now))
                said.append(f"{key} in {far}" if value > now else f"{key} {far} ago")
            else:
                said.append(f"{key} {value}")
        rows.append([profile, ", ".join(said)])
    stage.gap()
    stage.table("usage_stats", "Usage stats", rows, stats=stats)


def _usage(usages: list[TurnUsage], service: Standby, stage: Stage) -> None:
    completed = [(call.model, call.usage) for usage in usages for call in usage.calls]
    total = usage_of(completed, service.core.view.policy().prices)
    cost = "unknown" if total.cost is None else f"{total.cost:.6f}"
    stage.gap()
    stage.remark(
        "usage",
        f"Tokens: {total.input} in, {total.output} out in {len(total.calls)} completed calls; cost {cost}",
        input=total.input,
        output=total.output,
        calls=len(total.calls),
        cost=None if total.cost is None else str(total.cost),
    )


def _prove(log: Path, stage: Stage) -> Report:
    """Read the log as a stranger would, and recompute every decision in it."""
    store = SQLiteStore(log, create=False)
    try:
        report = verify(store.read(), side_entry=store.side_entry, side_entries=store.side_entries())
    finally:
        store.close()
    outcome = "all agree" if report.holds else f"refused: {report.problem}"
    stage.remark(
        "verified",
        f"Verified: {report.commits} commits, {report.decisions} decisions recomputed, {outcome}.",
        commits=report.commits,
        decisions=report.decisions,
        holds=report.holds,
        problem=report.problem,
        log=str(log),
    )
    return report

"""Both runners behind one face, on scripted providers over real sockets."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from standby.engine.verify import verify
from standby.events.codec import decode
from standby.events.commit import Commit
from standby.events.memory import MemoryStore
from standby.events.store import Store
from standby.hosts.core import Core
from standby.hosts.credentials import CredentialStore
from standby.hosts.providers import Endpoint, endpoint
from standby.hosts.runner import AsyncRunner, Runner, TurnResult
from standby.hosts.runner.outcomes import get_ready_to_read
from standby.hosts.scripted import Reply, ScriptedProvider
from standby.hosts.scripted.script import Lane, Script
from standby.hosts.service import Standby
from standby.hosts.settings import Settings, parse_settings

__all__ = ["KEYS", "POLICY", "House", "Replies", "house"]

KEYS = {"FIRST_KEY": "sk-test-PLACEHOLDER-first", "SECOND_KEY": "sk-test-PLACEHOLDER-second"}
POLICY = """
[agents.defaults.model]
primary = "openai/alpha"
fallbacks = ["anthropic/beta"]

[models.providers.openai]
apiKeyEnv = "FIRST_KEY"

[models.providers.anthropic]
apiKeyEnv = "SECOND_KEY"

[standby.recovery]
baseMs = 10
transientRetries = 1
"""

Replies = Sequence[Reply | str]


class House:
    """A scripted provider (both wires), a log, and a runner of either kind."""

    def __init__(
        self,
        kind: str,
        server: ScriptedProvider,
        settings: Settings,
        *,
        store: Store | None = None,
        environ: dict[str, str] | None = None,
        credentials: CredentialStore | None = None,
        instance: str = "main",
    ) -> None:
        get_ready_to_read()  # some tenths of a second, once: tests that wait for less would see it
        self.kind = kind
        self.server = server
        self.store = store or MemoryStore()
        self.environ = dict(KEYS) if environ is None else environ
        self.settings = settings
        self.credentials = credentials
        self.service = Standby(Core(self.store, instance=instance), settings)

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        return {name: endpoint(name, base_url=self.server.base_url) for name in ("openai", "anthropic")}

    def restarted(self, instance: str = "main") -> "House":
        """The process ended; another one opens the same log."""
        return House(
            self.kind,
            self.server,
            self.settings,
            store=self.store,
            environ=self.environ,
            credentials=self.credentials,
            instance=instance,
        )

    @property
    def options(self) -> dict[str, Any]:
        return {"environ": self.environ, "credentials": self.credentials, "endpoints": self.endpoints}

    def run(self, session: str = "s", prompt: Any = "Hello?", **options: Any) -> TurnResult:
        """A turn by the runner of this house."""
        return self._with(lambda runner: runner.run(session=session, prompt=prompt, **options))

    def resume(self, turn: str, prompt: Any = "Hello?", **options: Any) -> TurnResult:
        return self._with(lambda runner: runner.resume(turn, prompt=prompt, **options))

    def _with(self, work: Callable[[Any], Any]) -> TurnResult:
        if self.kind == "sync":
            with Runner(self.service, **self.options) as runner:
                result: TurnResult = work(runner)
                return result

        async def once() -> TurnResult:
            async with AsyncRunner(self.service, **self.options) as runner:
                result: TurnResult = await work(runner)
                return result

        return asyncio.run(once())

    def commits(self) -> list[Commit]:
        return [decode(row.body, row.position) for row in self.store.read()]

    def facts(self, kind: type[Any]) -> list[Any]:
        return [commit.fact for commit in self.commits() if isinstance(commit.fact, kind)]

    def decisions(self, kind: type[Any]) -> list[Any]:
        return [one for commit in self.commits() for one in commit.decisions if isinstance(one, kind)]

    @property
    def models(self) -> list[str]:
        """The models that were called, in order."""
        return [request.model for request in self.server.requests]

    def proved(self) -> None:
        report = verify(
            self.store.read(), side_entry=self.store.side_entry, side_entries=self.store.side_entries()
        )
        assert report.holds, report.problem
        attempts = [request.attempt for request in self.server.requests]
        assert len(set(attempts)) == len(attempts)


@contextmanager
def house(
    kind: str,
    replies: Mapping[str, Replies] | Sequence[Lane],
    *,
    policy: str = POLICY,
    keys: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[House]:
    """A house for one test; its log is verified at the end."""
    with ExitStack() as stack:
        server = stack.enter_context(ScriptedProvider(Script.of(replies, keys=keys)))
        made = House(kind, server, parse_settings(policy), **options)
        stack.callback(made.store.close)
        yield made
        made.proved()

"""The runner: a turn from its prompt to its answer, over HTTP, in one call.

    with standby.open("standby.db", "policy.toml") as service, Runner(service) as runner:
        result = runner.run(session="s1", prompt="Hello?")

One driver decides what to do next, without doing it (`driver`, `effects`); two thin shells do it, one for
ordinary code (`sync`) and one for asyncio (`aio`), so the two cannot drift apart.

    keys       which credentials there are, and the secret that a call needs now
    outcomes   from what a call came to, to what is reported of it, and to the caller's result
    effects    what a driver asks its shell to do
"""

from standby.hosts.runner.aio import AsyncRunner
from standby.hosts.runner.ask import Continuing, Repairing, TurnFields
from standby.hosts.runner.effects import Status, StatusKind
from standby.hosts.runner.keys import Credentials, Keys
from standby.hosts.runner.outcomes import TurnResult
from standby.hosts.runner.sync import Runner
from standby.projections.costs import CallUsage, TurnUsage

__all__ = [
    "AsyncRunner",
    "CallUsage",
    "Continuing",
    "Credentials",
    "Keys",
    "Repairing",
    "Runner",
    "Status",
    "StatusKind",
    "TurnFields",
    "TurnResult",
    "TurnUsage",
]

"""What rule tests are written with.

`World` is a log in memory on a virtual clock, driven through the public service. `given().when().then()` is for
examples that start from facts: the decisions that follow are compared in full, or by what is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from standby.engine.apply import apply
from standby.engine.checkpoint import dump
from standby.engine.plan import plan
from standby.engine.reading.extract import Reply
from standby.engine.steps import CallModel, Settled, Step, Wait
from standby.engine.verify import Report, verify
from standby.engine.view import View
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.commit import Commit, Stamp
from standby.events.memory import MemoryStore
from standby.events.policy import ModelChain, Policy
from standby.events.store import Store
from standby.events.vocabulary import Origin, Stage
from standby.hosts.core import Core
from standby.hosts.reports import Failed, Profile, Succeeded
from standby.hosts.service import Standby
from standby.hosts.settings import Settings
from standby.hosts.turns import TurnHandle

__all__ = [
    "FAILURES",
    "START_MS",
    "A",
    "B",
    "C",
    "Given",
    "Then",
    "World",
    "chain",
    "given",
    "of",
    "reply",
]

START_MS = 1_800_000_000_000
A, B, C = "openai/alpha", "anthropic/beta", "google/gamma"
"""Three models of three providers."""


def chain(primary: str = A, *fallbacks: str, **fields: Any) -> Policy:
    """A policy with this primary and these fallbacks."""
    return Policy(models=ModelChain(primary=primary, fallbacks=fallbacks), **fields)


def reply(status: int | None = None, body: object = None, /, **fields: Any) -> Reply:
    """A failed reply."""
    return Reply(status=status, body=body, **fields)


RATE_LIMIT = {
    "error": {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}
}
BILLING = {
    "error": {"message": "Insufficient credits", "type": "billing_error", "code": "insufficient_credits"}
}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
AUTH = {"error": {"message": "Invalid API key", "type": "authentication_error", "code": "invalid_api_key"}}
REVOKED = {"error": {"message": "This API key has been revoked", "type": "authentication_error"}}
SERVER = {"error": {"message": "Internal failure", "type": "server_error"}}
MISSING = {"error": {"message": "The model `alpha` does not exist", "code": "model_not_found"}}
FORMAT = {
    "error": {"message": "messages.1: invalid", "type": "invalid_request_error", "code": "unknown_parameter"}
}
OVERFLOW = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens",
        "code": "context_length_exceeded",
    }
}
REFUSED = {
    "error": {"message": "The request was rejected by our safety system", "code": "content_policy_violation"}
}

FAILURES: dict[str, Reply] = {
    "rate_limit": reply(429, RATE_LIMIT),
    "billing": reply(402, BILLING),
    "overloaded": reply(529, OVERLOADED),
    "auth": reply(401, AUTH),
    "auth_permanent": reply(401, REVOKED),
    "server_error": reply(500, SERVER),
    "timeout": reply(None, None, code="ETIMEDOUT", message="timed out", origin=Origin.TRANSPORT),
    "stream_timeout": reply(None, None, code="ETIMEDOUT", message="timed out", stage=Stage.STREAM),
    "model_not_found": reply(404, MISSING),
    "format": reply(400, FORMAT),
    "context_overflow": reply(400, OVERFLOW),
    "refusal": reply(400, REFUSED),
    "unclassified": reply(None, "xyzzy", message="xyzzy"),
    "tls": reply(
        None, None, code="CERT_HAS_EXPIRED", message="certificate has expired", origin=Origin.TRANSPORT
    ),
}
"""One plain failure for each common reason."""


class World:
    """A log on a virtual clock."""

    def __init__(
        self,
        policy: Policy | None = None,
        profiles: Mapping[str, Sequence[str]] | list[Profile] | None = None,
        *,
        order: Mapping[str, Sequence[str]] | None = None,
        store: Store | None = None,
        instance: str = "main",
        now_ms: int = START_MS,
        entropy: int = 500,
    ) -> None:
        self.now_ms = now_ms
        self.entropy = entropy
        self.store = store or MemoryStore()
        self.policy = policy or chain(A, B)
        self.service = self._open(instance, self.policy)
        default = {"openai": ["openai:one"], "anthropic": ["anthropic:one"], "google": ["google:one"]}
        self.service.observe(default if profiles is None else profiles, order)

    def _open(self, instance: str, policy: Policy | None) -> Standby:
        core = Core(self.store, instance=instance, clock=lambda: self.now_ms, entropy=lambda: self.entropy)
        return Standby(core, Settings(policy=policy) if policy is not None else None)

    @property
    def view(self) -> View:
        return self.service.core.view

    def restart(self, instance: str = "main") -> World:
        """The process ends and another one starts as the same slot (or another)."""
        self.service = self._open(instance, None)
        return self

    def other(self, instance: str = "other") -> Standby:
        """A second runtime on the same log."""
        return self._open(instance, None)

    def adopt(self, policy: Policy) -> None:
        with self.service.core.group() as transaction:
            alias = self.service.core.alias
            named = Settings(policy=policy).policy_with(lambda name: alias("profile", name, transaction))
            self.service.core.adopt(named)

    def sleep(self, ms: int) -> World:
        self.now_ms += ms
        return self

    def alias(self, name: str) -> str:
        found = self.service.core.known_alias("profile", name)
        assert found is not None, name
        return found

    def turn(self, session: str = "s", **fields: Any) -> TurnHandle:
        return self.service.start_turn(session=session, **fields)

    def fail(
        self, turn: TurnHandle, kind: str | Reply, *, retry_after: float | None = None, **fields: Any
    ) -> Step:
        """Report a failure of a kind of `FAILURES`, with a stated wait in seconds where given."""
        failed = FAILURES[kind] if isinstance(kind, str) else kind
        if retry_after is not None:
            failed = msgspec.structs.replace(failed, headers={"retry-after": str(retry_after)})
        return turn.report(Failed(reply=failed, **fields))

    def answer(self, turn: TurnHandle, **fields: Any) -> Settled:
        step = turn.report(Succeeded(**fields))
        assert isinstance(step, Settled), step
        return step

    def wait(self, turn: TurnHandle) -> Step:
        """Wait as long as the step says, then resume."""
        step = turn.step
        assert isinstance(step, Wait), step
        self.now_ms = max(self.now_ms, step.until_ms)
        return turn.resume()

    def give_up(self, turn: TurnHandle, kind: str, **fields: Any) -> Step:
        """Fail with this reason until the turn leaves its present call for another candidate or profile, or
        settles; waits are waited for."""
        step = turn.step
        assert isinstance(step, CallModel), step
        here = (step.model, step.profile)
        while isinstance(step, CallModel) and (step.model, step.profile) == here:
            step = self.fail(turn, kind, **fields)
            while isinstance(step, Wait):
                step = self.wait(turn)
        return step

    def run(self, session: str = "s", *script: str, **fields: Any) -> Settled:
        """A whole turn: one failure after the other from the script, then answers."""
        turn = self.turn(session, **fields)
        left = list(script)
        while not isinstance(step := turn.step, Settled):
            if isinstance(step, Wait):
                self.wait(turn)
            elif left:
                self.fail(turn, left.pop(0))
            else:
                self.answer(turn)
        return step

    def tried(self, turn: TurnHandle) -> list[tuple[str, str]]:
        """(model, profile) of each attempt of a turn, by name."""
        name_of = self.service.core.name_of
        return [(one.model, name_of(one.profile)) for one in turn.state.attempts]

    def commits(self) -> list[Commit]:
        from standby.events.codec import decode

        return [decode(row.body, row.position) for row in self.store.read()]

    def decisions(self, kind: type[Any] | None = None) -> list[Any]:
        """Every decision in the log, or those of one type."""
        every = [decision for commit in self.commits() for decision in commit.decisions]
        return every if kind is None else [one for one in every if isinstance(one, kind)]

    def proved(self) -> Report:
        """The log verifies, and folding it again gives the live view."""
        report = verify(
            self.store.read(), side_entry=self.store.side_entry, side_entries=self.store.side_entries()
        )
        assert report.holds, report.problem
        view = View()
        for commit in self.commits():
            apply(view, commit)
        assert dump(view) == dump(self.view)
        return report


def of(turn: TurnHandle, kind: type[Any]) -> list[Any]:
    """The decisions of one type that a turn's own commits hold."""
    return [one for commit in turn.commits for one in commit.decisions if isinstance(one, kind)]


class Given:
    """`given(*facts)`: a view in which these happened, one after the other, with all that followed."""

    def __init__(self, *facts: f.Fact | tuple[int, f.Fact], entropy: int = 500) -> None:
        self.view = View()
        self.at_ms = START_MS
        self.entropy = entropy
        self._commit(f.RuntimeStarted(instance="main", epoch=1))
        for fact in facts:
            if isinstance(fact, tuple):
                wait_ms, fact = fact
                self.at_ms += wait_ms
            self._commit(fact)

    def _commit(self, fact: f.Fact) -> tuple[d.Decision, ...]:
        stamp = Stamp(self.at_ms, self.entropy, "main", 1)
        decisions = plan(self.view, fact, stamp)
        apply(self.view, Commit(stamp.at_ms, "main", 1, stamp.entropy, fact, decisions))
        return decisions

    def when(self, fact: f.Fact, *, after_ms: int = 0) -> Then:
        """This fact is reported next."""
        self.at_ms += after_ms
        return Then(self._commit(fact))


class Then:
    """The decisions that followed."""

    def __init__(self, decisions: tuple[d.Decision, ...]) -> None:
        self.decisions = decisions

    def then(self, *expected: d.Decision | type[Any] | dict[str, Any]) -> Then:
        """They are these, in order: each compared in full, by type, or by type and the named fields."""
        assert len(self.decisions) == len(expected), self.decisions
        for found, wanted in zip(self.decisions, expected, strict=True):
            if isinstance(wanted, type):
                assert isinstance(found, wanted), found
            elif isinstance(wanted, dict):
                fields = dict(wanted)
                assert isinstance(found, fields.pop("kind")), found
                assert {key: getattr(found, key) for key in fields} == fields
            else:
                assert found == wanted
        return self


def given(*facts: f.Fact | tuple[int, f.Fact], entropy: int = 500) -> Given:
    """Start an example from facts; a pair is (milliseconds later, fact)."""
    return Given(*facts, entropy=entropy)

"""Runtimes on one log, on a virtual clock, driven by facts, with the naive model looking on.

Each method is a step that Hypothesis may take. Steps name things by small numbers, so that any sequence of
steps makes sense: the number is taken modulo what there is, and a step that has nothing to act on does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from standby.engine.apply import apply
from standby.engine.checkpoint import dump
from standby.engine.steps import step_of
from standby.engine.verify import Report, verify
from standby.engine.view import View
from standby.events import facts as f
from standby.events.codec import decode
from standby.events.commit import Commit
from standby.events.evidence import Evidence, StatedWait
from standby.events.memory import MemoryStore
from standby.events.policy import ModelChain, Policy, Probes, Recovery, Stickiness
from standby.events.store import Store
from standby.events.vocabulary import (
    CredentialKind,
    Effects,
    Failure,
    ResetKind,
    SelectionSource,
    Stage,
    Surface,
    TurnKind,
    WaitSource,
)
from standby.hosts.core import Core
from standby.projections.health import blocking
from tests.properties.naive import Naive, Picture

START_MS = 1_800_000_000_000
MODELS = ("openai/alpha", "anthropic/beta", "openai/gamma", "local/delta")
SLOTS = ("main", "other")
SESSIONS = ("s-one", "s-two")
PROFILES = tuple(
    f.ObservedProfile(alias=alias, provider=provider, kind=kind, expires_ms=expires)
    for alias, provider, kind, expires in (
        ("p-o1", "openai", CredentialKind.API_KEY, None),
        ("p-o2", "openai", CredentialKind.OAUTH, START_MS + 300_000),
        ("p-o3", "openai", CredentialKind.TOKEN, START_MS + 600_000),
        ("p-a1", "anthropic", CredentialKind.API_KEY, None),
        ("p-a2", "anthropic", CredentialKind.API_KEY, None),
    )
)
SHORT = Recovery(rate_limit_retries=2, transient_retries=3, transient_window_ms=20_000)


def chain(*models: str, **fields: Any) -> Policy:
    return Policy(models=ModelChain(primary=models[0], fallbacks=models[1:]), **fields)


POLICIES = (
    chain(*MODELS, recovery=SHORT),
    chain("openai/alpha", "anthropic/beta", recovery=Recovery(max_retries=1)),
    chain("anthropic/beta", "openai/gamma", recovery=SHORT, order={"openai": ("p-o3", "p-o1")}),
    chain("openai/alpha", "openai/gamma", recovery=Recovery(max_retries=0), probes=Probes(interval_ms=5_000)),
    chain("openai/alpha", recovery=SHORT, stickiness=Stickiness(idle_ms=60_000, cap_ms=90_000)),
    chain(*MODELS[:3], recovery=Recovery(max_retries=0), stickiness=Stickiness(idle_ms=60_000, cap_ms=90_000)),
)
STOCK = (
    PROFILES,
    PROFILES[:1] + PROFILES[3:4],
    PROFILES[3:] + PROFILES[:3],
    tuple(p for p in PROFILES if p.provider == "openai"),
)
ORDERS: tuple[dict[str, tuple[str, ...]], ...] = (
    {},
    {"openai": ("p-o2", "p-o1"), "anthropic": ("p-a2", "p-a1")},
)
FAILURES: tuple[tuple[int | None, str, Stage], ...] = (
    (429, "", Stage.PROMPT),
    (529, "", Stage.PROMPT),
    (402, "", Stage.PROMPT),
    (500, "", Stage.PROMPT),
    (None, "ETIMEDOUT", Stage.PROMPT),
    (None, "ETIMEDOUT", Stage.STREAM),
    (401, "", Stage.PROMPT),
    (401, "account_deactivated", Stage.PROMPT),
    (404, "", Stage.PROMPT),
    (404, "model_not_found", Stage.PROMPT),
    (418, "", Stage.PROMPT),
    (None, "", Stage.PROMPT),
    (400, "context_length_exceeded", Stage.PROMPT),
    (400, "unknown_parameter", Stage.PROMPT),
    (400, "content_policy_violation", Stage.PROMPT),
)
KINDS = (TurnKind.INTERACTIVE, TurnKind.SUBAGENT, TurnKind.BACKGROUND, TurnKind.CRON, TurnKind.COMPACTION)
SURFACES = (Surface.DIRECT, Surface.GROUP, Surface.CHANNEL)
EFFECTS = (Effects.NONE, Effects.POSSIBLE, Effects.COMMITTED)
RECENT = 6
"""Steps choose among this many newest turns."""


class Play:
    """A log, its runtimes, and the naive model."""

    def __init__(
        self, store: Store | None = None, *, policy: int = 0, known_profiles: int = 0, naive: bool = True
    ) -> None:
        self.now = START_MS
        self.store = store or MemoryStore()
        self.naive = Naive() if naive else None
        self.shadow = View()
        self.digests: list[bytes] = []
        """The folded log at each position, as a live view."""
        self.turns: list[str] = []
        self.broken = False
        """A step did not come to its end."""
        self._draws = 0
        self.cores: dict[str, Core] = {}
        self.restart(0)
        self.restart(1)
        self.adopt(policy)
        self.observe(known_profiles, 0)

    # ---- plumbing ----------------------------------------------------------------------------------------

    def _draw(self) -> int:
        self._draws += 1
        return self._draws * 2_654_435_761 % 2**32

    def _open(self, instance: str) -> Core:
        return Core(
            self.store, instance=instance, clock=lambda: self.now, entropy=self._draw, salt=lambda: b"salt"
        )

    def submit(self, instance: int | str, fact: f.Fact) -> Commit | None:
        """Report a fact as a runtime, and look at everything that the log holds since."""
        core = self.cores[instance if isinstance(instance, str) else SLOTS[instance % len(SLOTS)]]
        self.broken = True
        commit = core.submit(fact)
        self.look(core)
        self.broken = False
        return commit

    def look(self, core: Core) -> None:
        """Show new commits to the naive model; then compare it with what this core thinks."""
        for row in self.store.read(self.shadow.position):
            commit = decode(row.body, row.position)
            if self.naive is not None:
                self.naive.see(commit)
            apply(self.shadow, commit)
            self.digests.append(digest(self.shadow))
        assert core.view.position == self.shadow.position
        if digest(core.view) != self.digests[-1]:
            raise AssertionError("the live view is not the folded log")
        if self.naive is not None:
            self.naive.compare(picture(core.view), self.now, MODELS)

    def _turn(self, number: int) -> str | None:
        """One of the newest turns that the log still knows."""
        recent = self.turns[-RECENT:]
        key = recent[number % len(recent)] if recent else None
        return key if key is not None and self.shadow.turns.get(key) is not None else None

    def found(self, number: int, *states: str) -> tuple[str, Any] | None:
        """One of the newest turns that are in one of these states."""
        found = [
            (key, turn)
            for key in self.turns[-RECENT:]
            if (turn := self.shadow.turns.get(key)) is not None and turn.state in states
        ]
        return found[number % len(found)] if found else None

    # ---- turns -------------------------------------------------------------------------------------------

    def request(
        self,
        session: int = 0,
        instance: int = 0,
        *,
        model: int | None = None,
        source: SelectionSource = SelectionSource.DEFAULT,
        fallbacks: Sequence[int] | None = None,
        kind: int = 0,
        surface: int = 0,
        **fields: Any,
    ) -> str:
        key = f"t-{len(self.turns) + 1}"
        self.turns.append(key)
        self.submit(
            instance,
            f.TurnRequested(
                turn=key,
                session=SESSIONS[session % len(SESSIONS)],
                model="" if model is None else MODELS[model % len(MODELS)],
                source=source,
                fallbacks=None if fallbacks is None else tuple(MODELS[n % len(MODELS)] for n in fallbacks),
                kind=KINDS[kind % len(KINDS)],
                surface=SURFACES[surface % len(SURFACES)],
                **fields,
            ),
        )
        return key

    def failure(
        self,
        key: str,
        attempt: int,
        kind: int,
        *,
        wait_s: int | None = None,
        effects: int = 0,
        delivered: bool = False,
        late_ms: int = 0,
        **fields: Any,
    ) -> f.CallFailed:
        tried = self.shadow.turns[key].attempts[attempt - 1]
        status, code, stage = FAILURES[kind % len(FAILURES)]
        waits = (
            (StatedWait(source=WaitSource.RETRY_AFTER, ms=wait_s * 1000),) if wait_s and status == 429 else ()
        )
        return f.CallFailed(
            turn=key,
            attempt=attempt,
            started_ms=tried.started_ms,
            received_ms=max(tried.started_ms, self.now - late_ms),
            evidence=Evidence(
                provider=tried.model.partition("/")[0],
                model=tried.model,
                status=status,
                code=code,
                waits=waits,
                stage=stage,
            ),
            effects=EFFECTS[effects % len(EFFECTS)],
            delivered=delivered,
            **fields,
        )

    def fail(self, number: int = 0, kind: int = 0, **fields: Any) -> None:
        """The call of a turn fails, as its owner sees it."""
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            self.submit(turn.runtime, self.failure(key, turn.attempt, kind, **fields))

    def succeed(self, number: int = 0, effects: int = 0) -> None:
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            self.submit(turn.runtime, success(key, turn, turn.attempt, effects))

    def unknown(self, number: int = 0, effects: int = 0) -> None:
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            claim = EFFECTS[effects % len(EFFECTS)]
            self.submit(turn.runtime, f.CallUnknown(turn=key, attempt=turn.attempt, effects=claim))

    def effects(self, number: int = 0) -> None:
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            self.submit(turn.runtime, f.EffectsBegun(turn=key, attempt=turn.attempt))

    def response(self, number: int = 0) -> None:
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            usage = f.Usage(input=len(turn.reports) + 1)
            self.submit(turn.runtime, f.ResponseCompleted(turn=key, attempt=turn.attempt, usage=usage))

    def switch(self, number: int = 0, model: int = 0) -> None:
        """A live switch leaves the call."""
        if (found := self.found(number, "calling", "orphaned")) is not None:
            key, turn = found
            target = MODELS[model % len(MODELS)]
            self.submit(
                turn.runtime,
                f.LiveSwitchRequested(turn=key, attempt=turn.attempt, model=target, effects=Effects.NONE),
            )

    def wait(self, number: int = 0, *, early: bool = False) -> None:
        """A wait is over, or somebody thinks so too early, which writes nothing."""
        if (found := self.found(number, "waiting")) is not None:
            key, turn = found
            if early and self.now < turn.until_ms:
                assert self.submit(turn.runtime, f.WaitEnded(turn=key)) is None
                return
            self.now = max(self.now, turn.until_ms)
            self.submit(turn.runtime, f.WaitEnded(turn=key))

    def repair(self, number: int = 0, *, fits: bool = True) -> None:
        if (found := self.found(number, "repairing")) is not None:
            key, turn = found
            self.submit(turn.runtime, f.RepairFinished(turn=key, repaired=fits))

    def cancel(self, number: int = 0, instance: int = 0) -> None:
        if (key := self._turn(number)) is not None:
            self.submit(instance, f.TurnCancelled(turn=key))

    def deadline(self, number: int = 0) -> None:
        if (key := self._turn(number)) is not None:
            self.submit(self.shadow.turns[key].runtime, f.DeadlinePassed(turn=key))

    def take_over(self, number: int = 0, instance: int = 0) -> None:
        if (key := self._turn(number)) is not None:
            self.submit(instance, f.TurnTakenOver(turn=key))

    def late(
        self,
        number: int = 0,
        attempt: int = 0,
        instance: int = 0,
        kind: int = 0,
        *,
        good: bool = False,
        **fields: Any,
    ) -> None:
        """Any runtime reports on any attempt: it may be late, doubled or nobody's business any more."""
        key = self._turn(number)
        turn = self.shadow.turns.get(key) if key is not None else None
        if key is None or turn is None or not turn.attempts:
            return
        attempt = attempt % turn.attempt + 1
        if good:
            self.submit(instance, success(key, turn, attempt, fields.get("effects", 0)))
        else:
            self.submit(instance, self.failure(key, attempt, kind, **fields))

    def again(self, number: int = 0, report: int = 0, instance: int = 0) -> None:
        """The same report once more is no second commit."""
        key = self._turn(number)
        turn = self.shadow.turns.get(key) if key is not None else None
        if turn is not None and turn.reports:
            assert self.submit(instance, turn.reports[report % len(turn.reports)]) is None

    def story(self, script: Sequence[int], *, wait_s: int | None = None, pause: int = 1, **request: Any) -> str:
        """A whole turn: these failures one after the other, then an answer; each call takes `pause`."""
        key = self.request(**request)
        left = list(script)
        while (turn := self.shadow.turns[key]).state not in ("answered", "failed"):
            self.now += pause
            if turn.state == "waiting":
                self.now = max(self.now, turn.until_ms or 0)
                self.submit(turn.runtime, f.WaitEnded(turn=key))
            elif left:
                self.submit(turn.runtime, self.failure(key, turn.attempt, left.pop(0), wait_s=wait_s))
            else:
                self.submit(turn.runtime, success(key, turn, turn.attempt, 0))
        return key

    # ---- sessions, credentials, configuration --------------------------------------------------------------

    def select(self, session: int = 0, model: int | None = None, instance: int = 0) -> None:
        self.submit(
            instance,
            f.ModelSelected(
                session=SESSIONS[session % len(SESSIONS)],
                model="" if model is None else MODELS[model % len(MODELS)],
                source=SelectionSource.DEFAULT if model is None else SelectionSource.USER,
            ),
        )

    def pin(self, session: int = 0, profile: int | None = 0, instance: int = 0) -> None:
        there = [
            one for one in PROFILES if (h := self.shadow.profiles.get(one.alias)) is not None and h.observed
        ]
        if profile is None or not there:
            fact = f.ProfilePinned(session=SESSIONS[session % len(SESSIONS)], provider="openai")
        else:
            one = there[profile % len(there)]
            fact = f.ProfilePinned(
                session=SESSIONS[session % len(SESSIONS)], provider=one.provider, profile=one.alias
            )
        self.submit(instance, fact)

    def reset(self, session: int = 0, instance: int = 0) -> None:
        self.submit(instance, f.SessionReset(session=SESSIONS[session % len(SESSIONS)], kind=ResetKind.NEW))

    def compact(self, session: int = 0, instance: int = 0) -> None:
        key = SESSIONS[session % len(SESSIONS)]
        known = self.cores[SLOTS[instance % len(SLOTS)]].view.sessions.get(key)
        self.submit(instance, f.CompactionCompleted(session=key, count=1 + (known.compactions if known else 0)))

    def remove(self, profile: int = 0) -> None:
        self.submit(0, f.CredentialRemoved(profile=PROFILES[profile % len(PROFILES)].alias))

    def observe(self, known_profiles: int = 0, order: int = 0) -> None:
        fact = f.ProfilesObserved(
            profiles=STOCK[known_profiles % len(STOCK)], order=ORDERS[order % len(ORDERS)]
        )
        self.submit(0, fact)

    def quota(
        self, profile: int = 0, *, exhausted: bool = True, valid: bool = True, in_s: int = 600, ago_s: int = 0
    ) -> None:
        self.submit(
            1,
            f.QuotaObserved(
                profile=PROFILES[profile % len(PROFILES)].alias,
                checked_ms=self.now - ago_s * 1000,
                valid=valid,
                exhausted=exhausted,
                resets_at_ms=self.now + in_s * 1000,
            ),
        )

    def adopt(self, policy: int = 0) -> None:
        self.submit(0, f.PolicyAdopted(policy=POLICIES[policy % len(POLICIES)]))

    def sleep(self, ms: int) -> None:
        self.now += ms

    def restart(self, instance: int = 0, *, checkpoint: bool = False) -> None:
        """The runtime's process ends and another one starts in its place, perhaps from a checkpoint."""
        name = SLOTS[instance % len(SLOTS)]
        if checkpoint:
            self.cores[name].checkpoint()
        self.cores[name] = self._open(name)
        self.look(self.cores[name])

    # ---- the end -------------------------------------------------------------------------------------------

    def drain(self, kinds: Sequence[int] = (0,)) -> None:
        """Every turn comes to an end, whatever fails: the naive model holds the bound on the way."""
        for key in self.turns:
            for count in range(10_000):
                turn = self.shadow.turns.get(key)
                if turn is None or turn.state in ("answered", "failed"):
                    break
                step_of(key, turn)
                if turn.state == "waiting":
                    self.now = max(self.now, turn.until_ms or 0)
                    self.submit(turn.runtime, f.WaitEnded(turn=key))
                elif turn.state == "repairing":
                    self.submit(turn.runtime, f.RepairFinished(turn=key, repaired=True))
                else:
                    kind = kinds[count % len(kinds)]
                    self.submit(turn.runtime, self.failure(key, turn.attempt, kind, repairable=True))
                owner = self.cores[turn.runtime]
                if turn.epoch != owner.epoch:
                    self.submit(turn.runtime, f.TurnTakenOver(turn=key))
            else:
                raise AssertionError(f"{key} does not end")

    def verified(self) -> Report:
        report = verify(self.store.read(), head=self.store.head())
        assert report.holds, report.problem
        return report

    def commits(self) -> list[Commit]:
        return [decode(row.body, row.position) for row in self.store.read()]


def success(key: str, turn: Any, attempt: int, effects: int) -> f.CallSucceeded:
    started = turn.attempts[attempt - 1].started_ms
    claim = EFFECTS[effects % len(EFFECTS)]
    return f.CallSucceeded(turn=key, attempt=attempt, started_ms=started, effects=claim)


def digest(view: View) -> bytes:
    """A fingerprint of everything that a view knows."""
    return sha256(dump(view)).digest()


def picture(view: View) -> Picture:
    """What a view says of itself."""

    def blocked(profile: str, model: str, now: int) -> tuple[int, Failure] | None:
        health = view.profiles.get(profile)
        entry = blocking(health, model, now) if health is not None else None
        return None if entry is None else (entry.until_ms, entry.reason)

    sessions = {key: found for key in view.sessions.keys_now() if (found := view.sessions.get(key)) is not None}
    return Picture(
        blocked,
        {key: session.model for key, session in sessions.items()},
        {
            key: None if (told := session.announced) is None else (told.selected, told.active)
            for key, session in sessions.items()
        },
        {
            (key, instance): (sticky.model, sticky.until_ms)
            for key, session in sessions.items()
            for instance, sticky in session.sticky.items()
            if view.local(instance, sticky.epoch)
        },
    )

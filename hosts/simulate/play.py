"""Playing a scenario: the runner's driver on a virtual clock.

Each turn is the driver's generator. The shell here does its effects: work on the log at once, a call by the
scripted outcomes, a sleep by letting the clock go on. What happens next is always the earliest thing that is
due, so turns, switches and restarts interleave as they would, and the same file plays the same way every time.
"""

import heapq
import random
from collections.abc import Callable
from copy import copy
from itertools import count
from typing import Any, cast

import msgspec

from standby.engine.steps import Step as Step_
from standby.engine.turn import Turn
from standby.engine.verify import Report, verify
from standby.events import facts as f
from standby.events.codec import decode
from standby.events.commit import Commit
from standby.events.errors import BadInput, BadScript, StandbyError, TurnFailed
from standby.events.memory import MemoryStore
from standby.events.names import SALT_BYTES
from standby.events.store import Store
from standby.events.vocabulary import Effects, ResetKind, SelectionSource, Surface, TurnKind
from standby.hosts.core import Core
from standby.hosts.providers.values import Endpoint, Prompt, Wire
from standby.hosts.runner.ask import Ask, TurnFields
from standby.hosts.runner.driver import Driver, Script
from standby.hosts.runner.effects import Call, Do, Sleep, Tell
from standby.hosts.runner.outcomes import TurnResult
from standby.hosts.service import Profile as ServiceProfile
from standby.hosts.service import Standby, TurnHandle, session_name
from standby.hosts.settings import Settings, settings_within
from standby.hosts.simulate.expect import check_turn
from standby.hosts.simulate.outcomes import Outcomes, claim
from standby.hosts.simulate.scenario import Profile, Scenario, Step, duration_ms

__all__ = ["Played", "PlayedTurn", "play"]

_PROMPT = Prompt(messages=({"role": "user", "content": "Hello?"},))
_ENUMS: dict[str, Callable[[str], Any]] = {
    "source": SelectionSource,
    "kind": TurnKind,
    "surface": Surface,
}
_DURATIONS = ("deadline", "timeout", "allowance")


class PlayedTurn(msgspec.Struct):
    """One turn of a scenario and how it ended."""

    id: str
    step: Step
    handle: TurnHandle
    result: TurnResult | None = None
    failure: TurnFailed | None = None
    ended_ms: int | None = None
    state: Turn | None = None
    """Its state when it ended; the view forgets settled turns after a while."""
    settled: Step_ | None = None
    commits: list[Commit] = []
    """Every commit about it."""
    lost: bool = False
    """Its runtime was restarted while it was under way."""
    statuses: list[str] = []


class Played(msgspec.Struct):
    """A played scenario."""

    scenario: Scenario
    settings: Settings
    store: Store
    turns: list[PlayedTurn]
    problems: list[str]
    """Expectations that did not hold, and rules that no decision named."""
    report: Report
    now_ms: int


class _Keys:
    """Profiles come from the scenario; there is no secret behind them."""

    def observe(self, service: Standby) -> None:
        """They were reported already."""

    def meet(self, models: tuple[str, ...]) -> None:
        """No model of a turn brings a credential along."""

    def secret(self, profile: str) -> None:
        """None is needed."""


def play(scenario: Scenario, settings: Settings, store: Store | None = None) -> Played:
    """Play a scenario to its end.

    Raises:
        BadScript: a step cannot be done.
    """
    return _Player(scenario, settings, store or MemoryStore()).run()


class _Player:
    def __init__(self, scenario: Scenario, settings: Settings, store: Store) -> None:
        self.scenario, self.settings, self.store = scenario, settings, store
        self.now_ms = scenario.start_ms
        self.random = random.Random(scenario.seed)
        self.outcomes = Outcomes(scenario)
        self.runtimes: dict[str, Standby] = {}
        self.turns: dict[str, PlayedTurn] = {}
        self.scripts: dict[str, tuple[str, Script]] = {}
        self.due: list[tuple[int, int, Callable[[], None]]] = []
        self.order = count()
        self.profiles, self.orders = list(scenario.profiles), dict(scenario.order)
        self.service("main", settings)

    # ---- time ------------------------------------------------------------------------------------------------

    def later(self, at_ms: int, what: Callable[[], None]) -> None:
        heapq.heappush(self.due, (at_ms, next(self.order), what))

    def drain(self, until_ms: int | None = None) -> None:
        """Let everything happen that is due, up to a moment."""
        while self.due and (until_ms is None or self.due[0][0] <= until_ms):
            at_ms, _, what = heapq.heappop(self.due)
            self.now_ms = max(self.now_ms, at_ms)
            what()

    def run(self) -> Played:
        for number, step in enumerate(self.scenario.steps):
            if step.at is not None:
                self.later(self.scenario.start_ms + duration_ms(step.at), self._doing(number, step))
        for number, step in enumerate(self.scenario.steps):
            if step.at is None:
                if self.scripts:
                    self.drain_turns()
                self.now_ms += duration_ms(step.after)
                self.drain(self.now_ms)
                self._doing(number, step)()
        self.drain()
        report = verify(self.store.read(), aside=self.store.aside, asides=self.store.asides())
        turns = list(self.turns.values())
        played = Played(self.scenario, self.settings, self.store, turns, [], report, self.now_ms)
        named = self.commits()
        for turn in turns:
            played.problems += check_turn(turn, self.scenario.start_ms)
        played.problems += [f"no decision names {rule}" for rule in self.scenario.shows if rule not in named]
        if not report.holds:
            played.problems.append(report.problem)
        return played

    def commits(self) -> set[str]:
        """Give each turn its commits; returns the rules that decisions of the log name."""
        named: set[str] = set()
        for row in self.store.read():
            commit = decode(row.body, row.position)
            named.update(rule for decision in commit.decisions for rule in decision.rules)
            turn = self.turns.get(getattr(commit.fact, "turn", ""))
            if turn is not None:
                turn.commits.append(commit)
        return named

    def drain_turns(self) -> None:
        """Let time go on until no turn is under way."""
        while self.scripts and self.due:
            self.drain(self.due[0][0])

    def _doing(self, number: int, step: Step) -> Callable[[], None]:
        def do() -> None:
            try:
                self.do(step)
            except BadScript:
                raise
            except (StandbyError, TypeError, KeyError, ValueError) as error:
                what = f"needs {error}" if isinstance(error, KeyError) else str(error)
                raise BadScript(f"steps[{number}] ({step.kinds()[0]}): {what}") from error

        return do

    # ---- runtimes --------------------------------------------------------------------------------------------

    def service(self, slot: str, settings: Settings | None = None) -> Standby:
        """The door of a runtime; it is opened when it is first spoken of."""
        found = self.runtimes.get(slot)
        if found is None:
            core = Core(
                self.store,
                slot=slot,
                clock=lambda: self.now_ms,
                draw=lambda: self.random.getrandbits(32),
                salt=lambda: self.random.randbytes(SALT_BYTES),
            )
            found = self.runtimes[slot] = Standby(core, settings)
            if settings is not None:
                self.observe()
        return found

    def observe(self) -> None:
        """Report the profiles that there are now."""
        start = self.scenario.start_ms
        self.service("main").observe(
            [
                ServiceProfile(
                    name=one.name,
                    provider=_provider(one),
                    kind=one.kind,
                    expires_ms=None if one.expires is None else start + duration_ms(one.expires),
                    usable=one.usable,
                    inline=one.inline,
                    agent=one.agent,
                )
                for one in self.profiles
            ],
            self.orders,
        )

    # ---- steps -----------------------------------------------------------------------------------------------

    def do(self, step: Step) -> None:
        """Let one step happen."""
        service = self.service(step.runtime)
        if step.turn is not None:
            self.start(service, step, step.turn)
        elif step.select is not None:
            said = dict(step.select)
            service.select_model(said.pop("session"), said.pop("model", "") or None, **said)
        elif step.pin is not None:
            said = dict(step.pin)
            service.pin(said.pop("session"), said.pop("provider"), said.pop("profile", "") or None, **said)
        elif step.reset is not None:
            said = dict(step.reset)
            service.reset(said.pop("session"), kind=ResetKind(said.pop("kind", "reset")), **said)
        elif step.create is not None:
            service.create_session(**step.create)
        elif step.restart:
            self.restart(step.runtime)
        elif step.policy is not None or step.profiles is not None or step.remove:
            self.configure(service, step)
        else:
            self.report(service, step)

    def configure(self, service: Standby, step: Step) -> None:
        """Policy and credentials change."""
        core = service.core
        if step.policy is not None:
            changed = settings_within(step.policy, "steps", "policy")
            with core.group() as transaction:
                core.adopt(changed.policy_with(lambda name: core.alias("profile", name, transaction)))
        elif step.profiles is not None:
            self.profiles, self.orders = list(step.profiles), dict(step.order or self.orders)
            self.observe()
        else:
            self.profiles = [one for one in self.profiles if one.name != step.remove]
            core.submit(f.CredentialRemoved(profile=self.alias(step.remove)))

    def report(self, service: Standby, step: Step) -> None:
        """Something is reported about a turn, a session or a profile."""
        if step.quota is not None:
            said = step.quota
            resets = said.get("resets")
            service.core.submit(
                f.QuotaObserved(
                    profile=self.alias(said["profile"]),
                    checked_ms=self.now_ms,
                    valid=said.get("valid", True),
                    exhausted=said.get("exhausted", False),
                    resets_at_ms=None if resets is None else self.now_ms + duration_ms(resets),
                )
            )
        elif step.compaction is not None:
            self.compaction(service, step.compaction)
        elif step.cancel:
            self.cancel(step.cancel)
        elif step.deadline:
            self.turns[step.deadline].handle.deadline_passed()
        elif step.no_progress:
            self.turns[step.no_progress].handle.no_progress()
        elif step.response:
            self.turns[step.response].handle.response_completed()
        elif step.effects:
            self.turns[step.effects].handle.effects_begun(Effects.POSSIBLE)
        elif step.recorded is not None:
            self.turns[step.recorded["turn"]].handle.event_recorded(bool(step.recorded["stored"]))
        elif step.admitted:
            self.turns[step.admitted].handle.writer_admitted()

    def compaction(self, service: Standby, said: dict[str, Any]) -> None:
        """A compaction of a session's context was completed."""
        with service.core.group() as transaction:
            name = session_name(said.get("agent", "main"), said["session"])
            alias = service.core.alias("session", name, transaction)
            service.core.submit(f.CompactionCompleted(session=alias, count=said.get("count", 1)))

    def alias(self, profile: str) -> str:
        """The alias of a profile that the scenario names."""
        found = self.service("main").core.known_alias("profile", profile)
        if found is None:
            raise BadInput(f"there is no profile {profile!r}")
        return found

    def restart(self, slot: str) -> None:
        """A runtime ends, and its turns under way with it; then it starts again."""
        for key, (where, script) in list(self.scripts.items()):
            if where == slot:
                del self.scripts[key]
                self.turns[key].lost = True
                script.close()
        self.runtimes.pop(slot, None)
        self.service(slot)

    # ---- turns -----------------------------------------------------------------------------------------------

    def start(self, service: Standby, step: Step, said: dict[str, Any]) -> None:
        """A turn is requested."""
        fields = dict(said)
        key = str(fields.pop("id", f"turn-{len(self.turns) + 1}"))
        session = fields.pop("session")
        for name in _DURATIONS:
            if name in fields:
                ms = duration_ms(fields.pop(name))
                fields[f"{name}_ms"] = self.now_ms + ms if name == "deadline" else ms
        for name, enum in _ENUMS.items():
            if name in fields:
                fields[name] = enum(fields[name])
        played = PlayedTurn(key, step, TurnHandle(service, key))
        ask = Ask(
            prompt=_PROMPT,
            session=session,
            timeout_ms=fields.pop("timeout_ms", None),
            deadline_ms=fields.pop("deadline_ms", None),
            on_status=lambda status: played.statuses.append(str(status)),
            on_notice=lambda notice: None,
            repair=(lambda prompt, reason: prompt) if fields.pop("repairs", False) else None,
            continues=lambda prompt: prompt,
            fields=cast(TurnFields, {**fields, "turn": key}),
        )
        driver = Driver(service, _Keys(), _endpoint, ask, None, set())  # type: ignore[arg-type]  # has what it needs
        self.turns[key] = played
        self.scripts[key] = (step.runtime, driver.script())
        self.go_on(key, None)

    def go_on(self, key: str, value: Any) -> None:
        """Send what an effect came to into the turn, and do its next effects until one takes time."""
        if key not in self.scripts:
            return
        slot, script = self.scripts[key]
        played = self.turns[key]
        try:
            while True:
                effect = script.send(value)
                value = None
                if isinstance(effect, Do):
                    value = effect.work()
                elif isinstance(effect, Tell):
                    effect.to(effect.value)
                elif isinstance(effect, Sleep):
                    self.later(self.now_ms + effect.ms, lambda: self.go_on(key, False))
                    return
                else:
                    self.call(key, slot, effect)
                    return
        except StopIteration as end:
            played.result = end.value
        except TurnFailed as failure:
            played.failure = failure
        except StandbyError:
            if played.handle.state.state not in ("answered", "failed"):
                raise
        self.scripts.pop(key, None)
        self.over(played)

    def over(self, played: PlayedTurn) -> None:
        """A turn has ended."""
        played.ended_ms = self.now_ms
        played.state, played.settled = copy(played.handle.state), played.handle.step

    def call(self, key: str, slot: str, effect: Call) -> None:
        """A call begins; what it comes to is known when it is over."""
        model = f"{effect.endpoint.provider}/{effect.model}"
        attempts = self.turns[key].handle.state.attempts
        profile = self.service(slot).core.name_of(attempts[-1].profile)
        one = self.outcomes.take(model, profile, key, self.now_ms)
        took = duration_ms(one.took)
        if took > effect.timeout_ms:
            one = msgspec.structs.replace(one, kind=None, status=None, body=None, code="ETIMEDOUT")
            took = effect.timeout_ms
        self.later(self.now_ms + took, lambda: self.go_on(key, claim(one, model, self.now_ms)))

    def cancel(self, key: str) -> None:
        """The user stops a turn: its call, if one is under way, ends with it."""
        self.turns[key].handle.cancel()
        _, script = self.scripts.pop(key, ("", None))
        if script is not None:
            script.close()
        self.over(self.turns[key])


def _provider(profile: Profile) -> str:
    return profile.provider or profile.name.partition(":")[0]


def _endpoint(provider: str) -> Endpoint:
    return Endpoint(provider=provider, base_url="http://scenario.invalid", wire=Wire.OPENAI_CHAT)

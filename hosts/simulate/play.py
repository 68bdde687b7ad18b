"""Playing a scenario: the runner's driver on a virtual clock.

Each turn is the driver's generator. The shell here does its effects: work on the log at once, a call by the
scripted outcomes, a sleep by letting the clock go on. What happens next is always the earliest thing that is
due, and of two at one moment the one that was due first, so turns, switches and restarts interleave as they
would, and the same file plays the same way every time.

Several runtimes are several cores on one store, each with a view of its own, as processes on one log are. A
restart closes the generators of its runtime as a crash would: nothing of them is reported any more.
"""

import heapq
import random
import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, cast

import msgspec

from standby.engine.texts.decision_records import chain_steps
from standby.engine.verify import verify
from standby.events.codec import decode
from standby.events.commit import Commit
from standby.events.errors import BadInput, BadScript, RuntimeEnded, StandbyError, TurnFailed, TurnLost
from standby.events.memory import MemoryStore
from standby.events.names import SALT_BYTES
from standby.events.store import Store
from standby.events.vocabulary import Origin
from standby.hosts.core import Core
from standby.hosts.providers.values import CallFailed, Code, Endpoint, Prompt, Wire
from standby.hosts.runner.ask import Ask, TurnFields
from standby.hosts.runner.driver import Driver, Script
from standby.hosts.runner.effects import Call, Do, Sleep, Status, StatusKind, Tell
from standby.hosts.service import Standby
from standby.hosts.settings import Settings
from standby.hosts.simulate.acts import Credentials, act
from standby.hosts.simulate.expect import check_rules, check_turn
from standby.hosts.simulate.outcomes import Outcomes, claim, cut_off
from standby.hosts.simulate.played import Played, PlayedTurn
from standby.hosts.simulate.scenario import Loaded, Step
from standby.hosts.simulate.scenario import Turn as Said
from standby.hosts.turns import TurnHandle

_PROMPT = Prompt(messages=({"role": "user", "content": "Hello?"},))
_ALIAS = re.compile(r"\b[sp]-[0-9a-f]{24}\b")
_OURS = frozenset({"id", "session", "timeout", "deadline", "allowance", "repairs"})
"""Fields of a turn that are not handed to the runner as they are."""


@dataclass(slots=True, eq=False)
class _Run:
    """One runtime at work on a turn."""

    turn: PlayedTurn
    instance: str
    script: Script
    alive: bool = True


class _Keys:
    """Profiles come from the scenario; there is no secret behind them."""

    def observe(self, service: Standby) -> None:
        """They were reported already."""

    def meet(self, models: tuple[str, ...]) -> None:
        """No model of a turn brings a credential along."""

    def secret(self, profile: str) -> None:
        """None is needed."""


def play(loaded: Loaded, store: Store | None = None) -> Played:
    """Play a scenario to its end, on a store that holds nothing yet.

    Raises:
        BadScript: a step cannot be done; the message names it.
    """
    return _Player(loaded, store or MemoryStore()).run()


class _Player:
    def __init__(self, loaded: Loaded, store: Store) -> None:
        self.loaded, self.scenario, self.store = loaded, loaded.scenario, store
        self.now_ms = self.scenario.start_ms
        self.random = random.Random(self.scenario.seed)
        self.outcomes = Outcomes(self.scenario)
        self.credentials = Credentials(self.scenario.profiles, self.scenario.order)
        self.problems: list[str] = []
        self.runtimes: dict[str, Standby] = {}
        self.turns: dict[str, PlayedTurn] = {}
        self.asks: dict[str, Ask] = {}
        self.runs: list[_Run] = []
        self.due: list[tuple[int, int, _Run | None, Callable[[], None]]] = []
        self.order = count()
        self.credentials.observe(self.open("main", loaded.settings), self.scenario.start_ms)

    # ---- time ------------------------------------------------------------------------------------------------

    def later(self, at_ms: int, what: Callable[[], None], run: _Run | None = None) -> None:
        """Something is due at a moment, unless the run that it belongs to stops before."""
        heapq.heappush(self.due, (at_ms, next(self.order), run, what))

    def drain(self) -> None:
        """Let everything happen that is due, and what becomes due by it."""
        while self.due:
            at_ms, _, run, what = heapq.heappop(self.due)
            if run is None or run.alive:
                self.now_ms = at_ms
                what()

    def run(self) -> Played:
        """Play all steps, then look at what came of them."""
        last_ms = self.now_ms
        for number, step in enumerate(self.scenario.steps):
            doing = self.doing(number, step)
            if step.at is not None or step.during is not None:
                last_ms = self.timestamp(number, step, last_ms)
                self.later(last_ms, doing)
                continue
            self.drain()
            self.now_ms += step.after or 0
            last_ms = self.now_ms
            doing()
        self.drain()
        return self.played()

    def timestamp(self, number: int, step: Step, last_ms: int) -> int:
        """When a step happens that does not wait for what is under way."""
        if step.at is None:
            return last_ms + (step.during or 0)
        at_ms = self.scenario.start_ms + step.at
        if at_ms < last_ms:
            over = last_ms - self.scenario.start_ms
            raise self.wrong(
                number, step, f"is to happen at {step.at} ms, but the step above it is at {over} ms"
            )
        return at_ms

    def doing(self, number: int, step: Step) -> Callable[[], None]:
        """The step as something that can be due."""

        def do() -> None:
            try:
                if step.turn is not None:
                    self.request(number, step, step.turn)
                else:
                    act(self, step, number, self.loaded.changes.get(number))
                    self.look()
            except BadScript:
                raise
            except StandbyError as error:
                raise self.wrong(number, step, str(error)) from error

        return do

    def wrong(self, number: int, step: Step, what: str) -> BadScript:
        """A step cannot be done; whoever wrote the scenario knows names, not aliases."""
        name_of = self.service("main").core.name_of
        what = _ALIAS.sub(lambda found: name_of(found[0]), what)
        return self.loaded.error(("steps", number), f"{step.kinds()[0]}: {what}")

    # ---- runtimes --------------------------------------------------------------------------------------------

    def service(self, instance: str) -> Standby:
        """The door of a runtime; it is opened when it is first spoken of."""
        return self.runtimes.get(instance) or self.open(instance, None)

    def open(self, instance: str, settings: Settings | None) -> Standby:
        """A runtime starts."""
        core = Core(
            self.store,
            instance=instance,
            clock=lambda: self.now_ms,
            entropy=lambda: self.random.getrandbits(32),
            salt=lambda: self.random.randbytes(SALT_BYTES),
        )
        core.watch(lambda commit: self.record(core, commit))
        service = self.runtimes[instance] = Standby(core, settings)
        service.evidence_bytes = self.loaded.settings.evidence_bytes
        return service

    def record(self, core: Core, commit: Commit) -> None:
        """Keep the decision records of a commit."""
        turn = self.turns.get(getattr(commit.fact, "turn", ""))
        state = core.view.turns.get(turn.id) if turn is not None else None
        if turn is not None and state is not None:
            turn.records += chain_steps(commit, state)

    def restart(self, instance: str) -> None:
        """A runtime ends, and its work on turns with it; then it starts again."""
        for run in self.runs:
            if run.instance == instance:
                self.stop(run)
        self.open(instance, None)

    def handle(self, turn: str, instance: str = "") -> TurnHandle:
        """A turn, by the runtime that owns it unless another one is named."""
        service = self.service(instance or self.turns[turn].owner)
        with service.core.group():
            return TurnHandle(service, turn)

    # ---- turns -----------------------------------------------------------------------------------------------

    def request(self, number: int, step: Step, said: Said) -> None:
        """A turn is requested."""
        turn = PlayedTurn(id=said.id, number=number, step=step, owner=step.runtime or "main")
        fields = {name: one for name, one in msgspec.structs.asdict(said).items() if name not in _OURS}
        if said.allowance is not None:
            fields["allowance_ms"] = int(said.allowance)
        self.asks[said.id] = Ask(
            prompt=_PROMPT,
            session=said.session,
            timeout_ms=None if said.timeout is None else int(said.timeout),
            deadline_ms=None if said.deadline is None else self.now_ms + said.deadline,
            on_status=_listener(turn),
            on_notice=lambda notice: None,
            repair=(lambda prompt, reason: prompt) if said.repairs else None,
            continues=lambda prompt: prompt,
            fields=cast(TurnFields, {**fields, "turn": said.id}),
        )
        self.turns[said.id] = turn
        self.begin(turn, self.asks[said.id], turn.owner)

    def take_over(self, key: str, instance: str) -> None:
        """A runtime goes on with a turn that another one had."""
        turn = self.turns[key]
        if any(run.alive and run.turn is turn and run.instance == instance for run in self.runs):
            raise BadInput(
                f"runtime {instance} is at work on turn {key}; restart it first, or name another runtime"
            )
        if turn.ended_ms is not None:
            raise BadInput(f"turn {key} is over")
        turn.owner = instance
        self.begin(turn, replace(self.asks[key], resumes=key), instance)

    def begin(self, turn: PlayedTurn, ask: Ask, instance: str) -> None:
        """A runtime begins to work on a turn."""
        driver = Driver(self.service(instance), _Keys(), _endpoint, ask, None, set())  # type: ignore[arg-type]  # the harness takes it
        run = _Run(turn, instance, driver.script())
        self.runs.append(run)
        self.go_on(run, None)

    def go_on(self, run: _Run, value: Any) -> None:
        """Send what an effect came to into the turn, and do its next effects until one takes time."""
        try:
            while True:
                effect = run.script.send(value)
                value = None
                if isinstance(effect, Do):
                    value = effect.work()
                elif isinstance(effect, Tell):
                    effect.to(effect.value)
                elif isinstance(effect, Sleep):
                    self.later(self.now_ms + effect.ms, lambda: self.go_on(run, False), run)
                    return
                else:
                    self.call(run, effect)
                    return
        except StopIteration as end:
            run.turn.result = end.value
        except TurnFailed as failure:
            run.turn.failure = failure
        except (TurnLost, RuntimeEnded):
            pass  # Another runtime has the turn by now; what this one knew is in the log.
        except BadScript:
            raise
        except StandbyError as error:
            raise self.wrong(run.turn.number, run.turn.step, str(error)) from error
        self.stop(run)
        self.look()

    def call(self, run: _Run, effect: Call) -> None:
        """A call begins; what it comes to is known when it is over."""
        model = f"{effect.endpoint.provider}/{effect.model}"
        service = self.service(run.instance)
        profile = service.core.name_of(TurnHandle(service, run.turn.id).state.attempts[-1].profile)
        one = self.outcomes.take(model, profile, run.turn.id, self.now_ms)
        late = one.took > effect.timeout_ms
        if late:
            one = cut_off(one, effect.timeout_ms)

        def over() -> None:
            deadline = self.asks[run.turn.id].deadline_ms
            if late and deadline is not None and self.now_ms >= deadline:
                # The run's time is over, not the attempt's: the driver reports that and blames nobody.
                self.go_on(run, _timed_out(effect))
            else:
                self.go_on(run, claim(one, model, self.now_ms))

        self.later(self.now_ms + one.took, over, run)

    def stop(self, run: _Run) -> None:
        """A runtime does no more for a turn."""
        if run.alive:
            run.alive = False
            run.script.close()

    def look(self) -> None:
        """Take down turns that have ended, however they did, and stop who still works on them."""
        for turn in self.turns.values():
            if turn.ended_ms is not None:
                continue
            handle = self.handle(turn.id)
            turn.state = copy(handle.state)
            name_of = self.service(turn.owner).core.name_of
            turn.profiles = [name_of(attempt.profile) for attempt in turn.state.attempts]
            if turn.state.state not in ("answered", "failed"):
                continue
            turn.ended_ms = turn.state.ended_ms
            for run in self.runs:
                if run.turn is turn and run.instance == turn.owner:
                    self.stop(run)
        self.runs = [run for run in self.runs if run.alive]

    # ---- the end ---------------------------------------------------------------------------------------------

    def played(self) -> Played:
        """What came of it, held against what was expected."""
        self.look()
        report = verify(
            self.store.read(), side_entry=self.store.side_entry, side_entries=self.store.side_entries()
        )
        named = self.commits()
        turns = list(self.turns.values())
        problems = [*self.problems]
        for turn in turns:
            problems += check_turn(turn, self.scenario.start_ms)
        problems += self.outcomes.missed()
        problems += check_rules(self.scenario, named)
        if not report.holds:
            problems.append(report.problem)
        return Played(
            loaded=self.loaded,
            store=self.store,
            turns=turns,
            problems=problems,
            report=report,
            now_ms=self.now_ms,
        )

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


def _listener(turn: PlayedTurn) -> Callable[[Status], None]:
    """Keeps each passing line once, not each second of its countdown."""
    seen: set[tuple[StatusKind, str, int, int | None]] = set()

    def hear(status: Status) -> None:
        key = (status.kind, status.model, status.attempt, status.until_ms)
        if status.text and key not in seen:
            seen.add(key)
            turn.statuses.append(status.text)

    return hear


def _timed_out(effect: Call) -> CallFailed:
    return CallFailed(
        provider=effect.endpoint.provider,
        model=effect.model,
        wire=effect.endpoint.wire,
        code=Code.TIMED_OUT,
        origin=Origin.TRANSPORT,
    )


def _endpoint(provider: str) -> Endpoint:
    return Endpoint(provider=provider, base_url="http://scenario.invalid", wire=Wire.OPENAI_CHAT)

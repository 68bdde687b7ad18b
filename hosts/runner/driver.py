"""One turn, from its request to its end, without any I/O: a generator of effects.

The shell does what comes out (`effects`) and sends the result in, or throws what went wrong. The driver holds
no decision of its own: it does what the turn's step says and reports what came of it. What it adds is what only
a host can do: time. It looks at the run's deadline before each call and wait, gives each call its budget, and
ends the turn when the caller leaves.

Work on the log is done under the write lock, together with reading the step that follows, so that a step is
never read while another thread folds. If the turn belongs to another runtime afterwards, it is left in peace.
"""

import copy
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeAlias

from standby.engine.steps import CallModel, Repair, Settled, SettleUnknown, Step, Wait
from standby.engine.texts.progress import TRYING_FALLBACK, fallback_attempted, retry_line
from standby.engine.turn import Turn
from standby.events.decisions import NoticeDue
from standby.events.errors import BadInput, BadReport, StandbyError, TurnLost
from standby.events.facts import NoticeDelivered
from standby.events.policy import Price
from standby.events.vocabulary import Effects, Failure, Origin, WaitBecause
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.values import (
    TIMEOUT_MS,
    Answer,
    CallSucceeded,
    Code,
    Endpoint,
    Outcome,
)
from standby.hosts.reports import Failed, Unknown
from standby.hosts.runner.ask import Ask, runs_tools_itself
from standby.hosts.runner.effects import Call, Claimed, Do, Effect, Sleep, Status, StatusKind, Tell
from standby.hosts.runner.keys import Keys
from standby.hosts.runner.outcomes import (
    TurnResult,
    failed,
    failed_here,
    failure_of,
    get_ready_to_read,
    succeeded,
)
from standby.hosts.service import Standby
from standby.hosts.turns import TurnHandle
from standby.projections.costs import usage_of

SLICE_MS: Final = 1000
"""Longest sleep at a time: a countdown moves once a second, and a clock that was set is noticed."""

Script: TypeAlias = Generator[Effect, Any, TurnResult]
Steps: TypeAlias = Generator[Effect, Any, None]


class Driver:
    """Drives one turn; `script()` is the generator."""

    def __init__(
        self,
        service: Standby,
        keys: Keys,
        endpoint_of: Callable[[str], Endpoint],
        ask: Ask,
        request_ms: int | None,
        running: set[str],
    ) -> None:
        self._service = service
        self._keys = keys
        self._endpoint_of = endpoint_of
        self._ask = ask
        self._request_ms = request_ms
        """Most time for one request, whatever the attempt's budget."""
        self._running = running
        """Ids of the turns that this runner runs now."""
        self._handle: TurnHandle | None = None
        self._step: Step | None = None
        self._turn = Turn()
        """A copy of the turn's state, as of the step."""
        self._prices: Mapping[str, Price] = {}
        self._owned = False
        self._answer: Answer | None = None
        self._shown = ""
        self._at_work = runs_tools_itself(ask.prompt)

    def script(self) -> Script:
        """Run the turn to its end.

        Raises:
            TurnFailed: it ended without an answer.
            TurnLost: another runtime has it, or it was answered before.
            StandbyError: the log cannot be written (any more); the turn can be gone on with.
        """
        try:
            yield from self._begin()
            while not isinstance(step := self._step, Settled):
                yield from self._next(step)
            result = yield from self._finish(step)
        except (StandbyError, GeneratorExit):
            raise
        except BaseException:
            # The caller left (an interrupt, a cancelled task, an error in a callback): nothing may follow.
            if self._handle is not None and not isinstance(self._step, Settled):
                with suppress(StandbyError):
                    yield Do(self._handle.cancel)
            raise
        finally:
            if self._handle is not None:
                self._running.discard(self._handle.id)
        return result

    # ---- the log -------------------------------------------------------------------------------------------

    def _log(self, work: Callable[[], Any]) -> Steps:
        """Do this on the log and read what comes next, in one go."""

        def at_once() -> None:
            with self._service.core.group():
                work()
                self._read()

        yield Do(at_once)

    def _read(self) -> None:
        handle, core = self._held, self._service.core
        self._turn = copy.copy(handle.state)
        self._step = handle.step
        self._prices = core.view.policy_of(self._turn).prices
        self._owned = (self._turn.runtime, self._turn.epoch) == (core.instance, core.epoch)

    def _move(self, work: Callable[[], Any]) -> Steps:
        """Do this on the log as the turn's owner."""
        yield from self._log(work)
        if not self._owned:
            self._lost("another runtime took it over; the log says how it went on")

    @property
    def _held(self) -> TurnHandle:
        assert self._handle is not None
        return self._handle

    def _lost(self, why: str) -> NoReturn:
        key = self._held.id
        raise TurnLost(f"turn {key}: {why} (`standby explain {key}`)", key)

    # ---- the beginning -------------------------------------------------------------------------------------

    def _begin(self) -> Steps:
        fields = self._ask.fields or {}
        self._keys.meet((fields.get("model", ""), *(fields.get("fallbacks") or ())))
        yield Do(lambda: self._keys.observe(self._service))
        yield from self._log(self._start)
        if isinstance(self._step, Settled):
            if self._step.answered:
                self._lost("it was answered before, and answers are not kept")
            return
        if not self._owned:
            self._lost("another runtime has it")
        if isinstance(self._step, SettleUnknown) or (self._again and isinstance(self._step, CallModel)):
            yield from self._move(lambda: self._held.report(Unknown(effects=self._lost_effects())))

    def _start(self) -> None:
        ask, service = self._ask, self._service
        if ask.resumes:
            handle = self._reopened(ask.resumes)
        else:
            handle = service.start_turn(
                session=ask.session,
                timeout_ms=ask.timeout_ms,
                deadline_ms=ask.deadline_ms,
                **(ask.fields or {}),
            )
            if not handle.commits:
                # The same request was made before: go on with its turn, and call nothing twice.
                handle = self._reopened(handle.id)
                self._ask = replace(ask, resumes=handle.id)
        self._handle = handle
        self._running.add(handle.id)

    def _reopened(self, key: str) -> TurnHandle:
        if key in self._running:
            raise BadReport(f"turn {key} is being run already; wait for it, or cancel it first")
        return self._service.reopen(key)

    @property
    def _again(self) -> bool:
        return bool(self._ask.resumes)

    def _lost_effects(self) -> Effects:
        """What a call may have done whose end nobody saw: output that went to a caller cannot be taken back,
        and tools that a provider runs may have run."""
        safe = not (self._ask.stream or self._ask.delivers or self._at_work)
        return Effects.NONE if safe else Effects.POSSIBLE

    # ---- one step ------------------------------------------------------------------------------------------

    def _next(self, step: Step | None) -> Steps:
        deadline = self._deadline
        if deadline is not None and self._now >= deadline:
            yield from self._log(self._held.deadline_passed)
        elif isinstance(step, CallModel):
            yield from self._call(step)
        elif isinstance(step, Wait):
            yield from self._wait(step)
        elif isinstance(step, Repair):
            yield from self._repair(step)
        else:
            self._lost("another runtime is about to settle it")

    @property
    def _now(self) -> int:
        return self._service.core.clock()

    @property
    def _deadline(self) -> int | None:
        return self._turn.request.deadline_ms if self._turn.request else None

    def _call(self, step: CallModel) -> Steps:
        prompt = self._ask.prompt
        if step.continuation:
            if self._ask.continues is None:
                raise BadReport(
                    f"turn {step.turn} continues a transcript, which the runner does not keep; "
                    "give it `continues`, or drive the turn with `Standby.reopen`"
                )
            prompt = self._ask.continues(prompt)
        yield from self._say_fallback(step)
        ready = yield Do(lambda: self._ready(step))
        if isinstance(ready, Failed):
            yield from self._move(lambda: self._held.report(ready, attempt=step.attempt))
            return
        where, secret = ready
        budgets = [ms for ms in (step.timeout_ms, self._request_ms) if ms is not None]
        budget = min(budgets, default=TIMEOUT_MS)
        if self._deadline is not None:
            budget = max(1, min(budget, self._deadline - self._now))
        outcome: Outcome | Claimed = yield Call(
            where,
            step.model_id,
            replace(prompt, tools=()) if step.finalize else prompt,
            secret,
            self._ask.stream,
            budget,
            f"{step.turn}/{step.attempt}",
        )
        yield from self._report(step, outcome, secret)

    def _ready(self, step: CallModel) -> tuple[Endpoint, Secret | None] | Failed:
        """Where the call goes and with which secret; or why it cannot be made, as a failure of the attempt."""
        try:
            where = self._endpoint_of(step.provider)
        except BadInput as error:
            return failed_here(Failure.MODEL_NOT_FOUND.value, str(error), self._now)
        try:
            return where, self._keys.secret(step.profile)
        except BadInput as error:
            self._keys.observe(self._service)
            return failed_here("missing_api_key", str(error), self._now)

    def _report(self, step: CallModel, outcome: Outcome | Claimed, secret: Secret | None) -> Steps:
        now = self._now
        if isinstance(outcome, Claimed):
            claim, self._answer = outcome.report, outcome.answer
            yield from self._move(lambda: self._held.report(claim, attempt=step.attempt))
            return
        if isinstance(outcome, CallSucceeded):
            self._answer = outcome.answer
            answered = succeeded(outcome, at_work=self._at_work)
            yield from self._move(lambda: self._held.report(answered, attempt=step.attempt))
            return
        if outcome.origin is Origin.ABORT:
            yield from self._log(self._held.cancel)
            return
        deadline = self._deadline
        if deadline is not None and now >= deadline and outcome.code == Code.TIMED_OUT:
            yield from self._log(self._held.deadline_passed)
            return
        yield Do(get_ready_to_read)
        failure = failed(
            outcome,
            at_work=self._at_work,
            secrets=() if secret is None else (secret.reveal(),),
            now_ms=now,
            repairs=self._ask.repair is not None,
        )
        yield from self._move(lambda: self._held.report(failure, attempt=step.attempt))

    def _wait(self, step: Wait) -> Steps:
        until = step.until_ms if self._deadline is None else min(step.until_ms, self._deadline)
        while (left := until - self._now) > 0:
            yield from self._say_retry(step)
            cancelled = yield Sleep(min(left, SLICE_MS))
            if cancelled:
                yield from self._log(self._held.cancel)
                return
        if until == step.until_ms:
            yield from self._move(self._held.resume)

    def _repair(self, step: Repair) -> Steps:
        mended = None
        if self._ask.repair is not None:
            repair, prompt = self._ask.repair, self._ask.prompt
            mended = yield Do(lambda: repair(prompt, step.reason))
        if mended is not None:
            self._ask = replace(self._ask, prompt=mended)
            self._at_work = runs_tools_itself(mended)
        yield from self._move(lambda: self._held.repaired(mended is not None))

    # ---- what the user sees meanwhile ----------------------------------------------------------------------

    def _say(self, status: Status) -> Steps:
        """Show this line, unless it is the one that is shown already."""
        if self._ask.on_status is not None and status.text != self._shown:
            self._shown = status.text
            yield Tell(self._ask.on_status, status)

    def _say_retry(self, step: Wait) -> Steps:
        """The wait as one line: which attempt comes next (rate limits), and how long it takes (REC-7)."""
        if step.because is not WaitBecause.RETRY:
            return
        yield from self._say(
            Status(
                kind=StatusKind.RETRY,
                text=retry_line(step, self._now),
                model=step.model,
                reason=step.reason,
                attempt=step.retry + 1,
                of=step.of + 1 if step.of else None,
                until_ms=step.until_ms,
            )
        )

    def _say_fallback(self, step: CallModel) -> Steps:
        """A model is tried in place of another one that failed or was passed over in this turn (NOTE-6)."""
        event = fallback_attempted(self._turn, step.attempt)
        if event is None:
            return
        yield from self._say(
            Status(
                kind=StatusKind.FALLBACK,
                text=TRYING_FALLBACK,
                model=event.trying,
                previous=event.previous,
                reason=event.reason,
            )
        )

    # ---- the end -------------------------------------------------------------------------------------------

    def _finish(self, settled: Settled) -> Script:
        if self._shown:
            yield from self._say(Status(kind=StatusKind.NONE))
        if not settled.answered:
            raise failure_of(settled, self._turn, self._now)
        if self._answer is None:
            self._lost("it was answered elsewhere, and answers are not kept")
        handle = self._held
        notices: list[str] = []
        due = any(isinstance(d, NoticeDue) for commit in handle.commits for d in commit.decisions)
        if due or settled.guidance is not None:
            notices = yield Do(lambda: handle.notices)
        if self._ask.on_notice is not None and notices:
            for notice in notices:
                yield Tell(self._ask.on_notice, notice)
            yield Do(self._delivered)
        return TurnResult(
            answer=self._answer,
            settled=settled,
            notices=tuple(notices),
            usage=usage_of(settled.usages, self._prices),
        )

    def _delivered(self) -> None:
        if self._turn.request is not None:
            fact = NoticeDelivered(session=self._turn.request.session, turn=self._held.id)
            self._service.core.submit(fact)

"""A turn as its owner holds it: its next step, and what to report of it. Names here, aliases below."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from standby.engine.decide.selection import pending_switch
from standby.engine.reading.extract import Reply, extract
from standby.engine.steps import CallModel, Settled, Step, step_of
from standby.engine.texts.notices import Notice, notice_of, warning_of
from standby.engine.texts.progress import FinalFailure, final_failure
from standby.engine.turn import Attempt, Turn
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.decisions import NoticeDue
from standby.events.errors import BadReport
from standby.events.names import SideEntry
from standby.events.vocabulary import Effects, Origin, Stage
from standby.hosts.core import Core
from standby.hosts.reports import Failed, Outcome, Succeeded, Switched, Unknown
from standby.projections.sessions import Session


class Opened(Protocol):
    """What a turn needs of the open log."""

    core: Core
    evidence_bytes: int


class TurnHandle:
    """A turn as its owner holds it. `commits` are those that were made through this handle."""

    def __init__(self, service: Opened, key: str, commit: Commit | None = None) -> None:
        self.id = key
        self._service = service
        self.commits: list[Commit] = []
        self._keep(commit)

    @property
    def state(self) -> Turn:
        """The turn's own state, with aliases."""
        turn = self._service.core.view.turns.get(self.id)
        if turn is None:
            raise BadReport(f"turn {self.id} is not known to this log (or settled long ago)")
        return turn

    @property
    def step(self) -> Step:
        """What to do next, with profile names."""
        step = step_of(self.id, self.state)
        name_of = self._service.core.name_of
        if isinstance(step, CallModel):
            return msgspec.structs.replace(step, profile=name_of(step.profile)) if step.profile else step
        if isinstance(step, Settled):
            return msgspec.structs.replace(step, attempts=tuple(map(self._named, step.attempts)))
        return step

    def _named(self, attempt: Attempt) -> Attempt:
        if not attempt.profile:
            return attempt
        return msgspec.structs.replace(attempt, profile=self._service.core.name_of(attempt.profile))

    @property
    def pending_switch(self) -> str | None:
        """The model that the user switched to while this turn is under way, or None (LIVE-1, LIVE-7).

        The turn's own candidates do not change by it. Leave the call and report `Switched`, or let it end.
        """
        return pending_switch(self._service.core.view, self.state)

    @property
    def due(self) -> list[Notice]:
        """The notices that fell due through this handle and are to be shown (NOTE-1, NOTE-3, NOTE-10), and the
        warning of an answer that an overflow led to (ADV-11)."""
        decisions = (d for commit in self.commits for d in commit.decisions)
        found = [self._notice(decision) for decision in decisions if isinstance(decision, NoticeDue)]
        step = self.step
        if isinstance(step, Settled):
            found.append(warning_of(step))
        return [notice for notice in found if notice is not None]

    @property
    def notices(self) -> list[str]:
        """The texts of `due`."""
        return [notice.text for notice in self.due]

    def _notice(self, due: NoticeDue) -> Notice | None:
        attempts = self.state.attempts
        failed = attempts[due.attempt - 1] if 0 < due.attempt <= len(attempts) else None
        if failed is None:
            return notice_of(due)
        return notice_of(due, self._service.core.text_of(failed.text), failed.status)

    @property
    def failure(self) -> FinalFailure | None:
        """The one failure that is shown of a run that failed, with what the user can do about it (NOTE-13)."""
        turn, core = self.state, self._service.core
        session = core.view.sessions.get(turn.request.session) if turn.request else None
        return final_failure(turn, session or Session(), core.clock())

    # ---- reports -----------------------------------------------------------------------------------------

    def report(self, outcome: Outcome | Reply | BaseException, *, attempt: int | None = None) -> Step:
        """Report how the call went; the newest attempt is meant unless another one is named.

        A bare `Reply` or an exception stands for a failure without effects. A report is never refused: one that
        comes late or doubled is kept, and moves nothing.

        Raises:
            BadReport: this is no report, or there is no such attempt.
        """
        outcome = _outcome(outcome)
        turn = self.state
        number = attempt if attempt is not None else turn.attempt
        side_entries: tuple[SideEntry, ...] = ()
        if isinstance(outcome, Failed):
            fact, side_entries = self._failure(turn, number, outcome)
        elif isinstance(outcome, Succeeded):
            fact = f.CallSucceeded(
                turn=self.id,
                attempt=number,
                started_ms=self._started(turn, number, outcome.started_ms),
                effects=outcome.effects,
                stop=outcome.stop,
                usage=outcome.usage,
                writer_admitted=outcome.writer_admitted,
                fallback_worthy=outcome.fallback_worthy,
                served=outcome.served,
            )
        elif isinstance(outcome, Unknown):
            fact = f.CallUnknown(turn=self.id, attempt=number, effects=outcome.effects)
        else:
            fact = f.LiveSwitchRequested(
                turn=self.id, attempt=number, model=outcome.model, effects=outcome.effects
            )
        return self._submit(fact, side_entries)

    def _failure(self, turn: Turn, number: int, outcome: Failed) -> tuple[f.Fact, tuple[SideEntry, ...]]:
        core = self._service.core
        earlier = next((r for r in turn.reports if isinstance(r, f.CallFailed) and r.attempt == number), None)
        received = int(outcome.received_ms or outcome.reply.received_ms)
        if not received:
            # The same report twice has to be the same fact, although a clock went on in between.
            received = earlier.received_ms if earlier else core.clock()
        tried = turn.attempts[number - 1] if 0 < number <= turn.attempt else None
        provider, _, model = tried.model.partition("/") if tried else ("", "", "")
        reply = msgspec.structs.replace(
            _plain(outcome.reply),
            provider=outcome.reply.provider or provider,
            model=outcome.reply.model or model,
            received_ms=received,
        )
        rows = core.view.policy_of(turn).rows
        extracted = extract(
            reply, limit_bytes=self._service.evidence_bytes, secrets=outcome.secrets, extra_rows=rows
        )
        evidence = extracted.evidence
        side_entries: tuple[SideEntry, ...] = ()
        if extracted.text and earlier and core.text_of(earlier.evidence.text) == extracted.text:
            evidence = msgspec.structs.replace(evidence, text=earlier.evidence.text)
        elif extracted.text:
            side_entry = core.text_entry(extracted.text, turn.request.session if turn.request else "")
            evidence, side_entries = msgspec.structs.replace(evidence, text=side_entry.alias), (side_entry,)
        fact = f.CallFailed(
            turn=self.id,
            attempt=number,
            started_ms=self._started(turn, number, outcome.started_ms),
            received_ms=received,
            evidence=evidence,
            effects=outcome.effects,
            delivered=outcome.delivered,
            provider_started=outcome.provider_started,
            usage=outcome.usage,
            repairable=outcome.repairable,
            format_repair=outcome.format_repair,
            selected_profile=outcome.selected_profile,
            finished_work=outcome.finished_work,
            receipts=outcome.receipts,
            bare=outcome.bare,
        )
        return fact, side_entries

    @staticmethod
    def _started(turn: Turn, number: int, given: int | None) -> int:
        if given is not None:
            return given
        return turn.attempts[number - 1].started_ms if 0 < number <= turn.attempt else 0

    def effects_begun(self, effects: Effects = Effects.POSSIBLE) -> None:
        """Say, before it happens, that the call is about to have an effect."""
        self._submit(f.EffectsBegun(turn=self.id, attempt=self.state.attempt, effects=effects))

    def response_completed(self, usage: f.Usage | None = None, *, number: int | None = None) -> None:
        """A model response inside the attempt was completed: retries start anew (REC-3).

        `number` is which one of the attempt it is; give it to report the same one again after a crash.
        """
        turn = self.state
        if number is None:
            number = 1 + sum(
                isinstance(one, f.ResponseCompleted) and one.attempt == turn.attempt for one in turn.reports
            )
        self._submit(f.ResponseCompleted(turn=self.id, attempt=turn.attempt, usage=usage, number=number))

    def runtime_recovering(self, reply: Reply, *, secrets: tuple[str, ...] = ()) -> None:
        """A call inside the attempt failed and the runtime recovers by itself (COOL-12, REC-16).

        `secrets` are those that the call used, so that they are masked wherever the reply quotes them.
        """
        turn = self.state
        fact, side_entries = self._failure(turn, turn.attempt, Failed(reply=reply, secrets=secrets))
        if isinstance(fact, f.CallFailed):
            self._submit(
                f.RuntimeRecovering(turn=self.id, attempt=turn.attempt, evidence=fact.evidence), side_entries
            )

    def no_progress(self) -> Step:
        """The host's breaker sees no progress and growing cost (REC-10, STOP-5)."""
        seen = f.NoProgressSeen(turn=self.id, attempt=self.state.attempt, seen_ms=self._service.core.clock())
        return self._submit(seen)

    def event_recorded(self, stored: bool) -> None:
        """The transcript stored the transition as a divider, or could not (NOTE-4)."""
        self._submit(f.TranscriptEventRecorded(turn=self.id, stored=stored))

    def writer_admitted(self) -> None:
        """The turn now holds the writer authority of an admitted run (NOTE-11)."""
        self._submit(f.WriterAdmitted(turn=self.id))

    def resume(self) -> Step:
        """The wait is over. Too early, or with nothing to wait for, this writes nothing."""
        return self._submit(f.WaitEnded(turn=self.id))

    def repaired(self, repaired: bool) -> Step:
        """The ordered repair is over."""
        return self._submit(f.RepairFinished(turn=self.id, repaired=repaired))

    def cancel(self) -> Step:
        """The user stops the turn (REC-13)."""
        return self._submit(f.TurnCancelled(turn=self.id))

    def deadline_passed(self) -> Step:
        """The deadline of the run has passed."""
        return self._submit(f.DeadlinePassed(turn=self.id))

    def _submit(self, fact: f.Fact, side_entries: tuple[SideEntry, ...] = ()) -> Step:
        self._keep(self._service.core.submit(fact, side_entries))
        return self.step

    def _keep(self, commit: Commit | None) -> None:
        if commit is not None:
            self.commits.append(commit)


def _outcome(said: object) -> Outcome:
    """What was reported, as one of the outcomes there are."""
    if isinstance(said, Succeeded | Failed | Unknown | Switched):
        return said
    if isinstance(said, Reply):
        return Failed(reply=said)
    if isinstance(said, BaseException):
        from standby.hosts.adapters import reply_from_exception

        return Failed(reply=reply_from_exception(said))
    raise BadReport(
        f"{type(said).__name__} is no report; say Succeeded(...), Failed(reply=Reply(...)), Unknown(...), "
        "Switched(...), or give the exception"
    )


def _plain(reply: Reply) -> Reply:
    """A reply whose fields are what they should be: hosts pass on what their client library gave them."""
    given: Any = reply
    headers: Any = given.headers
    if not isinstance(headers, Mapping):
        try:
            headers = dict(headers or {})
        except (TypeError, ValueError):
            headers = {}
    texts = {
        name: None if (value := getattr(given, name)) is None else _text(value)
        for name in ("code", "error_type", "param", "message")
    }
    return msgspec.structs.replace(
        reply,
        headers={_text(name): _text(value) for name, value in headers.items()},
        status=_status(given.status),
        provider=_text(given.provider),
        model=_text(given.model),
        received_ms=int(given.received_ms),
        origin=Origin(given.origin),
        stage=Stage(given.stage),
        **texts,
    )


def _text(value: object) -> str:
    """Text that can be encoded."""
    return str(value).encode("utf-8", "replace").decode()


def _status(value: Any) -> int | None:
    """A status, also where a client library gives it as text or as an enum member."""
    if value is None or isinstance(value, bool):
        return None
    digits = str(int(value)) if isinstance(value, int) else str(value).strip()
    return int(digits) if digits.isdecimal() and len(digits) == 3 else None

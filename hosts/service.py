"""The door for those who embed standby: open a log, start turns, report what happened, ask for the next step.

    with standby.open("standby.db", "policy.toml", profiles={"openai": ["key-a", "key-b"]}) as sb:
        turn = sb.start_turn(session="s1")
        while not isinstance(step := turn.step, Settled):
            match step:
                case CallModel():
                    turn.report(call(step))        # Succeeded(...), or Failed(reply)
                case Wait():
                    sleep_until(step.until_ms)
                    turn.resume()

Names live here and aliases below: steps and records carry profile names, events carry aliases.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from standby.engine.evidence import Reply, extract
from standby.engine.notices import FallbackNote, Notice, fallback_note, notice_of, warning_of
from standby.engine.order import manages_itself
from standby.engine.progress import FinalFailure, final_failure
from standby.engine.selection import pending_switch
from standby.engine.status import Status, status_of
from standby.engine.steps import CallModel, Settled, Step, step_of
from standby.engine.turn import Attempt, Turn
from standby.events import facts as f
from standby.events.commit import Commit
from standby.events.decisions import NoticeDue
from standby.events.errors import BadReport
from standby.events.names import Aside
from standby.events.policy import Policy
from standby.events.store import Store
from standby.events.vocabulary import (
    CredentialKind,
    Effects,
    ResetKind,
    SelectionSource,
    StopKind,
    Surface,
    ToolReceipt,
    TurnKind,
)
from standby.hosts.core import Core, open_store, wall_clock
from standby.hosts.settings import Settings, load_settings
from standby.projections.health import documented_stats
from standby.projections.sessions import Announced, Session

__all__ = ["Failed", "Outcome", "Profile", "Standby", "Succeeded", "Switched", "TurnHandle", "Unknown", "open"]

EVIDENCE_BYTES = 2048


class Succeeded(msgspec.Struct, frozen=True, kw_only=True):
    """The call was completed. `effects` says what it did to the world besides answering."""

    effects: Effects = Effects.NONE
    usage: f.Usage | None = None
    stop: StopKind = StopKind.STOP
    started_ms: int | None = None
    """When the call began; the attempt's start if not given."""
    writer_admitted: bool = True
    fallback_worthy: bool = False
    served: str = ""
    """The model that the provider went to by itself, where the step allowed it (ADV-13)."""


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The call failed with this reply. `delivered` says that part of an answer reached the caller, and
    `effects` what the call did or may have done: both decide whether anything may be replayed (REC-8)."""

    reply: Reply
    effects: Effects = Effects.NONE
    delivered: bool = False
    started_ms: int | None = None
    received_ms: int | None = None
    provider_started: bool = True
    usage: f.Usage | None = None
    repairable: bool = False
    format_repair: bool = False
    selected_profile: bool = True
    finished_work: bool = False
    receipts: tuple[ToolReceipt, ...] = ()
    """Operations that are not safe to repeat, and how far each came (REC-8)."""
    bare: bool = False
    """What the attempt left is empty or reasoning alone (NOTE-8)."""
    secrets: tuple[str, ...] = ()
    """Secrets that the call used, so that they can be masked wherever the reply quotes them."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody saw how the call ended."""

    effects: Effects


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """The call was left because the user switched the model while it ran."""

    model: str
    effects: Effects = Effects.NONE


Outcome = Succeeded | Failed | Unknown | Switched


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as standby needs to know it: never the credential itself."""

    name: str
    provider: str
    kind: CredentialKind = CredentialKind.API_KEY
    expires_ms: int | None = None
    usable: bool = True
    inline: bool = False
    agent: str = ""


Profiles = Mapping[str, Sequence[str]] | Iterable[Profile]


def open(
    where: str | Path | Store,
    policy: "str | Path | Settings | Policy | None" = None,
    *,
    profiles: Profiles | None = None,
    slot: str | None = None,
    synchronous: str | None = None,
    clock: Callable[[], int] = wall_clock,
    draw: Callable[[], int] | None = None,
) -> "Standby":
    """Open a log and begin to decide on it.

    Args:
        where: path of the log, ":memory:", or a store of your own.
        policy: a settings file, `Settings`, or a `Policy` whose profiles are names; None keeps the log's.
        profiles: the credentials there are: names by provider, or `Profile` values; None keeps the log's.
        slot: name of this runtime, for services that are restarted in place.
        synchronous: "full" (default) or "normal"; beats the settings.
        clock, draw: epoch milliseconds and 32 random bits, for tests.

    Raises:
        BadPolicy, ForeignFile, LogTooNew, DamagedLog: nothing was written.
    """
    settings = load_settings(policy) if isinstance(policy, str | Path) else policy
    if isinstance(settings, Policy):
        settings = Settings(policy=settings)
    if isinstance(where, str | Path):
        where = open_store(where, synchronous=synchronous or (settings.synchronous if settings else "full"))
    core = (
        Core(where, slot=slot, clock=clock) if draw is None else Core(where, slot=slot, clock=clock, draw=draw)
    )
    service = Standby(core, settings)
    if profiles is not None:
        service.observe(profiles)
    return service


class Standby:
    """An open log. Use it from any thread; close it or use it as a context manager."""

    def __init__(self, core: Core, settings: Settings | None = None) -> None:
        self.core = core
        self.settings = settings
        self.evidence_bytes = settings.evidence_bytes if settings else EVIDENCE_BYTES
        if settings is not None:
            with core.group() as transaction:
                core.adopt(settings.policy_with(lambda name: core.alias("profile", name, transaction)))

    # ---- turns -------------------------------------------------------------------------------------------

    def start_turn(
        self,
        *,
        session: str,
        agent: str = "main",
        turn: str | None = None,
        model: str = "",
        source: SelectionSource = SelectionSource.DEFAULT,
        fallbacks: Sequence[str] | None = None,
        kind: TurnKind = TurnKind.INTERACTIVE,
        surface: Surface = Surface.DIRECT,
        locked: bool = False,
        rerouted: bool = False,
        image: bool = False,
        timeout_ms: int | None = None,
        deadline_ms: int | None = None,
        max_retries: int | None = None,
        input_tokens: int | None = None,
        continuable: bool = False,
        owns_transport: bool = False,
        answer_required: bool = True,
        local_settings: bool = True,
        selected_only: bool = False,
        harness: str = "",
        allowance_ms: int | None = None,
        hidden: bool = False,
        continues: str = "",
    ) -> "TurnHandle":
        """Request a turn in a session; the fields are those of `turn_requested`.

        Raises:
            BadReport: nothing selects a model, or a name stands for none; nothing was written.
        """
        key = turn or f"t-{secrets.token_hex(8)}"
        with self.core.group() as transaction:
            fact = f.TurnRequested(
                turn=key,
                session=self.core.alias("session", session_name(agent, session), transaction),
                agent=agent,
                model=model,
                source=source,
                fallbacks=None if fallbacks is None else tuple(fallbacks),
                locked=locked,
                rerouted=rerouted,
                kind=kind,
                surface=surface,
                image=image,
                deadline_ms=deadline_ms,
                timeout_ms=timeout_ms,
                max_retries=max_retries,
                input_tokens=input_tokens,
                continuable=continuable,
                owns_transport=owns_transport,
                answer_required=answer_required,
                local_settings=local_settings,
                selected_only=selected_only,
                harness=harness,
                allowance_ms=allowance_ms,
                hidden=hidden,
                continues=continues,
            )
            return TurnHandle(self, key, self.core.submit(fact))

    def reopen(self, turn: str) -> "TurnHandle":
        """Go on with a turn after a crash, or take it over from another runtime.

        A call that was under way becomes `SettleUnknown`; every other step is the same again.
        """
        return TurnHandle(self, turn, self.core.submit(f.TurnTakenOver(turn=turn)))

    def unfinished(self) -> list[str]:
        """Turns that are not settled, oldest request first."""
        view = self.core.view
        found = [
            (turn.requested_ms, key)
            for key in view.turns.keys_now()
            if (turn := view.turns.get(key)) is not None and turn.state not in ("answered", "failed")
        ]
        return [key for _, key in sorted(found)]

    # ---- sessions ----------------------------------------------------------------------------------------

    def create_session(self, session: str, *, parent: str = "", model: str = "", agent: str = "main") -> None:
        """A session came into being, perhaps as a child of another (SEL-8, SEL-13)."""
        with self.core.group() as transaction:

            def alias(name: str) -> str:
                return self.core.alias("session", session_name(agent, name), transaction)

            self.core.submit(
                f.SessionCreated(
                    session=alias(session), agent=agent, parent=alias(parent) if parent else "", model=model
                )
            )

    def select_model(self, session: str, model: str | None, *, profile: str = "", agent: str = "main") -> None:
        """The user picks a model for the session; None goes back to the configured default (SEL-5, SEL-8)."""
        with self.core.group() as transaction:
            self.core.submit(
                f.ModelSelected(
                    session=self.core.alias("session", session_name(agent, session), transaction),
                    model=model or "",
                    source=SelectionSource.USER if model else SelectionSource.DEFAULT,
                    profile=self._profile_alias(profile) if profile else "",
                    agent=agent,
                )
            )

    def clear_model(self, session: str, *, agent: str = "main") -> None:
        """The session's override is taken away (`model: null`, SEL-18).

        Unlike the choice "Default" (`select_model(session, None)`) this leaves a child session to its parent's
        pinned model again.
        """
        with self.core.group() as transaction:
            alias = self.core.alias("session", session_name(agent, session), transaction)
            self.core.submit(f.ModelSelected(session=alias, source=SelectionSource.USER, agent=agent))

    def status(self, session: str, *, agent: str = "main") -> Status:
        """The session's selected model and, where another one answers, which and why (LIVE-5)."""
        with self.core.group() as transaction:
            alias = transaction.alias("session", session_name(agent, session)) or ""
        return status_of(self.core.view, alias, agent, self.core.clock())

    def pin(self, session: str, provider: str, profile: str | None, *, agent: str = "main") -> None:
        """The user pins an auth profile of a provider, or takes the pin away (PIN-4)."""
        with self.core.group() as transaction:
            self.core.submit(
                f.ProfilePinned(
                    session=self.core.alias("session", session_name(agent, session), transaction),
                    provider=provider,
                    profile=self._profile_alias(profile) if profile else "",
                    agent=agent,
                )
            )

    def reset(self, session: str, *, kind: ResetKind = ResetKind.RESET, agent: str = "main") -> None:
        """The session begins anew (PIN-2, SEL-10)."""
        with self.core.group() as transaction:
            alias = self.core.alias("session", session_name(agent, session), transaction)
            self.core.submit(f.SessionReset(session=alias, kind=kind))

    def _profile_alias(self, name: str) -> str:
        alias = self.core.known_alias("profile", name)
        if alias is None:
            raise BadReport(
                f"profile {name!r} is not known to this log; see `standby auth list` for those that are"
            )
        return alias

    def compacted(self, session: str, count: int, *, agent: str = "main") -> None:
        """The session's context was compacted, for the `count`th time (PIN-9)."""
        with self.core.group() as transaction:
            alias = self.core.alias("session", session_name(agent, session), transaction)
            self.core.submit(f.CompactionCompleted(session=alias, count=count))

    def fallback_note(self, session: str, selected: str, *, agent: str = "main") -> FallbackNote | None:
        """What the user was last told of a fallback from `selected`, with the failed attempt's words where they
        are still kept (NOTE-7). Reads only; a session that the log does not know has none."""
        alias = self.core.known_alias("session", session_name(agent, session))
        known = self.core.view.sessions.get(alias) if alias is not None else None
        return None if known is None else fallback_note(known, selected, self._words_of)

    def _words_of(self, told: Announced) -> str | None:
        turn = self.core.view.turns.get(told.turn)
        if turn is None or told.attempt > turn.attempt:
            return None
        return self.core.text_of(turn.attempts[told.attempt - 1].text) or None

    # ---- profiles ----------------------------------------------------------------------------------------

    def observe(self, profiles: Profiles, order: Mapping[str, Sequence[str]] | None = None) -> bool:
        """Say which credentials there are; says whether that was news."""
        if isinstance(profiles, Mapping):
            profiles = [
                Profile(name=name, provider=provider) for provider, names in profiles.items() for name in names
            ]
        with self.core.group() as transaction:

            def alias(name: str) -> str:
                return self.core.alias("profile", name, transaction)

            observed = tuple(
                f.ObservedProfile(
                    alias=alias(profile.name),
                    provider=profile.provider,
                    kind=profile.kind,
                    expires_ms=profile.expires_ms,
                    usable=profile.usable,
                    inline=profile.inline,
                    agent=profile.agent,
                )
                for profile in profiles
            )
            stored = {
                provider: tuple(alias(name) for name in names) for provider, names in (order or {}).items()
            }
            return self.core.observe(observed, stored)

    def remove_profile(self, name: str, *, agent: str = "") -> None:
        """A saved credential was removed on purpose; the agent's selections of it go too (PIN-5).

        Args:
            agent: whose credential it was; "" for one that all agents share.
        """
        self.core.submit(f.CredentialRemoved(profile=self._profile_alias(name), agent=agent))

    def usage_stats(self, now_ms: int | None = None) -> dict[str, dict[str, int | str]]:
        """The documented `usageStats`, by profile name (COOL-7)."""
        now = self.core.clock() if now_ms is None else now_ms
        view = self.core.view
        stats = {
            self.core.name_of(alias): documented_stats(health, now, manages_itself(view, health))
            for alias, health in view.profiles.items()
        }
        return {name: entry for name, entry in sorted(stats.items()) if entry}

    # ---- the end -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the log back."""
        self.core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class TurnHandle:
    """A turn as its owner holds it. `commits` are those that were made through this handle."""

    def __init__(self, service: Standby, key: str, commit: Commit | None = None) -> None:
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

    def report(self, outcome: Outcome, *, attempt: int | None = None) -> Step:
        """Report how the call went; the newest attempt is meant unless another one is named.

        A report is never refused: one that comes late or doubled is kept, and moves nothing.
        """
        turn = self.state
        number = attempt if attempt is not None else turn.attempt
        asides: tuple[Aside, ...] = ()
        if isinstance(outcome, Failed):
            fact, asides = self._failure(turn, number, outcome)
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
        return self._submit(fact, asides)

    def _failure(self, turn: Turn, number: int, outcome: Failed) -> tuple[f.Fact, tuple[Aside, ...]]:
        core = self._service.core
        earlier = next((r for r in turn.reports if isinstance(r, f.CallFailed) and r.attempt == number), None)
        received = outcome.received_ms or outcome.reply.received_ms
        if not received:
            # The same report twice has to be the same fact, although a clock went on in between.
            received = earlier.received_ms if earlier else core.clock()
        tried = turn.attempts[number - 1] if 0 < number <= turn.attempt else None
        provider, _, model = tried.model.partition("/") if tried else ("", "", "")
        reply = msgspec.structs.replace(
            outcome.reply,
            provider=outcome.reply.provider or provider,
            model=outcome.reply.model or model,
            received_ms=received,
        )
        rows = core.view.policy_of(turn).rows
        extracted = extract(
            reply, limit_bytes=self._service.evidence_bytes, secrets=outcome.secrets, extra_rows=rows
        )
        evidence = extracted.evidence
        asides: tuple[Aside, ...] = ()
        if extracted.text and earlier and core.text_of(earlier.evidence.text) == extracted.text:
            evidence = msgspec.structs.replace(evidence, text=earlier.evidence.text)
        elif extracted.text:
            aside = core.text_aside(extracted.text, turn.request.session if turn.request else "")
            evidence, asides = msgspec.structs.replace(evidence, text=aside.alias), (aside,)
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
        return fact, asides

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

    def runtime_recovering(self, reply: Reply) -> None:
        """A call inside the attempt failed and the runtime recovers by itself (COOL-12, REC-16)."""
        turn = self.state
        fact, asides = self._failure(turn, turn.attempt, Failed(reply=reply))
        if isinstance(fact, f.CallFailed):
            self._submit(
                f.RuntimeRecovering(turn=self.id, attempt=turn.attempt, evidence=fact.evidence), asides
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

    def _submit(self, fact: f.Fact, asides: tuple[Aside, ...] = ()) -> Step:
        self._keep(self._service.core.submit(fact, asides))
        return self.step

    def _keep(self, commit: Commit | None) -> None:
        if commit is not None:
            self.commits.append(commit)


def session_name(agent: str, session: str) -> str:
    """The name under which a session of an agent is known to the log (PIN-7)."""
    return f"{agent}/{session}"

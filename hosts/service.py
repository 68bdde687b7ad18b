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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from standby.engine.decide.profiles import manages_itself
from standby.engine.decide.selection import configured
from standby.engine.texts.notices import FallbackNote, fallback_note
from standby.engine.texts.status import SessionStatus, status_of
from standby.events import facts as f
from standby.events.errors import BadInput, BadPolicy, BadReport
from standby.events.policy import Policy
from standby.events.store import Store
from standby.events.vocabulary import (
    ResetKind,
    SelectionSource,
    Surface,
    TurnKind,
)
from standby.hosts.core import Core, open_store, wall_clock
from standby.hosts.reports import Profile, Profiles
from standby.hosts.settings import Settings, load_settings
from standby.hosts.turns import TurnHandle
from standby.projections.health import documented_stats
from standby.projections.sessions import Announced

EVIDENCE_BYTES = 2048


def open(
    where: str | Path | Store,
    policy: "str | Path | Settings | Policy | None" = None,
    *,
    profiles: Profiles | None = None,
    instance: str | None = None,
    synchronous: str | None = None,
    clock: Callable[[], int] = wall_clock,
    entropy: Callable[[], int] | None = None,
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
    if not isinstance(settings, Settings | Policy | None):
        raise BadPolicy(
            f"a policy is the path of a settings file, a Policy or Settings, not {type(settings).__name__}"
        )
    if isinstance(settings, Policy):
        settings = Settings(policy=_checked(settings))
    if isinstance(where, str | Path):
        where = open_store(where, synchronous=synchronous or (settings.synchronous if settings else "full"))
    core = (
        Core(where, instance=instance, clock=clock)
        if entropy is None
        else Core(where, instance=instance, clock=clock, entropy=entropy)
    )
    service = Standby(core, settings)
    if profiles is not None:
        service.observe(profiles)
    return service


def _checked(policy: Policy) -> Policy:
    """A policy that was put together in code, held to its types and to references that name models.

    Raises:
        BadPolicy: a value cannot be one, or a name stands for no model.
    """
    try:
        plain = msgspec.convert(msgspec.to_builtins(policy), Policy)
        for agent in ("main", *plain.agents):
            configured(plain, agent)
            configured(plain, agent, image=True)
    except msgspec.ValidationError as error:
        raise BadPolicy(f"the policy cannot be one: {error}") from error
    except BadReport as error:
        raise BadPolicy(f"the policy names what is no model: {error}") from error
    return plain


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
    ) -> TurnHandle:
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

    def reopen(self, turn: str) -> TurnHandle:
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

    def status(self, session: str, *, agent: str = "main") -> SessionStatus:
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
            for provider, names in profiles.items():
                if isinstance(names, str):
                    raise BadInput(f"profiles of {provider} are a list of names; write [{names!r}]")
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


def session_name(agent: str, session: str) -> str:
    """The name under which a session of an agent is known to the log (PIN-7)."""
    return f"{agent}/{session}"

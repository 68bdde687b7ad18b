"""`standby session`: what a session has selected and pinned, and how a user changes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from standby.engine.decide.selection import resolve_model
from standby.events.errors import BadInput
from standby.events.policy import Policy
from standby.events.vocabulary import ResetKind
from standby.hosts.cli.options import AgentName, AsJson, LogPath, PolicyPath, open_log
from standby.hosts.cli.output import Out, remark
from standby.hosts.cli.reading import Names
from standby.hosts.cli.state import print_session, session_of
from standby.hosts.core import load_view, wall_clock
from standby.hosts.service import Standby, session_name
from standby.hosts.service import open as open_service

session_app = typer.Typer(
    help="Show a session, select its model, pin a profile, reset it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SessionName = Annotated[str, typer.Argument(metavar="SESSION", help="Name of the session.")]


@session_app.command("show")
def show(session: SessionName, log: LogPath = None, agent: AgentName = "main", as_json: AsJson = False) -> None:
    """Show what is selected, what answers instead, and pins."""
    _show(session, log, agent, as_json)


@session_app.command("select")
def select(
    session: SessionName,
    model: Annotated[str, typer.Argument(metavar="MODEL[@PROFILE]", help="As provider/model, or its alias.")],
    log: LogPath = None,
    policy: PolicyPath = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Select a model for the session. Another than the configured one is strict: no other answers (SEL-5)."""
    with _writing(log, policy) as service:
        name, profile = _split(service, model)
        in_force = service.core.view.policy()
        chosen = resolve_model(in_force, name, in_force.models.primary.partition("/")[0])
        new = service.core.known_alias("session", session_name(agent, session)) is None
        service.select_model(session, chosen, profile=profile, agent=agent)
    if new:
        remark(f"{session} is a new session")
    if chosen not in _named(in_force):
        remark(f"no policy names {chosen}; it is strict: no fallback")
    _show(session, log, agent, as_json)


@session_app.command("default")
def default(
    session: SessionName,
    log: LogPath = None,
    policy: PolicyPath = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Go back to the configured model (SEL-8)."""
    with _writing(log, policy, session, agent) as service:
        service.select_model(session, None, agent=agent)
    _show(session, log, agent, as_json)


@session_app.command("pin")
def pin(
    session: SessionName,
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="Name of an auth profile.")],
    log: LogPath = None,
    policy: PolicyPath = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Keep the session to one auth profile of its provider (PIN-4)."""
    with _writing(log, policy, session, agent) as service:
        service.pin(session, _provider_of(service, profile), profile, agent=agent)
    _show(session, log, agent, as_json)


@session_app.command("unpin")
def unpin(
    session: SessionName,
    provider: Annotated[
        str | None, typer.Argument(metavar="[PROVIDER]", help="Of this provider; every pin without it.")
    ] = None,
    log: LogPath = None,
    policy: PolicyPath = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Take pins away."""
    with _writing(log, policy, session, agent) as service:
        alias = service.core.known_alias("session", f"{agent}/{session}")
        found = service.core.view.sessions.get(alias) if alias else None
        pinned = sorted(found.pins) if found is not None else []
        if provider is not None and provider not in pinned:
            raise BadInput(
                f"session {session!r} has no pin for {provider!r}; it has pins for: "
                + (", ".join(pinned) or "none")
            )
        for one in [provider] if provider is not None else pinned:
            service.pin(session, one, None, agent=agent)
    _show(session, log, agent, as_json)


@session_app.command("reset")
def reset(
    session: SessionName,
    kind: Annotated[ResetKind, typer.Option("--kind", help="How the session begins anew.")] = ResetKind.RESET,
    log: LogPath = None,
    policy: PolicyPath = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Begin the session anew: automatic pins and overrides go, the user's choices stay (PIN-2, PIN-4)."""
    with _writing(log, policy, session, agent) as service:
        service.reset(session, kind=kind, agent=agent)
    _show(session, log, agent, as_json)


@contextmanager
def _writing(
    log: LogPath, policy: PolicyPath, session: str | None = None, agent: str = "main"
) -> Iterator[Standby]:
    """The log opened to write; it has to exist, so that a misspelt path makes no new one.

    A `session` has to exist, too, before anything is written. Raises BadInput.
    """
    store = open_log(log)
    try:
        if session is not None:
            _known(Names(store), session, agent)
        with open_service(store, policy) as service:
            yield service
    finally:
        store.close()


def _show(session: str, log: LogPath, agent: str, as_json: bool) -> None:
    store = open_log(log)
    try:
        names = Names(store)
        now = wall_clock()
        value = session_of(load_view(store), names, names.alias_of("session", session, agent), now)
        if as_json:
            Out().json(value)
        else:
            print_session(Out(), value, now)
    finally:
        store.close()


def _known(names: Names, session: str, agent: str) -> None:
    """Refuse a session that the log does not know under exactly this name."""
    alias = names.alias_of("session", session, agent)
    name = names.get(alias)
    if name is None:
        raise BadInput(f"the name of session {session} was erased; it cannot be changed any more")
    if name != session_name(agent, session):
        of, _, plain = name.partition("/")
        raise BadInput(f"that is session {plain!r} of agent {of!r}; name it {plain!r} with --agent {of}")


def _named(policy: Policy) -> set[str]:
    """Every model that a policy names."""
    chains = [policy.models, policy.images, *(agent.model for agent in policy.agents.values())]
    named = {model for chain in chains for model in (chain.primary, *(chain.fallbacks or ()))}
    named.update(agent.remembered for agent in policy.agents.values())
    return named.union(policy.aliases.values(), policy.windows, policy.context_tokens, policy.prices)


def _split(service: Standby, text: str) -> tuple[str, str]:
    """Model and profile. Both may hold an @ themselves, so the part after one has to be a known profile."""
    for at, letter in enumerate(text):
        if letter == "@" and service.core.known_alias("profile", text[at + 1 :]) is not None:
            return text[:at], text[at + 1 :]
    model, _, rest = text.partition("@")
    if ":" in rest:
        raise BadInput(f"profile {rest!r} is not known to this log; `standby status` shows those that are")
    return (text, "") if rest or "@" not in text else (model, "")


def _provider_of(service: Standby, profile: str) -> str:
    alias = service.core.known_alias("profile", profile)
    health = service.core.view.profiles.get(alias) if alias else None
    if health is None or health.observed is None:
        known = [
            service.core.name_of(one)
            for one, other in service.core.view.profiles.items()
            if other.observed is not None
        ]
        raise BadInput(
            f"profile {profile!r} is not known to this log; it knows: {', '.join(sorted(known)) or 'none'}"
        )
    return health.observed.provider

"""`standby auth`: the credentials of an agent. No key is ever an argument, where a shell would remember it."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from standby.events.errors import BadInput
from standby.events.facts import CredentialRemoved
from standby.events.vocabulary import CredentialKind
from standby.hosts.cli.options import AgentName, AsJson, LogPath, StatePath, decoded, log_path, open_log
from standby.hosts.cli.output import Out, local_time
from standby.hosts.cli.reading import timestamp_ms
from standby.hosts.core import Core, wall_clock
from standby.hosts.credential_values import Credential, api_key, token
from standby.hosts.credentials import CredentialInfo, CredentialStore

auth_app = typer.Typer(
    help="Add, list, remove and order credentials.", no_args_is_help=True, rich_markup_mode=None
)
order_app = typer.Typer(
    help="The order in which a provider's credentials are used.", no_args_is_help=True, rich_markup_mode=None
)
auth_app.add_typer(order_app, name="order")

ProfileName = Annotated[str, typer.Argument(metavar="PROFILE", help="As provider:name.")]
ProviderName = Annotated[str, typer.Argument(metavar="PROVIDER", help="Such as openai.")]


@contextmanager
def _credentials(agent: str, state: Path | None) -> Iterator[CredentialStore]:
    store = CredentialStore.for_agent(agent, root=state)
    try:
        yield store
    finally:
        store.close()


def _secret(key_env: str | None) -> str:
    """The key, or the reference to the variable that holds it: from --key-env, a pipe, or a hidden prompt."""
    if key_env is not None:
        return f"env:{key_env}"
    if not _on_terminal():
        line = sys.stdin.buffer.readline() if sys.stdin is not None else b""
        text = decoded(line, "the key on standard input")
        if not text.strip():
            raise BadInput("no key came on standard input; pipe it in, or name its variable with --key-env")
        return text
    try:
        return getpass.getpass("Key (it is not shown): ")
    except EOFError:
        raise BadInput("no key was given; nothing was stored") from None


def _on_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@auth_app.command("add")
def add(
    provider: ProviderName,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the account; `default` if not given.")
    ] = None,
    kind: Annotated[
        CredentialKind, typer.Option("--kind", help="api_key, or token for a static bearer token.")
    ] = CredentialKind.API_KEY,
    key_env: Annotated[
        str | None,
        typer.Option(
            "--key-env", metavar="NAME", help="Refer to this environment variable; the key is not stored."
        ),
    ] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="When a token expires.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the one of this name.")] = False,
    agent: AgentName = "main",
    state: StatePath = None,
    as_json: AsJson = False,
) -> None:
    """Keep a credential. The key comes from a variable, from standard input, or from a hidden prompt."""
    if kind is CredentialKind.OAUTH:
        raise BadInput("an OAuth login is made by a host that can log in; add an api_key or a token here")
    if expires is not None and kind is not CredentialKind.TOKEN:
        raise BadInput("--expires is for tokens; an API key does not expire")
    credential: Credential
    if kind is CredentialKind.TOKEN:
        until = None if expires is None else timestamp_ms(expires)
        credential = token(provider, _secret(key_env), until)
    else:
        credential = api_key(provider, _secret(key_env))
    with _credentials(agent, state) as store:
        profile = store.add(credential, name=name, replace=replace)
        where = str(store.path)
    if as_json:
        Out().json({"profile": profile, "store": where})
    else:
        Out().line(f"added {profile} to {where}")


@auth_app.command("list")
def list_(
    provider: Annotated[str | None, typer.Argument(metavar="[PROVIDER]")] = None,
    agent: AgentName = "main",
    state: StatePath = None,
    as_json: AsJson = False,
) -> None:
    """List credentials, never what they hold."""
    with _credentials(agent, state) as store:
        found = store.list(provider)
        orders = {one: store.order(one) for one in sorted({info.provider for info in found})}
        others = [] if found else sorted({info.provider for info in store.list()})
        where = str(store.path)
    out = Out()
    if as_json:
        stored = {one: list(order) for one, order in orders.items() if order is not None}
        out.json({"store": where, "credentials": [_value(info) for info in found], "order": stored})
        return
    out.line("store     ", where)
    if others:
        out.line(f"no credentials for {provider}; there are some for: {', '.join(others)}")
        return
    if not found:
        out.line("no credentials yet; `standby auth add PROVIDER` adds one")
        return
    rows = [(info.id, info.kind.value, info.source, _condition(info)) for info in found]
    out.table(rows, head=("profile", "kind", "source", "state"))
    for one, order in orders.items():
        if order is not None:
            out.line(f"order of {one}: {', '.join(order)}")


def _condition(info: CredentialInfo) -> str:
    if not info.usable:
        return "its variable is not set"
    if info.expires_ms is None:
        return "usable"
    over = "expired" if info.expires_ms <= wall_clock() else "usable, expires"
    return f"{over} {local_time(info.expires_ms)}"


def _value(info: CredentialInfo) -> dict[str, Any]:
    return {
        "profile": info.id,
        "provider": info.provider,
        "kind": info.kind,
        "email": info.email,
        "expires_ms": info.expires_ms,
        "source": info.source,
        "usable": info.usable,
        "generation": info.generation,
    }


@auth_app.command("remove")
def remove(
    profile: ProfileName,
    log: LogPath = None,
    agent: AgentName = "main",
    state: StatePath = None,
    as_json: AsJson = False,
) -> None:
    """Erase a credential; if there is a log, it learns of it and the selections of its account go (PIN-5)."""
    path = log_path(log)
    # A log that cannot be written is found out before the credential is gone.
    core = Core(open_log(path)) if path.exists() else None
    try:
        with _credentials(agent, state) as store:
            store.remove(profile)
        reported = core is not None and _report_removed(core, profile, agent)
    finally:
        if core is not None:
            core.close()
    if as_json:
        Out().json({"removed": profile, "reported": reported, "log": str(path) if reported else None})
    else:
        told = f"; {path} was told" if reported else ""
        Out().line(f"removed {profile}{told}")


def _report_removed(core: Core, profile: str, agent: str) -> bool:
    alias = core.known_alias("profile", profile)
    if alias is None:
        return False
    return core.submit(CredentialRemoved(profile=alias, agent=agent)) is not None


@order_app.command("set")
def order_set(
    provider: ProviderName,
    profiles: Annotated[list[str], typer.Argument(metavar="PROFILE...", help="First is used first.")],
    agent: AgentName = "main",
    state: StatePath = None,
    as_json: AsJson = False,
) -> None:
    """Store an explicit order (ORD-9); it goes before the configured one."""
    with _credentials(agent, state) as store:
        store.set_order(provider, profiles)
    _show_order(provider, agent, state, as_json)


@order_app.command("show")
def order_show(
    provider: ProviderName, agent: AgentName = "main", state: StatePath = None, as_json: AsJson = False
) -> None:
    """Show the stored order of a provider."""
    _show_order(provider, agent, state, as_json)


@order_app.command("clear")
def order_clear(
    provider: ProviderName, agent: AgentName = "main", state: StatePath = None, as_json: AsJson = False
) -> None:
    """Forget the stored order; the configured one, or use in turn, counts again."""
    with _credentials(agent, state) as store:
        store.clear_order(provider)
    _show_order(provider, agent, state, as_json)


def _show_order(provider: str, agent: str, state: Path | None, as_json: bool) -> None:
    with _credentials(agent, state) as store:
        order = store.order(provider)
    if as_json:
        Out().json({"provider": provider, "order": None if order is None else list(order)})
    elif order is None:
        Out().line(f"no order is stored for {provider}")
    else:
        Out().line(f"order of {provider}: {', '.join(order)}")

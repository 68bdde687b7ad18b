"""`standby erase`: names and texts of a session or profile go; what was decided stays provable."""

from typing import Annotated

import typer

from standby.engine.decide.profiles import manages_itself
from standby.engine.view import View
from standby.events.errors import BadInput
from standby.events.vocabulary import BlockKind
from standby.hosts.cli.options import AgentName, AsJson, LogPath, open_log
from standby.hosts.cli.output import Out, local_time, remark
from standby.hosts.cli.reading import Names
from standby.hosts.core import Core, load_view, wall_clock
from standby.projections.health import enforced


def erase_command(
    session: Annotated[str | None, typer.Option("--session", help="Of this session.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Of this auth profile.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also of a profile that is blocked; its blocks go with the name.")
    ] = False,
    agent: AgentName = "main",
    log: LogPath = None,
    as_json: AsJson = False,
) -> None:
    """Erase names and texts for good. The log still verifies; commits whose text went are not provable."""
    if (session is None) == (profile is None):
        raise BadInput("say whose names and texts are to go: --session NAME or --profile NAME, one of them")
    kind, name = ("session", session) if session is not None else ("profile", profile or "")
    store = open_log(log)
    try:
        names = Names(store)
        alias = names.alias_of(kind, name, agent)
        known = names.get(alias)
        if known is None:
            raise BadInput(f"the name behind {name} was erased before")
        if kind == "profile":
            _warn_of_blocks(load_view(store), alias, known, force)
        with Core(store) as core:
            gone = core.erase(kind, known)
            position = core.view.position
            scrubbed = store.scrub()
    finally:
        store.close()
    if not scrubbed:
        remark(
            f"other processes are still reading {store.path}: what was erased can be found in its -wal file "
            "until the next checkpoint after they are done"
        )
    if as_json:
        Out().json({"kind": kind, "erased": gone, "position": position, "scrubbed": scrubbed})
    else:
        entries = "1 entry" if gone == 1 else f"{gone} entries"
        Out().line(f"erased {entries} of the side table; recorded at position {position}")


def _warn_of_blocks(view: View, alias: str, name: str, force: bool) -> None:
    """Say what a profile loses with its name: health belongs to the alias, and the next use gets a new one."""
    health = view.profiles.get(alias)
    if health is None:
        return
    now = wall_clock()
    blocks = [entry for entry in enforced(health, manages_itself(view, health)) if entry.until_ms > now]
    if not blocks:
        return
    longest = max(blocks, key=lambda entry: entry.until_ms)
    how = "disabled" if longest.kind is BlockKind.DISABLED else "blocked"
    scope = f" for {longest.model}" if longest.model else ""
    warning = (
        f"{name} is {how}{scope} until {local_time(longest.until_ms)} ({longest.reason.value}); "
        "after this it counts as a new profile"
    )
    if not force:
        raise BadInput(f"{warning}, and its blocks are gone with the name; erase it all the same with --force")
    remark(warning)

"""`standby erase`: names and texts of a session or profile go; what was decided stays provable."""

from typing import Annotated

import typer

from standby.events.errors import BadInput
from standby.hosts.cli.options import AgentName, AsJson, LogPath, open_log
from standby.hosts.cli.output import Out
from standby.hosts.cli.reading import Names
from standby.hosts.core import Core

__all__ = ["erase_command"]


def erase_command(
    session: Annotated[str | None, typer.Option("--session", help="Of this session.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Of this auth profile.")] = None,
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
        known = names.get(names.alias_of(kind, name, agent))
        if known is None:
            raise BadInput(f"the name behind {name} was erased before")
        with Core(store) as core:
            gone = core.erase(kind, known)
            position = core.view.position
    finally:
        store.close()
    if as_json:
        Out().json({"kind": kind, "erased": gone, "position": position})
    else:
        entries = "1 entry" if gone == 1 else f"{gone} entries"
        Out().line(f"erased {entries} of the side table; recorded at position {position}")

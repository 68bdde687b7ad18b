"""`standby erase`: names and texts of a session or profile go; what was decided stays provable."""

from typing import Annotated

import typer

from standby.events.errors import BadInput
from standby.hosts.cli.options import AgentName, AsJson, LogPath, open_log
from standby.hosts.cli.output import Out
from standby.hosts.core import Core
from standby.hosts.service import session_name

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
    kind, name = (
        ("session", session_name(agent, session)) if session is not None else ("profile", profile or "")
    )
    with Core(open_log(log)) as core:
        gone = core.erase(kind, name)
        position = core.view.position
    if as_json:
        Out().json({"kind": kind, "erased": gone, "position": position})
    else:
        entries = "1 entry" if gone == 1 else f"{gone} entries"
        Out().line(f"erased {entries} of the side table; recorded at position {position}")

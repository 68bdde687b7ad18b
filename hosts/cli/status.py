"""`standby status`: what is selected, what answers instead and why, what is blocked and until when."""

from typing import Annotated

import typer

from standby.hosts.cli.options import AgentName, AsJson, LogPath, open_log
from standby.hosts.cli.output import Out
from standby.hosts.cli.reading import Names
from standby.hosts.cli.state import print_state, state_of
from standby.hosts.core import load_view, wall_clock


def status_command(
    log: LogPath = None,
    session: Annotated[str | None, typer.Option("--session", help="Of this session alone.")] = None,
    agent: AgentName = "main",
    as_json: AsJson = False,
) -> None:
    """Show sessions, profiles, blocks, unfinished turns, the policy in force and the head of the log."""
    store = open_log(log)
    try:
        names = Names(store)
        alias = None if session is None else names.alias_of("session", session, agent)
        now = wall_clock()
        state = {"log": str(store.path), **state_of(load_view(store), names, now, alias)}
        out = Out()
        if as_json:
            out.json(state)
        else:
            out.line("log       ", str(store.path))
            print_state(out, state, now)
    finally:
        store.close()

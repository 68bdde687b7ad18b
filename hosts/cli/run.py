"""The command `standby run`: one turn, or a conversation, against configured providers.

What does the work is imported when the command runs (`talk`), so that other commands start without an HTTP
client.
"""

import sys
from typing import Annotated

import typer

from standby.events.errors import BadInput
from standby.hosts.cli.options import AgentName, AsJson, LogPath, PolicyPath, StatePath, decoded, log_path
from standby.hosts.settings.validators import LONGEST_MS

TIMEOUT_MOST_S = LONGEST_MS / 1000


def run_command(
    prompt: Annotated[
        str | None, typer.Argument(help="What to ask. Without it: a conversation, or what is piped in.")
    ] = None,
    policy: PolicyPath = None,
    log: LogPath = None,
    state: StatePath = None,
    session: Annotated[str, typer.Option("--session", help="The session that the turn belongs to.")] = "cli",
    agent: AgentName = "main",
    model: Annotated[
        str | None, typer.Option("--model", help="A model for these turns only, as provider/model.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="Instructions that go before all.")] = None,
    timeout_s: Annotated[
        float | None,
        typer.Option("--timeout", min=0.001, max=TIMEOUT_MOST_S, help="Budget of each attempt, in seconds."),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(help="Show the answer as it comes in. What broke off after that is not asked for again."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Ask a model, with everything that standby does when it fails. Exit 0: answered, 1: not, 2: bad input."""
    from standby.hosts.cli.chat import Manner, talking

    manner = Manner(
        session=session,
        agent=agent,
        model=model or "",
        system=system,
        timeout_ms=None if timeout_s is None else round(timeout_s * 1000),
        stream=stream and not as_json,
        as_json=as_json,
    )
    with talking(policy, log_path(log), state, manner) as talk:
        if prompt is None and sys.stdin.isatty():
            talk.loop()
            return
        text = decoded(sys.stdin.buffer.read(), "what is piped in") if prompt is None else prompt
        if not text.strip():
            raise BadInput("there is nothing to ask; give a prompt, or pipe one in")
        answered = talk.turn(text)
    if not answered:
        raise typer.Exit(1)

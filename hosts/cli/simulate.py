"""`standby simulate`: play a scenario and print what was decided, by which rules."""

from pathlib import Path
from typing import Annotated

import typer


def simulate_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Scenario files, TOML or JSON; a line for each of several."),
    ],
    log: Annotated[Path | None, typer.Option("--log", help="Keep the log here; the file must be new.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only outcomes, no decisions.")] = False,
) -> None:
    """Play a scenario on a virtual clock: the real engine, log and runner loop, without network or sleeping.

    Exit status 1 when something that the scenario expects did not happen, 2 when it cannot be played.
    """
    from standby.hosts.cli.playback import simulate

    simulate(files, log, as_json=as_json, quiet=quiet)

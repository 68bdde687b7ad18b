"""The command `standby demo`."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from standby.events.errors import BadInput
from standby.hosts.cli.options import AsJson


def demo_command(
    log: Annotated[
        Path | None, typer.Option("--log", help="Where the log goes; by default a new temporary folder.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option("--script", help="What the providers reply, in place of the demo's own.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Watch a conversation survive its providers: about 15 seconds, no network, nothing to set up."""
    # Imported here, so that other commands start without an HTTP client.
    from standby.hosts.demo.play import play
    from standby.hosts.demo.steps_shown import Stage
    from standby.hosts.scripted.script import load

    replies = None if script is None else load(script)
    if log is not None and log.exists():
        raise BadInput(f"{log} exists already; the demo begins a log of its own, so name another path")
    where = log or Path(tempfile.mkdtemp(prefix="standby-demo-")) / "demo.db"
    with Stage(as_json=as_json) as stage:
        report = play(where, stage, replies)
        if not as_json:
            stage.remark("", f"Look closer: standby log --log {where}")
    if not report.holds:
        raise typer.Exit(2)

"""The command line, `standby`. Everything heavy is imported when a command runs, not before."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 2 refused or misused, 130 interrupted; 1 when a reader went away."""
    from standby.hosts.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a letter shows its number; it is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    status: object = 0
    try:
        app(arguments, prog_name="standby")
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit and would complain; give it somewhere to flush to.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = status or 1
    sys.exit(status)  # type: ignore[arg-type]  # what SystemExit carried may go into it again

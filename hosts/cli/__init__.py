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
    _open_closed_streams()
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
    except Exception as error:
        if os.environ.get("STANDBY_DEBUG"):
            raise
        sys.stderr.write(
            f"standby: a fault in standby itself ({type(error).__name__}); STANDBY_DEBUG=1 shows it\n"
        )
        status = 2
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at exit and would complain; give it somewhere to flush to.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"standby: the output cannot be written: {error.strerror}\n")
            status = 2
        status = status or 1
    sys.exit(status)  # type: ignore[arg-type]  # what SystemExit carried may go into it again


def _open_closed_streams() -> None:
    """Somewhere to go for a stream that the caller closed (`>&-`); Python has None for it then.

    Their descriptors are filled, too: otherwise the next file that is opened would become standard output.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # open for as long as the process is
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open for as long as the process is
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open for as long as the process is

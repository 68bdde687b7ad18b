"""All commands, and the one boundary at which whatever standby refuses becomes a message and exit status 2."""

import errno
import os
import sqlite3
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from standby.events.errors import StandbyError
from standby.hosts.cli.auth import auth_app
from standby.hosts.cli.classify import classify_command
from standby.hosts.cli.erase import erase_command
from standby.hosts.cli.explain import explain_command
from standby.hosts.cli.export import export_command
from standby.hosts.cli.log import log_command
from standby.hosts.cli.output import remark
from standby.hosts.cli.proof import head_command, verify_command
from standby.hosts.cli.replay import replay_command
from standby.hosts.cli.run import run_command
from standby.hosts.cli.session import session_app
from standby.hosts.cli.simulate import simulate_command
from standby.hosts.cli.status import status_command
from standby.hosts.demo import demo_command

_UNFORESEEN: tuple[tuple[type[Exception], str], ...] = (
    (UnicodeError, "a text is not valid Unicode"),
    (OverflowError, "a number is too large"),
    (RecursionError, "something is nested too deeply"),
    (ValueError, "a value is impossible"),
)
"""What bad input comes to where no check named it before. The error is not quoted: it might quote a secret."""


class Boundary(TyperGroup):
    """Runs a command; errors that have a message for the user are shown as that message."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError:
                shown = argument.encode("utf-8", "backslashreplace").decode()[:60]
                remark(
                    f"standby: the argument {shown} is not {sys.getfilesystemencoding()} text; "
                    "give it as UTF-8, in a locale that has it (such as LC_ALL=C.UTF-8)"
                )
                raise typer.Exit(2) from None
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except StandbyError as error:
            remark(f"standby: {error}")
        except sqlite3.Error as error:
            remark(f"standby: the file cannot be used: {error}")
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            remark(f"standby: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        except (ValueError, OverflowError, RecursionError) as error:
            if os.environ.get("STANDBY_DEBUG"):
                raise
            what = next(words for kind, words in _UNFORESEEN if isinstance(error, kind))
            remark(
                f"standby {ctx.invoked_subcommand}: {what}; check what was given to this command and the files "
                "that it names (STANDBY_DEBUG=1 shows where it went wrong)"
            )
        raise typer.Exit(2)


app = typer.Typer(
    cls=Boundary,
    help="Decides what to do when a model call fails, writes it down, and proves it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"standby {version('standby')}")
    except PackageNotFoundError:
        typer.echo("standby, not installed as a package: its version is not known")
    raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_COMMANDS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("demo", demo_command, "Watch a conversation survive its providers."),
    ("run", run_command, "Ask a model, with everything that standby does."),
    ("simulate", simulate_command, "Play a scenario, without a network."),
    ("status", status_command, "What is selected, blocked, unfinished."),
    ("log", log_command, "The commits, filtered, as they come."),
    ("explain", explain_command, "Why this model answered that turn."),
    ("verify", verify_command, "Prove the log from its facts."),
    ("head", head_command, "Where the log ends, to keep elsewhere."),
    ("replay", replay_command, "The state anew, at any position."),
    ("export", export_command, "The log as JSON lines or tables."),
    ("erase", erase_command, "Delete names and texts for good."),
    ("classify", classify_command, "What a provider's failure means."),
)

for name, command, line in _COMMANDS:
    app.command(name, short_help=line)(command)
app.add_typer(session_app, name="session", short_help="Select models, pin profiles, reset.")
app.add_typer(auth_app, name="auth", short_help="Add, list, remove, order credentials.")

"""Options that commands share, and the paths that they stand for."""

import os
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

from standby.events.errors import BadInput
from standby.events.sqlite import SQLiteStore
from standby.events.store import Head
from standby.hosts.core import open_store

LogPath = Annotated[
    Path | None,
    typer.Option("--log", envvar="STANDBY_LOG", help="The log; by default one in the user's data folder."),
]
PolicyPath = Annotated[
    Path | None, typer.Option("--policy", envvar="STANDBY_POLICY", help="A settings file (TOML).")
]
StatePath = Annotated[
    Path | None,
    typer.Option(
        "--state", envvar="STANDBY_STATE", help="Folder of credentials; by default the user's data folder."
    ),
]
AgentName = Annotated[str, typer.Option("--agent", help="The agent whose session or credential it is.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def log_path(given: Path | None) -> Path:
    """The log that a command works on."""
    if given is not None:
        return given
    return Path(platformdirs.user_data_dir("standby", appauthor=False)) / "standby.db"


def open_log(given: Path | None) -> SQLiteStore:
    """Open a log that exists, to read it.

    Raises:
        BadInput: there is none at this path.
        ForeignFile, LogTooNew, DamagedLog: it is not a log that this version can use.
    """
    path = log_path(given)
    if str(path) == ":memory:":
        raise BadInput("a log in memory ends with its process; name the file of a log")
    if not path.exists():
        raise BadInput(f"there is no log at {path}; name one with --log or STANDBY_LOG")
    if path.is_file() and not os.access(path, os.R_OK):
        raise BadInput(f"the log {path} may not be read by this user")
    store = open_store(path, create=False)
    assert isinstance(store, SQLiteStore)
    return store


def decoded(raw: bytes, what: str) -> str:
    """What came in as bytes, as text, whatever the locale says.

    Raises:
        BadInput: it is not UTF-8; the message does not quote it, since it may be a key.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"at byte {error.start + 1}"
    raise BadInput(f"{what} is not UTF-8 text ({place}); send it as UTF-8")


def parse_position(text: str) -> int | None:
    """A position, or None when the text is none; as many digits as epoch milliseconds have are none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def parse_head(text: str) -> Head:
    """`POSITION:HASH`, as `standby head` prints it."""
    position, _, digest = text.strip().partition(":")
    at = parse_position(position)
    try:
        found = bytes.fromhex(digest)
    except ValueError:
        found = b""
    if at is None or len(found) != 32:
        raise BadInput(f"{text!r} is no head; give POSITION:HASH as `standby head` prints it")
    return Head(at, found)

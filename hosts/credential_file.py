"""The file below a credential store: private to its owner, marked as ours, with a migrated schema."""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import sqlite_utils
from sqlite_utils.migrations import Migrations

from standby.events.errors import BadInput

# Marks the file as ours ("SBcr"), so that no other database is written into by mistake.
_APPLICATION_ID: Final = 0x53426372
_BUSY_S: Final = 5.0
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

_migrations = Migrations("standby-credentials")


@_migrations(name="tables")
def _create_tables(db: sqlite_utils.Database) -> None:
    credentials: Any = db["credentials"]
    credentials.create(
        {
            "id": str,
            "provider": str,
            "kind": str,
            "secret": str,
            "refresh": str,
            "expires_ms": int,
            "email": str,
            "project_id": str,
            "enterprise_url": str,
            "generation": int,
        },
        pk="id",
        not_null={"provider", "kind", "secret", "generation"},
    )
    orders: Any = db["orders"]
    orders.create({"provider": str, "ids": str}, pk="provider", not_null={"ids"})
    # Apart from the credentials: the count must not start again when one is removed and added anew.
    generations: Any = db["generations"]
    generations.create({"id": str, "last": int}, pk="id", not_null={"last"})


def open_private(path: Path, *, repair: bool) -> sqlite3.Connection:
    """Open or create the file with mode 0600; BadInput when it cannot be used as it is."""
    _make_private(path, repair)
    # Autocommit: transactions are begun by `writing` only, and with the write lock.
    connection = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
    try:
        _prepare(connection, path)
    except sqlite3.OperationalError as fault:
        connection.close()
        raise BadInput(f"The credential file {path} cannot be used now: {fault}.") from fault
    except sqlite3.DatabaseError as fault:
        connection.close()
        raise BadInput(f"{path} is no credential file of standby ({fault}); name another path.") from fault
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that holds the write lock from its beginning; BadInput if it cannot be had."""
    try:
        connection.execute("begin immediate")
    except sqlite3.OperationalError as fault:
        raise BadInput(f"The credential file cannot be written now: {fault}. Try again.") from fault
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _make_private(path: Path, repair: bool) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The mode is set as the file comes into being: there is no moment at which others can open it.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        found = path.stat()
    except OSError as fault:
        raise BadInput(f"The credential file {path} cannot be opened: {fault.strerror}.") from fault
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"The credential file {path} is not an ordinary file.")
    # Elsewhere (Windows) these bits say nothing about who may read.
    if os.name != "posix" or not found.st_mode & _OTHERS:
        return
    if not repair:
        raise BadInput(
            f"The credential file {path} has mode {stat.S_IMODE(found.st_mode):04o}, so that others may read "
            f"it: run chmod 600 on it (or open it with repair), and replace its secrets if others could log in."
        )
    path.chmod(0o600)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # What is removed is overwritten, not only forgotten.
    connection.execute("pragma secure_delete = on")
    with writing(connection):
        (mark,) = connection.execute("pragma application_id").fetchone()
        (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
        if mark != _APPLICATION_ID and (mark != 0 or tables != 0):
            raise BadInput(f"{path} is another program's database, no credential file; name another path.")
        connection.execute(f"pragma application_id = {_APPLICATION_ID}")
        db = sqlite_utils.Database(connection, execute_plugins=False)
        known = {"tables"}
        newer = [m.name for m in _migrations.applied(db) if m.name not in known]
        if newer:
            raise BadInput(
                f"The credential file {path} was written by a newer version of standby "
                f"(it knows {', '.join(newer)}); it was not touched. Update standby."
            )
        _migrations.apply(db)

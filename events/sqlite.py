"""The log in one SQLite file: one row per commit, WAL, `synchronous=FULL` by default.

A settled WAL commit costs one fsync and little else. A waiting writer polls with a short jitter of its own,
since SQLite's back-off can sleep for hundreds of milliseconds. The file carries an application id and a format
number in its header, so that foreign and newer files are told apart before anything is touched. Schema and
migrations are made with sqlite-utils, which is only loaded when a file is created or migrated.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock

from standby.events.codec import link
from standby.events.errors import BadInput, DamagedLog, ForeignFile, LogBusy, LogError, LogTooNew, LogTooOld
from standby.events.names import SideEntry
from standby.events.store import START, CheckpointRow, Head, StoredRow

APPLICATION_ID = 0x53544259
"""`STBY` in the header of the file."""

FORMAT = 2
"""Number of the file format (`user_version`)."""

_MAGIC = b"SQLite format 3\0"
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
_POLL_S = (0.0002, 0.002)
_KEEP_CHECKPOINTS = 2
# Cast, so that a value of another type in a file that was tampered with is bytes whose hash does not fit.
_TAIL = (
    "SELECT position, CAST(body AS BLOB), CAST(hash AS BLOB) FROM commits WHERE position > ? ORDER BY position"
)
_SIDE_ENTRY = "SELECT alias, kind, subject, salt, text FROM side_entries"


_OPENING = RLock()
"""One log is opened at a time, so that no header is read while another thread is about to use the file."""


class _SQLiteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._head: Head | None = None

    def tail(self, after: int) -> Iterator[StoredRow]:
        return map(
            StoredRow._make,
            self._connection.execute(
                _TAIL,
                (after,),
            ),
        )

    def append(self, body: bytes) -> StoredRow:
        last = self._head or _head(self._connection)
        row = StoredRow(last.position + 1, body, link(last.hash, body))
        self._connection.execute("INSERT INTO commits VALUES (?, ?, ?)", row)
        self._head = Head(row.position, row.hash)
        return row

    def alias(self, kind: str, text: str) -> str | None:
        found = self._connection.execute(
            "SELECT alias FROM side_entries WHERE kind = ? AND text = ? AND kind <> 'text'", (kind, text)
        ).fetchone()
        return None if found is None else str(found[0])

    def put_side_entry(self, side_entry: SideEntry) -> None:
        self._connection.execute("INSERT OR REPLACE INTO side_entries VALUES (?, ?, ?, ?, ?)", side_entry)

    def erase(self, subject: str) -> int:
        return self._connection.execute("DELETE FROM side_entries WHERE subject = ?", (subject,)).rowcount


class SQLiteStore:
    """The store port over one SQLite file.

    Args:
        path: the file; it is created unless `create` is False.
        synchronous: "full" survives a power cut, "normal" may lose the last commits in one, never corrupt.
        timeout_s: how long a writer waits for the lock.

    Raises:
        ForeignFile, LogTooNew, LogTooOld, DamagedLog: the file is no log that this version can use; it was not
            touched.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: str = "full",
        timeout_s: float = 30.0,
        create: bool = True,
    ) -> None:
        if synchronous not in _SYNCHRONOUS:
            raise BadInput(f"synchronous is {synchronous!r}; say one of: {', '.join(_SYNCHRONOUS)}")
        self.path = Path(path)
        self._timeout_s = timeout_s
        self._lock = RLock()
        with _OPENING:
            self._open(create, synchronous, timeout_s)

    def _open(self, create: bool, synchronous: str, timeout_s: float) -> None:
        fresh = _inspect(self.path)
        if fresh and not create:
            raise BadInput(f"{self.path} does not exist; check the path of the log")
        try:
            self._connection = _connect(self.path, "rwc" if fresh else "rw", timeout_s)
        except sqlite3.Error as error:
            raise LogError(f"{self.path} cannot be opened for writing: {error}") from error
        try:
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                _create(self._connection, self.path)
            elif version != FORMAT:
                raise _other_format(self.path, version)
            _refuse_triggers(self._connection, self.path)
            _write_ahead(self._connection, timeout_s)
            self._connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[synchronous]}")
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA secure_delete = ON")
            found = self.path.stat()
            self._file = (found.st_dev, found.st_ino)
        except sqlite3.Error as error:
            self._connection.close()
            raise DamagedLog(f"{self.path} cannot be opened as a log: {error}") from error
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[_SQLiteTransaction]:
        with self._lock:
            self._begin()
            try:
                with _clear_errors(self.path):
                    yield _SQLiteTransaction(self._connection)
                    self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _begin(self) -> None:
        if not self._still_there():
            raise LogError(f"{self.path} was moved or deleted while it was open; nothing is written any more")
        give_up = time.monotonic() + self._timeout_s
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise LogError(f"{self.path} cannot be written: {error}") from error
                if time.monotonic() >= give_up:
                    raise LogBusy(
                        f"{self.path} was locked by another writer for {self._timeout_s:g} s; "
                        "see which process holds it, or allow a longer timeout_s"
                    ) from error
                time.sleep(random.uniform(*_POLL_S))

    def _still_there(self) -> bool:
        """Whether the path still names the file that this store writes to."""
        try:
            found = self.path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def head(self) -> Head:
        with self._lock, _clear_errors(self.path):
            return _head(self._connection)

    def read(self, after: int = 0) -> Iterator[StoredRow]:
        # A connection of its own: on the writing one a transaction that may still be rolled back would show.
        position = after
        try:
            connection = _connect(self.path, "ro")
        except sqlite3.Error as error:
            raise LogError(f"{self.path} cannot be opened: {error}; was it moved or deleted?") from error
        try:
            for row in connection.execute(
                _TAIL,
                (after,),
            ):
                position = row[0]
                yield StoredRow._make(row)
        except sqlite3.DatabaseError as error:
            raise DamagedLog(
                f"{self.path} cannot be read after position {position}: {error}; "
                "restore it from a copy, what stands before is intact as far as verify says so",
                position + 1,
            ) from error
        finally:
            connection.close()

    def side_entry(self, alias: str) -> SideEntry | None:
        with self._lock, _clear_errors(self.path):
            found = self._connection.execute(f"{_SIDE_ENTRY} WHERE alias = ?", (alias,)).fetchone()
        return None if found is None else SideEntry._make(found)

    def side_entries(self) -> Iterator[SideEntry]:
        with self._lock, _clear_errors(self.path):
            found = self._connection.execute(f"{_SIDE_ENTRY} ORDER BY alias").fetchall()
        return map(SideEntry._make, found)

    def checkpoint(self) -> CheckpointRow | None:
        with self._lock, _clear_errors(self.path):
            found = self._connection.execute(
                "SELECT position, hash, version, body FROM checkpoints ORDER BY position DESC LIMIT 1"
            ).fetchone()
        return None if found is None else CheckpointRow._make(found)

    def save_checkpoint(self, checkpoint: CheckpointRow) -> None:
        with self.transaction():
            self._connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", checkpoint)
            self._connection.execute(
                "DELETE FROM checkpoints WHERE position NOT IN "
                "(SELECT position FROM checkpoints ORDER BY position DESC LIMIT ?)",
                (_KEEP_CHECKPOINTS,),
            )

    def scrub(self, timeout_s: float = 2.0) -> bool:
        """Empty the write-ahead file, in which what was erased stays readable until it is written over.

        Returns False if another connection still reads the old pages after `timeout_s`; they go at the next
        checkpoint of whoever writes after that.
        """
        give_up = time.monotonic() + timeout_s
        while True:
            with self._lock, _clear_errors(self.path):
                try:
                    busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error):
                        raise
                    busy = 1
            if not busy or time.monotonic() >= give_up:
                return not busy
            time.sleep(random.uniform(*_POLL_S))

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _head(connection: sqlite3.Connection) -> Head:
    found = connection.execute(
        "SELECT position, CAST(hash AS BLOB) FROM commits ORDER BY position DESC LIMIT 1"
    ).fetchone()
    return START if found is None else Head(found[0], found[1])


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise LogError(f"{path} cannot be used: {error}") from error
        raise DamagedLog(f"{path} is damaged: {error}; restore it from a copy") from error


def _inspect(path: Path) -> bool:
    """Whether a log has to be created at `path`; refuses what is not ours without touching it.

    A file that may be in use is only looked at through SQLite: where a process closes a descriptor of its own
    on it, the locks that its other connections hold are gone, and another process may take the write-ahead
    file away under them. A file without a write-ahead file is in use by nobody, and its header is read as it
    lies there, since SQLite would leave files beside it.
    """
    if path.is_dir():
        raise ForeignFile(f"{path} is a folder; name the file of a log")
    if not path.exists() or path.stat().st_size == 0:
        if not path.parent.is_dir():
            raise BadInput(f"{path} cannot be created: there is no folder {path.parent}")
        return True
    try:
        in_use = path.with_name(path.name + "-wal").exists()
        application, version = (_header_in_use if in_use else _header_at_rest)(path)
    except (OSError, sqlite3.OperationalError) as error:
        raise LogError(f"{path} cannot be opened: {error}; check that it can be read") from error
    except sqlite3.DatabaseError as error:
        raise DamagedLog(f"{path} cannot be opened as a log: {error}") from error
    if application != APPLICATION_ID:
        raise ForeignFile(f"{path} is an SQLite file of another program; it was not touched")
    if version not in (0, FORMAT):
        raise _other_format(path, version)
    return False


def _header_in_use(path: Path) -> tuple[int, int]:
    with closing(_connect(path, "ro")) as connection:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        return application, connection.execute("PRAGMA user_version").fetchone()[0]


def _header_at_rest(path: Path) -> tuple[int, int]:
    with path.open("rb") as file:
        header = file.read(100)
    if not header.startswith(_MAGIC):
        raise ForeignFile(f"{path} is not a log of standby (not an SQLite file); it was not touched")
    return int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")


def _connect(path: Path, mode: str, timeout_s: float = 5.0) -> sqlite3.Connection:
    """A connection that opens the file in this mode; only `rwc` makes one where there is none."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=timeout_s)


def _other_format(path: Path, version: int) -> LogTooNew | LogTooOld:
    if version < FORMAT:
        return LogTooOld(
            f"{path} was written by the first version of standby (format {version}); read it "
            "with standby 0.1.0. The file was not touched"
        )
    return LogTooNew(
        f"{path} has format {version}, this version of standby knows formats up to {FORMAT}; "
        "use a newer standby. The file was not touched"
    )


def _refuse_triggers(connection: sqlite3.Connection, path: Path) -> None:
    """A trigger or view of somebody else could keep what is erased, or show what is not there."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()
    if found is not None:
        raise DamagedLog(f"{path} holds a trigger or view, {found[0]}, that standby never makes; drop it first")


def _write_ahead(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Write-ahead logging, which the file itself remembers. Only once the header is in the file: from then on
    it would stay in the `-wal` file for a while, where `_inspect` of another process could not see it."""
    give_up = time.monotonic() + timeout_s
    while True:
        try:
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        if time.monotonic() >= give_up:
            raise LogBusy("the log was locked by another process while it was made ready; try again")
        time.sleep(random.uniform(*_POLL_S))


def _create(connection: sqlite3.Connection, path: Path) -> None:
    """Make the schema; two processes that create the same file at once agree."""
    from sqlite_utils import Database

    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
        connection.execute("ROLLBACK")
        return
    database = Database(connection)
    if database.table_names():
        connection.execute("ROLLBACK")
        raise ForeignFile(f"{path} holds tables of another program; it was not touched")
    database.table("commits").create(
        {"position": int, "body": bytes, "hash": bytes}, pk="position", not_null={"body", "hash"}
    )
    side_entries = database.table("side_entries")
    side_entries.create(
        {"alias": str, "kind": str, "subject": str, "salt": bytes, "text": str},
        pk="alias",
        not_null={"kind", "subject", "salt", "text"},
    )
    side_entries.create_index(["kind", "text"])
    side_entries.create_index(["subject"])
    database.table("checkpoints").create(
        {"position": int, "hash": bytes, "version": str, "body": bytes},
        pk="position",
        not_null={"hash", "version", "body"},
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")

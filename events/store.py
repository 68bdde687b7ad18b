"""The store port: where commits lie.

A store keeps rows (position, bytes, hash) and beside them the side table and checkpoints. It knows nothing of
what the bytes mean. Three promises, held by one contract suite for every store:

1. **One writer at a time.** Inside `transaction()` the caller alone may write, sees everything that was
   committed before it began, and appends at the next position. Either all of its rows are there afterwards,
   or none.
2. **Dense positions** from 1, in the order in which commits became visible: a reader that has read to n
   misses nothing by reading after n.
3. **Bytes come back as they were given.**
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from standby.events.codec import GENESIS
from standby.events.names import SideEntry


class StoredRow(NamedTuple):
    """A stored commit."""

    position: int
    body: bytes
    hash: bytes


class Head(NamedTuple):
    """Where a log ends: the last position and the hash of its commit. Print it, keep it elsewhere, and
    `verify` can tell that nothing was cut off."""

    position: int
    hash: bytes


START = Head(0, GENESIS)


class CheckpointRow(NamedTuple):
    """The folded state at a position; `hash` is that of its commit, `version` names the state's format."""

    position: int
    hash: bytes
    version: str
    body: bytes


class Transaction(Protocol):
    """What may be done under the write lock."""

    def tail(self, after: int) -> Iterable[StoredRow]:
        """Every row after position `after`, those appended in this transaction included."""

    def append(self, body: bytes) -> StoredRow:
        """Add a commit at the next position and link it to its predecessor."""

    def alias(self, kind: str, text: str) -> str | None:
        """The alias under which a name is known, or None."""

    def put_side_entry(self, side_entry: SideEntry) -> None:
        """Write a side-table entry, together with the commits of this transaction."""

    def erase(self, subject: str) -> int:
        """Delete every side-table entry of this subject and say how many there were."""


class Store(Protocol):
    """A log."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Take the write lock; commit at the end of the block, roll back if it raises.

        Raises:
            LogBusy: another writer held the lock for too long.
        """

    def head(self) -> Head:
        """The last position and hash."""

    def read(self, after: int = 0) -> Iterator[StoredRow]:
        """Committed rows after a position, in order."""

    def side_entry(self, alias: str) -> SideEntry | None:
        """The side-table entry of an alias, or None if there is none (any more)."""

    def side_entries(self) -> Iterator[SideEntry]:
        """Every side-table entry."""

    def checkpoint(self) -> CheckpointRow | None:
        """The newest checkpoint."""

    def save_checkpoint(self, checkpoint: CheckpointRow) -> None:
        """Keep a checkpoint; older ones may go."""

    def close(self) -> None:
        """Give the resources back. Nothing is lost."""

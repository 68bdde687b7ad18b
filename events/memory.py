"""A log in memory, for tests, simulation and services that keep none."""

from collections.abc import Iterable, Iterator
from threading import RLock
from types import TracebackType
from typing import Self

from standby.events.codec import link
from standby.events.names import SideEntry
from standby.events.store import START, CheckpointRow, Head, StoredRow


class _MemoryTransaction:
    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._rows: list[StoredRow] = []
        self._side_entries: dict[str, SideEntry] = {}
        self._erased: set[str] = set()

    def tail(self, after: int) -> Iterator[StoredRow]:
        committed = self._store.rows
        rows = committed[after:] if after < len(committed) else []
        return iter(rows + [row for row in self._rows if row.position > after] if self._rows else rows)

    def append(self, body: bytes) -> StoredRow:
        last = self._rows[-1] if self._rows else self._store.head()
        row = StoredRow(last.position + 1, body, link(last.hash, body))
        self._rows.append(row)
        return row

    def alias(self, kind: str, text: str) -> str | None:
        for side_entry in self._side_entries.values():
            if side_entry.kind == kind and side_entry.text == text and kind != "text":
                return side_entry.alias
        known = self._store.known(kind, text)
        stored = self._store.side_entry(known) if known is not None else None
        return None if stored is None or stored.subject in self._erased else stored.alias

    def put_side_entry(self, side_entry: SideEntry) -> None:
        self._side_entries[side_entry.alias] = side_entry

    def erase(self, subject: str) -> int:
        fresh = [
            side_entry.alias for side_entry in self._side_entries.values() if side_entry.subject == subject
        ]
        for alias in fresh:
            del self._side_entries[alias]
        stored = 0 if subject in self._erased else sum(a.subject == subject for a in self._store.side_entries())
        self._erased.add(subject)
        return len(fresh) + stored

    def __enter__(self) -> Self:
        self._store.lock.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._store.rows.extend(self._rows)
                if self._side_entries or self._erased:
                    self._store.keep(self._side_entries.values(), self._erased)
        finally:
            self._store.lock.release()


class MemoryStore:
    """The store port over Python lists; one lock stands for the write lock."""

    def __init__(self) -> None:
        self.rows: list[StoredRow] = []
        self._side_entries: dict[str, SideEntry] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._checkpoint: CheckpointRow | None = None
        self.lock = RLock()
        """Stands for the write lock."""

    def transaction(self) -> _MemoryTransaction:
        return _MemoryTransaction(self)

    def head(self) -> Head:
        rows = self.rows
        return Head(rows[-1].position, rows[-1].hash) if rows else START

    def read(self, after: int = 0) -> Iterator[StoredRow]:
        yield from self.rows[after:]

    def side_entry(self, alias: str) -> SideEntry | None:
        return self._side_entries.get(alias)

    def side_entries(self) -> Iterator[SideEntry]:
        yield from list(self._side_entries.values())

    def known(self, kind: str, text: str) -> str | None:
        return self._names.get((kind, text))

    def keep(self, added: Iterable[SideEntry], erased: set[str]) -> None:
        gone = [a for a in self._side_entries.values() if a.subject in erased] if erased else []
        for side_entry in gone:
            del self._side_entries[side_entry.alias]
            self._names.pop((side_entry.kind, side_entry.text), None)
        for side_entry in added:
            self._side_entries[side_entry.alias] = side_entry
            if side_entry.kind != "text":
                self._names[side_entry.kind, side_entry.text] = side_entry.alias

    def checkpoint(self) -> CheckpointRow | None:
        return self._checkpoint

    def save_checkpoint(self, checkpoint: CheckpointRow) -> None:
        self._checkpoint = checkpoint

    def close(self) -> None:
        """Nothing to give back."""

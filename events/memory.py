"""A log in memory, for tests, simulation and services that keep none."""

from collections.abc import Iterable, Iterator
from threading import RLock
from types import TracebackType
from typing import Self

from standby.events.codec import link
from standby.events.names import Aside
from standby.events.store import START, CheckpointRow, Head, Row


class _MemoryTransaction:
    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._rows: list[Row] = []
        self._asides: dict[str, Aside] = {}
        self._erased: set[str] = set()

    def tail(self, after: int) -> Iterator[Row]:
        committed = self._store.rows
        rows = committed[after:] if after < len(committed) else []
        return iter(rows + [row for row in self._rows if row.position > after] if self._rows else rows)

    def append(self, body: bytes) -> Row:
        last = self._rows[-1] if self._rows else self._store.head()
        row = Row(last.position + 1, body, link(last.hash, body))
        self._rows.append(row)
        return row

    def alias(self, kind: str, text: str) -> str | None:
        for aside in self._asides.values():
            if aside.kind == kind and aside.text == text and kind != "text":
                return aside.alias
        known = self._store.known(kind, text)
        stored = self._store.aside(known) if known is not None else None
        return None if stored is None or stored.subject in self._erased else stored.alias

    def put_aside(self, aside: Aside) -> None:
        self._asides[aside.alias] = aside

    def erase(self, subject: str) -> int:
        fresh = [aside.alias for aside in self._asides.values() if aside.subject == subject]
        for alias in fresh:
            del self._asides[alias]
        stored = 0 if subject in self._erased else sum(a.subject == subject for a in self._store.asides())
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
                if self._asides or self._erased:
                    self._store.keep(self._asides.values(), self._erased)
        finally:
            self._store.lock.release()


class MemoryStore:
    """The store port over Python lists; one lock stands for the write lock."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._asides: dict[str, Aside] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._checkpoint: CheckpointRow | None = None
        self.lock = RLock()
        """Stands for the write lock."""

    def transaction(self) -> _MemoryTransaction:
        return _MemoryTransaction(self)

    def head(self) -> Head:
        rows = self.rows
        return Head(rows[-1].position, rows[-1].hash) if rows else START

    def read(self, after: int = 0) -> Iterator[Row]:
        yield from self.rows[after:]

    def aside(self, alias: str) -> Aside | None:
        return self._asides.get(alias)

    def asides(self) -> Iterator[Aside]:
        yield from list(self._asides.values())

    def known(self, kind: str, text: str) -> str | None:
        return self._names.get((kind, text))

    def keep(self, added: Iterable[Aside], erased: set[str]) -> None:
        gone = [a for a in self._asides.values() if a.subject in erased] if erased else []
        for aside in gone:
            del self._asides[aside.alias]
            self._names.pop((aside.kind, aside.text), None)
        for aside in added:
            self._asides[aside.alias] = aside
            if aside.kind != "text":
                self._names[aside.kind, aside.text] = aside.alias

    def checkpoint(self) -> CheckpointRow | None:
        return self._checkpoint

    def save_checkpoint(self, checkpoint: CheckpointRow) -> None:
        self._checkpoint = checkpoint

    def close(self) -> None:
        """Nothing to give back."""

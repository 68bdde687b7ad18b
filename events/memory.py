"""A log in memory, for tests, simulation and services that keep none."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import RLock

from standby.events.codec import link
from standby.events.names import Aside
from standby.events.store import START, CheckpointRow, Head, Row

__all__ = ["MemoryStore"]


class _MemoryTransaction:
    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._rows: list[Row] = []
        self._asides: dict[str, Aside] = {}
        self._erased: set[str] = set()

    def tail(self, after: int) -> Iterator[Row]:
        committed = self._store.rows
        yield from committed[after:]
        for row in self._rows:
            if row.position > after:
                yield row

    def append(self, body: bytes) -> Row:
        last = self._rows[-1] if self._rows else self._store.head()
        row = Row(last.position + 1, body, link(last.hash, body))
        self._rows.append(row)
        return row

    def alias(self, kind: str, text: str) -> str | None:
        for aside in self._asides.values():
            if aside.kind == kind and aside.text == text:
                return aside.alias
        return self._store.known(kind, text)

    def put_aside(self, aside: Aside) -> None:
        self._asides[aside.alias] = aside

    def erase(self, subject: str) -> int:
        self._erased.add(subject)
        return sum(aside.subject == subject for aside in self._store.asides())

    def commit(self) -> None:
        self._store.rows.extend(self._rows)
        self._store.keep(self._asides.values(), self._erased)


class MemoryStore:
    """The store port over Python lists; one lock stands for the write lock."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._asides: dict[str, Aside] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._checkpoint: CheckpointRow | None = None
        self._lock = RLock()

    @contextmanager
    def transaction(self) -> Iterator[_MemoryTransaction]:
        with self._lock:
            transaction = _MemoryTransaction(self)
            yield transaction
            transaction.commit()

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
        for aside in added:
            self._asides[aside.alias] = aside
            if aside.kind != "text":
                self._names[aside.kind, aside.text] = aside.alias
        if erased:
            for aside in [a for a in self._asides.values() if a.subject in erased]:
                del self._asides[aside.alias]
                self._names.pop((aside.kind, aside.text), None)

    def checkpoint(self) -> CheckpointRow | None:
        return self._checkpoint

    def save_checkpoint(self, checkpoint: CheckpointRow) -> None:
        self._checkpoint = checkpoint

    def close(self) -> None:
        """Nothing to give back."""

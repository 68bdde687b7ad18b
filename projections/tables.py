"""Tables of records that folds write to, and their copy-on-write twin that `plan` thinks in.

A record is a mutable msgspec struct whose values are immutable, so that a shallow copy is a true copy. A fold
asks a table for a record with `edit` and sets attributes. `Table` hands out the record itself; `Overlay`
copies it first and leaves the table below untouched, so that `plan` can fold its own decisions as it makes
them, with the very functions that `apply` uses, and stay pure.
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Editable(Protocol[T_co]):
    """What folds and questions need of a table."""

    def get(self, key: str, /) -> T_co | None:
        """The record to look at, or None."""

    def edit(self, key: str, /) -> T_co:
        """The record to write to; an unknown key makes a new one."""

    def drop(self, key: str, /) -> None:
        """Forget the record."""

    def keys_now(self) -> Iterator[str]:
        """Every key there is."""


class Table(dict[str, T], Generic[T]):
    """Records by key."""

    def __init__(self, new: Callable[[], T]) -> None:
        super().__init__()
        self._new = new

    def __missing__(self, key: str) -> T:
        record = self[key] = self._new()
        return record

    def edit(self, key: str, /) -> T:
        return self[key]

    def drop(self, key: str, /) -> None:
        self.pop(key, None)

    def keys_now(self) -> Iterator[str]:
        return iter(list(self))

    def fresh(self) -> T:
        """A new record that is in no table yet."""
        return self._new()

    def known(self, key: str, /) -> bool:
        """Whether there is a record."""
        return key in self


class LazyTable(Table[T]):
    """A table whose records may still be encoded, as a checkpoint brings them: each is decoded when asked for.

    So a log with very many sessions opens in the time that its checkpoint takes to be read.
    """

    def __init__(
        self, new: Callable[[], T], raw: dict[str, Any] | None = None, decode: Callable[[Any], T] | None = None
    ) -> None:
        super().__init__(new)
        self._raw = raw or {}
        self._decode = decode

    def get(self, key: str, /) -> T | None:  # type: ignore[override]  # narrower on purpose
        if key in self or key in self._raw:
            return self[key]
        return None

    def __missing__(self, key: str) -> T:
        if self._decode is not None and key in self._raw:
            record = self[key] = self._decode(self._raw.pop(key))
            return record
        return super().__missing__(key)

    def drop(self, key: str, /) -> None:
        self._raw.pop(key, None)
        super().drop(key)

    def keys_now(self) -> Iterator[str]:
        return iter([*self._raw, *self])

    def known(self, key: str, /) -> bool:
        return key in self or key in self._raw

    def everything(self) -> dict[str, Any]:
        """Every record by key, those still encoded as they are."""
        return {**self._raw, **self}


class Overlay(Generic[T]):
    """A table seen through changes of its own."""

    __slots__ = ("_below", "_changed")

    def __init__(self, below: Table[T]) -> None:
        self._below = below
        self._changed: dict[str, T | None] = {}

    def get(self, key: str, /) -> T | None:
        if key in self._changed:
            return self._changed[key]
        return self._below.get(key)

    def edit(self, key: str, /) -> T:
        record = self._changed.get(key)
        if record is None:
            below = None if key in self._changed else self._below.get(key)
            record = self._below.fresh() if below is None else copy(below)
            self._changed[key] = record
        return record

    def drop(self, key: str, /) -> None:
        self._changed[key] = None

    def settle(self) -> None:
        """Let the changes become those of the table below."""
        for key, record in self._changed.items():
            if record is None:
                self._below.drop(key)
            else:
                self._below[key] = record

    def keys_now(self) -> Iterator[str]:
        for key in self._below.keys_now():
            if self._changed.get(key, self) is not None:
                yield key
        for key, record in list(self._changed.items()):
            if record is not None and not self._below.known(key):
                yield key

"""Every store, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standby.events.memory import MemoryStore
from standby.events.sqlite import SQLiteStore
from standby.events.store import Store

Opener = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same log again and again: a memory store is only ever itself."""
    stores: list[Store] = []
    memory = MemoryStore()

    def opener() -> Store:
        store: Store = memory if request.param == "memory" else SQLiteStore(tmp_path / "log.db")
        stores.append(store)
        return store

    yield opener
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opener) -> Store:
    return opened()

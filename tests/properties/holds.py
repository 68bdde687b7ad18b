"""Properties by invariant, so that the same one runs in a test and under a planted fault."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from standby.engine.apply import apply
from standby.engine.checkpoint import VERSION, dump, load
from standby.engine.view import View
from standby.events.store import CheckpointRow
from tests.properties.play import Play, digest
from tests.properties.strategies import History, histories

__all__ = ["holds", "splits"]


def holds(invariant: int, **options: Any) -> None:
    """Look for a history that breaks this invariant; the naive model raises at the first commit that does."""

    @settings(**options)
    @given(history=histories(invariant))
    def looked_for(history: History) -> None:
        play = history.play()
        play.verified()
        splits(play)

    looked_for()


def splits(play: Play) -> None:
    """A checkpoint plus the tail after it equals the full replay, wherever the log is cut."""
    commits, rows = play.commits(), list(play.store.read())
    for split in {0, 1, len(rows) // 3, len(rows) // 2, len(rows) - 1}:
        view = View()
        for commit in commits[:split]:
            apply(view, commit)
        if split:
            loaded = load(CheckpointRow(split, rows[split - 1].hash, VERSION, dump(view)))
            assert loaded is not None
            view = loaded
        for at, commit in enumerate(commits[split:], split):
            apply(view, commit)
            assert digest(view) == play.digests[at], f"a checkpoint at {split} differs at {at + 1}"

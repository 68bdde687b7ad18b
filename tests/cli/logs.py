"""A log with something of everything in it, for tests of commands: made through the public service."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from standby.engine.reading.extract import Reply
from standby.events.codec import GENESIS, decode, encode, link
from standby.events.commit import Commit
from standby.events.sqlite import SQLiteStore
from standby.events.vocabulary import Effects
from tests.harness import A, B, C, World, chain, reply

__all__ = [
    "KEPT_SECRET",
    "PLANTED",
    "A",
    "B",
    "C",
    "Made",
    "commit_at",
    "make_log",
    "resealed",
    "rows",
    "sql",
]

PLANTED = "sk-test-PLACEHOLDER0123456789abcdefghij"
"""Looks like a key; providers quote such things in their replies."""
KEPT_SECRET = "plain-PLACEHOLDER-that-looks-like-nothing-42"
"""A secret that no pattern knows; only the caller can say that it is one."""


class Made:
    """A finished log: its path, and the ids of its turns by what happened in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.turns: dict[str, str] = {}
        self.end_ms = 0

    def args(self, *more: str) -> list[str]:
        """Arguments that name this log."""
        return [more[0], *more[1:], "--log", str(self.path)]


def _leaking() -> Reply:
    body = {
        "error": {
            "message": f"Incorrect API key provided: {PLANTED}; also seen {KEPT_SECRET}. Rate limit reached",
            "type": "rate_limit_error",
            "code": "rate_limit_exceeded",
        }
    }
    return msgspec.structs.replace(reply(429, body), headers={"authorization": f"Bearer {PLANTED}"})


def make_log(path: Path) -> Made:
    """Turns that were answered, limited, without credit, skipped, failed, left open; a pin, a selection."""
    made = Made(path)
    world = World(
        chain(A, B, C),
        {"openai": ["openai:one", "openai:two"], "anthropic": ["anthropic:one"], "google": ["google:one"]},
        store=SQLiteStore(path, synchronous="normal"),
    )

    def turn(name: str, session: str, *script: str | Reply, leave: bool = False) -> None:
        handle = world.turn(session, turn=f"t-{name}")
        made.turns[name] = handle.id
        left = list(script)
        while not (settled := type(handle.step).__name__ == "Settled"):
            world.sleep(250)
            if type(handle.step).__name__ == "Wait":
                world.wait(handle)
            elif left:
                kind = left.pop(0)
                if kind == "limit":
                    world.fail(handle, "rate_limit", retry_after=600)
                elif kind == "leak":
                    world.fail(handle, _leaking(), retry_after=900, secrets=(KEPT_SECRET,))
                else:
                    world.fail(handle, kind)
            elif leave:
                break
            else:
                world.answer(handle, effects=Effects.NONE)
        assert settled or leave

    turn("plain", "alice")
    turn("busy", "bob", "overloaded")
    world.service.select_model("carol", B)
    world.service.pin("carol", "openai", "openai:two")
    turn("open", "carol", leave=True)
    turn("limited", "alice", "limit", "leak")
    turn("sticky", "alice")
    turn("wallet", "bob", "billing", "billing")
    turn("none", "bob")
    made.end_ms = world.now_ms
    world.service.close()
    return made


@contextmanager
def sql(path: Path) -> Iterator[sqlite3.Connection]:
    """The file itself, for whoever tampers with it."""
    connection = sqlite3.connect(path)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def rows(path: Path) -> list[tuple[int, bytes, bytes]]:
    """Every stored row."""
    with sql(path) as connection:
        return list(connection.execute("SELECT position, body, hash FROM commits ORDER BY position"))


def resealed(path: Path, change: dict[int, Commit]) -> None:
    """Replace commits and make the chain anew from there, as a forger with the file would."""
    digest = GENESIS
    with sql(path) as connection:
        for position, body, _ in rows(path):
            body = encode(change[position]) if position in change else body
            digest = link(digest, body)
            connection.execute(
                "UPDATE commits SET body = ?, hash = ? WHERE position = ?", (body, digest, position)
            )


def commit_at(path: Path, position: int) -> Commit:
    """The commit at a position."""
    return decode(rows(path)[position - 1][1], position)

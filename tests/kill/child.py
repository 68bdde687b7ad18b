"""A process that runs turns until it is killed: `python child.py CONFIG` with a JSON object.

It opens the log, goes on with every turn that is not settled, then begins new ones. After the core has
acknowledged a commit, its position and hash go into a side file that is flushed to the disk: what stands there
must never be missing from the log. It can kill itself at a named place, which a clock alone would hardly hit:

    begin    before a transaction          append   rows written, not yet committed
    commit   committed, not yet noted      ack      noted
    call     before a call leaves          sent     while a call is under way
    reply    the reply is there, not yet reported
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from standby.events.errors import TurnFailed
from standby.events.sqlite import SQLiteStore
from standby.events.store import StoredRow
from standby.hosts.core import Core
from standby.hosts.providers import endpoint
from standby.hosts.providers.client import ProviderClient
from standby.hosts.runner import Runner
from standby.hosts.service import Standby
from standby.hosts.settings import load_settings

KEYS = {"FIRST_KEY": "sk-test-PLACEHOLDER-first", "SECOND_KEY": "sk-test-PLACEHOLDER-second"}


class Config(msgspec.Struct, kw_only=True):
    """What a child is told."""

    log: str
    acks: str
    policy: str
    base_url: str
    life: int
    """Which child this is; it makes turn ids unique."""
    turns: int
    kill_at: str = ""
    kill_count: int = 0
    """Die when the place is reached for this time."""


class Fate:
    """Counts how often each place was passed, and kills the process at the chosen one."""

    def __init__(self, config: Config) -> None:
        self._at, self._left = config.kill_at, config.kill_count

    def __call__(self, place: str) -> None:
        if place == self._at:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def soon(self, place: str) -> None:
        """The same, but a moment later and beside whatever happens then."""
        if place == self._at:
            self._left -= 1
            if self._left == 0:
                threading.Thread(target=self._later, daemon=True).start()

    @staticmethod
    def _later() -> None:
        time.sleep(0.004)
        os.kill(os.getpid(), signal.SIGKILL)


class Noting(SQLiteStore):
    """Notes what was acknowledged."""

    def __init__(self, config: Config, fate: Fate) -> None:
        super().__init__(config.log)
        self._fate = fate
        self._acks = os.open(config.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        self._fate("begin")
        rows: list[StoredRow] = []
        with super().transaction() as transaction:
            append = transaction.append

            def noted(body: bytes) -> StoredRow:
                row = append(body)
                rows.append(row)
                return row

            transaction.append = noted  # type: ignore[method-assign]  # one object per transaction
            yield transaction
            if rows:
                self._fate("append")
        if rows:
            self._fate("commit")
            lines = "".join(f"\n{row.position} {row.hash.hex()}\n" for row in rows)
            os.write(self._acks, lines.encode())
            os.fsync(self._acks)
            self._fate("ack")


class Calling(ProviderClient):
    """Calls, with a fate."""

    def __init__(self, fate: Fate) -> None:
        super().__init__()
        self._fate = fate

    def call(self, *arguments: Any, **options: Any) -> Any:
        self._fate("call")
        self._fate.soon("sent")
        outcome = super().call(*arguments, **options)
        self._fate("reply")
        return outcome


def options_of(turn: str) -> dict[str, Any]:
    """How a turn is run; a turn that is gone on with is run as it was begun."""
    return {"on_text": lambda text: None} if turn.endswith("-stream") else {}


def main(config: Config) -> None:
    fate = Fate(config)
    service = Standby(Core(Noting(config, fate), instance="worker"), load_settings(config.policy))
    names = ("openai", "anthropic")
    runner = Runner(
        service,
        environ=KEYS,
        endpoints={name: endpoint(name, base_url=config.base_url) for name in names},
        client=Calling(fate),
    )
    print("ready", flush=True)
    for turn in service.unfinished():
        _settle(lambda turn=turn: runner.resume(turn, prompt="Hello?", **options_of(turn)))
    for number in range(config.turns):
        turn = f"k{config.life}-{number}" + ("-stream" if (config.life + number) % 3 == 0 else "")
        _settle(
            lambda turn=turn, number=number: runner.run(
                session=f"s{number % 3}", prompt="Hello?", turn=turn, **options_of(turn)
            )
        )
    print("done", flush=True)


def _settle(run: Any) -> None:
    try:
        run()
    except TurnFailed:
        return


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Config))

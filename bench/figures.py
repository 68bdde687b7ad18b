"""The figures of the design, each beside its limit, in one run: `make bench`.

Medians over rounds; every line names what it is measured against. Absolute times belong to this machine and
hour; the ratios travel. `--quick` takes smaller rounds, `--json` prints one object.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from standby.engine.apply import apply
from standby.engine.classify.classifier import classify
from standby.engine.reading.extract import Reply, extract
from standby.engine.verify import verify
from standby.engine.view import View
from standby.events.codec import decode
from standby.events.memory import MemoryStore
from standby.events.policy import ModelChain, Policy
from standby.events.sqlite import SQLiteStore
from standby.events.store import Store
from standby.hosts.core import Core, load_view
from standby.hosts.reports import Failed, Succeeded
from standby.hosts.service import Standby
from standby.hosts.settings import Settings

POLICY = Policy(models=ModelChain(primary="openai/alpha", fallbacks=("anthropic/beta",)))
PROFILES = {"openai": ["one", "two"], "anthropic": ["three"]}
REFUSED = {
    "error": {"message": "Insufficient credits", "type": "billing_error", "code": "insufficient_credits"}
}
FAILURE = Reply(status=402, body=json.dumps(REFUSED), headers={"content-type": "application/json"})


class Figure(NamedTuple):
    """One line of the table."""

    what: str
    value: float
    unit: str
    limit: float
    note: str = ""


class Clock:
    """A clock that ticks once per reading, so that nothing waits and nothing stands still."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


def service_on(store: Store, instance: str = "bench") -> Standby:
    """The door on a store, with a ticking clock."""
    service = Standby(
        Core(store, instance=instance, clock=Clock(), entropy=lambda: 500), Settings(policy=POLICY)
    )
    service.observe(PROFILES)
    return service


def per_call_us(run: Callable[[], object], calls: int, rounds: int = 7) -> float:
    """Median time of one call in microseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def answered(service: Standby) -> Callable[[], object]:
    """A turn whose first call answers: two commits."""
    numbers = iter(range(10**9))

    def run() -> object:
        turn = service.start_turn(session=f"s{next(numbers) % 50}")
        return turn.report(Succeeded())

    return run


def fallen_back(service: Standby) -> Callable[[], object]:
    """A turn whose first model fails and whose fallback answers: three commits, one classification."""
    numbers = iter(range(10**9))
    service.observe({"openai": ["one"], "anthropic": ["three"]})

    def run() -> object:
        key = next(numbers)
        turn = service.start_turn(session=f"f{key % 50}", fallbacks=("anthropic/beta",), model="free/alpha")
        turn.report(Failed(reply=FAILURE))
        return turn.report(Succeeded())

    return run


def in_memory(calls: int) -> list[Figure]:
    """The two turns on the memory store."""
    return [
        Figure(
            "answered turn, memory store, two commits",
            per_call_us(answered(service_on(MemoryStore())), calls),
            "µs",
            40,
        ),
        Figure(
            "failed, then answered by the fallback, memory store, all rows",
            per_call_us(fallen_back(service_on(MemoryStore())), calls // 2),
            "µs",
            120,
        ),
    ]


def settle(connection: sqlite3.Connection) -> None:
    """Make the WAL as long as it will be: a young one looks slower than it is."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def bare_inserts(path: Path, body: bytes, calls: int) -> float:
    """What SQLite itself costs for one row of the same bytes under FULL: the physical limit."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE commits (position INTEGER PRIMARY KEY, body BLOB, hash BLOB)")
    for _ in range(1200):
        connection.execute("INSERT INTO commits (body, hash) VALUES (?, ?)", (body, body[:32]))

    def run() -> None:
        connection.execute("INSERT INTO commits (body, hash) VALUES (?, ?)", (body, body[:32]))

    cost = per_call_us(run, calls)
    connection.close()
    return cost


def on_disk(folder: Path, calls: int) -> list[Figure]:
    """The same turns on SQLite FULL, alone and a hundred at once, beside bare inserts."""
    store = SQLiteStore(folder / "turns.db")
    service = service_on(store)
    run = answered(service)
    for _ in range(600):
        run()
    body = next(iter(store.read(store.head().position - 2))).body
    bare = bare_inserts(folder / "bare.db", body, calls * 2)
    alone = per_call_us(run, calls)

    def hundred() -> None:
        with service.core.group():
            turns = [service.start_turn(session=f"g{n}") for n in range(100)]
            for turn in turns:
                turn.report(Succeeded())

    grouped = per_call_us(hundred, 3, rounds=5) / 100
    service.close()
    return [
        Figure(
            "a commit on SQLite FULL over a bare INSERT of the same bytes",
            alone / 2 - bare,
            "µs",
            60,
            f"commit {alone / 2:.0f}, bare insert {bare:.0f} µs: ratio {alone / 2 / bare:.2f}",
        ),
        Figure("100 turns at once on one connection, FULL, a turn", grouped, "µs", 100),
    ]


def _worker(path: str, instance: str, commits: int, results: Any) -> None:
    service = service_on(SQLiteStore(path), instance)
    run = answered(service)
    times = []
    for _ in range(commits):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / 2 * 1e3)
        time.sleep(0.002)
    results.put(times)


def four_processes(folder: Path, turns: int) -> Figure:
    """Four processes with pauses of 2 ms on one log."""
    path = str(folder / "four.db")
    SQLiteStore(path).close()
    context = get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_worker, args=(path, f"w{n}", turns, results)) for n in range(4)]
    for worker in workers:
        worker.start()
    times = sorted(one for _ in workers for one in results.get())
    for worker in workers:
        worker.join()
    p99 = times[int(len(times) * 0.99) - 1]
    return Figure(
        "4 processes with 2 ms pauses, FULL, p99 of a commit",
        p99,
        "ms",
        5,
        f"median {statistics.median(times):.2f} ms",
    )


def classification(calls: int) -> Figure:
    """Reading one failure with all rows, 2 KiB of evidence."""
    body = json.dumps({"error": {**REFUSED["error"], "details": "x" * 1800}})
    reply = Reply(provider="openai", model="alpha", status=402, body=body)
    cost = per_call_us(lambda: classify(extract(reply).evidence), calls)
    return Figure("classification of one failure, all rows, 2 KiB", cost, "µs", 60)


def folds(folder: Path, turns: int) -> list[Figure]:
    """Rebuild and verified replay of a log in which one turn in six fails, by 32 runtimes."""
    store = SQLiteStore(folder / "folds.db", synchronous="normal")
    clock = Clock()
    services = []
    for n in range(32):
        service = Standby(
            Core(store, instance=f"r{n}", clock=clock, entropy=lambda: 500), Settings(policy=POLICY)
        )
        services.append(service)
    services[0].observe(PROFILES)
    for n in range(turns):
        service = services[n % 32]
        turn = service.start_turn(session=f"s{n % 500}", model="free/alpha", fallbacks=("anthropic/beta",))
        if n % 6 == 0:
            turn.report(Failed(reply=FAILURE))
        turn.report(Succeeded())
    rows = list(store.read())
    events = sum(1 + len(decode(row.body).decisions) for row in rows)

    def decoded() -> None:
        for row in store.read():
            decode(row.body)

    def rebuilt() -> None:
        view = View()
        for row in store.read():
            apply(view, decode(row.body))

    decode_us = per_call_us(decoded, 1, rounds=5) / events
    rebuild_us = per_call_us(rebuilt, 1, rounds=5) / events
    verify_us = per_call_us(lambda: verify(store.read()), 1, rounds=3) / events
    store.close()
    return [
        Figure(
            "rebuild of projections from SQLite, machine included, an event",
            rebuild_us,
            "µs",
            1.6,
            f"read and decode alone {decode_us:.2f} µs: ratio {rebuild_us / decode_us:.1f}",
        ),
        Figure(
            "verified replay: chain, machine, every decision, an event", verify_us, "µs", 10, f"{events} events"
        ),
    ]


def opening(folder: Path, sessions: int, commits: int) -> Figure:
    """Opening a long log from a checkpoint."""
    path = folder / "long.db"
    store = SQLiteStore(path, synchronous="normal")
    service = service_on(store)
    with service.core.group():
        for n in range(sessions):
            turn = service.start_turn(session=f"o{n}")
            turn.report(Succeeded())
    service.core.checkpoint()
    _pad(service, commits)
    service.close()
    cost = per_call_us(lambda: _open(path), 1, rounds=5) / 1000
    return Figure(
        "opening a log from a checkpoint, 50,000 sessions",
        cost,
        "ms",
        50,
        f"{sessions} sessions, {commits} commits after",
    )


def _pad(service: Standby, commits: int) -> None:
    run = answered(service)
    with service.core.group():
        for _ in range(commits // 2):
            run()


def _open(path: Path) -> None:
    store = SQLiteStore(path)
    load_view(store)
    store.close()


def imports() -> list[Figure]:
    """What `import standby` costs, beside a bare interpreter."""
    code = (
        "import time; t = time.perf_counter(); {}; d = time.perf_counter() - t; "
        "peak = [one.split()[1] for one in open('/proc/self/status') if one.startswith('VmHWM')][0]; "
        "print(d * 1e3, int(peak) / 1024)"
    )
    found = []
    for statement in ("pass", "import standby", "import standby; standby.open(':memory:')"):
        runs = [
            tuple(
                map(
                    float,
                    subprocess.run(
                        [sys.executable, "-c", code.format(statement)],
                        capture_output=True,
                        text=True,
                        check=True,
                        env=dict(os.environ),
                    ).stdout.split(),
                )
            )
            for _ in range(5)
        ]
        found.append([statistics.median(column) for column in zip(*runs, strict=True)])
    bare, light, opened = found
    return [
        Figure("import standby", light[0] - bare[0], "ms", 100, f"with open(':memory:') {opened[0]:.0f} ms"),
        Figure(
            "import standby, memory over bare",
            light[1] - bare[1],
            "MiB",
            25,
            f"with open(':memory:') {opened[1] - bare[1]:.0f} MiB",
        ),
    ]


def peers_note() -> str:
    """What peers cost for the same turns, as measured when the design was made."""
    return (
        "Peers on the machine of the design, µs: answered / failed then answered: LangChain 179 / 351, "
        "pydantic-ai 282 / 557, LiteLLM's router 3,285 / 13,006."
    )


def measure(quick: bool) -> list[Figure]:
    """All figures."""
    calls = 300 if quick else 2000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            *in_memory(calls),
            *on_disk(folder, 60 if quick else 300),
            four_processes(folder, 40 if quick else 300),
            classification(calls),
            *folds(folder, 1500 if quick else 20_000),
            opening(folder, 5_000 if quick else 50_000, 1_000),
            *imports(),
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.quick)
    if options.json:
        print(json.dumps([one._asdict() for one in figures], ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("figure", "measured", "at most", "of it", "beside")
    for one in figures:
        share = one.value / one.limit
        table.add_row(
            one.what,
            f"{one.value:,.1f} {one.unit}",
            f"{one.limit:g} {one.unit}",
            f"[{'green' if share <= 1 else 'red'}]{share:.0%}[/]",
            one.note,
        )
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(table)
    console.print(peers_note())


if __name__ == "__main__":
    main()

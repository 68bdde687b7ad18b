"""The parent's side of the kill test: a provider in its own process, children that die, and what must hold."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from standby.engine.verify import verify
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.codec import decode
from standby.events.sqlite import SQLiteStore
from standby.events.vocabulary import Effects
from standby.hosts.core import load_view

__all__ = ["PLACES", "Arena", "child_process", "scripted_process"]

HERE = Path(__file__).resolve().parent
PLACES = ("begin", "append", "commit", "ack", "call", "sent", "reply")
PATIENCE_S = 60

POLICY = """
[agents.defaults.model]
primary = "openai/alpha"
fallbacks = ["anthropic/beta"]

[models.providers.openai]
apiKeyEnv = "FIRST_KEY"

[models.providers.anthropic]
apiKeyEnv = "SECOND_KEY"

[standby.recovery]
baseMs = 5
transientRetries = 2
"""

REPLIES = (
    ('{{ answer = "Some words to stream", delay_ms = {ms} }}', 12),
    ('{{ answer = "Slowly, word by word", chunk_delay_ms = 2 }}', 4),
    (
        '{{ status = 429, headers = {{ retry-after-ms = "20" }},'
        ' body = {{ error = {{ code = "rate_limit_exceeded" }} }} }}',
        3,
    ),
    ('{{ kind = "overloaded", delay_ms = {ms} }}', 3),
    ('{{ kind = "server_error" }}', 2),
    ('{{ answer = "Half of it", error_after = 1, kind = "overloaded" }}', 1),
)


def environment() -> dict[str, str]:
    """That of this process, with everything that it can import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def scripted_process(script: Path, requests: Path) -> Iterator[str]:
    """A scripted provider in a process of its own; gives its base URL."""
    arguments = [sys.executable, "-m", "standby.hosts.scripted", str(script), "--log", str(requests)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


@contextmanager
def child_process(program: str, config: Any, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program of this folder. It is killed at the end, whatever it does."""
    arguments = [sys.executable, str(HERE / program), json.dumps(config)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment(), **options)
    watch = threading.Timer(PATIENCE_S, process.kill)
    watch.daemon = True
    watch.start()
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        watch.cancel()


class Arena:
    """One log, one provider, and children that run turns on it until they are killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.log, self.acks = folder / "log.db", folder / "acks"
        self.script, self.requests = folder / "script.toml", folder / "requests.jsonl"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self.random = random.Random(seed)
        self.killed: Counter[str] = Counter()
        self.lives = 0
        self.script.write_text(self._script())

    def _script(self, replies: int = 4000) -> str:
        kinds, weights = zip(*REPLIES, strict=True)
        lanes = []
        for model in ("alpha", "beta"):
            drawn = self.random.choices(kinds, weights, k=replies)
            lines = ",\n".join(kind.format(ms=self.random.randrange(12)) for kind in drawn)
            lanes.append(f'[[lane]]\nmodel = "{model}"\nreplies = [\n{lines}\n]\n')
        return '[default]\nanswer = "ok"\n' + "".join(lanes)

    def fight(self, base_url: str, kills: int) -> None:
        """Kill so many children, then let one end in peace."""
        for _ in range(kills):
            chance = self.random.random()
            if chance < 0.1:
                self._kill_by_clock(base_url, while_opening=True)
            elif chance < 0.5:
                self._kill_by_clock(base_url, while_opening=False)
            else:
                self._kill_at(base_url, self.random.choice(PLACES), self.random.randint(1, 12))
        with self._child(base_url, turns=4) as child:
            said, _ = child.communicate()
            assert child.returncode == 0
            assert said.split() == ["ready", "done"]

    def _child(self, base_url: str, **config: Any) -> Any:
        self.lives += 1
        return child_process(
            "child.py",
            {
                "log": str(self.log),
                "acks": str(self.acks),
                "policy": str(self.policy),
                "base_url": base_url,
                "life": self.lives,
                "turns": 100_000,
                **config,
            },
        )

    def _kill_by_clock(self, base_url: str, *, while_opening: bool) -> None:
        with self._child(base_url) as child:
            if not while_opening:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
            try:
                child.wait(self.random.uniform(0, 0.5 if while_opening else 0.2))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
            assert child.wait(PATIENCE_S) == -signal.SIGKILL
        self.killed["opening" if while_opening else "clock"] += 1

    def _kill_at(self, base_url: str, place: str, count: int) -> None:
        with self._child(base_url, kill_at=place, kill_count=count) as child:
            assert child.wait(PATIENCE_S) == -signal.SIGKILL
        self.killed[place] += 1

    # ---- what must hold ------------------------------------------------------------------------------------

    def after_failure(self) -> dict[str, Any]:
        """Hold the log against the side file and the provider's own record; gives the figures."""
        store = SQLiteStore(self.log, create=False)
        try:
            rows = list(store.read())
            report = verify(rows, side_entry=store.side_entry, side_entries=store.side_entries())
            assert report.holds, report.problem
            view = load_view(store)
        finally:
            store.close()
        acknowledged = self._acknowledged()
        stored = {row.position: row.hash.hex() for row in rows}
        assert acknowledged
        assert [(at, digest) for at, digest in acknowledged if stored.get(at) != digest] == []
        commits = [decode(row.body, row.position) for row in rows]
        started = explained_attempts(commits)
        received = Counter(request["attempt"] for request in self._received())
        assert {attempt: count for attempt, count in received.items() if count > 1} == {}
        assert set(received) <= started
        states = Counter(view.turns.get(key).state for key in view.turns.keys_now())  # type: ignore[union-attr]  # the keys are there now
        assert set(states) <= {"answered", "failed"}, states
        unknown = [commit.fact for commit in commits if isinstance(commit.fact, f.CallUnknown)]
        return {
            "kills": sum(self.killed.values()),
            "by place": dict(sorted(self.killed.items())),
            "commits": len(rows),
            "acknowledged": len(acknowledged),
            "decisions recomputed": report.decisions,
            "turns": dict(states),
            "attempts": len(started),
            "requests received": sum(received.values()),
            "calls nobody saw end": len(unknown),
            "of these unsafe": sum(fact.effects is not Effects.NONE for fact in unknown),
        }

    def _acknowledged(self) -> list[tuple[int, str]]:
        """Each acknowledgement; a position that was given away twice would stand here twice."""
        found = re.findall(r"^(\d+) ([0-9a-f]{64})$", self.acks.read_text(), re.MULTILINE)
        return [(int(position), digest) for position, digest in found]

    def _received(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.requests.read_bytes().splitlines()]


def explained_attempts(commits: list[Any]) -> set[str]:
    """Every attempt as the provider would see it. Fails if one follows another without the log saying why: a
    retry, another profile or another model, after a failure that allowed a replay."""
    started: set[str] = set()
    last: dict[str, d.AttemptStarted] = {}
    ended: dict[str, d.FailureClassified] = {}
    way: dict[str, str] = {}
    for commit in commits:
        for decision in commit.decisions:
            match decision:
                case d.FailureClassified():
                    ended[decision.turn] = decision
                case d.RetryScheduled():
                    way[decision.turn] = "retry"
                case d.ChainAdvanced():
                    way[decision.turn] = "chain"
                case d.AttemptStarted():
                    before = last.get(decision.turn)
                    if before is not None:
                        failed = ended[decision.turn]
                        assert failed.attempt == before.attempt == decision.attempt - 1
                        assert failed.replayable
                        assert decision.turn in way or decision.profile != before.profile
                        if isinstance(commit.fact, f.CallUnknown):
                            assert commit.fact.effects is Effects.NONE
                    last[decision.turn] = decision
                    way.pop(decision.turn, None)
                    started.add(f"{decision.turn}/{decision.attempt}")
    return started

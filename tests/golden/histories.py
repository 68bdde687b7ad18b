"""The recorded histories: the main stories of a turn, played once and kept as JSON lines.

    python -m tests.golden.histories            record histories that are not there yet
    python -m tests.golden.histories --again    record all of them anew (after a change of `logic`, never else)

Each line is a row: position, hash in hex, and the stored bytes as text. A recorded history is never changed
while its `logic` number lives: it stands for the logs of users, which have to verify for ever.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from standby.events import facts as f
from standby.events.codec import GENESIS, decode, encode, link
from standby.events.decisions import BlockSet
from standby.events.policy import Policy, Probes, Recovery
from standby.events.store import StoredRow
from standby.events.vocabulary import Effects, TurnKind
from tests.properties.play import KINDS, Play, chain

__all__ = ["FOLDER", "REFUSED", "STORIES", "read", "write"]

FOLDER = Path(__file__).resolve().parents[1] / "data" / "golden" / "histories"
ALPHA, BETA = "openai/alpha", "anthropic/beta"
PLAIN = chain(ALPHA, BETA)


def world(policy: Policy = PLAIN) -> Play:
    """Two runtimes; one credential for the first provider and two for the second."""
    play = Play(known_profiles=0)
    play.submit(0, f.PolicyAdopted(policy=policy))
    play.observe(1, 0)
    return play


def rate_limit_wait() -> Play:
    """A rate limit states a wait, which is waited for; the second try answers."""
    play = world()
    play.story([0], wait_s=7, pause=250)
    return play


def billing_rotation() -> Play:
    """An empty wallet disables its profile, the next profile answers, and the next turn starts there."""
    play = world()
    play.observe(0, 1)
    play.story([2], pause=250)
    play.story([], pause=250)
    return play


def overload_fallback_and_return() -> Play:
    """An overloaded provider uses up a short budget; the fallback answers, with a notice; later the return."""
    play = world(chain(ALPHA, BETA, recovery=Recovery(transient_retries=1)))
    play.story([1, 1], pause=250)
    play.story([1, 1], pause=250)
    play.sleep(60_000)
    play.story([], pause=250)
    return play


def cancelled() -> Play:
    """The user stops a turn that waits, and another whose call is under way and ends all the same."""
    play = world()
    key = play.request()
    play.sleep(250)
    play.fail(kind=0, wait_s=9)
    play.sleep(1_000)
    play.cancel()
    play.submit(0, f.WaitEnded(turn=key))
    play.request()
    play.sleep(100)
    play.cancel(1)
    play.sleep(400)
    play.late(1, good=True)
    return play


def taken_over() -> Play:
    """A runtime dies in mid-call; another takes the turn over and settles it; the dead one reports late."""
    play = world()
    play.request(continuable=True)
    play.sleep(300)
    play.take_over(0, 1)
    play.unknown(0)
    play.late(0, 0, 0, 1)
    play.sleep(5_000)
    play.wait()
    play.succeed()
    return play


def sticky() -> Play:
    """A rate limit drives a session to its fallback; it stays first until its cap, and not over a restart."""
    play = world(chain(ALPHA, BETA, recovery=Recovery(max_retries=0)))
    play.story([0], pause=250)
    for _ in range(4):
        play.sleep(9 * 60_000)
        play.story([], pause=250)
    play.story([0], pause=250)
    play.restart(0)
    play.story([], pause=250)
    return play


def check_in_cooldown() -> Play:
    """The selected model is blocked, checked near the end on a throttle, and found well again."""
    play = world(chain(ALPHA, BETA, recovery=Recovery(max_retries=0), probes=Probes(margin_ms=60_000)))
    job = {"kind": KINDS.index(TurnKind.CRON), "pause": 250}  # no ordinary turn: nothing sticks
    play.story([0], wait_s=300, **job)
    play.sleep(120_000)
    play.story([], **job)
    play.sleep(130_000)
    play.story([0], wait_s=50, **job)
    play.story([], **job)
    play.sleep(30_000)
    play.story([], **job)
    return play


def unsafe() -> Play:
    """A try had effects: without a way to continue the turn ends; with one the same model goes on, marked."""
    play = world()
    play.request()
    play.sleep(250)
    play.effects()
    play.fail(kind=3)
    play.request(continuable=True)
    play.sleep(250)
    play.fail(0, kind=3, effects=2)
    play.wait()
    play.succeed()
    play.request()
    play.sleep(250)
    play.fail(0, kind=1, delivered=True)
    return play


def two_runtimes() -> Play:
    """Two processes on one log see each other's cooldowns."""
    play = world(chain(ALPHA, BETA, recovery=Recovery(max_retries=0)))
    play.request(session=0, instance=0)
    play.request(session=1, instance=1)
    play.sleep(250)
    play.fail(0, kind=0, wait_s=600)
    play.fail(1, kind=0, wait_s=120, late_ms=50)
    play.sleep(250)
    play.succeed(0)
    play.succeed(0)
    play.sleep(30_000)
    play.story([], session=1, instance=1, pause=250)
    play.quota(0, exhausted=False)
    play.restart(1, checkpoint=True)
    play.story([], session=1, instance=1, pause=250)
    return play


STORIES: dict[str, Callable[[], Play]] = {
    story.__name__: story
    for story in (
        rate_limit_wait,
        billing_rotation,
        overload_fallback_and_return,
        cancelled,
        taken_over,
        sticky,
        check_in_cooldown,
        unsafe,
        two_runtimes,
    )
}


def _chained(bodies: list[bytes]) -> list[StoredRow]:
    rows, previous = [], GENESIS
    for position, body in enumerate(bodies, 1):
        previous = link(previous, body)
        rows.append(StoredRow(position, body, previous))
    return rows


def altered_by_a_millisecond() -> list[StoredRow]:
    """A block ends a millisecond later than decided; every hash was computed anew."""
    bodies = [row.body for row in rate_limit_wait().store.read()]
    for at, body in enumerate(bodies):
        commit = decode(body)
        blocks = [one for one in commit.decisions if isinstance(one, BlockSet)]
        if blocks:
            later = msgspec.structs.replace(blocks[0], until_ms=blocks[0].until_ms + 1)
            decisions = tuple(later if one is blocks[0] else one for one in commit.decisions)
            bodies[at] = encode(msgspec.structs.replace(commit, decisions=decisions))
            return _chained(bodies)
    raise AssertionError("the story sets no block")


def forged_commit() -> list[StoredRow]:
    """At the end stands an answer that nobody got: a commit of another turn's words, with a valid chain."""
    rows = list(rate_limit_wait().store.read())
    answered = decode(rows[-1].body)
    turn = f.TurnRequested(turn="t-forged", session="s-one")
    return _chained([*(row.body for row in rows), encode(msgspec.structs.replace(answered, fact=turn))])


def impossible_fact() -> list[StoredRow]:
    """A report of an attempt that was never made, with no decisions and a valid chain."""
    rows = list(rate_limit_wait().store.read())
    last = decode(rows[-1].body)
    fact = f.CallUnknown(turn="t-1", attempt=9, effects=Effects.NONE)
    commit = msgspec.structs.replace(last, fact=fact, decisions=())
    return _chained([*(row.body for row in rows), encode(commit)])


def former_epoch() -> list[StoredRow]:
    """A runtime that had been replaced wrote once more."""
    play = two_runtimes()
    rows = list(play.store.read())
    last = decode(rows[-1].body)
    fact = f.CompactionCompleted(session="s-one", count=1)
    commit = msgspec.structs.replace(last, fact=fact, decisions=(), epoch=1, runtime="other")
    return _chained([*(row.body for row in rows), encode(commit)])


REFUSED: dict[str, Callable[[], list[StoredRow]]] = {
    made.__name__: made for made in (altered_by_a_millisecond, forged_commit, impossible_fact, former_epoch)
}
"""Histories whose chain is in order and which have to be refused all the same."""


def write(name: str, rows: list[StoredRow]) -> None:
    lines = [
        json.dumps(
            {"position": row.position, "hash": row.hash.hex(), "body": row.body.decode()}, ensure_ascii=False
        )
        for row in rows
    ]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(name: str) -> list[StoredRow]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    plain = [json.loads(line) for line in lines]
    return [StoredRow(one["position"], one["body"].encode(), bytes.fromhex(one["hash"])) for one in plain]


def main(args: list[str]) -> int:
    for name, story in STORIES.items():
        if "--again" in args or not (FOLDER / f"{name}.jsonl").exists():
            write(name, list(story().store.read()))
            print(f"recorded {name}")
    for name, made in REFUSED.items():
        if "--again" in args or not (FOLDER / f"{name}.jsonl").exists():
            write(name, made())
            print(f"recorded {name}, to be refused")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

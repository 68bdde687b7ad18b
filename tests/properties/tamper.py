"""What somebody may do to a stored log: each of these has to be refused."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from standby.engine.verify import Report, verify
from standby.events.codec import GENESIS, decode, encode, link
from standby.events.commit import Commit
from standby.events.decisions import AttemptStarted, BlockSet, ChainPlanned, RetryScheduled, TurnAnswered
from standby.events.store import Head, StoredRow

__all__ = ["TAMPERINGS", "chained", "head_of", "refused", "tampered"]


def chained(bodies: Sequence[bytes]) -> list[StoredRow]:
    """Rows with a valid chain over these bytes."""
    rows: list[StoredRow] = []
    previous = GENESIS
    for position, body in enumerate(bodies, 1):
        previous = link(previous, body)
        rows.append(StoredRow(position, body, previous))
    return rows


def head_of(rows: Sequence[StoredRow]) -> Head:
    return Head(rows[-1].position, rows[-1].hash)


def changed_byte(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    """One bit of one stored byte."""
    row = rows[at]
    byte = how % len(row.body)
    body = bytearray(row.body)
    body[byte] ^= 1 << how % 8
    rows[at] = row._replace(body=bytes(body))
    return rows


def changed_hash(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    broken = bytearray(rows[at].hash)
    broken[how % 32] ^= 1 << how % 8
    rows[at] = rows[at]._replace(hash=bytes(broken))
    return rows


def removed(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    return rows[:at] + rows[at + 1 :]


def removed_and_renumbered(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    """A row is gone, and the positions after it were written anew."""
    left = removed(rows, at, how)
    return [row._replace(position=position) for position, row in enumerate(left, 1)]


def doubled(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    return [*rows[: at + 1], rows[at], *rows[at + 1 :]]


def swapped(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    other = (at + 1) % len(rows)
    rows[at], rows[other] = rows[other], rows[at]
    return rows


def cut(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    return rows[:at]


def forged_timestamp(rows: list[StoredRow], at: int, how: int) -> list[StoredRow] | None:
    """A decided moment is later by a millisecond, and the chain was computed anew."""
    return _forged(rows, at, _later)


def forged_removal(rows: list[StoredRow], at: int, how: int) -> list[StoredRow] | None:
    """A decision is left out, and the chain was computed anew."""
    return _forged(
        rows, at, lambda c: c.decisions[: how % len(c.decisions)] + c.decisions[how % len(c.decisions) + 1 :]
    )


def forged_rules(rows: list[StoredRow], at: int, how: int) -> list[StoredRow] | None:
    """A decision names other rules."""
    return _forged(
        rows, at, lambda c: (*c.decisions[:-1], msgspec.structs.replace(c.decisions[-1], rules=("FLOW-99",)))
    )


def forged_model(rows: list[StoredRow], at: int, how: int) -> list[StoredRow] | None:
    """Another model is said to have been tried, planned or to have answered."""

    def other(commit: Commit) -> tuple[object, ...] | None:
        for index, one in enumerate(commit.decisions):
            changed: object
            if isinstance(one, AttemptStarted | TurnAnswered):
                changed = msgspec.structs.replace(one, model="openai/forged")
            elif isinstance(one, ChainPlanned):
                changed = msgspec.structs.replace(one, selected="openai/forged")
            else:
                continue
            return (*commit.decisions[:index], changed, *commit.decisions[index + 1 :])
        return None

    return _forged(rows, at, other)


def loose_bytes(rows: list[StoredRow], at: int, how: int) -> list[StoredRow]:
    """The same commit with a blank in its bytes, and the chain computed anew: not the bytes that we write."""
    bodies = [row.body for row in rows]
    bodies[at] = bodies[at].replace(b'","', b'", "', 1)
    return chained(bodies)


def _later(commit: Commit) -> tuple[object, ...] | None:
    for index, one in enumerate(commit.decisions):
        if isinstance(one, BlockSet | RetryScheduled):
            changed = msgspec.structs.replace(one, until_ms=one.until_ms + 1)
            return (*commit.decisions[:index], changed, *commit.decisions[index + 1 :])
    return None


def _forged(rows: list[StoredRow], at: int, change: object) -> list[StoredRow] | None:
    """From `at` on, the first commit with decisions that can be changed so; None when there is none."""
    for index in [*range(at, len(rows)), *range(at)]:
        commit = decode(rows[index].body)
        if not commit.decisions:
            continue
        decisions = change(commit)  # type: ignore[operator]  # a table of callables
        if decisions is not None:
            bodies = [row.body for row in rows]
            bodies[index] = encode(msgspec.structs.replace(commit, decisions=decisions))
            return chained(bodies)
    return None


TAMPERINGS = {
    made.__name__: made
    for made in (
        changed_byte, changed_hash, removed, removed_and_renumbered, doubled, swapped, cut,
        forged_timestamp, forged_removal, forged_rules, forged_model, loose_bytes,
    )
}  # fmt: skip


def tampered(name: str, rows: Sequence[StoredRow], at: int, how: int) -> list[StoredRow] | None:
    """The rows after this was done at about this place; None when there is nothing to do it to."""
    made = TAMPERINGS[name](list(rows), at % len(rows), how)
    return None if made is None or made == list(rows) else made


def refused(rows: Sequence[StoredRow], head: Head) -> Report:
    """What verification says of the rows, against a head that was kept elsewhere."""
    return verify(rows, head=head)

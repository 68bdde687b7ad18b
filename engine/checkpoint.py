"""Checkpoints: a view as bytes, so that a long log opens without folding it from the start.

A checkpoint is a convenience and never truth: it carries the hash of the commit that it stands at and the
number of the code that folded it, and is ignored when either does not fit. `verify` folds from the start and
holds the newest checkpoint against its own fold, byte by byte.
"""

from collections import deque
from hashlib import sha256
from typing import Any

import msgspec

from standby.engine.apply import LOGIC
from standby.engine.turn import Turn
from standby.engine.view import View
from standby.events.policy import Policy
from standby.events.store import CheckpointRow
from standby.projections.health import Health
from standby.projections.runtimes import Runtime
from standby.projections.sessions import Session
from standby.projections.tables import LazyTable

VERSION = f"view 3, logic {LOGIC}"
"""Raised whenever the shape of the view or of anything in it changes."""


class _Image(msgspec.Struct, array_like=True):
    position: int
    policy_at: int
    policies: list[tuple[int, Policy]]
    order: dict[str, tuple[str, ...]]
    known_profiles: dict[str, tuple[str, ...]]
    profiles: dict[str, Health]
    runtimes: dict[str, Runtime]
    sessions: dict[str, msgspec.Raw]
    turns: dict[str, msgspec.Raw]
    settled: list[tuple[int, str]]


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(_Image)
_session_decoder = msgspec.msgpack.Decoder(Session)
_turn_decoder = msgspec.msgpack.Decoder(Turn)


def _raw(records: dict[str, Any]) -> dict[str, msgspec.Raw]:
    return {
        key: record if isinstance(record, msgspec.Raw) else msgspec.Raw(_encoder.encode(record))
        for key, record in records.items()
    }


def dump(view: View) -> bytes:
    """The view as bytes: a digest, then its content. Equal views give equal bytes."""
    image = _Image(
        view.position,
        view.policy_at,
        sorted(view.policies.items()),
        view.order,
        view.known_profiles,
        dict(view.profiles),
        dict(view.runtimes),
        _raw(view.sessions.everything()),
        _raw(view.turns.everything()),
        list(view.settled),
    )
    body = _encoder.encode(image)
    return sha256(body).digest() + body


def load(row: CheckpointRow) -> View | None:
    """The view of a checkpoint, or None if it was written by other code or is not what was written."""
    digest, body = row.body[:32], row.body[32:]
    if row.version != VERSION or sha256(body).digest() != digest:
        return None
    try:
        image = _decoder.decode(body)
    except msgspec.MsgspecError:
        return None
    if image.position != row.position:
        return None
    view = View()
    view.position, view.hash = image.position, row.hash
    view.policy_at, view.policies = image.policy_at, dict(image.policies)
    view.order, view.known_profiles = image.order, image.known_profiles
    view.profiles.update(image.profiles)
    view.runtimes.update(image.runtimes)
    view.sessions = LazyTable(Session, image.sessions, _session_decoder.decode)
    view.turns = LazyTable(Turn, image.turns, _turn_decoder.decode)
    view.settled = deque(image.settled)
    return view

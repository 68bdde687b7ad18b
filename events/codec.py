"""Bytes of a commit, and the chain over them.

JSON, because an auditor can read it. Struct fields in declared order, mappings sorted, defaults left out,
integers only: the same commit gives the same bytes on every machine. The chain is taken over the stored
bytes, which are never rewritten; only a decoded copy is ever upcast.
"""

from hashlib import sha256

import msgspec

from standby.events.commit import SHAPE, Commit
from standby.events.errors import BadReport, DamagedLog, LogTooNew, LogTooOld
from standby.events.facts import Fact
from standby.events.upcasters import upcast

GENESIS = sha256(b"standby log, format 1").digest()
"""The hash before the first commit."""

COMMIT_LIMIT = 64 * 1024
"""Largest commit in bytes."""

_encoder = msgspec.json.Encoder(order="deterministic")
_fact_encoder = msgspec.msgpack.Encoder()
_fact_decoder: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)
_decoder = msgspec.json.Decoder(Commit)


class _Shape(msgspec.Struct):
    shape: int = SHAPE
    draw: int | None = None
    """Only commits of the first version have it."""


_shape_decoder = msgspec.json.Decoder(_Shape)


def canonical(fact: Fact) -> Fact:
    """The fact as it will be read again: every value of its declared type, plain words as enum members.

    What is decided about a fact must be decided about what is stored, and what cannot be read again must never
    be written.

    Raises:
        BadReport: a value is not of its type, is too large, or cannot be encoded.
    """
    try:
        return _fact_decoder.decode(_fact_encoder.encode(fact))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise BadReport(f"{type(fact).__name__} cannot be reported like this: {error}") from error


def encode(commit: Commit) -> bytes:
    """The canonical bytes of a commit."""
    return _encoder.encode(commit)


def shape_of(body: bytes) -> int:
    """The shape that a readable commit was written in."""
    return _shape_decoder.decode(body).shape


def decode(body: bytes, position: int | None = None) -> Commit:
    """The commit in `body`, brought to the present shape.

    Raises:
        LogTooNew, LogTooOld: it was written in a shape that this version does not know.
        DamagedLog: it is no commit in any known shape; `position` is named.
    """
    try:
        commit = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _decode_old(body, position, error)
    if commit.shape == SHAPE:
        return commit
    return _decode_old(body, position, None)


def _decode_old(body: bytes, position: int | None, error: Exception | None) -> Commit:
    where = "commit" if position is None else f"position {position}"
    try:
        found = _shape_decoder.decode(body)
        if found.draw is not None:
            raise LogTooOld(
                f"{where} was written by the first version of standby; read this log with standby 0.1.0"
            )
        shape = found.shape
        if shape > SHAPE:
            raise LogTooNew(
                f"{where} is of shape {shape}, this version reads shapes up to {SHAPE}; "
                "use a newer standby to open this log"
            )
        if shape == SHAPE:
            raise error or DamagedLog(f"{where} has an impossible shape", position)
        plain = upcast(msgspec.json.decode(body), shape)
        if plain["shape"] != SHAPE:
            raise DamagedLog(f"{where} is of shape {shape}, which no version ever wrote", position)
        return msgspec.convert(plain, Commit)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise DamagedLog(f"{where} is not a readable commit: {failure}", position) from failure


def link(previous: bytes, body: bytes) -> bytes:
    """The hash of a commit: SHA-256 over its predecessor's hash and its own stored bytes."""
    return sha256(previous + body).digest()

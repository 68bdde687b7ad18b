"""One connection of a scripted provider: requests in, scripted replies out."""

import asyncio
import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import msgspec

from standby.hosts.providers.secret import fingerprint
from standby.hosts.providers.values import Wire
from standby.hosts.providers.wire import ATTEMPT_HEADER
from standby.hosts.scripted.bodies import Piece, error_event, stream, whole
from standby.hosts.scripted.failures import failure_of
from standby.hosts.scripted.records import Request, RequestLog
from standby.hosts.scripted.replies import Kind, Reply
from standby.hosts.scripted.script import Script

_BODY_BYTES_MAX: Final = 64 << 20

_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,8}")

_PATHS: Final = {"/chat/completions": Wire.OPENAI_CHAT, "/messages": Wire.ANTHROPIC_MESSAGES}

_USED_UP: Final = Reply(
    status=501,
    body={"error": {"message": "The script holds no reply for this request.", "type": "script_used_up"}},
)


@dataclass
class Shared:
    """What all connections of one server share; touched from its event loop only."""

    script: Script
    log: RequestLog
    taken: Counter[int]
    """How many replies of each lane were given."""
    connections: Iterator[int] = field(default_factory=itertools.count)
    positions: Iterator[int] = field(default_factory=itertools.count)


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    headers: Mapping[str, str]


class _ClientLeft(ConnectionError):
    """The client closed its side while it was being served."""


class Exchange:
    """Serves one connection until either side is done with it."""

    def __init__(self, shared: Shared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._shared = shared
        self._reader = reader
        self._writer = writer
        self._connection = next(shared.connections)

    async def run(self) -> None:
        """Serve request after request while the connection is kept alive."""
        while (head := await self._head()) is not None:
            raw = await self._body(head.headers)
            wire = next((w for end, w in _PATHS.items() if head.path.endswith(end)), None)
            if raw is None:
                await self._send(400, {}, {"error": {"message": "The body is too large or has no length."}})
                return
            if head.method == "POST" and wire is not None:
                if not await self._call(head, wire, raw):
                    return
            else:
                await self._other(head)
            if head.headers.get("connection", "").lower() == "close":
                return

    async def _head(self) -> _Head | None:
        try:
            raw = await self._reader.readexactly(1)
            if not raw.isalpha():
                # TLS, say: its client waits for an answer to a hello that never ends as HTTP does.
                await self._write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
                return None
            raw += await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None
        first, *lines = raw.decode("latin-1").split("\r\n")
        method, _, target = first.partition(" ")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.lower()] = value.strip()
        return _Head(method, target.partition(" ")[0].partition("?")[0], headers)

    async def _body(self, headers: Mapping[str, str]) -> bytes | None:
        """The body of the request; None when its length cannot be read or is more than is taken."""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await self._chunked()
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > _BODY_BYTES_MAX:
            return None
        return await self._reader.readexactly(int(size))

    async def _chunked(self) -> bytes | None:
        body = b""
        while True:
            size = (await self._reader.readline()).split(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(size) or len(body) + int(size, 16) > _BODY_BYTES_MAX:
                return None
            body += await self._reader.readexactly(int(size, 16))
            await self._reader.readline()
            if int(size, 16) == 0:
                return body

    async def _other(self, head: _Head) -> None:
        """What is no call: the request log, the list of models, anything else."""
        if head.method == "GET" and head.path == "/_requests":
            await self._send(200, {}, [request.public() for request in self._shared.log.all()])
        elif head.method == "GET" and head.path.endswith("/models"):
            names = dict.fromkeys(lane.model for lane in self._shared.script.lane if lane.model)
            models = [{"id": name, "object": "model", "owned_by": "scripted"} for name in names]
            await self._send(200, {}, {"object": "list", "data": models})
        else:
            message = f"Nothing is served at {head.method} {head.path}."
            await self._send(404, {}, {"error": {"message": message, "type": "not_found"}})

    async def _call(self, head: _Head, wire: Wire, raw: bytes) -> bool:
        """Reply to a call; False when the connection is over afterwards."""
        try:
            asked = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            asked = None
        body: dict[str, Any] = asked if isinstance(asked, dict) else {}
        reply, request = self._note(head, wire, body, readable=isinstance(asked, dict))
        try:
            await self._pause(reply.delay_ms)
            return await self._perform(reply, request)
        except ConnectionError:
            self._shared.log.ended(request, "client_left")
            return False

    def _note(self, head: _Head, wire: Wire, body: dict[str, Any], *, readable: bool) -> tuple[Reply, Request]:
        """Choose the reply and log the request, before anything is sent."""
        key = _key(head.headers)
        model = str(body.get("model", ""))
        alias = self._shared.script.alias(key)
        reply = self._choose(model, alias) if readable else Reply(kind=Kind.BAD_REQUEST)
        request = Request(
            position=next(self._shared.positions),
            received_ms=time.monotonic() * 1000,
            at_ms=time.time_ns() // 1_000_000,
            wire=wire,
            model=model,
            key=fingerprint(key),
            key_name=alias,
            attempt=head.headers.get(ATTEMPT_HEADER, ""),
            stream=body.get("stream") is True,
            connection=self._connection,
            answered=reply.summary,
            status=0 if reply.close or reply.hang else _status(reply, wire, body),
            body=body,
        )
        self._shared.log.add(request)
        return reply, request

    def _choose(self, model: str, alias: str) -> Reply:
        script, taken = self._shared.script, self._shared.taken
        place = script.lane_for(model, alias)
        if place is None:
            return script.default or Reply(kind=Kind.NO_SUCH_MODEL)
        reply = script.lane[place].at(taken[place])
        taken[place] += 1
        return reply or script.default or _USED_UP

    async def _perform(self, reply: Reply, request: Request) -> bool:
        if reply.close:
            self._shared.log.ended(request, "cut")
            return False
        if reply.hang:
            await self._pause(None)
        number = request.position + 1
        headers = {_request_id_header(request.wire): f"req_scripted{number:08d}", **reply.headers}
        streamed = request.stream and reply.body is None and request.status < 300
        if reply.error_after is not None and request.stream:
            streamed = True
        if streamed:
            return await self._stream(reply, request, headers)
        content, failing_headers = _content(reply, request, number)
        headers = {**failing_headers, **headers}
        if reply.cut_after is None and reply.hang_after is None and reply.end_after is None:
            self._shared.log.ended(request, "sent")
            await self._send(request.status, headers, content)
            return True
        return await self._break_off(reply, request, headers, content)

    async def _break_off(
        self, reply: Reply, request: Request, headers: Mapping[str, str], content: bytes | str | object
    ) -> bool:
        """Half of a body that is not streamed, then what the script says."""
        data = _encoded(content)
        half = data[: len(data) // 2]
        size = len(half) if reply.end_after is not None else len(data)
        await self._write(_head_bytes(request.status, {"content-length": str(size), **headers}) + half)
        if reply.hang_after is not None:
            await self._pause(None)
        self._shared.log.ended(request, "cut")
        return reply.end_after is not None

    async def _stream(self, reply: Reply, request: Request, headers: Mapping[str, str]) -> bool:
        head = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "transfer-encoding": "chunked",
            **headers,
        }
        await self._write(_head_bytes(request.status, head))
        limit = next((n for n in (reply.cut_after, reply.end_after, reply.hang_after) if n is not None), None)
        if limit is None:
            limit = reply.error_after
        pieces, whole_answer = _until(stream(reply, request.wire, request.body, request.position + 1), limit)
        for piece in pieces:
            await self._pause(reply.chunk_delay_ms if piece.carries else 0)
            await self._write(_chunk(piece.data))
        if reply.error_after is not None:
            number = request.position + 1
            body = reply.body if reply.body is not None else _failure_body(reply, request, number)
            await self._write(_chunk(error_event(request.wire, body).data))
        elif not whole_answer and reply.hang_after is not None:
            await self._pause(None)
        elif not whole_answer and reply.cut_after is not None:
            self._shared.log.ended(request, "cut")
            return False
        self._shared.log.ended(request, "sent" if whole_answer else "cut")
        await self._write(b"0\r\n\r\n")
        return True

    async def _send(self, status: int, headers: Mapping[str, str], content: object) -> None:
        data = _encoded(content)
        size = {"content-length": str(len(data))}
        await self._write(_head_bytes(status, size | dict(headers)) + data)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _pause(self, delay_ms: int | None) -> None:
        """Wait (None: for ever), but notice when the client leaves meanwhile."""
        if delay_ms == 0:
            return
        try:
            async with asyncio.timeout(None if delay_ms is None else delay_ms / 1000):
                await self._reader.read(1)
        except TimeoutError:
            return
        # Either the end, or a second request on top of the first: no client of ours sends that.
        raise _ClientLeft


def _until(pieces: list[Piece], limit: int | None) -> tuple[list[Piece], bool]:
    """The pieces up to so many that carry text, and whether that is the whole answer.

    A limit beyond the text breaks off before the terminal events: a broken stream is never a whole one.
    """
    if limit is None:
        return pieces, True
    places = [place for place, piece in enumerate(pieces) if piece.carries]
    if not places:
        return pieces[:1], False
    end = places[0] if limit == 0 else places[min(limit, len(places)) - 1] + 1
    return pieces[:end], False


def _status(reply: Reply, wire: Wire, body: Mapping[str, Any]) -> int:
    if reply.status is not None:
        return reply.status
    if reply.kind in (Kind.ANSWER, Kind.REFUSED):
        return 200 if reply.error_after is None or body.get("stream") is True else 500
    if reply.error_after is not None and body.get("stream") is True:
        return 200
    return failure_of(reply, wire, "", "").status


def _content(reply: Reply, request: Request, number: int) -> tuple[object, Mapping[str, str]]:
    """The body of a reply in one piece, and the headers that belong to it."""
    if reply.body is not None:
        return reply.body, {}
    if reply.kind in (Kind.ANSWER, Kind.REFUSED):
        return whole(reply, request.wire, request.body, number), {}
    failure = failure_of(reply, request.wire, request.model, f"req_scripted{number:08d}")
    return failure.body, failure.headers


def _failure_body(reply: Reply, request: Request, number: int) -> object:
    return failure_of(reply, request.wire, request.model, f"req_scripted{number:08d}").body


def _key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()


def _request_id_header(wire: Wire) -> str:
    return "request-id" if wire is Wire.ANTHROPIC_MESSAGES else "x-request-id"


def _encoded(content: object) -> bytes:
    return content.encode() if isinstance(content, str) else msgspec.json.encode(content)


def _head_bytes(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Scripted"
    merged = {"content-type": "application/json"} | {name.lower(): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in merged.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"

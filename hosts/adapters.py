"""Evidence from other people's objects: HTTP replies of httpx, and the exceptions of LLM client libraries.

The client libraries (`openai`, `anthropic`, LiteLLM, pydantic-ai) are read by the shape of their exceptions and
never imported: an exception is asked for the attributes that one of them would have. The exception itself, what
it wraps (`error`, `body`, `response`, `original_exception`) and its causes are walked, each object once, so
that a ring of causes ends. The first thing that says a status, a code or a body gives it; what lies nearer
wins.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from standby.engine.reading.extract import Reply
from standby.events.vocabulary import Origin, Stage

_MAX_OBJECTS = 32
_MAX_TEXT = 65_536
_CAUSES = (
    "error",
    "cause",
    "original_exception",
    "original_error",
    "exception",
    "inner",
    "reason",
    "__cause__",
)
_STATUS_NAMES = ("status_code", "status", "http_status", "code")
_TRANSPORT_NAMES = frozenset({
    "apiconnectionerror", "apitimeouterror", "modelconnectionerror", "modeltimeouterror", "connectionerror",
    "timeouterror", "connecterror", "connecttimeout", "readtimeout", "readerror", "remoteprotocolerror",
    "connectionreseterror", "brokenpipeerror", "clientconnectorerror", "serverdisconnectederror",
})  # fmt: skip
_ABORT_NAMES = frozenset({"cancellederror", "aborterror", "runcancelled", "keyboardinterrupt"})


def reply_from_response(
    response: httpx.Response,
    *,
    provider: str = "",
    model: str = "",
    received_ms: int = 0,
    body: str | bytes | None = None,
    stage: Stage = Stage.PROMPT,
) -> Reply:
    """The failure that an httpx response tells of.

    `body` is what was read of a stream; without it the response's content is taken if it has been read.
    `received_ms` is the epoch time at which it came.
    """
    if body is None:
        try:
            body = response.text
        except httpx.ResponseNotRead:
            body = None
    return Reply(
        provider=provider,
        model=model,
        status=response.status_code,
        headers=dict(response.headers),
        body=body,
        stage=stage,
        received_ms=received_ms,
    )


def reply_from_exception(
    error: BaseException,
    *,
    provider: str = "",
    model: str = "",
    received_ms: int = 0,
    stage: Stage = Stage.PROMPT,
) -> Reply:
    """The failure behind an exception of httpx, of one of the client libraries, or of any other.

    Never raises on what the exception holds, whatever its attributes do when they are asked for.
    """
    found = _Found()
    for thing in _chain(error):
        found.take(thing)
    return Reply(
        provider=provider or found.provider,
        model=model or found.model,
        status=found.status,
        code=found.code or None,
        error_type=found.error_type or None,
        param=found.param or None,
        headers=found.headers,
        body=found.body,
        message=" | ".join(dict.fromkeys(found.messages))[:_MAX_TEXT] or type(error).__name__,
        origin=_origin(error, found),
        stage=stage,
        received_ms=received_ms,
    )


def _get(thing: object, name: str) -> Any:
    """An attribute or key of a foreign object, None if it has none or will not say."""
    try:
        if isinstance(thing, Mapping):
            return thing.get(name)
        return getattr(thing, name, None)
    except Exception:  # a property of somebody else's object may raise anything
        return None


def _chain(error: BaseException) -> Iterator[object]:
    """The exception and everything that it wraps, nearest first, each once, at most 32."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_OBJECTS:
        thing = waiting.pop(0)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield thing
        if isinstance(thing, BaseExceptionGroup):
            waiting.extend(thing.exceptions[:8])
        for name in _CAUSES:
            inner = _get(thing, name)
            if isinstance(inner, BaseException | Mapping):
                waiting.append(inner)
        if isinstance(thing, BaseException) and thing.__cause__ is None and not thing.__suppress_context__:
            waiting.append(thing.__context__) if thing.__context__ is not None else None


class _Found:
    """What the walk has gathered; the nearest saying of each kind stays."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.code = ""
        self.error_type = ""
        self.param = ""
        self.provider = ""
        self.model = ""
        self.headers: dict[str, str] = {}
        self.body: object = None
        self.messages: list[str] = []

    def take(self, thing: object) -> None:
        if isinstance(thing, Mapping):
            if self.body is None:
                self.body = dict(thing)
            return
        self._take_names(thing)
        self._take_response(_get(thing, "response"))
        self._take_body(_get(thing, "body"))
        headers = _get(thing, "headers")
        if not self.headers and isinstance(headers, Mapping):
            self.headers = {str(k): str(v) for k, v in list(headers.items())[:100]}
        wait = _get(thing, "retry_after")
        if isinstance(wait, int | float | str) and not isinstance(wait, bool):
            self.headers.setdefault("retry-after", str(wait))
        if isinstance(thing, BaseException):
            text = _text(thing)
            if text:
                self.messages.append(text)

    def _take_names(self, thing: object) -> None:
        if self.status is None:
            self.status = _status(thing)
        self.code = self.code or _word(_get(thing, "code")) or _word(_get(thing, "provider_error_code"))
        self.error_type = (
            self.error_type or _word(_get(thing, "type")) or _word(_get(thing, "provider_error_type"))
        )
        self.param = self.param or _word(_get(thing, "param"))
        self.provider = self.provider or _word(_get(thing, "llm_provider"))
        self.model = self.model or _word(_get(thing, "model_name")) or _word(_get(thing, "model"))

    def _take_response(self, response: object) -> None:
        if response is None:
            return
        if self.status is None:
            self.status = _status(response)
        headers = _get(response, "headers")
        if not self.headers and isinstance(headers, Mapping):
            self.headers = {str(k): str(v) for k, v in list(headers.items())[:100]}
        for name in ("text", "content", "body"):
            self._take_body(_get(response, name))

    def _take_body(self, body: object) -> None:
        if self.body is not None:
            return
        is_text = isinstance(body, str | bytes) and len(body) > 0
        if is_text or (isinstance(body, Mapping | list) and body):
            self.body = body


def _word(value: object) -> str:
    """A code or type: a short text that is not merely a number."""
    if isinstance(value, str) and 0 < len(value) <= 100 and not value.strip().isdigit():
        return "" if value in ("None", "error") else value
    return ""


def _status(thing: object) -> int | None:
    for name in _STATUS_NAMES:
        value = _get(thing, name)
        if isinstance(value, str) and value.strip().isdigit() and len(value) < 5:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return None


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # the same as in _get
        text = ""
    name = type(error).__name__
    if not text:
        return name
    return text[:_MAX_TEXT] if isinstance(error, BaseExceptionGroup) else f"{name}: {text[:_MAX_TEXT]}"


def _origin(error: BaseException, found: _Found) -> Origin:
    """Where the failure arose: an abort is nobody's fault, a transport error has no reply behind it."""
    if isinstance(error, asyncio.CancelledError) or type(error).__name__.lower() in _ABORT_NAMES:
        return Origin.ABORT
    names = {cls.__name__.lower() for cls in type(error).__mro__}
    is_transport = isinstance(error, httpx.TransportError | OSError) or bool(names & _TRANSPORT_NAMES)
    return Origin.TRANSPORT if is_transport and found.body is None else Origin.PROVIDER

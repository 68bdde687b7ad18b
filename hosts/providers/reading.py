"""One call of a provider as a value without I/O: bytes and faults go in, one outcome comes out.

    begin(status, headers)   the head of the reply is there
    feed(bytes) -> text      new output for the caller, "" if none
    end()                    the body ended in good order
    fail(...)                anything else happened
    outcome()                what the call came to

Who moves the bytes does not matter, so the shells stay thin and every path is tested without
sockets. After the provider has said how its answer ended, no fault of the connection can undo the
answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from standby.events.vocabulary import Origin, Stage
from standby.hosts.providers.anthropic import AnthropicMessages
from standby.hosts.providers.openai import OpenAiChat
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.sse import SseDecoder, SseEvent
from standby.hosts.providers.values import (
    ANSWER_BYTES_MAX,
    BODY_BYTES_MAX,
    Answer,
    CallFailed,
    CallSucceeded,
    Code,
    Endpoint,
    Outcome,
    Wire,
)
from standby.hosts.providers.wire import Broken, StreamReader, WireFormat

FORMATS: Final[Mapping[Wire, WireFormat]] = {
    Wire.OPENAI_CHAT: OpenAiChat(),
    Wire.ANTHROPIC_MESSAGES: AnthropicMessages(),
}

# The first one present is the id by which the provider's support finds the request.
_REQUEST_ID_HEADERS: Final = ("request-id", "x-request-id", "x-generation-id", "cf-ray")

# Says nothing about a failure, and may be a credential of its own.
_DROPPED_HEADERS: Final = frozenset({"set-cookie", "set-cookie2"})


class Reading:
    """The state of one call; see the module."""

    def __init__(self, endpoint: Endpoint, model: str, secret: Secret | None) -> None:
        self.delivered = False
        """Set by the shell before it hands text to the caller."""
        self._endpoint = endpoint
        self._model = model
        self._secret = secret
        self._format = FORMATS[endpoint.wire]
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._size = 0
        self._events: SseDecoder | None = None
        self._reader: StreamReader | None = None
        self._text: list[str] = []
        self._outcome: Outcome | None = None

    @property
    def finished(self) -> bool:
        """Nothing that could still come in changes the outcome."""
        return self._outcome is not None or (self._reader is not None and self._reader.finished)

    @property
    def answered(self) -> bool:
        """The terminal event of an answer came in, so that the connection may be used again."""
        return self._reader is not None and self._reader.finished and self._reader.complete

    def begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The head of the reply: its status and headers (repeated ones are joined by a comma)."""
        self._status = status
        for name, value in headers:
            key = name.lower()
            if key not in _DROPPED_HEADERS:
                before = self._headers.get(key)
                self._headers[key] = value if before is None else f"{before}, {value}"
        if self._good and "text/event-stream" in self._headers.get("content-type", ""):
            self._events, self._reader = SseDecoder(), self._format.reader()

    def feed(self, chunk: bytes) -> str:
        """Take bytes of the body; the output text that they complete."""
        self._size += len(chunk)
        if self._events is not None:
            if self._size > ANSWER_BYTES_MAX:
                self._too_large()
                return ""
            return self._take(self._events.feed(chunk))
        limit = ANSWER_BYTES_MAX if self._good else BODY_BYTES_MAX
        self._body += chunk[: limit - len(self._body)]
        if self._size > limit:
            if self._good:
                self._too_large()
            else:
                self.end()
        return ""

    def end(self) -> str:
        """The body ended in good order; the output text that only now is complete.

        A server that was asked for a stream may answer in one piece: then all of its text comes
        here.
        """
        if self._outcome is not None:
            return ""
        if not self._good:
            self._outcome = self._failed(Broken(body=self._body_text()))
            return ""
        if self._events is not None and self._reader is not None:
            text = self._take(self._events.end())
            self._settle(self._reader.end())
            return text
        result = self._format.parse(bytes(self._body))
        self._settle(result)
        return result.text if isinstance(result, Answer) else ""

    def fail(self, *, code: str, message: str, error_type: str = "", origin: Origin = Origin.TRANSPORT) -> None:
        """The transport, the clock or the caller ended the call.

        An error reply whose body was cut is still that error reply.
        """
        if self._outcome is not None:
            return
        if self._reader is not None and (self._reader.complete or self._reader.broken):
            self._settle(self._reader.end())
            return
        provider_spoke = self._status != 0 and not self._good and origin is Origin.TRANSPORT
        broken = Broken(
            body="" if self._good else self._body_text(),
            code=code,
            message=message,
            origin=Origin.PROVIDER if provider_spoke else origin,
        )
        self._outcome = self._failed(broken, error_type)

    def outcome(self) -> Outcome:
        """What the call came to; asking before it is over ends it here."""
        if self._outcome is None:
            self.end()
        assert self._outcome is not None
        if self.delivered and not self._outcome.delivered:
            self._outcome = replace(self._outcome, delivered=True)
        return self._outcome

    @property
    def _good(self) -> bool:
        return 200 <= self._status < 300

    def _take(self, events: list[SseEvent]) -> str:
        assert self._reader is not None
        texts = []
        for event in events:
            if self._reader.finished:
                break
            texts.append(self._reader.feed(event))
        text = "".join(texts)
        if text:
            self._text.append(text)
        return text

    def _too_large(self) -> None:
        self._outcome = self._failed(
            Broken(
                code=Code.TOO_LARGE,
                message=f"The reply is longer than {ANSWER_BYTES_MAX} bytes.",
            )
        )

    def _settle(self, result: Answer | Broken) -> None:
        if isinstance(result, Broken):
            self._outcome = self._failed(result)
            return
        answer = replace(
            result,
            model=self._masked(result.model),
            response_id=self._masked(result.response_id),
            request_id=self._request_id(),
        )
        self._outcome = CallSucceeded(answer=answer, delivered=self.delivered)

    def _failed(self, broken: Broken, error_type: str = "") -> CallFailed:
        return CallFailed(
            provider=self._endpoint.provider,
            model=self._model,
            wire=self._endpoint.wire,
            status=None if self._good or self._status == 0 else self._status,
            headers={self._masked(name): self._masked(value) for name, value in self._headers.items()},
            body=self._masked(broken.body[:BODY_BYTES_MAX]),
            size=len(broken.body.encode()) if self._good else self._size,
            code=self._masked(broken.code),
            message=self._masked(broken.message),
            error_type=error_type,
            stage=Stage.STREAM if self._good else Stage.PROMPT,
            origin=broken.origin,
            delivered=self.delivered,
            partial_text="".join(self._text) or broken.text,
            usage=broken.usage or (self._reader.usage if self._reader is not None else None),
            request_id=self._request_id(),
        )

    def _masked(self, text: str) -> str:
        return self._secret.mask(text) if self._secret is not None else text

    def _body_text(self) -> str:
        return bytes(self._body[:BODY_BYTES_MAX]).decode("utf-8", "replace")

    def _request_id(self) -> str:
        return self._masked(next((self._headers[n] for n in _REQUEST_ID_HEADERS if n in self._headers), ""))

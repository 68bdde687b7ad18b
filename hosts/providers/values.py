"""What goes into a call of a provider and what comes out of it, as plain values.

    Endpoint + model + Prompt + Secret ──► HttpRequest ──► (sockets) ──► CallSucceeded | CallFailed

A failure is a value, never an exception, and it is raw: nothing here says what it means.
Classification reads it later (`standby.engine.reading.extract.extract`), so it must hold all that the
provider or the transport said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from standby.events.vocabulary import Origin, Stage, StopKind

BODY_BYTES_MAX: Final = 1 << 20
"""How much of a failing reply is kept (1 MiB)."""
ANSWER_BYTES_MAX: Final = 32 << 20
"""An answer that is larger than this (32 MiB) is a failure, not a full memory."""
TIMEOUT_MS: Final = 600_000
"""Budget of one attempt when the caller names none: ten minutes."""


class Wire(StrEnum):
    """The wire formats that are spoken natively."""

    OPENAI_CHAT = "openai-chat"
    ANTHROPIC_MESSAGES = "anthropic-messages"


class Code(StrEnum):
    """Codes that this side gives to failures for which no provider wrote one.

    The upper-case ones are the names that operating systems and other clients use for the same
    thing, so that one classification table reads both.
    """

    TIMED_OUT = "ETIMEDOUT"
    """The budget of the attempt ran out, or the operating system gave up."""
    REFUSED = "ECONNREFUSED"
    RESET = "ECONNRESET"
    """The peer closed the connection before its reply was complete."""
    NOT_FOUND = "ENOTFOUND"
    """The host name has no address."""
    CERTIFICATE = "CERT_INVALID"
    """The certificate of the peer was not accepted; the commonest causes have names of their own
    (`CERT_HAS_EXPIRED` and so on), and the message says why.
    """
    TLS = "TLS_HANDSHAKE"
    NETWORK = "network_error"
    """Any other fault between here and the provider."""
    STREAM_ENDED = "ERR_STREAM_PREMATURE_CLOSE"
    """The stream ended in good order, but before its terminal event."""
    MALFORMED = "malformed_response"
    """The reply was not what the wire format promises."""
    EMPTY = "empty_response"
    """A complete reply without text and tool calls that is no output limit."""
    TOO_LARGE = "response_too_large"
    BAD_REQUEST = "invalid_local_request"
    """The request could not be built or sent as it was given; nothing left this host."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where calls of one provider go. Build it with `endpoint()`, which checks it."""

    provider: str
    base_url: str
    """Without a trailing slash and without the path of the wire format (`https://host/v1`)."""
    wire: Wire
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with each request, after those of the wire format."""
    max_tokens_key: str = "max_tokens"
    stream_usage: bool = True
    """Ask for usage counts at the end of a stream (a few servers refuse the option)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is asked, independent of provider and wire format.

    `messages` have the OpenAI roles (system, developer, user, assistant, tool) and contents (text
    or parts); the Anthropic wire translates them, tool calls, tool results and images included, so
    that one prompt can walk a chain of mixed providers. Its text appears in no repr.
    """

    messages: tuple[Mapping[str, Any], ...] = field(repr=False)
    system: str | None = field(default=None, repr=False)
    max_tokens: int | None = None
    temperature: float | None = None
    tools: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """OpenAI function tools, or tools in the form of the wire that they are meant for."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Goes into the request's JSON last and as it is, and wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, ready to be sent; headers (they hold the key) and content stay out of its repr."""

    method: str
    url: str
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them, with one meaning for all wires."""

    input_tokens: int = 0
    """All of the input, the cached part included."""
    output_tokens: int = 0
    """All of the output, reasoning included."""
    cached_tokens: int = 0
    """The part of the input that was read from the provider's cache."""
    cache_write_tokens: int = 0
    """The part of the input that was written to the provider's cache (billed apart by some)."""
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete reply."""

    text: str = field(repr=False)
    tool_calls: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    """In the form of an assistant message's `tool_calls` on every wire; arguments are JSON text."""
    stop: StopKind
    usage: Usage | None = None
    """None when the provider counted nothing."""
    model: str = ""
    """As the provider reports it, which may be more exact than what was asked for."""
    response_id: str = ""
    request_id: str = ""
    """The header by which the provider's support finds the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSucceeded:
    """The call gave a complete answer (one that ended at its output limit included)."""

    answer: Answer
    delivered: bool
    """Part of it reached the caller by `on_text` while it came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed:
    """The call gave no complete answer; everything that was said about it, unread."""

    provider: str
    model: str
    wire: Wire
    status: int | None = None
    """HTTP status if it was an error; None when the reply had begun well, since it then says
    nothing.
    """
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of the reply, names in lower case."""
    body: str = field(default="", repr=False)
    """The body of an error reply, or the event that reported the error, cut to `BODY_BYTES_MAX`."""
    size: int = 0
    """Length in bytes of that body before it was cut, as far as it was read."""
    code: str = ""
    """A `Code`, the stop reason of a refused or broken answer, or "" (the provider's own codes are
    in `body`).
    """
    message: str = field(default="", repr=False)
    """What the transport or this client says about it; "" when only the provider spoke."""
    error_type: str = ""
    """Name of the exception class, if there was one."""
    stage: Stage = Stage.PROMPT
    """STREAM once the head of a good reply (2xx) had come in."""
    origin: Origin = Origin.PROVIDER
    delivered: bool = False
    """Some of the output reached the caller by `on_text`: a replay would say it twice."""
    partial_text: str = field(default="", repr=False)
    """The output that had come in, whether delivered or not."""
    usage: Usage | None = None
    """What had been counted so far, if anything."""
    request_id: str = ""


Outcome: TypeAlias = CallSucceeded | CallFailed

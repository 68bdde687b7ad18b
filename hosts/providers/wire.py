"""What every wire format offers, and the small tools that both share.

A wire format is pure: it builds a request from values and reads an answer from bytes or events. It
never raises over what a provider sent: `Broken` says what could not be used, and keeps the words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from standby.events.vocabulary import Origin
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.sse import SseEvent
from standby.hosts.providers.values import (
    Answer,
    Code,
    Endpoint,
    HttpRequest,
    Prompt,
    Usage,
)

ATTEMPT_HEADER: Final = "x-standby-attempt"
"""Carries the id of the attempt, so that a provider's log can be laid beside ours."""


class BadRequest(Exception):
    """A request that cannot be built from what was given; its message holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Why a reply is no answer, in the words of whoever said so."""

    body: str = field(default="", repr=False)
    """What reported the failure; never the words of the model, which must not be read as evidence."""
    code: str = ""
    message: str = ""
    origin: Origin = Origin.PROVIDER
    text: str = field(default="", repr=False)
    """Output that came with a reply in one piece."""
    usage: Usage | None = None


class StreamReader(Protocol):
    """Reads the events of one stream and puts the answer together."""

    finished: bool
    """Nothing of use comes any more."""
    broken: Broken | None
    usage: Usage | None

    @property
    def complete(self) -> bool:
        """The provider said how the answer ended: what happens later cannot take it back."""

    def feed(self, event: SseEvent) -> str:
        """Take one event; the text that it adds, "" if none."""

    def end(self) -> Answer | Broken:
        """The whole answer after the last event; Broken when it is not whole."""


class WireFormat(Protocol):
    """One wire format."""

    def build(
        self,
        endpoint: Endpoint,
        model: str,
        prompt: Prompt,
        secret: Secret | None,
        *,
        stream: bool,
        attempt_id: str | None,
    ) -> HttpRequest:
        """The request; raises BadRequest when it cannot be built."""

    def parse(self, body: bytes) -> Answer | Broken:
        """Read the body of a reply that was not streamed."""

    def reader(self) -> StreamReader:
        """A reader for one stream."""


def header_text(what: str, value: str) -> str:
    """`value` as it may stand in a header; BadRequest (without the value) if it may not."""
    if not value or not value.isascii() or not value.isprintable() or value != value.strip():
        raise BadRequest(
            f"The {what} is empty or holds characters that a header cannot carry "
            "(spaces around it, line ends, letters outside ASCII)."
        )
    return value


def encode(body: Mapping[str, Any]) -> bytes:
    """JSON bytes of a request; BadRequest when it holds what JSON cannot say."""
    try:
        return _encoder.encode(body)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as fault:
        raise BadRequest(f"The request is not JSON: {type(fault).__name__}") from fault


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def decode_object(raw: bytes | str) -> dict[str, Any] | Broken:
    """A JSON object, or Broken with the raw text."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return Broken(body=text, code=Code.MALFORMED, message="The reply is not a JSON object.")


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one: providers leave out what they like."""
    return value if isinstance(value, Mapping) else {}


COUNT_MOST: Final = 1 << 53
"""Largest count that is believed; larger ones fit neither JSON numbers nor SQLite integers everywhere."""


def count(value: object) -> int:
    """A token count, 0 for anything that is none, a number that no model could have counted included."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= COUNT_MOST else 0


def text_of(content: object) -> str:
    """The text of a message's content, which is text or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if mapping(part).get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))

"""What a scripted provider may be told to reply.

A reply is one of three things, and may be slowed down or broken off:

    an answer               text or tool calls, whole or streamed, in the wire format of the request
    a named failure         `kind`, with the status, headers and body that the real provider sends
    anything at all         `status`, `headers` and `body` as given

Names of kinds say what the provider suffers from, not how standby reads it: reading is what the
scripts are there to test.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from standby.events.errors import BadScript


class Kind(StrEnum):
    """What is wrong at the provider."""

    ANSWER = "answer"
    RATE_LIMITED = "rate_limited"
    NO_CREDIT = "no_credit"
    OVERLOADED = "overloaded"
    BAD_KEY = "bad_key"
    REVOKED_KEY = "revoked_key"
    NO_SUCH_MODEL = "no_such_model"
    SERVER_ERROR = "server_error"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    GATEWAY_TIMEOUT = "gateway_timeout"
    REFUSED = "refused"
    """The answer, which may hold text, ends as a refusal: by its stop reason, under status 200."""


class Dialect(StrEnum):
    """Whose errors are imitated; by default those of the owner of the request's wire format."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OPENROUTER = "openrouter"
    GROQ = "groq"


_Ms = Annotated[int, Meta(ge=0, le=86_400_000)]
_Chunks = Annotated[int, Meta(ge=0)]
_Tokens = Annotated[int, Meta(ge=0)]


class Counts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Token counts of an answer, in place of those estimated from its length."""

    input: _Tokens = 0
    """All of the input, the cached part included."""
    output: _Tokens = 0
    cached: _Tokens = 0
    reasoning: _Tokens = 0


class _BadReply(BadScript, ValueError):
    """A ValueError too, so that msgspec adds the place in the file."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One reply. As TOML, each field is a key of the same name."""

    answer: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """In the form of an OpenAI message's `tool_calls`, on every wire."""
    finish: str = ""
    """Finish or stop reason to send, word for word, in place of the usual one."""
    usage: Counts | None = None
    model: str = ""
    """The model that the reply claims to come from; "" for the one asked for."""
    kind: Kind = Kind.ANSWER
    dialect: Dialect | None = None
    retry_after: Annotated[float, Meta(ge=0)] | None = None
    """Seconds that a rate limit or overload states, in the headers and, where usual, in the text."""
    status: Annotated[int, Meta(ge=200, le=599)] | None = None
    headers: dict[str, str] = {}
    """Added to the usual ones, and stronger than they are."""
    body: str | dict[str, Any] | None = None
    """Sent as it is (a table as JSON), whether or not the request asked for a stream."""
    delay_ms: _Ms = 0
    """Before anything is sent."""
    chunk_delay_ms: _Ms = 0
    """Before each chunk of a stream."""
    cut_after: _Chunks | None = None
    """Close the connection in the middle of the body after so many chunks of text."""
    end_after: _Chunks | None = None
    """End the body in good order, but without the rest, after so many chunks of text."""
    hang_after: _Chunks | None = None
    """Say nothing more after so many chunks of text, until the client leaves."""
    error_after: _Chunks | None = None
    """Report the failure `kind` (or `body`) inside the stream after so many chunks of text."""
    close: bool = False
    """Close the connection in place of a reply."""
    hang: bool = False
    """Send nothing at all until the client leaves."""
    repeat: bool = False
    """Give this reply to all later requests of the lane too; only for its last reply."""

    def __post_init__(self) -> None:
        afters = (self.cut_after, self.end_after, self.hang_after, self.error_after)
        if sum(after is not None for after in afters) + self.close + self.hang > 1:
            raise _BadReply(
                "A reply can be broken off in one way only: keep one of cut_after, end_after, "
                "hang_after, error_after, close and hang."
            )
        failing = self.kind not in (Kind.ANSWER, Kind.REFUSED)
        if failing and (self.tool_calls or self.finish or (self.answer and self.error_after is None)):
            raise _BadReply(
                f"A reply of kind {self.kind.value!r} holds no answer, unless it comes inside "
                "a stream (error_after)."
            )
        if self.error_after is not None and not failing and self.body is None:
            raise _BadReply("error_after needs a kind of failure, or the body of the error event.")
        if self.retry_after is not None and not failing:
            raise _BadReply("retry_after belongs to a kind of failure; give a header to say it in words.")

    @property
    def summary(self) -> str:
        """What it does, in a few words for the request log."""
        words = [self.kind.value if self.status is None else f"{self.kind.value} {self.status}"]
        afters = ("cut_after", "end_after", "hang_after", "error_after")
        words += [f"{name} {getattr(self, name)}" for name in afters if getattr(self, name) is not None]
        words += [name for name in ("close", "hang") if getattr(self, name)]
        return ", ".join(words)


def answer(text: str, *, delay_ms: int = 0, repeat: bool = False, usage: Counts | None = None) -> Reply:
    """A good answer."""
    return Reply(answer=text, delay_ms=delay_ms, repeat=repeat, usage=usage)


def rate_limited(
    retry_after: float | None = None, *, dialect: Dialect | None = None, repeat: bool = False
) -> Reply:
    """Too many requests, with the stated wait in seconds or without one."""
    return Reply(kind=Kind.RATE_LIMITED, retry_after=retry_after, dialect=dialect, repeat=repeat)


def no_credit(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The wallet is empty."""
    return Reply(kind=Kind.NO_CREDIT, dialect=dialect, repeat=repeat)


def overloaded(
    retry_after: float | None = None, *, dialect: Dialect | None = None, repeat: bool = False
) -> Reply:
    """The provider is too busy."""
    return Reply(kind=Kind.OVERLOADED, retry_after=retry_after, dialect=dialect, repeat=repeat)


def bad_key(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The key is not accepted."""
    return Reply(kind=Kind.BAD_KEY, dialect=dialect, repeat=repeat)


def revoked_key(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The account or organisation behind the key was shut for good."""
    return Reply(kind=Kind.REVOKED_KEY, dialect=dialect, repeat=repeat)


def no_such_model(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The model does not exist, or not for this account."""
    return Reply(kind=Kind.NO_SUCH_MODEL, dialect=dialect, repeat=repeat)


def server_error(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """Something broke inside the provider."""
    return Reply(kind=Kind.SERVER_ERROR, dialect=dialect, repeat=repeat)


def context_overflow(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The input is longer than the model's window."""
    return Reply(kind=Kind.CONTEXT_OVERFLOW, dialect=dialect, repeat=repeat)


def bad_request(*, dialect: Dialect | None = None, repeat: bool = False) -> Reply:
    """The request has a field that the provider does not accept."""
    return Reply(kind=Kind.BAD_REQUEST, dialect=dialect, repeat=repeat)


def gateway_timeout(*, repeat: bool = False) -> Reply:
    """A gateway before the provider gave up waiting (504 with a page for people)."""
    return Reply(kind=Kind.GATEWAY_TIMEOUT, repeat=repeat)


def content_refused(text: str = "", *, repeat: bool = False) -> Reply:
    """The provider ends the answer as a refusal (by its finish or stop reason)."""
    return Reply(answer=text, kind=Kind.REFUSED, repeat=repeat)


def empty_answer(*, repeat: bool = False) -> Reply:
    """A reply in perfect order that holds nothing."""
    return Reply(repeat=repeat)


def cut_stream(text: str, *, after: int, repeat: bool = False) -> Reply:
    """The connection breaks after so many chunks of text."""
    return Reply(answer=text, cut_after=after, repeat=repeat)


def stalled_stream(text: str, *, after: int, repeat: bool = False) -> Reply:
    """The provider falls silent after so many chunks of text."""
    return Reply(answer=text, hang_after=after, repeat=repeat)


def failing_stream(
    text: str,
    *,
    after: int,
    kind: Kind = Kind.OVERLOADED,
    dialect: Dialect | None = None,
    repeat: bool = False,
) -> Reply:
    """The provider reports a failure inside its stream after so many chunks of text."""
    return Reply(answer=text, error_after=after, kind=kind, dialect=dialect, repeat=repeat)


def closed(*, repeat: bool = False) -> Reply:
    """The connection is closed in place of a reply."""
    return Reply(close=True, repeat=repeat)


def hanging(*, repeat: bool = False) -> Reply:
    """Nothing comes until the client gives up."""
    return Reply(hang=True, repeat=repeat)

"""What a driver asks its shell to do, as values. The shell sends the result back, or throws what went wrong.

Do     work on the log or on credentials, which may block     its result
Call   call a provider                                        a providers.Outcome, or Claimed
Sleep  let time pass                                          whether the caller cancelled meanwhile
Tell   hand something to a callback of the caller             nothing
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import msgspec

from standby.events.vocabulary import Failure
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.values import Answer, Endpoint, Prompt
from standby.hosts.reports import Outcome


class StatusKind(Enum):
    """What a status line is about."""

    RETRY = "retry"
    FALLBACK = "fallback"
    NONE = "none"
    """Back to normal: whatever was shown goes away."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One passing line while a turn recovers (NOTE-5, REC-7). It replaces the one before it."""

    kind: StatusKind
    text: str = ""
    """As it is shown; "" when nothing is to be shown."""
    model: str = ""
    """The model that is tried, or tried again."""
    previous: str = ""
    """The model that was left (NOTE-6)."""
    reason: Failure | None = None
    attempt: int = 0
    """Which attempt of the outage comes after the wait, counted from 1."""
    of: int | None = None
    """How many attempts an outage gets in all; None when that is not known (any more)."""
    until_ms: int | None = None
    """When the wait is over."""

    def __str__(self) -> str:
        return self.text


class Do(NamedTuple):
    """Run this; it may block on a file."""

    work: Callable[[], Any]


class Call(NamedTuple):
    """Call a provider once; nothing is retried below."""

    endpoint: Endpoint
    model: str
    prompt: Prompt
    secret: Secret | None
    stream: bool
    timeout_ms: int
    attempt_id: str


class Claimed(NamedTuple):
    """What a shell may send back for a `Call` that it made by other means: the report, in its own words."""

    report: Outcome
    answer: Answer | None = None


class Sleep(NamedTuple):
    """Let so many milliseconds pass, fewer when the caller cancels."""

    ms: int


class Tell(NamedTuple):
    """Call a callback of the caller."""

    to: Callable[[Any], Any]
    value: Any


Effect: TypeAlias = Do | Call | Sleep | Tell

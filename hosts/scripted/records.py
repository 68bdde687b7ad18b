"""The request log of a scripted provider: what arrived, when, with which key, and what it got.

Keys are kept as digests, prompts not at all (a test in the same process may look at the parsed body).
A line of the log file is written and flushed before the first byte of the reply leaves, so that a
client that was killed after an answer can be held to it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition
from typing import Any, TextIO

import msgspec

from standby.hosts.providers.values import Wire


@dataclass(slots=True, kw_only=True)
class Request:
    """One request as it was received."""

    position: int
    """From 0, in order of receipt."""
    received_ms: float
    """Monotonic clock of this machine, in milliseconds: comparable between processes, not a date."""
    at_ms: int
    """The same moment in wall-clock milliseconds."""
    wire: Wire
    model: str
    key: str
    """Short digest of the API key ("" for none); see `standby.hosts.providers.fingerprint`."""
    key_name: str
    """Its name in the script, "" if it has none."""
    attempt: str
    """The header `x-standby-attempt`, "" if it was not sent."""
    stream: bool
    connection: int
    """Number of the connection: equal numbers mean that it was kept alive."""
    answered: str
    """What the script gave it."""
    status: int
    """HTTP status that was due (0 when the connection is closed or left hanging)."""
    ended: str = ""
    """How it ended: "" (still going), "sent", "cut", "client_left"."""
    body: Any = field(default=None, repr=False)
    """The parsed request; only in this process, neither in the file nor over HTTP."""

    def public(self) -> dict[str, Any]:
        """All but the body, ready for JSON."""
        names = (name for name in self.__dataclass_fields__ if name != "body")
        return {name: getattr(self, name) for name in names}


class RequestLog:
    """Collects requests, for readers in other threads too."""

    def __init__(self, path: str | Path | None) -> None:
        self._requests: list[Request] = []
        self._changed = Condition()
        # Open for as long as the server runs.
        self._file: TextIO | None = None
        if path is not None:
            self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - it stays open while the server runs

    def add(self, request: Request) -> None:
        """Keep it, and write it out before anything is replied."""
        with self._changed:
            self._requests.append(request)
            if self._file is not None:
                self._file.write(msgspec.json.encode(request.public()).decode() + "\n")
                self._file.flush()
            self._changed.notify_all()

    def ended(self, request: Request, how: str) -> None:
        """Note how the exchange ended."""
        with self._changed:
            request.ended = how
            self._changed.notify_all()

    def all(self) -> tuple[Request, ...]:
        """All requests so far."""
        with self._changed:
            return tuple(self._requests)

    def wait_for(self, count: int, timeout_s: float, *, ended: bool) -> bool:
        """Wait until so many requests came (and ended); False when the time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count(ended) >= count, timeout_s)

    def _count(self, ended: bool) -> int:
        return sum(1 for request in self._requests if request.ended or not ended)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

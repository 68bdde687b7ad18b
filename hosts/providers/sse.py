"""Server-sent events, read from bytes as they come.

Lines end with LF, CR or CRLF, in any cut; an event ends with an empty line. Comments (some gateways send
them to keep a connection open) and events without data are passed over. A line that was cut off is never
an event: what looks like half an answer must look like one.
"""

from typing import NamedTuple


class SseEvent(NamedTuple):
    """One event: its name ("" when the server gave none) and its data lines, joined by LF."""

    name: str
    data: str


class SseDecoder:
    """Turns byte chunks of any size into events."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes."""
        lines = (self._rest + chunk).splitlines(keepends=True)
        self._rest = b""
        # A CR at the very end may be the first half of a CRLF.
        if lines and not lines[-1].endswith(b"\n"):
            self._rest = lines.pop()
        return [event for line in lines if (event := self._line(line)) is not None]

    def end(self) -> list[SseEvent]:
        """The last event, if all its lines came but not the empty one after them."""
        rest, self._rest = self._rest, b""
        ended = self._line(rest) if rest.endswith(b"\r") else None
        last = self._dispatch()
        return [event for event in (ended, last) if event is not None]

    def _line(self, raw: bytes) -> SseEvent | None:
        line = raw.rstrip(b"\r\n").decode("utf-8", "replace").removeprefix("\ufeff")
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None

    def _dispatch(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return SseEvent(name, "\n".join(data)) if any(data) else None

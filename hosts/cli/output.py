"""What commands print: aligned and coloured on a terminal, plain and never wrapped when piped, or JSON.

Texts of providers and names of users are shown as they are, except for control characters: those come out as
visible escapes, so that no reply can move the cursor or colour the screen of whoever reads a log.
"""

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

MOMENTS = frozenset({
    "at_ms", "until_ms", "evidence_ms", "started_ms", "received_ms", "expires_ms", "soonest_ms", "first_ms",
    "deadline_ms", "checked_ms", "resets_at_ms", "requested_ms", "ended_ms", "last_used_ms", "delivered_ms",
    "last_failure_ms", "decided_ms",
})  # fmt: skip
"""Fields that hold a moment; every other `_ms` is a length of time."""

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
# Marks that turn the reading direction round could make one id look like another.
_CONTROL |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def clean(text: str) -> str:
    """A text with its control characters made visible."""
    return text.translate(_CONTROL)


def _timestamp(ms: int, zone: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(ms // 1000, zone).replace(microsecond=ms % 1000 * 1000)
    except (OverflowError, OSError, ValueError):
        return None


def local_time(ms: int | None) -> str:
    """A moment in local time with milliseconds; "-" for none."""
    if ms is None:
        return "-"
    found = _timestamp(ms, None)
    return f"{ms} ms" if found is None else found.isoformat(" ", "milliseconds")


def clock_time(ms: int) -> str:
    """A moment as local time of day with milliseconds."""
    return local_time(ms).rpartition(" ")[2]


def utc_time(ms: int) -> str:
    """A moment in UTC, as ISO 8601 with milliseconds."""
    found = _timestamp(ms, UTC)
    return "" if found is None else found.isoformat("T", "milliseconds").replace("+00:00", "Z")


def span(ms: int) -> str:
    """A length of time for people."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"
    seconds = -(-ms // 1000)
    hours, minutes = divmod(seconds // 60, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


def timed(value: Any) -> Any:
    """A plain value with the ISO form beside each moment: `until_ms` gets a sibling `until`."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, one in value.items():
            found[key] = timed(one)
            if key in MOMENTS and isinstance(one, int):
                found.setdefault(key.removesuffix("_ms"), utc_time(one))
        return found
    if isinstance(value, list | tuple):
        return [timed(one) for one in value]
    return value


class Out:
    """Where one command prints to: results on stdout, progress and remarks on stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, emoji=False, markup=False, soft_wrap=True)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """One line; a part is a text, or (text, style). Never wrapped by us."""
        if not self._console.is_terminal:
            # A long log is written ten times as fast without styles that nobody would see.
            words = "".join([part if isinstance(part, str) else part[0] for part in parts])
            sys.stdout.write(clean(words).rstrip() + "\n")
            return
        text = Text()
        for part in parts:
            words, style = (part, "") if isinstance(part, str) else part
            text.append(clean(words), style)
        text.rstrip()
        self._console.print(text)

    def title(self, text: str) -> None:
        """A heading."""
        self.line((text, "bold"))

    def table(self, rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), indent: int = 2) -> None:
        """Aligned columns; the last one is as long as it likes."""
        cells = [[clean(cell) for cell in row] for row in rows]
        lines = [list(head), *cells] if head else cells
        widths = [max(cell_len(cell) for cell in column) for column in zip(*lines, strict=True)]
        for number, row in enumerate(lines):
            padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
            text = " " * indent + "  ".join(padded).rstrip()
            self.line((text, "dim" if head and number == 0 else ""))

    def json(self, value: Any) -> None:
        """One JSON document on one line, keys as given. Moments get their ISO form."""
        json_line(msgspec.json.encode(timed(msgspec.to_builtins(value))))

    def raw(self, line: bytes) -> None:
        """A line that is JSON already."""
        json_line(line)

    def flush(self) -> None:
        """Let readers of a pipe see what there is."""
        sys.stdout.flush()


def json_line(line: bytes) -> None:
    """A line of JSON on stdout. JSON is UTF-8 whatever the locale: escapes of ours would make it invalid."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.encoding.lower() != "utf-8":
        out.reconfigure(encoding="utf-8", errors="backslashreplace")
    out.write(line.decode() + "\n")


def remark(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(clean(text) + "\n")


class Steps:
    """How far long work has come."""

    def __init__(self, progress: Progress | None, total: int, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=max(total, 1)) if progress is not None else None

    def at(self, position: int) -> None:
        """The work has come to `position`."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=position)


@contextmanager
def working(name: str, total: int) -> Iterator[Steps]:
    """Progress on stderr while the block runs, if that is a terminal; it goes away afterwards."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Steps(None, total, name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Steps(progress, total, name)

"""What the demo shows: lines as things happen, for people or as JSON. Any thread may show something."""

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self

import msgspec
from rich.console import Console
from rich.status import Status as Spinner
from rich.text import Text

from standby.events.commit import Commit
from standby.hosts.cli.output import clean, json_line
from standby.hosts.demo.timeline import Name, lines_of
from standby.hosts.runner import Status

_WORD = 8
"""Width of the word that opens a line."""


class Stage:
    """Prints; with `as_json` one JSON object a line, each with a `kind` and the seconds since the beginning."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, emoji=False, markup=False, soft_wrap=True)
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._spinner: Spinner | None = None

    def say(self, number: int, text: str) -> None:
        """The user says something."""
        self._show("say", "bold", f"{number}. {text}", turn=number, text=text, gap=True)

    def commit(self, position: int, commit: Commit, name: Name) -> None:
        """Something stands in the log now."""
        for decision, line in lines_of(commit, name):
            plain = msgspec.to_builtins(decision)
            if plain.get("profile"):
                plain["profile"] = name(plain["profile"])
            self._show(
                line.word,
                line.style,
                line.text,
                rules=line.rules,
                kind="event",
                text=line.text,
                position=position,
                at_ms=commit.at_ms,
                event=plain,
            )

    def answer(self, model: str, text: str, turn: str) -> None:
        """The user gets an answer."""
        self._show("answer", "green", f"{text}  ({model})", model=model, text=text, turn=turn)

    def failure(self, text: str, turn: str) -> None:
        """The user is told that there is none."""
        self._show("sorry", "red", text, text=text, turn=turn, kind="failure")

    def notice(self, text: str) -> None:
        """The user is told that the model changed, or came back."""
        self._show("notice", "bold yellow", text, text=text)

    def status(self, status: Status) -> None:
        """The one passing line; on a terminal only, since elsewhere nothing passes."""
        with self._lock:
            if self._as_json:
                self._show("status", "", status.text, text=status.text)
                return
            if not self._console.is_terminal:
                return
            if self._spinner is None:
                self._spinner = self._console.status("")
            if status.text:
                self._spinner.update(Text(status.text, "yellow"))
                self._spinner.start()
            else:
                self._spinner.stop()

    def remark(self, kind: str, text: str, **fields: Any) -> None:
        """A line about the demo itself."""
        with self._lock:
            if self._as_json:
                self._json(kind, fields)
            else:
                self._console.print(Text("\n".join(map(clean, text.splitlines()))))

    def gap(self) -> None:
        """An empty line, for people."""
        if not self._as_json:
            self._console.print()

    def table(self, kind: str, title: str, rows: list[list[str]], **fields: Any) -> None:
        """Aligned columns below a heading."""
        with self._lock:
            if self._as_json:
                self._json(kind, fields)
                return
            self._console.print(Text(title, "bold"))
            widths = [
                max((len(row[at]) for row in rows), default=0) for at in range(len(rows[0]) if rows else 0)
            ]
            for row in rows:
                cells = (f"{clean(cell):<{width}}" for cell, width in zip(row, widths, strict=True))
                self._console.print(Text(("  " + "  ".join(cells)).rstrip()))

    def _show(
        self,
        word: str,
        style: str,
        shown: str,
        *,
        rules: tuple[str, ...] = (),
        kind: str = "",
        gap: bool = False,
        **fields: Any,
    ) -> None:
        with self._lock:
            if self._as_json:
                self._json(kind or word, fields)
                return
            if gap:
                self._console.print()
            line = Text()
            line.append(f"{self._seconds:6.2f}  ", "dim")
            line.append(f"{word:<{_WORD}}", style)
            line.append(clean(shown))
            if rules:
                line.append(f"  [{' '.join(rules)}]", "dim")
            self._console.print(line)
            if not self._console.is_terminal:
                sys.stdout.flush()

    def _json(self, kind: str, fields: dict[str, Any]) -> None:
        line = {"kind": kind, "seconds": round(self._seconds, 3), **fields}
        json_line(msgspec.json.encode(line))
        sys.stdout.flush()

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._spinner is not None:
                self._spinner.stop()

"""Where each key of a TOML text stands, since `tomllib` gives values without positions.

The text was accepted by `tomllib` before, so nothing is checked here: this only walks over keys, headers and
values and notes the line at which each path begins. Paths are tuples of names and, inside arrays, of indices:

    [a]               ("a",)
    b.c = 1           ("a", "b"), ("a", "b", "c")
    d = [{ e = 1 }]   ("a", "d"), ("a", "d", 0), ("a", "d", 0, "e")
    [[f]]             ("f",), ("f", 0)
"""

import re
import tomllib
from bisect import bisect_left
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_NAME: Final = re.compile(r"""(?P<bare>[A-Za-z0-9_-]+)|"(?:\\.|[^"\\])*"|'[^']*'""")
# A closing delimiter of three quotes may have one or two quotes of the text right before it.
_STRING: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?""""{0,2}|\'\'\'.*?\'\'\''{0,2}|"(?:\\.|[^"\\])*"|'[^']*\'''', re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


class Lines:
    """Lines of a TOML text by path, counted from 1."""

    def __init__(self, text: str) -> None:
        text = text.replace("\r\n", "\n")
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[Path, int] = {}
        _Walk(text, self).document()

    def of(self, path: Path) -> int:
        """The line of a path; of something that is not there, the line of what would hold it."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1

    def __contains__(self, path: Path) -> bool:
        return path in self._lines

    def __bool__(self) -> bool:
        """Whether there is a text with lines; a file that is not TOML has none here."""
        return bool(self._lines)

    def note(self, path: Path, offset: int, *, again: bool = False) -> None:
        """A path begins at an offset; the first mention counts, unless `again` says that this one is better."""
        if again or path not in self._lines:
            self._lines[path] = bisect_left(self._newlines, offset) + 1


class _Walk:
    """One pass over a text; `at` is the offset that it has come to."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.text = text
        self.lines = lines
        self.at = 0
        self.lengths: dict[Path, int] = {}
        """Arrays of tables and how many tables each has so far."""

    def document(self) -> None:
        """Walk over everything."""
        table: Path = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        start = self.at
        array = self.text.startswith("[[", start)
        self.at += 2 if array else 1
        names = self._names()
        self.at += 2 if array else 1
        path: Path = ()
        for place, name in enumerate(names):
            path = (*path, name)
            last = place == len(names) - 1
            # A later `[a]` says better where `a` stands than an earlier `[a.b]`; an array begins but once.
            self.lines.note(path, start, again=last and not array)
            if last and array:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
                self.lines.note(path, start)
        return path

    def _pair(self, table: Path) -> None:
        start = self.at
        path = table
        for name in self._names():
            path = (*path, name)
            self.lines.note(path, start)
        self.at += 1  # the equals sign
        self._value(path)

    def _names(self) -> list[str]:
        names = []
        while True:
            self._skip(_SPACE)
            found = _NAME.match(self.text, self.at)
            if found is None:
                raise AssertionError(f"no key at offset {self.at}")
            names.append(found[0] if found["bare"] else tomllib.loads(f"name = {found[0]}")["name"])
            self.at = found.end()
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        first = self.text[self.at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            self._skip(_STRING if first in "\"'" else _SCALAR)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self._next() != "]":
            self.lines.note((*path, index), self.at)
            self._value((*path, index))
            index += 1
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while self._next() != "}":
            self._pair(path)
        self.at += 1

    def _next(self) -> str:
        """The first character of the next item, or the bracket that closes."""
        self._skip(_BLANK)
        if self.text.startswith(",", self.at):
            self.at += 1
            self._skip(_BLANK)
        return self.text[self.at]

    def _skip(self, what: re.Pattern[str]) -> int:
        found = what.match(self.text, self.at)
        if found is None:
            raise AssertionError(f"nothing known at offset {self.at}")
        self.at = found.end()
        return self.at


def dotted(path: Path) -> str:
    """A path as it would be written in the file: `models.providers."my host".models[0].id`."""
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
            continue
        found = _NAME.fullmatch(part)
        name = part if found and found["bare"] else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
        written += f".{name}" if written else name
    return written

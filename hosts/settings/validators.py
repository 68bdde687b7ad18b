"""A value of the settings file together with where it stands, and the checks that turn it into ours.

A check takes a `Cell` and returns what the settings hold, or raises `BadPolicy` with file, line and key. No
check repeats a value that may be a secret.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from standby.events.errors import BadPolicy
from standby.hosts.settings.lines import Lines, Path, dotted

LONGEST_MS: Final = 31 * 24 * 60 * 60 * 1000
"""No duration may be longer than 31 days; what is longer is a mistake of units."""
_PRICE_MOST: Final = 1_000_000
_NAME_MOST: Final = 200
_NUMBER_SHOWN: Final = 40

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AGENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = {bool: "a truth value", int: "a whole number", Decimal: "a number", str: "text", list: "a list"}


@dataclass(slots=True)
class Source:
    """The file that is being read."""

    name: str
    lines: Lines
    aliases: dict[str, str] = field(default_factory=dict)
    """Short names of models; known before any reference is read."""
    prefix: Path = ()
    """The table of the file that holds the settings; () when they are the whole file."""

    def error(self, path: Path, what: str) -> BadPolicy:
        """What is wrong with a key."""
        return BadPolicy(self.note(path, what))

    def note(self, path: Path, what: str) -> str:
        """A sentence about a key, in the form of all messages: file, line, key."""
        path = (*self.prefix, *path)
        line = f":{self.lines.of(path)}" if self.lines else ""
        return f"{self.name}{line}: {dotted(path)}: {what}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value, or the name of a key that its writer chose, with its place."""

    source: Source
    path: Path
    value: Any

    def error(self, what: str) -> BadPolicy:
        """What is wrong here."""
        return self.source.error(self.path, what)

    def unlike(self, expected: str) -> BadPolicy:
        """The value has another type than it must have."""
        found = "a table" if isinstance(self.value, dict) else _TYPES.get(type(self.value), "a date or time")
        return self.error(f"has to be {expected}, not {found}")

    def entries(self) -> "list[Cell]":
        """The entries of a list."""
        if not isinstance(self.value, list):
            raise self.unlike("a list")
        return [Cell(self.source, (*self.path, at), value) for at, value in enumerate(self.value)]


Check = Callable[[Cell], Any]


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` for the known word that is nearest, or nothing."""
    plain = {_plain(one): one for one in known}
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return f'; did you mean "{plain[close[0]]}"?' if close else ""


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower()) or word


# ---- numbers and words ---------------------------------------------------------------------------------------


def flag(cell: Cell) -> bool:
    """true or false."""
    if not isinstance(cell.value, bool):
        raise cell.unlike("true or false")
    return cell.value


def whole(least: int, most: int) -> Check:
    """A whole number between two bounds, both included."""

    def check(cell: Cell) -> int:
        if isinstance(cell.value, Decimal):
            raise cell.error(f"has to be a whole number; {_why_not_whole(cell.value)}")
        if not isinstance(cell.value, int) or isinstance(cell.value, bool):
            raise cell.unlike("a whole number")
        if not least <= cell.value <= most:
            raise cell.error(f"has to lie between {least} and {most}")
        return cell.value

    return check


def _why_not_whole(value: Decimal) -> str:
    text = str(value)[:_NUMBER_SHOWN]
    if not value.is_finite():
        return f"{text} is none"
    return f"{text} has a fraction" if value % 1 else f"write {text} without decimal point and exponent"


milliseconds: Final = whole(0, LONGEST_MS)


def seconds(cell: Cell) -> int:
    """A positive duration in seconds, as milliseconds."""
    return _scaled(cell, 1000, Decimal(LONGEST_MS) / 1000, least=1)


def price(cell: Cell) -> int:
    """A price in currency units for a million tokens, as millionths of a unit."""
    return _scaled(cell, 1_000_000, Decimal(_PRICE_MOST), least=0)


def _scaled(cell: Cell, factor: int, most: Decimal, least: int) -> int:
    value = cell.value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise cell.unlike("a number")
    number = Decimal(value) if isinstance(value, Decimal) or abs(value) < 10**15 else Decimal("Infinity")
    if not number.is_finite() or not 0 <= number <= most:
        raise cell.error(f"has to lie between 0 and {most}")
    scaled = number * factor
    if scaled != scaled.to_integral_value():
        raise cell.error(f"is finer than 1/{factor}, which is the smallest step here")
    if scaled < least:
        raise cell.error("has to be more than 0")
    return int(scaled)


def choice(words: Mapping[str, Any]) -> Check:
    """One of the given words; the settings hold what stands beside it."""

    def check(cell: Cell) -> Any:
        word = name(cell)
        if word not in words:
            raise cell.error(f'"{word}" is none of {", ".join(words)}{suggestion(word, words)}')
        return words[word]

    return check


def name(cell: Cell) -> str:
    """Text that is not empty, has no spaces around it, and no control characters."""
    word = cell.value
    if not isinstance(word, str):
        raise cell.unlike("text")
    if not word.strip():
        raise cell.error("is empty")
    if word != word.strip() or _CONTROL.search(word):
        raise cell.error("has spaces around it or control characters in it")
    if len(word) > _NAME_MOST:
        raise cell.error(f"is longer than {_NAME_MOST} characters")
    return word


def _unspaced(cell: Cell, forbidden: str, what: str) -> str:
    word = name(cell)
    if any(c.isspace() or c in forbidden for c in word):
        raise cell.error(f'"{word}" is not {what}')
    return word


# ---- who and what --------------------------------------------------------------------------------------------


def provider(cell: Cell) -> str:
    """The name of a provider."""
    return _unspaced(cell, "/:@", "the name of a provider: no spaces, '/', ':' or '@'")


def alias(cell: Cell) -> str:
    """A short name of a model."""
    return _unspaced(cell, "/", "a short name: no spaces and no '/'")


def profile(cell: Cell) -> str:
    """The name of an auth profile, `provider:default` or `provider:<email>` (ORD-6)."""
    return _unspaced(cell, "/", "the name of a profile: no spaces and no '/'")


def agent(cell: Cell) -> str:
    """The id of an agent; its credentials lie in a folder of that name."""
    word = name(cell)
    if not _AGENT.fullmatch(word):
        raise cell.error(f'"{word}" is not the id of an agent: use letters, digits, ".", "_" and "-"')
    return word


def url(cell: Cell) -> str:
    """A base URL; what it may not hold is checked with the provider. It is not repeated: keys hide in URLs."""
    word = name(cell)
    try:
        port = urlsplit(word).port
    except ValueError:
        port = 0
    if port == 0 or any(c.isspace() for c in word):
        raise cell.error("is not the URL of a server, such as http://localhost:8000/v1")
    return word


def email(cell: Cell) -> str:
    """The address of an account."""
    word = _unspaced(cell, "/", "an email address")
    if not all(word.partition("@")):
        raise cell.error(f'"{word}" is not an email address')
    return word


def model_name(cell: Cell) -> str:
    """The name of a model at its provider."""
    return _unspaced(cell, "", "the name of a model: no spaces")


def model(cell: Cell) -> str:
    """A model as `provider/model`; short names of models are resolved."""
    word = name(cell)
    if word in cell.source.aliases:
        return cell.source.aliases[word]
    before, _, after = _unspaced(cell, "", "a model: write it as provider/model").partition("/")
    if not before or not after or ":" in before or "@" in before:
        known = cell.source.aliases
        raise cell.error(
            f'"{word}" is neither provider/model nor the alias of a model{suggestion(word, known)}'
        )
    return word


# ---- lists ---------------------------------------------------------------------------------------------------


def items(check: Check, *, least: int = 0, distinct: bool = True) -> Check:
    """A list of which each entry passes a check."""

    def checked(cell: Cell) -> list[Any]:
        found: list[Any] = []
        for entry in cell.entries():
            value = check(entry)
            if distinct and value in found:
                raise entry.error(f'"{value}" stands in the list twice')
            found.append(value)
        if len(found) < least:
            raise cell.error("is an empty list; leave the key out, or name what belongs there")
        return found

    return checked


statuses: Final = items(whole(100, 599), least=1)
literals: Final = items(name, least=1)


def variables(cell: Cell) -> list[str]:
    """The name of an environment variable, or several to be tried in order."""
    entries = [cell] if isinstance(cell.value, str) else cell.entries()
    names: list[str] = []
    for entry in entries:
        # What stands here by mistake may be a key, so it is not repeated.
        if not isinstance(entry.value, str):
            raise entry.unlike("the name of an environment variable")
        if not _VARIABLE.fullmatch(entry.value):
            raise entry.error("has to be the name of an environment variable: letters, digits and '_'")
        if entry.value in names:
            raise entry.error(f"{entry.value} stands in the list twice")
        names.append(entry.value)
    if not names:
        raise cell.error("is an empty list; name at least one environment variable, or leave the key out")
    return names


def header_name(cell: Cell) -> str:
    """The name of an HTTP header."""
    word = name(cell)
    if not _HEADER.fullmatch(word):
        raise cell.error("is not the name of an HTTP header")
    return word


def header_value(cell: Cell) -> str:
    """The value of an HTTP header."""
    if not isinstance(cell.value, str):
        raise cell.unlike("text")
    if not cell.value.isascii() or _CONTROL.search(cell.value) or cell.value != cell.value.strip():
        raise cell.error("is not the value of an HTTP header: plain ASCII without spaces around it")
    return cell.value

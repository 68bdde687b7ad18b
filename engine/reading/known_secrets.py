"""Known secrets: the keys that a call used, found in whatever spelling a provider sends them back.

A provider may quote a key in other letter case, broken over lines, with JSON escapes (`\\u002d`, `\\/`), with
percent or HTML escapes, in base64 (alone, or inside `user:key`) or in hex. Instead of one pattern for each,
text and secrets are brought to one reduced form - escapes decoded, small letters, no white space and no
backslashes - and compared there; what is found is masked where it stands in the text.

A name that was squashed (no case, no punctuation) is compared with the squashed secret, both ways round: a part
of a secret tells of it too.
"""

import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable
from string import ascii_letters, digits

from standby.engine.classify.normalise import normalise

MASK = "[masked]"

_SHORTEST = 4
"""Shorter values would blank out ordinary words."""
_DISTINCT = 6
"""From this length on a value is looked for across spaces, in other encodings and squashed."""
_ESCAPED = (
    r"\\{1,8}u([0-9a-f]{4})|(\\{1,8}[bfnrt])|%(?:25){0,3}([0-9a-f]{2})"
    r"|&(?:\#x([0-9a-f]{1,5})|\#(\d{1,6})|(amp|quot|apos|lt|gt));"
)
_ESCAPE = re.compile(_ESCAPED, re.IGNORECASE)
_UNIT = re.compile(rf"{_ESCAPED}|[\s\0]+|\\", re.IGNORECASE)
_NAMED = {"amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}
_BASE64 = ascii_letters + digits + "+/-_"
_AROUND = 400


def _lower(text: str) -> str:
    """Small letters, as many as there were."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join([small if len(small := one.lower()) == 1 else one for one in text])


def _decoded(match: re.Match[str]) -> str:
    """The one character that an escape stands for; "" for what the reduced form leaves out."""
    code, blank, percent, sixteen, ten, name = match.groups()
    if name:
        return _NAMED[name.lower()]
    digits = code or percent or sixteen
    number = int(digits, 16) if digits else int(ten) if ten else 0
    if blank or not 0 < number < 0x110000:
        return ""
    character = chr(number)
    return "" if character.isspace() or character == "\\" else _lower(character)


def _reduced(text: str) -> str:
    if "\\" in text or "%" in text or "&" in text:
        text = _ESCAPE.sub(_decoded, text).replace("\\", "")
    if "\0" in text:
        text = text.replace("\0", "")
    return _lower("".join(text.split()))


class _Map:
    """The reduced form of a text, and where in the text each of its characters stands."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self._places: list[tuple[int, int]] = []
        size = at = 0
        for match in _UNIT.finditer(text):
            start, end = match.span()
            unit = _decoded(match) if match.lastindex else ""
            for part, place, width in ((_lower(text[at:start]), at, 1), (unit, start, end - start)):
                if part:
                    self._starts.append(size)
                    self._places.append((place, width))
                    parts.append(part)
                    size += len(part)
            at = end
        self._starts.append(size)
        self._places.append((at, 1))
        self.reduced = "".join(parts) + _lower(text[at:])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the text that `start` to `end` of the reduced form stand for."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, index: int) -> tuple[int, int]:
        number = bisect_right(self._starts, index) - 1
        place, width = self._places[number]
        if width == 1:
            place += index - self._starts[number]
        return place, place + width


def _in_base64(secret: bytes) -> Iterable[str]:
    """What base64 makes of a secret at each place it can have among threes of bytes: only the letters that do
    not depend on its neighbours."""
    for before in range(3):
        bits = 8 * (before + len(secret))
        first = -(-8 * before // 6)
        letters = b64encode(bytes(before) + secret).decode()[first : bits // 6].lower()
        yield letters
        yield letters.replace("+", "-").replace("/", "_")


class KnownSecrets:
    """The secrets of one call, made ready to be looked for."""

    __slots__ = ("_encoded", "_plain", "_short", "_squashed", "longest")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        plain: set[str] = set()
        encoded: set[str] = set()
        self._short: list[str] = []
        self._squashed: list[str] = []
        self.longest = 0
        """Length of the longest one."""
        for secret in secrets:
            reduced = _reduced(secret)
            if len(reduced) >= _DISTINCT:
                raw = secret.strip().encode("utf-8", "replace")
                percent = "".join([f"%{byte:02x}" for byte in raw])  # bytes, which read as Latin letters
                plain |= {reduced, _reduced(percent), _reduced("+".join(secret.split()))}
                encoded |= {*_in_base64(raw), raw.hex()}
            elif len(secret) >= _SHORTEST:
                self._short.append(secret)
            else:
                continue
            self.longest = max(self.longest, len(secret))
            squashed = "".join(filter(str.isalnum, normalise(secret)))
            if len(squashed) >= _DISTINCT:
                self._squashed.append(squashed)
        self._plain, self._encoded = sorted(plain), sorted(encoded)

    def __bool__(self) -> bool:
        return self.longest > 0

    def told_by(self, name: str) -> bool:
        """Whether a name, once squashed, holds a secret or is a good part of one."""
        if not self._squashed:
            return False
        squashed = "".join(filter(str.isalnum, normalise(name)))
        return any(
            secret in squashed or (len(squashed) >= _DISTINCT and squashed in secret)
            for secret in self._squashed
        )

    def hide(self, text: str, mark: str = MASK) -> str:
        """`text` with `mark` in place of each secret, in whatever spelling."""
        if not self.longest:
            return text
        for secret in self._short:
            if secret.lower() in text.lower():
                text = re.sub(re.escape(secret), lambda _: mark, text, flags=re.IGNORECASE)
        reduced = _reduced(text)
        if any(form in reduced for form in self._plain) or any(form in reduced for form in self._encoded):
            return self._hidden(text, mark)
        return text

    def _hidden(self, text: str, mark: str) -> str:
        found = _Map(text)
        spans: list[tuple[int, int]] = []
        for forms, wide in ((self._plain, False), (self._encoded, True)):
            for form in forms:
                at = found.reduced.find(form)
                while at >= 0:
                    span = found.span(at, at + len(form))
                    spans.append(_whole_run(text, *span) if wide else span)
                    at = found.reduced.find(form, at + (len(form) if wide else 1))
        kept: list[str] = []
        covered = 0
        for start, end in sorted(spans):
            if start >= covered:
                kept += (text[covered:start], mark)
            covered = max(covered, end)
        return "".join(kept) + text[covered:]


def _whole_run(text: str, start: int, end: int) -> tuple[int, int]:
    """A piece of base64 with the letters around it, which hold the rest of its bytes."""
    before, behind = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    start -= len(before) - len(before.rstrip(_BASE64))
    end += len(behind) - len(behind.lstrip(_BASE64 + "="))
    return start, end

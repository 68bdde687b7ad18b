"""Phrases: a small notation for what a provider may say, compiled to look-ups that cannot blow up.

A pattern is written in words that stand in the text one after another:

    insufficient ~2 credit|balance|fund        one of three words at most two words later
    ^ request fail $                           the whole of one part of the reply
    limit # request #                          any numbers
    you? have run+out of                       optional words, alternatives of several words

`~` alone allows three words between. Words are reduced to their base form first (`words.FORMS`), so
"exceeded" and "exceeds" are one. A pattern with characters beyond ASCII is for scripts without spaces: it is
looked for letter by letter, with `~` allowing eight letters between.

Finding is literal-first: every pattern is filed under its rarest mandatory word, and only patterns whose word
occurs in the reply are tried at all; of those, only the ones whose other mandatory words occur too. What is
tried then is a regular expression without nesting, with bounded gaps, over words of bounded length. Each is
compiled when it is first tried: a reply asks for a dozen of five hundred, and a process for not many more.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain

import msgspec

from standby.engine.classify.normalise import normalise
from standby.engine.reading.word_index import WordIndex, words_of

_GAP = 3
_DENSE_GAP = 8


class Say(msgspec.Struct, frozen=True):
    """One line of a phrase table. Its group is the part of the id before the dot."""

    id: str
    patterns: tuple[str, ...]
    seen: str = ""
    """Where the wording was seen: a provider, a runtime, a document."""

    @property
    def group(self) -> str:
        return self.id.partition(".")[0]


def say(id: str, *patterns: str, seen: str = "") -> Say:
    """A line of a phrase table, short to write."""
    return Say(id, patterns, seen)


class _Element(msgspec.Struct, frozen=True):
    """One position of a pattern: its alternatives, each a tuple of base words."""

    alternatives: tuple[tuple[str, ...], ...]
    optional: bool = False


class _Regex:
    """A regular expression that is compiled when it is first searched with."""

    __slots__ = ("expression", "search")

    def __init__(self, expression: Callable[[], str]) -> None:
        self.expression = expression
        self.search: Callable[[str], re.Match[str] | None] = self._first

    def _first(self, text: str) -> re.Match[str] | None:
        self.search = re.compile(self.expression(), re.MULTILINE).search
        return self.search(text)


class _Pattern(msgspec.Struct):
    """A pattern taken apart; `literal` when plain text suffices, else `regex`."""

    index: int
    literal: str = ""
    regex: _Regex | None = None
    need: frozenset[str] = frozenset()
    choices: tuple[tuple[str, ...], ...] = ()
    """Sets of words of which one must occur, one set a mandatory element of the pattern."""
    pieces: tuple[str, ...] = ()
    """For scripts without spaces: what has to occur at all."""


_ANY_NUMBER = _Element((("#",),))


@lru_cache(maxsize=4096)
def _base(option: str) -> tuple[str, ...]:
    return tuple(words_of(option.replace("+", " ")))


def _elements(pattern: str) -> list[_Element | int | str]:
    """Positions of a pattern: an element, a gap (its size) or an edge ("^", "$")."""
    found: list[_Element | int | str] = []
    for piece in normalise(pattern).split():
        if piece in "^$":
            found.append(piece)
        elif piece[0] == "~":
            found.append(int(piece[1:] or _GAP))
        elif piece == "#":
            found.append(_ANY_NUMBER)
        else:
            optional = piece.endswith("?")
            options = piece.rstrip("?").split("|")
            found.append(_Element(tuple(map(_base, options)), optional))
    return found


def _expression(elements: Iterable[_Element | int | str]) -> str:
    parts: list[str] = []
    for element in elements:
        if isinstance(element, int):
            parts.append(rf"(?: [^ \n]{{1,60}}){{0,{element}}}?")
        elif isinstance(element, str):
            parts.append(element if element == "^" else r" $")
        else:
            options = [
                "".join(r" \d{1,12}" if w == "#" else " " + re.escape(w) for w in alternative)
                for alternative in element.alternatives
            ]
            body = options[0] if len(options) == 1 else "(?:" + "|".join(options) + ")"
            parts.append(f"(?:{body})?" if element.optional else body)
    return "".join(parts) + r"(?= |$)"


def _dense_expression(pieces: Iterable[str]) -> str:
    return rf"[^\n]{{0,{_DENSE_GAP}}}?".join(map(re.escape, pieces))


def _taken_apart(pattern: str, index: int) -> _Pattern:
    if not pattern.isascii():
        pieces = tuple(piece.replace(" ", "") for piece in normalise(pattern).split("~"))
        return _Pattern(index, regex=_Regex(partial(_dense_expression, pieces)), pieces=pieces)
    elements = _elements(pattern)
    solid = [e for e in elements if isinstance(e, _Element) and not e.optional]
    choices = _anchor_choices(solid)
    single = [e.alternatives[0] for e in solid if len(e.alternatives) == 1]
    need = frozenset(word for words in single for word in words if word != "#")
    if len(single) == len(elements) and not any("#" in words for words in single):
        return _Pattern(index, " " + " ".join(chain(*single)) + " ", None, need, choices)
    return _Pattern(index, "", _Regex(partial(_expression, elements)), need, choices)


def _anchor_choices(solid: Iterable[_Element]) -> tuple[tuple[str, ...], ...]:
    choices: list[tuple[str, ...]] = []
    for element in solid:
        words = [max((w for w in words if w != "#"), key=len, default="") for words in element.alternatives]
        if all(words):
            choices.append(tuple(words))
    return tuple(choices)


_Filed = tuple[int, frozenset[str], str, tuple[frozenset[str], ...], _Regex | None]
"""A pattern under one of its words, as a bare tuple: dozens of them are gone through for each reply."""


def _filed(pattern: _Pattern, word: str) -> _Filed:
    """The pattern without what the word that it is filed under already says."""
    any_of = tuple(frozenset(words) for words in pattern.choices if len(words) > 1 and word not in words)
    if pattern.regex is None:
        any_of = ()
    return pattern.index, pattern.need - {word}, pattern.literal, any_of, pattern.regex


class Phrasebook:
    """All phrase lines, ready to be found in a reply."""

    def __init__(self, says: Sequence[Say]) -> None:
        self.says = tuple(says)
        self._order = {line.id: number for number, line in enumerate(self.says)}
        if len(self._order) != len(self.says):
            doubles = [id for id, times in Counter(s.id for s in says).items() if times > 1]
            raise ValueError(f"phrase ids used twice: {', '.join(doubles)}")
        patterns = [_taken_apart(text, number) for number, line in enumerate(says) for text in line.patterns]
        self._dense = [pattern for pattern in patterns if pattern.pieces]
        spaced = [pattern for pattern in patterns if not pattern.pieces]
        common = Counter(word for pattern in spaced for words in pattern.choices for word in words)
        self._by_word: dict[str, list[_Filed]] = {}
        for pattern in spaced:
            if not pattern.choices:
                raise ValueError(f"a pattern of {says[pattern.index].id} has no word to look it up by")
            anchors = min(pattern.choices, key=lambda words: sum([common[w] for w in words]))
            for word in dict.fromkeys(anchors):
                self._by_word.setdefault(word, []).append(_filed(pattern, word))

    def find(self, words: WordIndex) -> tuple[str, ...]:
        """Ids of all lines that occur, in table order."""
        found: set[int] = set()
        unique, flat = words.unique, words.flat
        for word in self._by_word.keys() & unique:
            for index, need, literal, any_of, regex in self._by_word[word]:
                if index in found or not need <= unique:
                    continue
                if regex is None:
                    if literal in flat:
                        found.add(index)
                    continue
                for alternatives in any_of:
                    if alternatives.isdisjoint(unique):
                        break
                else:
                    if regex.search(flat):
                        found.add(index)
        dense = words.dense
        if dense:
            for pattern in self._dense:
                regex = pattern.regex
                if regex and all(piece in dense for piece in pattern.pieces) and regex.search(dense):
                    found.add(pattern.index)
        return tuple([self.says[number].id for number in sorted(found)])

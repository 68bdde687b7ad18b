"""Lines of keys in TOML texts, among everything that looks like a key and is none."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.hosts.settings.lines import Lines, Path, dotted

TRICKY = '''\
# [comment] = "no table"
top = 1 # "not a string
"quoted key" = """
[fake]
top = 2 \\""" still text
""""
'literal.key' = \'\'\'
[[fake]]
it's = 'text'\'\'\'
site."x y".z = { a = 1, b.c = "}, d = 2", "e" = [ { f = 1 }, { f = 2 } ] } # } ]
list = [
  1, # one ]
  [ "two", "]" ],

  """three
""", { k = 1 },
]
when = 1979-05-27 07:32:00
"\\u0061bc" = 'end'

[ table . sub ]  # a header
x = "# not a comment"
[[rows]]
id = 1
[rows.deep]
y = 1
[[rows.more]]
z = 1
[[rows.more]]
z = 2
[[rows]]
id = 2
[[rows.more]]
z = 3
[table]
late = true
'''

EXPECTED: dict[Path, int] = {
    ("top",): 2,
    ("quoted key",): 3,
    ("literal.key",): 7,
    ("site",): 10,
    ("site", "x y"): 10,
    ("site", "x y", "z"): 10,
    ("site", "x y", "z", "b", "c"): 10,
    ("site", "x y", "z", "e", 1, "f"): 10,
    ("list",): 11,
    ("list", 0): 12,
    ("list", 1): 13,
    ("list", 1, 1): 13,
    ("list", 2): 15,
    ("list", 3): 16,
    ("list", 3, "k"): 16,
    ("when",): 18,
    ("abc",): 19,
    ("table", "sub"): 21,
    ("table", "sub", "x"): 22,
    ("rows",): 23,
    ("rows", 0): 23,
    ("rows", 0, "id"): 24,
    ("rows", 0, "deep", "y"): 26,
    ("rows", 0, "more", 0, "z"): 28,
    ("rows", 0, "more", 1): 29,
    ("rows", 0, "more", 1, "z"): 30,
    ("rows", 1): 31,
    ("rows", 1, "id"): 32,
    ("rows", 1, "more", 0, "z"): 34,
    ("table",): 35,
    ("table", "late"): 36,
}


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every path of TOML data."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from paths(one, (*path, name))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_nothing_that_looks_like_a_key_fools_the_locator(newline: str) -> None:
    text = TRICKY.replace("\n", newline)
    lines = Lines(text)
    assert {path: lines.of(path) for path in EXPECTED} == EXPECTED
    assert [path for path in paths(tomllib.loads(text)) if path not in lines] == []
    assert ("fake",) not in lines


def test_what_is_not_there_stands_where_it_would_be() -> None:
    lines = Lines("a = 1\n[b]\nc = 1\n[[d]]\n")
    assert lines.of(("b", "nothing", "below")) == 2
    assert lines.of(("d", 0, "id")) == 4
    assert lines.of(("nothing",)) == 1


@pytest.mark.parametrize(
    ("path", "written"),
    [
        (("a", "b-c", "d_1"), "a.b-c.d_1"),
        (("a", "x/y", 0, "z"), 'a."x/y"[0].z'),
        (("", 'say "no"\\'), '""."say \\"no\\"\\\\"'),
        (("a\n",), '"a\n"'),
    ],
)
def test_paths_are_written_as_in_the_file(path: Path, written: str) -> None:
    assert dotted(path) == written


# Texts that contain everything which the locator has to step over, but never a key name of `Writer`.
NOISE = st.sampled_from(
    [
        '"[no]"',
        "'{ no = 1'",
        '"""\n[no]\nno = 1 \\"\\"\\" \n"""',
        "'''\n''no = [\n'''",
        '"""a""""',
        "'''\n'b''''",
    ]
)


class Writer:
    """Writes a random TOML text in which each key has a name of its own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0
        self.parts: list[str] = []

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def name(self) -> str:
        self.count += 1
        return self.pick("k{:04}", '"k{:04}"', "'k{:04}'").format(self.count)

    def value(self, depth: int) -> str:
        kind = self.pick("noise", "plain", *(("array", "table") if depth else ()))
        if kind == "noise":
            return self.draw(NOISE)
        if kind == "plain":
            return self.pick(
                "1", "-1.5e3", "true", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "07:32:00", "nan"
            )
        count = self.draw(st.integers(0, 3))
        if kind == "array":
            gap = self.pick("", " ", "\n", " # ] , no = 1\n")
            inner = ",".join(f"{gap}{self.value(depth - 1)}{gap}" for _ in range(count))
            return f"[{inner}{gap}{',' if count and self.draw(st.booleans()) else ''}{gap}]"
        return "{" + ",".join(f" {self.key()} = {self.value(depth - 1)} " for _ in range(count)) + "}"

    def key(self) -> str:
        return self.pick(".", " . ").join(self.name() for _ in range(self.draw(st.integers(1, 3))))

    def pairs(self) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.parts.append(f"{self.pick('', '  ')}{self.key()}{self.pick('=', ' = ')}{self.value(2)}")
            self.parts.append(self.pick("", "\n", " # no = 1\n"))

    def text(self) -> str:
        self.parts.append("")
        self.pairs()
        for _ in range(self.draw(st.integers(0, 4))):
            key = self.key()
            self.parts.append(self.pick(f"[{key}]", f"[[{key}]]", f"[ {key} ] # [no]"))
            self.pairs()
        return "\n".join(self.parts)


@st.composite
def texts(draw: st.DrawFn) -> str:
    return Writer(draw).text()


@given(texts())
def test_each_key_of_any_text_is_found_where_it_stands(text: str) -> None:
    lines = Lines(text)
    there = list(paths(tomllib.loads(text)))
    assert [path for path in there if path not in lines] == []
    first = {
        name: text.count("\n", 0, found.start()) + 1
        for name in {part for path in there for part in path if isinstance(part, str)}
        if (found := re.search(name, text))
    }
    for path in there:
        if isinstance(name := path[-1], str):
            assert lines.of(path) == first[name]

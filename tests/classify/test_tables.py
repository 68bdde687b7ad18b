"""The tables themselves: every line can be reached, every name exists, a released version stays as it was."""

import hashlib
import re
import subprocess
import sys

import msgspec
import pytest

from standby.engine.classify.codes import FRAGMENTS, TOKENS, family_of_code
from standby.engine.classify.normalise import normalise, squash
from standby.engine.classify.providers import FAMILIES, families_containing, families_exact
from standby.engine.classify.table_rows import RowTable, TableRow
from standby.engine.classify.tables import RULESETS, TABLE
from standby.engine.reading.phrase_lines import SAYS, find_phrases
from standby.engine.reading.phrases import Phrasebook, Say, _taken_apart
from standby.engine.reading.word_index import FORMS, WordIndex

MARKS = {
    "status.leading", "status.body", "status.envelope", "shape.html", "shape.placeholder", "shape.blank",
    "shape.asks-more-than-limit", "shape.long-prose", "shape.headings",
}  # fmt: skip
"""Hits that say how a reply looked, set by the extraction."""
SAID = {line.id for line in SAYS} | {line.group for line in SAYS} | MARKS
CODES = {code for codes in TOKENS.values() for code in codes.split()}
ROWS = [(table.id, row) for table in RULESETS.values() for row in table.rows]

PINNED = {1: "2d95e518c361d48c"}
"""Table version -> digest of its content. Change a released table only together with its number."""


def content() -> str:
    parts = [msgspec.json.encode(SAYS), msgspec.json.encode(TOKENS), msgspec.json.encode(FRAGMENTS)]
    parts += [msgspec.json.encode(table.rows) for table in RULESETS.values()]
    parts += [msgspec.json.encode(FORMS), msgspec.json.encode({k: sorted(v) for k, v in FAMILIES.items()})]
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def test_the_content_of_a_table_version_is_pinned() -> None:
    assert content() == PINNED[TABLE], "the tables changed: give TABLE a new number, or re-pin before a release"


def sample(pattern: str) -> str:
    """A text that the pattern describes."""
    words: list[str] = []
    for piece in pattern.split():
        if piece in ("^", "$") or piece.endswith("?"):
            continue
        if piece.startswith("~"):
            words.append("filler")
        else:
            words.append("17" if piece == "#" else piece.split("|")[-1].replace("+", " "))
    return " ".join(words)


@pytest.mark.parametrize("line", SAYS, ids=lambda line: line.id)
def test_every_pattern_finds_what_it_describes(line: Say) -> None:
    for pattern in line.patterns:
        text = sample(pattern) if pattern.isascii() else pattern.replace("~", "某")
        hits = find_phrases(WordIndex([normalise(text)]), 402)
        assert line.id in hits, (pattern, text, hits)
        if pattern.isascii():
            assert line.id in find_phrases(WordIndex([normalise(text.upper().replace(" ", "_"))]), 402), pattern


def test_every_name_in_a_row_exists() -> None:
    for ruleset, row in ROWS:
        for entry in row.says:
            assert set(entry.split("|")) <= SAID, (ruleset, row.id)
        assert set(row.unless) <= SAID | CODES, (ruleset, row.id)
        for token in row.tokens:
            assert token == squash(token), (ruleset, row.id, token)


def test_every_phrase_is_used_by_a_row_or_a_flag() -> None:
    flags = {"long", "short", "org", "tpm", "access", "reasoning", "periodic", "marker402"}
    used = {word for _, row in ROWS for entry in (*row.says, *row.unless) for word in entry.split("|")} | flags
    assert [line.id for line in SAYS if line.id not in used and line.group not in used] == []


@pytest.mark.parametrize("ruleset", RULESETS)
def test_row_ids_are_used_once(ruleset: str) -> None:
    ids = [row.id for row in RULESETS[ruleset].rows]
    assert len(ids) == len(set(ids))
    with pytest.raises(ValueError, match="used twice"):
        RowTable((RULESETS[ruleset].rows[0], RULESETS[ruleset].rows[0]))


def test_a_code_belongs_to_one_set() -> None:
    owners: dict[str, list[str]] = {}
    for name, codes in TOKENS.items():
        for code in codes.split():
            assert code == squash(code)
            owners.setdefault(code, []).append(name)
    assert {code: names for code, names in owners.items() if len(names) > 1} == {}


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("userweeklyratelimited", "ratelimited"),
        ("acmethrottlingproblem", "throttled"),
        ("modelcontextwindowlimit", "contextwindowexceeded"),
        ("insufficientbalanceforcall", "insufficientbalance"),
        ("ratelimited", ""),
        ("somethingelse", ""),
        ("x" * 90 + "ratelimit", ""),
    ],
)
def test_unknown_codes_are_read_by_their_parts(code: str, known: str) -> None:
    assert family_of_code(code) == known
    assert all(known in CODES for _, known in FRAGMENTS)


def test_provider_families() -> None:
    assert families_exact("zhipu") >= {"zai", "zhipu"}
    assert families_exact("Azure_OpenAI") >= {"azure"}
    assert "openai" not in families_exact("azure-openai")
    assert families_exact("unheard-of") == {"unheard-of"}
    assert families_exact("") == frozenset()
    assert "openrouter" in families_containing("my-openrouter")
    assert "openrouter" not in families_exact("my-openrouter")


def test_regular_expressions_cannot_blow_up() -> None:
    nested = re.compile(r"[+*}]\)?[+*{]")
    found = [_taken_apart(pattern, 0).regex for line in SAYS for pattern in line.patterns]
    expressions = [regex.expression() for regex in found if regex is not None]
    assert len(expressions) > 300
    for expression in expressions:
        text = expression.replace("{1,60})", ")").replace("{1,12}", "")
        assert re.compile(expression, re.MULTILINE)
        assert not nested.search(text), expression
        assert "*" not in text.replace(r"\*", ""), expression


def test_a_pattern_needs_a_word_to_be_looked_up_by() -> None:
    with pytest.raises(ValueError, match="no word"):
        Phrasebook([Say("a.b", ("# ~ #",))])
    with pytest.raises(ValueError, match="used twice"):
        Phrasebook([Say("a.b", ("one",)), Say("a.b", ("two",))])


def test_both_rulesets_coexist_and_differ_by_their_rows() -> None:
    ten, four = (RULESETS[name] for name in ("2026-10", "2026-04"))
    assert all(isinstance(row, TableRow) for table in (ten, four) for row in table.rows)
    assert not {row.id for row in ten.rows} & {row.id for row in four.rows}


def test_classification_is_light_to_import() -> None:
    code = (
        "import sys; import standby.engine.classify.classifier; "
        "heavy = {'httpx', 'typer', 'rich', 'sqlite3', 'sqlite_utils', 'asyncio', 'transitions'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

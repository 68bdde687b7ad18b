"""The line that stands beside a rule's id is the beginning of that rule."""

import json
from pathlib import Path

import pytest

from specs.catalogue import parse_rules
from specs.rule_texts import LONGEST, meaning_of, meanings_page
from standby.hosts.cli.rule_texts import rule_text, rule_texts

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).resolve().parents[2]


def test_the_lines_of_rules_are_those_of_the_specification() -> None:
    catalogue = parse_rules((ROOT / "specs" / "rules.md").read_text(encoding="utf-8"))
    assert (ROOT / "hosts" / "cli" / "rules.json").read_text(encoding="utf-8") == meanings_page(catalogue)
    assert set(rule_texts()) == set(catalogue.rules)
    assert all(0 < len(words) <= LONGEST for words in rule_texts().values())
    assert rule_text("NONE-1") == ""
    for rule, words in json.loads(meanings_page(catalogue)).items():
        assert catalogue.rules[rule].text.startswith(words.removesuffix(" …"))


def test_a_line_is_whole_sentences_or_says_that_it_is_cut() -> None:
    assert meaning_of("Short. Then `x` says enough to be understood by all. And more.") == (
        "Short. Then `x` says enough to be understood by all."
    )
    assert meaning_of("One that never ends") == "One that never ends"
    long = meaning_of("word, " * 60)
    assert long.endswith(" …")
    assert len(long) <= LONGEST

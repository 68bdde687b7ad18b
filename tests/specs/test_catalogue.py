"""rules.md and invariants.md keep the form that programs read."""

from pathlib import Path

import pytest

from specs.catalogue import LATER, SpecError, later_reasons, parse_invariants, parse_rules

pytestmark = pytest.mark.checkout

SPECS = Path(__file__).resolve().parents[2] / "specs"

# How many rules each section has. Sections grow at their end; a number here never falls.
SIZES = {
    "FLOW": 17,
    "SEL": 19,
    "CHAIN": 10,
    "ORD": 13,
    "PIN": 13,
    "CLS": 34,
    "TIME": 6,
    "COOL": 25,
    "BILL": 8,
    "REC": 18,
    "GATE": 9,
    "ADV": 16,
    "STOP": 8,
    "PROBE": 6,
    "STICK": 6,
    "SKIP": 3,
    "LIVE": 8,
    "NOTE": 14,
    "OBS": 5,
    "OUT": 4,
    "CYB": 9,
    "MIS": 6,
    "STORE": 5,
    "CFG": 6,
    "OURS": 14,
}


def page(*rows: str, section: str = "COOL") -> str:
    return "\n".join([f"## {section} · cooldowns", "| id | set | rule |", "|---|---|---|", *rows])


def test_the_catalogue_has_every_rule_of_every_section() -> None:
    catalogue = parse_rules((SPECS / "rules.md").read_text(encoding="utf-8"))
    assert {section: len(catalogue.of(section)) for section in catalogue.titles} == SIZES


def test_the_invariants_are_the_fifteen() -> None:
    invariants = parse_invariants((SPECS / "invariants.md").read_text(encoding="utf-8"))
    assert [invariant.number for invariant in invariants] == list(range(1, 16))


def test_a_row_is_read_with_its_set_and_host_mark() -> None:
    catalogue = parse_rules(page("| COOL-1 | 04 | one |", "| COOL-2 | 10 host | two `a` |"))
    first, second = catalogue.of("COOL")
    assert (first.id, first.sets, first.host, first.text) == ("COOL-1", "04", False, "one")
    assert (second.id, second.sets, second.host, second.text) == ("COOL-2", "10", True, "two `a`")
    assert catalogue.titles == {"COOL": "cooldowns"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (page("| COOL-1 | both | a |", "| COOL-1 | both | b |"), "COOL-1 follows number 1"),
        (page("| COOL-1 | both | a |", "| COOL-3 | both | b |"), "COOL-3 follows number 1"),
        (page("| BILL-1 | both | a |"), "BILL-1 stands in section COOL"),
        (page("| COOL-1 | 12 | a |"), "not of the form"),
        (page("| COOL-1 | a rule without its set |"), "not of the form"),
        (page(), "no rules in section COOL"),
        (page("| COOL-1 | 10 | a |") + "\n" + page("| COOL-1 | 10 | a |"), "is there twice"),
    ],
)
def test_a_page_that_programs_would_misread_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        parse_rules(text)


def test_invariants_are_numbered_without_gaps() -> None:
    with pytest.raises(SpecError, match=r"\[1, 3\]"):
        parse_invariants("## 1 · one\n\n## 3 · three\n")


def test_later_takes_whole_sections_single_rules_or_one_set() -> None:
    catalogue = parse_rules(
        page("| COOL-1 | 04 | a |", "| COOL-2 | 10 | b |", "| COOL-3 | both | c |")
        + "\n"
        + page("| GATE-1 | 10 | d |", section="GATE")
    )
    table = (("COOL", "04", "old"), ("COOL-3", "any", "single"), ("GATE", "any", "unit"))
    assert later_reasons(catalogue, table) == {"COOL-1": "old", "COOL-3": "single", "GATE-1": "unit"}


def test_later_cannot_name_what_does_not_exist() -> None:
    with pytest.raises(SpecError, match="COOL-9"):
        later_reasons(parse_rules(page("| COOL-1 | 10 | a |")), (("COOL-9", "any", "?"),))


def test_every_line_of_later_defers_something() -> None:
    catalogue = parse_rules((SPECS / "rules.md").read_text(encoding="utf-8"))
    for names, sets, reason in LATER:
        for name in names.split():
            assert later_reasons(catalogue, ((name, sets, reason),)), name

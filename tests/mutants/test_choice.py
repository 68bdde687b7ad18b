"""Where faults are, which are chosen, and that explanations fit."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT
from tests.mutants.choose import chosen, chosen_for_rule
from tests.mutants.explained import ExplanationError, read_explained, reason_for, stale
from tests.mutants.places import SECTIONS, Fault, apply_fault, find_faults
from tests.mutants.report import Outcome, table
from tests.mutants.trees import Ending

ENTRY = '[[survivor]]\nwhere = "a.py:f"\nbefore = "x < y"\nafter = "x <= y"\nreason = "never equal"\n'


@pytest.fixture(scope="module")
def faults() -> list[Fault]:
    return find_faults(ROOT)


def written(folder: Path, text: str) -> Path:
    path = folder / "explained.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_section_has_places_and_each_run_takes_faults_from_two_of_them(faults: list[Fault]) -> None:
    for seed in range(5):
        run = chosen(faults, SECTIONS, seed, 3)
        for section in SECTIONS:
            own = {(one.file, one.place) for one in run if section in one.sections}
            assert len(own) >= 2, (section, seed)


def test_the_seed_alone_chooses(faults: list[Fault]) -> None:
    assert chosen(faults, SECTIONS, 7, 3) == chosen(faults, SECTIONS, 7, 3)
    assert chosen(faults, SECTIONS, 7, 3) != chosen(faults, SECTIONS, 8, 3)
    assert {one.key for one in chosen(faults, ["BILL"], 1, None)} == {
        one.key for one in faults if "BILL" in one.sections
    }


def test_each_fault_has_a_name_of_its_own_and_can_be_run(faults: list[Fault]) -> None:
    assert len({one.key for one in faults}) == len(faults)
    for fault in chosen(faults, SECTIONS, 1, 6):
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(apply_fault(text, fault.edit))) != ast.dump(ast.parse(text)), fault


def test_a_rule_is_looked_for_where_it_is_cited(faults: list[Fault]) -> None:
    found = chosen_for_rule(faults, "COOL-13", 1, None, ROOT)
    assert {(one.file, one.place) for one in found} >= {
        ("engine/decide/cooldowns.py", "_rate_limit"),
        ("engine/decide/cooldowns.py", "observe_quota"),
    }


def test_the_arguments_of_a_course_belong_to_what_they_are_about(faults: list[Fault]) -> None:
    of = [one for one in faults if one.place == "_courses_2026_10" and "Failure.BILLING: Course" in one.before]
    by_section = {section: {one.after for one in of if section in one.sections} for section in SECTIONS}
    assert any("Budget.TRANSIENT" in after for after in by_section["REC"])
    assert any("HealthRule.NOTHING" in after for after in by_section["BILL"])
    assert any("every, False" in after for after in by_section["ADV"])


def test_every_explanation_fits_a_fault(faults: list[Fault]) -> None:
    assert stale(read_explained(), faults) == []


def test_an_explanation_of_what_is_not_there_is_found(tmp_path: Path, faults: list[Fault]) -> None:
    explained = read_explained(written(tmp_path, ENTRY))
    assert explained == {("a.py:f", "x < y", "x <= y", 1): "never equal"}
    assert stale(explained, faults) == [("a.py:f", "x < y", "x <= y", 1)]


def test_a_line_can_be_explained_whole_and_then_some_of_its_faults_may_be_seen(faults: list[Fault]) -> None:
    fault = faults[0]
    where, before = fault.key[:2]
    whole = {(where, before, "*", 1): "nothing reads it"}
    assert stale(whole, faults) == []
    assert reason_for(whole, fault) == "nothing reads it"
    assert reason_for(whole, fault, survived=False) == ""
    assert reason_for({fault.key: "equal"}, fault, survived=False) == "equal"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENTRY + ENTRY, "entry 2 .* a second time"),
        (ENTRY.replace("never equal", " "), "entry 1 .* no reason"),
        (ENTRY + 'line = "3"\n', "entry 1 .* unknown line"),
    ],
)
def test_an_explanation_is_whole_and_said_once(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ExplanationError, match=said):
        read_explained(written(tmp_path, text))


def test_the_table_counts_what_became_of_the_faults(faults: list[Fault]) -> None:
    fault = next(one for one in faults if one.sections == {"BILL"} or "BILL" in one.sections)
    seen = Ending(False, ("tests/rules/test_x.py::test_y",), fault.rules)
    outcomes = [Outcome(fault, seen), Outcome(fault, Ending(True)), Outcome(fault, Ending(True), "because")]
    row = next(line for line in table(outcomes, {"BILL": 9}, 1, ["BILL"]).splitlines() if "BILL" in line)
    assert row.split() == ["BILL", "9", "3", "1", "1", "1", "1"]
    assert Outcome(fault, seen, "because").verdict == "explained, but killed"

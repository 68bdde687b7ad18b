"""Which citations in code and which marks on tests the generator sees."""

from pathlib import Path
from textwrap import dedent

import pytest

from specs.citations import Citations, read_code, read_tests

pytestmark = pytest.mark.checkout


def marks_in(tmp_path: Path, source: str) -> Citations:
    file = tmp_path / "tests" / "test_it.py"
    file.parent.mkdir()
    file.write_text("import pytest\n" + dedent(source), encoding="utf-8")
    found = Citations()
    read_tests(tmp_path, found)
    return found


def citations_in(tmp_path: Path, name: str, source: str) -> Citations:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(source, encoding="utf-8")
    found = Citations()
    read_code(tmp_path, ("COOL", "ADV"), found)
    return found


FORMS = {
    "decorator": """
        @pytest.mark.rule("COOL-1", "COOL-2")
        def test_a(): ...
        """,
    "two decorators, one for another thing": """
        @pytest.mark.rule("COOL-1")
        @pytest.mark.long
        @pytest.mark.rule("COOL-2")
        async def test_a(): ...
        """,
    "mark by its own name": """
        from pytest import mark
        @mark.rule("COOL-1", "COOL-2")
        def test_a(): ...
        """,
    "parameter sets": """
        @pytest.mark.parametrize("x", [
            pytest.param(1, marks=pytest.mark.rule("COOL-1")),
            pytest.param(2, marks=[pytest.mark.rule("COOL-2"), pytest.mark.long]),
        ])
        def test_a(x): ...
        """,
    "parameter sets kept in a constant": """
        CASES = [
            pytest.param(1, marks=pytest.mark.rule("COOL-1")),
            pytest.param(2, marks=(pytest.mark.rule("COOL-2"),)),
        ]
        @pytest.mark.parametrize("x", CASES)
        def test_a(x): ...
        """,
    "a named mark": """
        cooling = pytest.mark.rule("COOL-1", "COOL-2")
        @cooling
        def test_a(): ...
        """,
    "the module's pytestmark": """
        pytestmark = [pytest.mark.long, pytest.mark.rule("COOL-1"), pytest.mark.rule("COOL-2")]
        def test_a(): ...
        """,
    "inside an if": """
        if True:
            @pytest.mark.rule("COOL-1", "COOL-2")
            def test_a(): ...
        """,
}


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS.keys())
def test_a_mark_is_seen_in_each_form(tmp_path: Path, source: str) -> None:
    found = marks_in(tmp_path, source)
    here = {"tests/test_it.py::test_a"}
    assert found.rule_tests == {"COOL-1": here, "COOL-2": here}
    assert found.problems == []


def test_classes_give_their_marks_to_their_tests(tmp_path: Path) -> None:
    found = marks_in(
        tmp_path,
        """
        @pytest.mark.rule("COOL-1")
        class TestIt:
            pytestmark = pytest.mark.invariant(3)
            @pytest.mark.rule("COOL-2")
            def test_a(self): ...
            def test_b(self): ...
            def helper(self): ...
        """,
    )
    a, b = "tests/test_it.py::TestIt::test_a", "tests/test_it.py::TestIt::test_b"
    assert found.rule_tests == {"COOL-1": {a, b}, "COOL-2": {a}}
    assert found.invariant_tests == {3: {a, b}}


@pytest.mark.parametrize(
    "source",
    [
        "TestStore = pytest.mark.invariant(10, 11)(Machine.TestCase)",
        "TestStore = Machine.TestCase\nTestStore.pytestmark = [pytest.mark.invariant(10, 11)]",
        "pytestmark = pytest.mark.invariant(10, 11)\nTestStore = Machine.TestCase",
        "@pytest.mark.invariant(10, 11)\nclass TestStore(Machine.TestCase):\n    pass",
    ],
)
def test_a_hypothesis_machine_is_a_test(tmp_path: Path, source: str) -> None:
    found = marks_in(tmp_path, source)
    assert found.invariant_tests == {n: {"tests/test_it.py::TestStore"} for n in (10, 11)}
    assert found.problems == []


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.skip\n@pytest.mark.rule("COOL-1")\ndef test_a(): ...',
        '@pytest.mark.xfail(reason="?")\n@pytest.mark.rule("COOL-1")\ndef test_a(): ...',
        'pytestmark = [pytest.mark.skip, pytest.mark.rule("COOL-1")]\ndef test_a(): ...',
        '@pytest.mark.skip\nclass TestIt:\n    @pytest.mark.rule("COOL-1")\n    def test_a(self): ...',
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=[pytest.mark.xfail,'
        ' pytest.mark.rule("COOL-1")])])\ndef test_a(x): ...',
    ],
)
def test_what_does_not_run_or_may_fail_holds_nothing(tmp_path: Path, source: str) -> None:
    found = marks_in(tmp_path, source)
    assert found.rule_tests == {}
    assert found.problems == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("@pytest.mark.rule(COOL)\ndef test_a(): ...", "2: rule takes literal str values only"),
        ("@pytest.mark.rule(3)\ndef test_a(): ...", "2: rule takes literal str values only"),
        ('@pytest.mark.invariant("3")\ndef test_a(): ...', "2: invariant takes literal int values only"),
        ("@pytest.mark.rule()\ndef test_a(): ...", "2: this rule mark names nothing"),
        ('@pytest.mark.rule("COOL-1")\ndef helper(): ...', "2: this mark is on no test"),
        ('never_used = pytest.mark.rule("COOL-1")', "2: this mark is on no test"),
        ("def test_a(:", "2: invalid syntax"),
    ],
)
def test_a_mark_that_cannot_be_understood_is_reported(tmp_path: Path, source: str, complaint: str) -> None:
    (problem,) = marks_in(tmp_path, source).problems
    assert problem.startswith(f"tests/test_it.py:{complaint}")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("engine/blocks.py", 'block(until_ms, rules=("COOL-2", "ADV-1"))'),
        ("engine/blocks.py", '"""Blocks (COOL-2, ADV-1)."""'),
        ("hosts/deep/run.py", "wait = 3  # COOL-2 before ADV-1"),
        ("engine/rows/openai.toml", 'rules = ["COOL-2", "ADV-1"]'),
    ],
)
def test_code_cites_in_strings_prose_and_tables(tmp_path: Path, name: str, source: str) -> None:
    found = citations_in(tmp_path, name, source)
    assert found.code == {"COOL-2": {name}, "ADV-1": {name}}
    assert found.problems == []


def test_words_are_no_home_and_other_folders_no_code(tmp_path: Path) -> None:
    assert citations_in(tmp_path, "events/vocabulary.py", '"""A word of COOL-2."""').code == {}
    assert citations_in(tmp_path, "bench/figures.py", '"""Measures COOL-2."""').code == {}


def test_an_id_of_no_section_is_reported(tmp_path: Path) -> None:
    found = citations_in(tmp_path, "engine/a.py", 'rules = ("COLO-2", "COOL-2")\nname = "SHA-256"\n')
    assert found.problems == ["engine/a.py:1: COLO-2 is no section of specs/rules.md"]

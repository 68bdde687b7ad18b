"""The generated pages: that the committed ones are fresh, and that the generator says what it should."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from specs.catalogue import parse_invariants, parse_rules
from specs.citations import Citations
from specs.generate import coverage_page, main, problems_of, status_of
from specs.machine_page import machine_page

pytestmark = pytest.mark.checkout

RULES = """\
## COOL · cooldowns
| COOL-1 | 04 | a |
| COOL-2 | 10 host | b |
| COOL-3 | both | c |
| COOL-4 | both | d |
## GATE · admission
| GATE-1 | 10 | e |
"""
INVARIANTS = "## 1 · Every turn ends\n\n## 2 · Strict is strict\n"


def test_the_committed_pages_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--check"])
    assert status == 0, capsys.readouterr().err


@pytest.fixture
def found() -> Citations:
    return Citations(
        code={"COOL-1": {"engine/b.py", "engine/a.py"}, "COOL-2": {"hosts/run.py"}},
        rule_tests={"COOL-1": {"tests/t.py::test_x", "tests/t.py::test_y"}, "COOL-3": {"tests/u.py::test_z"}},
        invariant_tests={2: {"tests/t.py::TestIt::test_x"}},
    )


def test_each_status(found: Citations) -> None:
    later = {"COOL-1": "-", "GATE-1": "-"}
    statuses = {rule: status_of(rule, found, later) for rule in parse_rules(RULES).rules}
    assert statuses == {
        "COOL-1": "held",
        "COOL-2": "untested",
        "COOL-3": "unplaced",
        "COOL-4": "open",
        "GATE-1": "later",
    }


def test_the_coverage_page_counts_places_and_tests(found: Citations) -> None:
    page = coverage_page(
        parse_rules(RULES), parse_invariants(INVARIANTS), found, {"GATE-1": "a unit of its own"}
    )
    lines = page.splitlines()
    assert "| section | rules | held | untested | unplaced | open | later |" in lines
    assert "| COOL | 4 | 1 | 1 | 1 | 1 |  |" in lines
    assert "| all | 5 | 1 | 1 | 1 | 1 | 1 |" in lines
    assert "| COOL-1 | 04 | held | `engine/a.py`, `engine/b.py` | `tests/t.py`: test_x, test_y |" in lines
    assert "| COOL-2 | 10 host | untested | `hosts/run.py` |  |" in lines
    assert "| 2 · Strict is strict | `tests/t.py`: TestIt::test_x |" in lines
    assert "| GATE-1 | a unit of its own |" in lines


def test_ids_that_do_not_exist_are_problems() -> None:
    found = Citations(
        code={"COOL-9": {"engine/a.py"}},
        rule_tests={"NOPE-1": {"tests/t.py::test_x"}},
        invariant_tests={3: {"tests/t.py::test_y"}},
        problems=["something else"],
    )
    assert problems_of(parse_rules(RULES), parse_invariants(INVARIANTS), found) == [
        "something else",
        "engine/a.py: COOL-9 is not in specs/rules.md",
        "tests/t.py::test_x: NOPE-1 is not in specs/rules.md",
        "tests/t.py::test_y: invariant 3 is not in specs/invariants.md",
    ]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A small repository; calling it writes one file."""
    monkeypatch.setattr("specs.generate.later_reasons", lambda catalogue: {})

    def write(name: str, text: str) -> Path:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    write("specs/rules.md", RULES)
    write("specs/invariants.md", INVARIANTS)
    write("engine/a.py", '"""COOL-3."""\n')
    return write


def test_check_passes_on_what_was_written_and_writes_nothing(
    checkout: Callable[[str, str], Path],
) -> None:
    root = checkout("tests/test_t.py", "")
    assert main(["--check"], root) == 1
    assert not (root / "specs/coverage.md").exists()
    assert main([], root) == 0
    assert main(["--check"], root) == 0


def test_check_fails_on_a_stale_page_and_shows_the_difference(
    checkout: Callable[[str, str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = checkout("tests/test_t.py", "")
    assert main([], root) == 0
    before = (root / "specs/coverage.md").read_text(encoding="utf-8")
    checkout("tests/test_t.py", 'import pytest\n\n@pytest.mark.rule("COOL-3")\ndef test_a() -> None: ...\n')
    assert main(["--check"], root) == 1
    message = capsys.readouterr().err
    assert "run `make specs`" in message
    assert "+| COOL-3 | both | held | `engine/a.py` | `tests/test_t.py`: test_a |" in message
    assert (root / "specs/coverage.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_an_unknown_id_stops_both_writing_and_checking(
    checkout: Callable[[str, str], Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    root = checkout("engine/b.py", "# COOL-77\n")
    assert main(arguments, root) == 1
    assert "engine/b.py: COOL-77 is not in specs/rules.md" in capsys.readouterr().err
    assert not (root / "specs/coverage.md").exists()


@dataclass
class Row:
    source: str
    event: str
    dest: str
    guard: str = ""


@dataclass
class Table:
    ROWS: tuple[Row, ...]
    STATES: tuple[str, ...] = ("open", "calling", "failed")
    RESTING: frozenset[str] = frozenset({"calling", "failed"})
    TERMINAL: frozenset[str] = frozenset({"failed"})


def test_the_machine_page_draws_and_lists_every_row() -> None:
    page = machine_page(
        Table(
            (
                Row("open", "attempt_started", "calling"),
                Row("calling", "effects_begun", "calling"),
                Row("calling", "call_failed", "failed", "is_current"),
                Row("calling", "turn_cancelled", "failed"),
            )
        )
    )
    lines = page.splitlines()
    diagram = lines[lines.index("```mermaid") + 1 : lines.index("```")]
    assert diagram == [
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> calling: attempt_started",
        "    calling --> calling: effects_begun",
        "    calling --> failed: call_failed [is_current]<br/>turn_cancelled",
        "    failed --> [*]",
    ]
    assert lines[-3:] == [
        "| open | no | `attempt_started`: calling |",
        "| calling | yes | `effects_begun`: stays; `call_failed [is_current]`, `turn_cancelled`: failed |",
        "| failed | terminal | nothing |",
    ]


def test_a_row_outside_the_states_is_refused() -> None:
    with pytest.raises(ValueError, match="open -> nowhere"):
        machine_page(Table((Row("open", "x", "nowhere"),)))

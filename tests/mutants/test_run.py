"""A whole run: a copy of the tree, a fault in it, and the test that sees it."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT
from tests.mutants.places import Fault, find_faults
from tests.mutants.trees import Tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(ROOT, tmp_path_factory.mktemp("mutants"), 0)


@pytest.fixture(scope="module")
def fault() -> Fault:
    """A disabled profile without its first window."""
    return next(
        one
        for one in find_faults(ROOT)
        if one.place == "RULESETS" and one.before == "billing_ms=(10 * MINUTE,)," and one.operator == "count"
    )


@pytest.mark.long
def test_a_fault_is_seen_by_a_test_of_its_rule_and_gone_afterwards(tree: Tree, fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    ending = tree.seen_by_rule(fault, "BILL-2")
    assert not ending.passed
    assert "BILL-2" in ending.rules
    assert (ROOT / fault.file).read_text(encoding="utf-8") == text
    assert (tree.path / fault.file).read_text(encoding="utf-8") == text
    assert tree.run(("tests/rules",), first=("BILL-2",), only=True).passed


@pytest.mark.long
def test_what_does_not_end_is_killed(tree: Tree, fault: Fault) -> None:
    ending = tree.with_fault(fault, quick=True, timeout_s=0.05)
    assert (ending.passed, ending.by) == (False, ("time",))
    assert Path(tree.path, fault.file).read_text(encoding="utf-8") == (ROOT / fault.file).read_text(
        encoding="utf-8"
    )

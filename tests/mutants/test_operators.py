"""Each kind of fault, on a few lines of source."""

import ast

import pytest

from tests.mutants.operators import Source, edits_of
from tests.mutants.places import apply_fault

ENUMS = {
    "Failure": ["AUTH", "BILLING"],
    "Budget": ["NONE", "TRANSIENT"],
    "HealthRule": ["NOTHING", "LADDER"],
    "Rotation": ["NONE", "ALL"],
}


def faulty(text: str, operator: str) -> list[str]:
    """The source with each fault of this kind."""
    source = Source(text)
    edits = [edit for node in source.tree.body for edit in edits_of(node, source, ENUMS)]
    found = [apply_fault(text, edit) for edit in edits if edit.operator == operator]
    for one in found:
        ast.parse(one)
    return found


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("compare", "x = a < b <= c", ["x = a <= b <= c", "x = a < b < c"]),
        ("compare", "x = a is  not b", ["x = a is b"]),
        ("compare", "x = (a  # < in words\n) not in b", ["x = (a  # < in words\n) in b"]),
        ("compare", "x = 'é' == b", ["x = 'é' != b"]),
        ("join", "x = a and b or c", ["x = a and b and c", "x = a or b or c"]),
        ("free", "x = a and b is None", ["x = True and b is None"]),
        ("free", "x = a or b", ["x = False or b", "x = a or False"]),
        ("free", "x = a or 0", ["x = False or 0"]),
        ("negate", "x = [a for a in b if a]", ["x = [a for a in b if (not (a))]"]),
        ("negate", "if a:\n    b()", ["if (not (a)):\n    b()"]),
        ("drop", "draft.emit(\n    a,\n)", ["pass"]),
        ("forget", "a.b = c", ["pass"]),
        ("forget", "a.b, a.c = 1, 2", ["_, a.c = 1, 2", "a.b, _ = 1, 2"]),
        ("forget", "a += b", ["pass"]),
        ("forget", "a = b", []),
        ("flip", "x = True", ["x = False"]),
        ("count", "x = 30 * y", ["x = 31 * y"]),
        ("sibling", "x = Failure.BILLING", ["x = Failure.AUTH"]),
        ("sibling", "x = Other.BILLING", []),
        (
            "course",
            "one = Budget.NONE\nx = Course(one, HealthRule.LADDER, Rotation.ALL, True, ())",
            [
                "one = Budget.NONE\nx = Course(Budget.TRANSIENT, HealthRule.LADDER, Rotation.ALL, True, ())",
                "one = Budget.NONE\nx = Course(one, HealthRule.NOTHING, Rotation.ALL, True, ())",
                "one = Budget.NONE\nx = Course(one, HealthRule.LADDER, Rotation.NONE, True, ())",
            ],
        ),
        ("leave", "def f() -> None:\n    a()", ["def f() -> None:\n    return\n    a()"]),
        (
            "leave",
            "def f() -> bool:\n    a()\n    return b",
            [f"def f() -> bool:\n    return {value}\n    a()\n    return b" for value in (False, True)],
        ),
        ("leave", "def f() -> bool:\n    return b", []),
    ],
)
def test_each_fault_changes_just_its_place(operator: str, before: str, after: list[str]) -> None:
    assert sorted(faulty(before, operator)) == sorted(after)


def test_types_messages_and_imports_are_left_alone() -> None:
    text = "from a import b\n__all__ = ['x'] * 2\ndef f(a: Literal[1]) -> None:\n    raise E(1, a and b)"
    source = Source(text)
    edits = [edit for node in source.tree.body for edit in edits_of(node, source, ENUMS)]
    assert [edit.operator for edit in edits] == ["leave"], "only that the function does not run at all"

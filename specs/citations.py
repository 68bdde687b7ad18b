"""Where a rule lives and what holds it: citations in code, marks on tests.

Code cites a rule by its id anywhere in a source file: in the `rules` of a decision, in a docstring, in a
comment, in a table. Tests cite by `@pytest.mark.rule("COOL-2", ...)` and `@pytest.mark.invariant(3)`. Marks are
read from the syntax tree, not by running pytest, so that `make specs` needs no test run; for that they must be
literal, and a mark that cannot be traced to a test is a problem that is reported, never passed over. Tests that
are always skipped or may fail hold nothing.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Citations", "read_code", "read_tests"]

CODE_FOLDERS = ("events", "projections", "engine", "hosts")
CODE_SUFFIXES = (".py", ".toml", ".sql")

# Words for rules of every section are declared here, also for those that nothing follows yet.
NOT_A_HOME = ("events/vocabulary.py",)

# Look like a rule's id and are none.
NOT_RULES = frozenset({"SHA-256", "UTF-8", "UTF-16", "ISO-8601", "ISO-8859"})

_KINDS = ("rule", "invariant")
_NOT_RUN = ("skip", "xfail")


@dataclass
class Citations:
    """What was found, and what could not be understood."""

    code: dict[str, set[str]] = field(default_factory=dict)
    """Rule id -> files that cite it."""
    rule_tests: dict[str, set[str]] = field(default_factory=dict)
    """Rule id -> `file::test` that hold it."""
    invariant_tests: dict[int, set[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_code(root: Path, sections: Iterable[str], found: Citations) -> None:
    """Add what the four folders below `root` cite; `sections` are the known prefixes of ids."""
    cited = re.compile(rf"\b(?:{'|'.join(sections)})-\d+\b")
    for path in _files(root, CODE_FOLDERS, CODE_SUFFIXES):
        name = path.relative_to(root).as_posix()
        source = path.read_text(encoding="utf-8")
        if name not in NOT_A_HOME:
            for rule in cited.findall(source):
                found.code.setdefault(rule, set()).add(name)
        tree = _parse(name, source, found) if path.suffix == ".py" else None
        if tree is not None:
            for line, text in _strings_like_ids(tree):
                if cited.fullmatch(text) is None and text not in NOT_RULES:
                    found.problems.append(f"{name}:{line}: {text} is no section of specs/rules.md")


def _files(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def _strings_like_ids(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"[A-Z]{2,}-\d+", text):
                yield node.lineno, text


def read_tests(root: Path, found: Citations) -> None:
    """Add the marks of all tests below `root`/tests."""
    for path in _files(root, ("tests",), (".py",)):
        name = path.relative_to(root).as_posix()
        tree = _parse(name, path.read_text(encoding="utf-8"), found)
        if tree is not None:
            _Module(name, tree, found).read()


def _parse(name: str, source: str, found: Citations) -> ast.Module | None:
    try:
        return ast.parse(source, filename=name)
    except SyntaxError as error:
        found.problems.append(f"{name}:{error.lineno}: {error.msg}")
        return None


class _Module:
    """Marks of one test module."""

    def __init__(self, name: str, tree: ast.Module, found: Citations) -> None:
        self._name = name
        self._tree = tree
        self._found = found
        self._attributed: set[ast.Call] = set()
        self._named: dict[str, list[ast.Call]] = {}
        """Module-level names whose value holds marks: `slow_case = pytest.param(..., marks=...)`."""

    def read(self) -> None:
        if _does_not_run(self._tree):
            return
        for statement in self._tree.body:
            for target, value in _assigned(statement):
                if marks := list(_marks(value)):
                    self._named[target] = marks
        self._walk(self._tree.body, self._in(_pytestmark(self._tree.body)), "")
        self._report_unattributed()

    def _walk(self, body: list[ast.stmt], inherited: list[ast.Call], prefix: str) -> None:
        for statement in body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name.startswith("test"):
                    self._function(statement, inherited, prefix)
                case ast.ClassDef() if not _does_not_run(statement):
                    marks = [*self._in(statement.decorator_list), *self._in(_pytestmark(statement.body))]
                    if _runs_a_machine(statement):
                        self._record([*inherited, *marks], f"{prefix}{statement.name}")
                    self._walk(statement.body, [*inherited, *marks], f"{prefix}{statement.name}::")
                case ast.If():
                    self._walk([*statement.body, *statement.orelse], inherited, prefix)
                case ast.Assign() | ast.AnnAssign():
                    self._assignment(statement, inherited, prefix)

    def _function(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        inherited: list[ast.Call],
        prefix: str,
    ) -> None:
        if not _does_not_run(function):
            marks = [*inherited, *self._in(function.decorator_list)]
            self._record(marks, f"{prefix}{function.name}")

    def _assignment(
        self, statement: ast.Assign | ast.AnnAssign, inherited: list[ast.Call], prefix: str
    ) -> None:
        """A Hypothesis machine becomes a test by assignment: `TestStore = StoreMachine.TestCase`."""
        for target, value in _assigned(statement):
            if target.startswith("Test"):
                self._record([*inherited, *_marks(value)], prefix + target.removesuffix(".pytestmark"))

    def _in(self, expressions: list[ast.expr]) -> list[ast.Call]:
        """Marks written in these expressions, and those of module-level names that they use."""
        marks: list[ast.Call] = []
        for expression in expressions:
            marks.extend(_marks(expression))
            for node in ast.walk(expression):
                if isinstance(node, ast.Name):
                    marks.extend(self._named.get(node.id, ()))
        return marks

    def _record(self, marks: list[ast.Call], test: str) -> None:
        for mark in marks:
            self._attributed.add(mark)
            if isinstance(mark.func, ast.Attribute):
                for value in self._values(mark, mark.func.attr):
                    self._add(value, f"{self._name}::{test}")

    def _values(self, mark: ast.Call, kind: str) -> Iterator[str | int]:
        wanted = str if kind == "rule" else int
        for argument in mark.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, wanted):
                yield argument.value
            else:
                self._problem(mark, f"{kind} takes literal {wanted.__name__} values only")
        if not mark.args:
            self._problem(mark, f"this {kind} mark names nothing")

    def _add(self, value: str | int, test: str) -> None:
        if isinstance(value, str):
            self._found.rule_tests.setdefault(value, set()).add(test)
        else:
            self._found.invariant_tests.setdefault(value, set()).add(test)

    def _report_unattributed(self) -> None:
        for mark in _marks(self._tree):
            if mark not in self._attributed:
                self._problem(mark, "this mark is on no test that specs/generate.py can see")

    def _problem(self, mark: ast.Call, text: str) -> None:
        problem = f"{self._name}:{mark.lineno}: {text}"
        if problem not in self._found.problems:
            self._found.problems.append(problem)


def _runs_a_machine(statement: ast.ClassDef) -> bool:
    """A Hypothesis machine also becomes a test by inheritance: `class TestStore(StoreMachine.TestCase)`."""
    bases = (base.attr for base in statement.bases if isinstance(base, ast.Attribute))
    return statement.name.startswith("Test") and "TestCase" in bases


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """(`name` or `name.attribute`, value) of an assignment."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name | ast.Attribute):
                yield ast.unparse(target), statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield ast.unparse(statement.target), statement.value


def _elements(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def _mark_name(node: ast.AST) -> str:
    """`rule` for `pytest.mark.rule` and `mark.rule`, with or without a call; else ""."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("pytest.mark", "mark"):
        return node.attr
    return ""


def _is_skipped(decorators: list[ast.expr]) -> bool:
    """A test that never runs, or may fail, holds nothing."""
    return any(_mark_name(decorator) in _NOT_RUN for decorator in decorators)


def _marks(node: ast.AST) -> Iterator[ast.Call]:
    """The rule and invariant marks in a tree, without those of tests and parameter sets that do not run."""
    if _does_not_run(node):
        return
    if isinstance(node, ast.Call) and _mark_name(node) in _KINDS:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _marks(child)


def _does_not_run(node: ast.AST) -> bool:
    match node:
        case ast.Module():
            return _is_skipped(_pytestmark(node.body))
        case ast.ClassDef():
            return _is_skipped([*node.decorator_list, *_pytestmark(node.body)])
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _is_skipped(node.decorator_list)
        case ast.Call() if ast.unparse(node.func) in ("pytest.param", "param"):
            marks = [keyword.value for keyword in node.keywords if keyword.arg == "marks"]
            return any(_is_skipped(_elements(value)) for value in marks)
    return False


def _pytestmark(body: list[ast.stmt]) -> list[ast.expr]:
    """The marks that a module or class gives to all its tests."""
    return [
        element
        for statement in body
        for target, value in _assigned(statement)
        if target == "pytestmark"
        for element in _elements(value)
    ]

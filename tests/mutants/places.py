"""Where a fault can be, and which rules that place is about.

A place is a function, a class or a table at the top of a module of the engine or the projections. It is about
the rules that its source cites, in a decision, a comment or its docstring. A table that cites none is about the
rules of the functions that read it; whatever is left is about those of its module's docstring, else of the
sections of `_SECTIONS_OF`. Faults in places that are about no rule of a section are left to other tests.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.operators import COURSE, Edit, Source, edits_of

__all__ = ["SECTIONS", "Fault", "apply_fault", "find_faults"]

SECTIONS = (
    *("FLOW", "SEL", "CHAIN", "ORD", "PIN", "COOL", "BILL", "REC"),
    *("ADV", "PROBE", "STICK", "SKIP", "LIVE", "NOTE", "OBS", "OURS"),
)

# Reading and classifying failures have tests of their own (tests/classify), and so has the proof of a log.
FOLDERS = ("engine", "engine/decide", "engine/texts", "projections")
_ELSEWHERE = frozenset({"engine/checkpoint.py", "engine/verify.py"})

_SECTIONS_OF: Mapping[str, tuple[str, ...]] = {
    "engine/decide/next_call.py": ("FLOW", "ADV"),
    "engine/fold.py": ("FLOW",),
    "engine/decide/after_failure.py": ("FLOW",),
    "engine/machine.py": ("FLOW", "OURS"),
    "engine/plan.py": ("FLOW",),
    "engine/steps.py": ("FLOW",),
    "engine/turn.py": ("FLOW",),
    "projections/costs.py": ("FLOW",),
    "engine/decide/failure.py": ("COOL",),
    "projections/runtimes.py": ("PROBE",),
    "projections/sessions.py": ("SEL",),
}
_COURSE_SECTIONS = (("REC",), ("COOL", "BILL"), ("REC", "FLOW"), ("ADV",))
"""What each argument of a course is about: recovery, health, rotation, advance."""

_CITED = re.compile(rf"\b({'|'.join(SECTIONS)})-\d+\b")
_NAMED = re.compile(rf"\b(?:{'|'.join(SECTIONS)})\b")


@dataclass(frozen=True)
class Fault:
    """One small fault."""

    file: str
    place: str
    """The function, class or table, with its class where it has one."""
    line: int
    operator: str
    before: str
    """The line that is changed, without white space around it."""
    after: str
    nth: int
    """Which one it is of those in this place that look the same, from 1."""
    rules: frozenset[str]
    sections: frozenset[str]
    edit: Edit = field(repr=False)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is called where it is explained: it stays while the lines around it change."""
        return (f"{self.file}:{self.place}", self.before, self.after, self.nth)


class _Place:
    def __init__(self, name: str, node: ast.stmt, source: Source) -> None:
        self.name, self.node = name, node
        text = source.of(node)
        self.rules = {found[0] for found in _CITED.finditer(text)}
        self.words = set(re.findall(r"\w+", text))


def find_faults(root: Path) -> list[Fault]:
    """All faults in the tree at `root`, in the order of files and lines."""
    enums = _enums(root)
    found: list[Fault] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            name = path.relative_to(root).as_posix()
            if name not in _ELSEWHERE and path.name != "__init__.py":
                found += _faults_of(name, path.read_text(encoding="utf-8"), enums)
    return found


def apply_fault(text: str, edit: Edit) -> str:
    """The file with this fault in it."""
    data = text.encode("utf-8")
    return (data[: edit.start] + edit.text.encode("utf-8") + data[edit.end :]).decode("utf-8")


def _enums(root: Path) -> dict[str, list[str]]:
    """The members of each enumeration, in order."""
    enums: dict[str, list[str]] = {}
    for path in (root / "events/vocabulary.py", *sorted((root / "engine").glob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
                enums[node.name] = [
                    one.targets[0].id
                    for one in node.body
                    if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
                ]
    return enums


def _faults_of(file: str, text: str, enums: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    source = Source(text)
    tree = source.tree
    doc = ast.get_docstring(tree) or ""
    fallback = {found[0] for found in _CITED.finditer(doc)}
    named = set(_NAMED.findall(doc)) or set(_SECTIONS_OF.get(file, ()))
    places = list(_places(tree, source))
    courses = _courses(tree, source)
    seen: Counter[tuple[str, str, str]] = Counter()
    for place in places:
        rules = place.rules or _of_readers(place, places) or fallback
        sections = frozenset(rule.partition("-")[0] for rule in rules) or named
        for edit in edits_of(place.node, source, enums):
            first, last = source.lines(edit.start, edit.end)
            before = _one_line(source.bytes[first:last])
            after = _one_line(
                source.bytes[first : edit.start] + edit.text.encode("utf-8") + source.bytes[edit.end : last]
            )
            if before == after:
                continue
            seen[place.name, before, after] += 1
            of_course = courses.get((edit.start, edit.end))
            yield Fault(
                file=file,
                place=place.name,
                line=source.line(edit.start),
                operator=edit.operator,
                before=before,
                after=after,
                nth=seen[place.name, before, after],
                rules=of_course[0] if of_course else frozenset(rules),
                sections=frozenset(of_course[1] if of_course else sections),
                edit=edit,
            )


def _places(tree: ast.Module, source: Source) -> Iterator[_Place]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            for method in methods:
                yield _Place(f"{node.name}.{method.name}", method, source)
            if not any("Enum" in ast.unparse(base) for base in node.bases):
                for one in node.body:
                    if isinstance(one, ast.AnnAssign):
                        yield _Place(f"{node.name}.{ast.unparse(one.target)}", one, source)
        elif isinstance(node, ast.FunctionDef):
            yield _Place(node.name, node, source)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield _Place(ast.unparse(target), node, source)


def _of_readers(place: _Place, places: Sequence[_Place]) -> set[str]:
    """The rules of the functions that use a table or a function without rules of its own."""
    name = place.name.rpartition(".")[2]
    found: set[str] = set()
    for other in places:
        if other is not place and name in other.words:
            found |= other.rules
    return found


def _courses(tree: ast.Module, source: Source) -> dict[tuple[int, int], tuple[frozenset[str], tuple[str, ...]]]:
    """For the arguments of courses, by where they are: the rules that the course names, and the sections."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == COURSE:
            cited = frozenset(one[0] for one in _CITED.finditer(ast.unparse(node)))
            for argument, sections in zip(node.args, _COURSE_SECTIONS, strict=False):
                found[source.span(argument)] = (cited, sections)
    return found


def _one_line(data: bytes) -> str:
    """A stretch of source in one line, short enough to be read in a table."""
    text = " ".join(data.decode("utf-8").split())
    return text if len(text) <= 160 else text[:159] + "…"

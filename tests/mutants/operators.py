"""The faults: what is changed at one node of the syntax tree.

    compare     another comparison: `<` for `<=`, `==` for `!=`, `in` for `not in`
    join        `and` for `or`
    free        one condition of several always holds, or never
    negate      the opposite of a condition
    drop        a decision, or another call made for what it does, is left out
    forget      an attribute is not set
    flip        True for False
    count       a number is larger by one
    sibling     another member of the same enumeration
    course      another course for a failure reason
    leave       the function returns at once

A fault is a replaced range of bytes, so that the rest of the file keeps its lines and reads as a diff.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

__all__ = ["COURSE", "Edit", "edits_of"]

COURSE = "Course"
"""The constructor whose arguments are alternatives to each other, not neighbours in an enumeration."""

_OTHER = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
_LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Dict)
"""What stands for a value that is not there, as in `x or ()`, and is no condition."""

_COURSE_PARTS = ("Budget", "HealthRule", "Rotation")


class Edit(NamedTuple):
    """Replace the bytes from `start` to `end` by `text`."""

    operator: str
    start: int
    end: int
    text: str


class Source:
    """A file's bytes and where its nodes lie in them."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode("utf-8")
        self._lines = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.tree = ast.parse(text)
        self._short = dict(_short_names(self.tree))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """First byte of a node, and the one after its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node."""
        start, end = self.span(node)
        return self.bytes[start:end].decode("utf-8")

    def meaning(self, node: ast.expr) -> str:
        """The source of a node, with the short names for enumerations and members written out."""
        head, dot, rest = self.of(node).partition(".")
        return self._short.get(head, head) + dot + rest

    def line(self, offset: int) -> int:
        """The line of a byte, from 1."""
        return self.bytes.count(b"\n", 0, offset) + 1

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """The range of whole lines around a range of bytes."""
        first = self.bytes.rfind(b"\n", 0, start) + 1
        last = self.bytes.find(b"\n", end)
        return first, len(self.bytes) if last < 0 else last


def _short_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            for name, meant in pairs:
                if isinstance(name, ast.Name) and isinstance(meant, ast.Name | ast.Attribute):
                    yield name.id, ast.unparse(meant)


def edits_of(root: ast.AST, source: Source, enums: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    """Every fault below `root`, which is a statement or a part of one."""
    for node in _walk(root):
        if isinstance(node, ast.FunctionDef):
            yield from _leave(node, source)
        elif isinstance(node, ast.Compare):
            yield from _compare(node, source)
        elif isinstance(node, ast.BoolOp):
            yield from _join(node, source)
        elif isinstance(node, ast.Expr):
            yield from _drop(node, source)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            yield from _forget(node, source)
        elif isinstance(node, ast.Constant):
            yield from _constant(node, source)
        elif isinstance(node, ast.Attribute):
            yield from _sibling(node, source, enums)
        elif isinstance(node, ast.Call):
            yield from _course(node, source, enums)
        for test in _tests(node):
            start, end = source.span(test)
            yield Edit("negate", start, end, f"(not ({source.of(test)}))")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something when they run: no annotations, no messages of errors."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
        return
    yield node
    if isinstance(node, ast.AnnAssign):
        below: Iterator[ast.AST] = iter([node.value] if node.value is not None else [])
    elif isinstance(node, ast.FunctionDef):
        defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
        below = iter([*defaults, *node.body])
    elif isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets):
        return
    else:
        below = ast.iter_child_nodes(node)
    for child in below:
        yield from _walk(child)


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.IfExp):
        return [node.test]
    return list(node.ifs) if isinstance(node, ast.comprehension) else []


def _compare(node: ast.Compare, source: Source) -> Iterator[Edit]:
    before = node.left
    for operator, after in zip(node.ops, node.comparators, strict=True):
        pattern, other = _OTHER[type(operator)]
        found = _between(before, after, pattern, source)
        if found is not None:
            yield Edit("compare", *found, other)
        before = after


def _between(before: ast.expr, after: ast.expr, pattern: str, source: Source) -> tuple[int, int] | None:
    """Where an operator stands between two operands; parentheses and comments may stand there, too."""
    start, end = source.span(before)[1], source.span(after)[0]
    gap = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), source.bytes[start:end])
    found = re.search(pattern.encode(), gap)
    return (start + found.start(), start + found.end()) if found else None


def _join(node: ast.BoolOp, source: Source) -> Iterator[Edit]:
    word, other, held = ("and", "or", "True") if isinstance(node.op, ast.And) else ("or", "and", "False")
    for before, after in zip(node.values, node.values[1:], strict=False):
        found = _between(before, after, rf"\b{word}\b", source)
        if found is not None:
            yield Edit("join", *found, other)
    for value in node.values:
        if not (isinstance(value, _LITERALS) or _is_none_check(value)):
            yield Edit("free", *source.span(value), held)


def _is_none_check(node: ast.expr) -> bool:
    """A check for None is there for the types; what it is about is said by the conditions beside it."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)


def _drop(node: ast.Expr, source: Source) -> Iterator[Edit]:
    if isinstance(node.value, ast.Call):
        yield Edit("drop", *source.span(node), "pass")


def _forget(node: ast.Assign | ast.AugAssign, source: Source) -> Iterator[Edit]:
    if isinstance(node, ast.AugAssign):
        yield Edit("forget", *source.span(node), "pass")
        return
    target = node.targets[0]
    if isinstance(target, ast.Attribute | ast.Subscript):
        yield Edit("forget", *source.span(node), "pass")
    elif isinstance(target, ast.Tuple) and all(isinstance(one, ast.Attribute) for one in target.elts):
        names = [source.of(one) for one in target.elts]
        for place in range(len(names)):
            yield Edit("forget", *source.span(target), ", ".join([*names[:place], "_", *names[place + 1 :]]))


def _constant(node: ast.Constant, source: Source) -> Iterator[Edit]:
    if isinstance(node.value, bool):
        yield Edit("flip", *source.span(node), str(not node.value))
    elif isinstance(node.value, int):
        yield Edit("count", *source.span(node), str(node.value + 1))


def _sibling(node: ast.Attribute, source: Source, enums: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    members = enums.get(name, ())
    if node.attr in members and len(members) > 1:
        following = members[(members.index(node.attr) + 1) % len(members)]
        yield Edit("sibling", *source.span(node), f"{name}.{following}")


def _course(node: ast.Call, source: Source, enums: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    if not (isinstance(node.func, ast.Name) and node.func.id == COURSE):
        return
    for argument, name in zip(node.args, _COURSE_PARTS, strict=False):
        for member in enums[name]:
            if source.meaning(argument) != f"{name}.{member}":
                yield Edit("course", *source.span(argument), f"{name}.{member}")


def _leave(node: ast.FunctionDef, source: Source) -> Iterator[Edit]:
    """Return at once, with whatever says that nothing is the case."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body or (len(body) == 1 and isinstance(body[0], ast.Return)):
        return
    start = source.span(body[0])[0]
    indent = " " * body[0].col_offset
    for value in _nothing(node.returns):
        yield Edit("leave", start, start, f"return{value}\n{indent}")


def _nothing(returns: ast.expr | None) -> tuple[str, ...]:
    said = ast.unparse(returns) if returns is not None else "None"
    if said == "None":
        return ("",)
    if said.endswith("| None"):
        return (" None",)
    if said == "bool":
        return (" False", " True")
    return {"str": (' ""',), "int": (" 0",)}.get(said, (" ()",) if said.startswith("tuple[") else ())

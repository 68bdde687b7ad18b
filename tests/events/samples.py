"""Values of every type that a log can hold: one fixed sample of each, and strategies that draw any."""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from standby.events.commit import Commit
from standby.events.decisions import Decision
from standby.events.facts import Fact, SubjectErased

__all__ = ["KINDS", "commits", "drawn", "sample", "sample_commit"]

KINDS: dict[str, Any] = {
    kind.__struct_config__.tag: kind for union in (Fact, Decision) for kind in get_args(union)
}
"""Every fact and decision by its tag."""


def sample(hint: Any, name: str = "value") -> Any:
    """A value of this type with no field left at its default; always the same."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return sample(next(arg for arg in args if arg is not type(None)), name)
    if origin is tuple:
        return (sample(args[0], name),)
    if origin is dict:
        return {"b": sample(args[1], name), "a": sample(args[1], name)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        fields: dict[str, Any] = {}
        for field in msgspec.structs.fields(hint):
            fields[field.name] = (
                field.default is not True
                if hints[field.name] is bool
                else sample(hints[field.name], field.name)
            )
        return hint(**fields)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return list(hint)[1]
    return {str: f"the {name}", int: 1000 + len(name), bool: True}[hint]


def sample_commit(tag: str) -> Commit:
    """The commit whose bytes are pinned for this tag."""
    kind = KINDS[tag]
    stamp = (1_800_000_000_000, "r-sample", 3, 2**32 - 1)
    if kind in get_args(Fact):
        return Commit(*stamp, sample(kind))
    return Commit(*stamp, SubjectErased(subject="s-sample"), (sample(kind),))


def drawn(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of this type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is type(None):
        return st.none()
    if origin in (Union, types.UnionType):
        return st.one_of([drawn(arg) for arg in args])
    if origin is tuple:
        return st.lists(drawn(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(st.text(max_size=6), drawn(args[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return st.deferred(lambda: struct(hint))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    return {str: st.text(max_size=12), int: st.integers(-(2**63), 2**63 - 1), bool: st.booleans()}[hint]


def struct(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    needed = {f.name: drawn(hints[f.name]) for f in msgspec.structs.fields(kind) if f.required}
    others = {f.name: drawn(hints[f.name]) for f in msgspec.structs.fields(kind) if not f.required}
    return st.fixed_dictionaries(needed, optional=others).map(lambda fields: kind(**fields))


def commits() -> st.SearchStrategy[Commit]:
    """Any commit at all, sensible or not."""
    small = st.integers(0, 2**53)
    decisions = st.lists(st.one_of([struct(kind) for kind in get_args(Decision)]), max_size=3).map(tuple)
    return st.builds(
        Commit,
        at_ms=small,
        runtime=st.text(max_size=8),
        epoch=small,
        entropy=st.integers(0, 2**32 - 1),
        fact=st.one_of([struct(kind) for kind in get_args(Fact)]),
        decisions=decisions,
    )

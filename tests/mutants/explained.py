"""Faults that no test can see, each with its reason, in `explained.toml` beside this file.

An explanation names its fault by place and by the changed line, so that it stays true while other lines move.
One that no longer fits is an error: where there is no such fault any more, and where a test does see it.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutants.places import Fault

__all__ = ["EXPLAINED", "ExplanationError", "Key", "read_explained", "reason_for", "stale"]

EXPLAINED = Path(__file__).with_name("explained.toml")

EVERY = "*"
"""As `after`: whatever the line is changed to. Some of these changes may be seen."""

Key = tuple[str, str, str, int]

_TEXTS = ("where", "before", "after", "reason")


class ExplanationError(Exception):
    """The file does not have the form that it should have."""


def read_explained(path: Path = EXPLAINED) -> dict[Key, str]:
    """The reasons, by the key of their fault.

    Raises:
        ExplanationError: an entry lacks something, or explains a fault that was explained before.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    found: dict[Key, str] = {}
    for number, entry in enumerate(entries, 1):
        lacking = [name for name in _TEXTS if not str(entry.get(name, "")).strip()]
        unknown = sorted(set(entry) - {*_TEXTS, "nth"})
        if lacking or unknown:
            said = ", ".join([*(f"no {name}" for name in lacking), *(f"an unknown {name}" for name in unknown)])
            raise ExplanationError(f"entry {number} of {path.name} has {said}")
        key = (entry["where"], entry["before"], entry["after"], int(entry.get("nth", 1)))
        if key in found:
            raise ExplanationError(f"entry {number} of {path.name} explains {key[0]} a second time: {key[2]}")
        found[key] = entry["reason"].strip()
    return found


def reason_for(explained: Mapping[Key, str], fault: Fault, *, survived: bool = True) -> str:
    """Why no test can see this fault; "" where that is not explained, or only for those that survive."""
    where, before, _, _ = fault.key
    whole = explained.get((where, before, EVERY, 1), "") if survived else ""
    return explained.get(fault.key, whole)


def stale(explained: Mapping[Key, str], faults: Iterable[Fault]) -> list[Key]:
    """The explanations whose fault does not exist (any more)."""
    known = {key for fault in faults for key in (fault.key, (*fault.key[:2], EVERY, 1))}
    return [key for key in explained if key not in known]

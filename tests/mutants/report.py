"""What is printed: a line for each fault that survived, a table by section, or the same as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.mutants.places import SECTIONS, Fault
from tests.mutants.trees import Ending

__all__ = ["Outcome", "as_json", "described", "table"]


@dataclass(frozen=True)
class Outcome:
    """A fault and how the tests took it."""

    fault: Fault
    ending: Ending
    reason: str = ""
    """Why nobody can see it, where that is explained."""

    @property
    def killed(self) -> bool:
        """A test failed."""
        return not self.ending.passed

    @property
    def verdict(self) -> str:
        """ "killed", "explained", "survived", or "explained, but killed"."""
        if self.killed:
            return "explained, but killed" if self.reason else "killed"
        return "explained" if self.reason else "survived"

    @property
    def marked(self) -> bool:
        """The test that saw it holds one of the rules of the place."""
        return bool(self.ending.rules & self.fault.rules)


def described(outcome: Outcome) -> str:
    """A survivor as it is looked into: where it is, and the line before and after."""
    fault = outcome.fault
    nth = f", nth = {fault.nth}" if fault.nth > 1 else ""
    head = f"{fault.file}:{fault.line}: {outcome.verdict} ({fault.operator}{nth}), in {fault.place}"
    lines = [head, f"  - {fault.before}", f"  + {fault.after}"]
    if outcome.killed:
        lines.append(f"  seen by {outcome.ending.by[0]}")
    if outcome.reason:
        lines.append(f"  explained: {outcome.reason}")
    return "\n".join(lines)


def table(
    outcomes: Iterable[Outcome], places: Mapping[str, int], seed: int, wanted: Sequence[str] = SECTIONS
) -> str:
    """One row a section: its places, the faults applied, and what became of them."""
    every = list(outcomes)
    rows: list[tuple[str, ...]] = [
        ("section", "places", "faults", "killed", "by rule", "explained", "survived"),
        *(
            (section, str(places[section]), *_counts(one for one in every if section in one.fault.sections))
            for section in wanted
        ),
        ("all", "", *_counts(every)),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*lines, f"seed {seed}; a fault in a place of several sections counts in each"])


def _counts(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    every = list(outcomes)
    return (
        str(len(every)),
        str(sum(one.killed for one in every)),
        str(sum(one.killed and one.marked for one in every)),
        str(sum(one.verdict == "explained" for one in every)),
        str(sum(one.verdict == "survived" for one in every)),
    )


def as_json(outcome: Outcome) -> dict[str, object]:
    """An outcome for programs."""
    fault = outcome.fault
    return {
        "file": fault.file,
        "line": fault.line,
        "place": fault.place,
        "operator": fault.operator,
        "before": fault.before,
        "after": fault.after,
        "nth": fault.nth,
        "rules": sorted(fault.rules),
        "sections": sorted(fault.sections),
        "verdict": outcome.verdict,
        "seen_by": list(outcome.ending.by),
        "by_rule": outcome.marked,
        "reason": outcome.reason,
        "seconds": round(outcome.ending.seconds, 1),
    }

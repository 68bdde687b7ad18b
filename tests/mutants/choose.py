"""Which faults are tried: some of each section, chosen by a seed."""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutants.places import Fault

__all__ = ["chosen", "chosen_for_rule"]


def chosen(faults: Sequence[Fault], sections: Iterable[str], seed: int, per_section: int | None) -> list[Fault]:
    """At most `per_section` faults of each section (None is all), each once, in the order of files."""
    wanted: set[int] = set()
    for section in sections:
        own = [place for place, fault in enumerate(faults) if section in fault.sections]
        wanted.update(own if per_section is None else _spread(faults, own, f"{seed} {section}")[:per_section])
    return [faults[place] for place in sorted(wanted)]


def chosen_for_rule(faults: Sequence[Fault], rule: str, seed: int, most: int | None, root: Path) -> list[Fault]:
    """Faults in the places that cite the rule, in the order in which they are tried: near a citation first,
    since a long function follows many rules."""
    own = [place for place, fault in enumerate(faults) if rule in fault.rules]
    cited = {file: _lines_with(root / file, rule) for file in {faults[place].file for place in own}}

    def distance(place: int) -> int:
        fault = faults[place]
        return min((abs(fault.line - line) for line in cited[fault.file]), default=0)

    spread = _spread(faults, own, f"{seed} {rule}")
    return [faults[place] for place in sorted(spread, key=distance)[:most]]


def _lines_with(path: Path, rule: str) -> list[int]:
    whole = re.compile(rf"\b{rule}\b")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if whole.search(line)]


def _spread(faults: Sequence[Fault], own: Sequence[int], seed: str) -> list[int]:
    """In an order by chance, but one of each place before a second one of any: a long function has many."""
    chance = random.Random(seed)
    by_place: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place in own:
        by_place[faults[place].file, faults[place].place].append(place)
    groups = list(by_place.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]

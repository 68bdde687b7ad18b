"""Which faults are tried: some of each section, chosen by a seed."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.mutants.places import Fault

__all__ = ["chosen", "chosen_for_rule"]


def chosen(faults: Sequence[Fault], sections: Iterable[str], seed: int, per_section: int | None) -> list[Fault]:
    """At most `per_section` faults of each section (None is all), each once, in the order of files."""
    wanted: set[int] = set()
    for section in sections:
        own = [place for place, fault in enumerate(faults) if section in fault.sections]
        wanted.update(own if per_section is None else _spread(faults, own, f"{seed} {section}")[:per_section])
    return [faults[place] for place in sorted(wanted)]


def chosen_for_rule(faults: Sequence[Fault], rule: str, seed: int, most: int | None) -> list[Fault]:
    """Faults in the places that cite the rule, in the order in which they are tried."""
    own = [place for place, fault in enumerate(faults) if rule in fault.rules]
    return [faults[place] for place in _spread(faults, own, f"{seed} {rule}")[:most]]


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

"""Reading the specification: rules.md, invariants.md, and which rules nobody has asked for yet."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = [
    "LATER",
    "Catalogue",
    "Invariant",
    "Rule",
    "SpecError",
    "later_reasons",
    "parse_invariants",
    "parse_rules",
]


class SpecError(Exception):
    """A specification page does not have the form that programs read."""


@dataclass(frozen=True)
class Rule:
    """One row of rules.md."""

    id: str
    section: str
    sets: str
    """"10", "04" or "both"."""
    host: bool
    """Rests on a fact or an action of the embedding service."""
    text: str


@dataclass(frozen=True)
class Catalogue:
    """All rules, in the order of the page, and the titles of their sections."""

    titles: Mapping[str, str]
    rules: Mapping[str, Rule]

    def of(self, section: str) -> list[Rule]:
        """The rules of one section, in order."""
        return [rule for rule in self.rules.values() if rule.section == section]


@dataclass(frozen=True)
class Invariant:
    """One numbered heading of invariants.md."""

    number: int
    title: str


_HEADING = re.compile(r"## ([A-Z]+) · (.+)")
_ROW = re.compile(r"\| ([A-Z]+)-(\d+) \| (10|04|both)( host)? \| (.+) \|")
_INVARIANT = re.compile(r"## (\d+) · (.+)")


def parse_rules(text: str) -> Catalogue:
    """Read rules.md. Raises SpecError, with the line, for a row that programs would miss or misread."""
    titles: dict[str, str] = {}
    rules: dict[str, Rule] = {}
    section, last = "", 0
    for line_number, line in enumerate(text.splitlines(), start=1):
        if heading := _HEADING.fullmatch(line):
            section, last = heading[1], 0
            if section in titles:
                raise SpecError(f"rules.md:{line_number}: section {section} is there twice")
            titles[section] = heading[2]
        elif row := _ROW.fullmatch(line):
            if row[1] != section:
                raise SpecError(
                    f"rules.md:{line_number}: {row[1]}-{row[2]} stands in section {section or 'none'}"
                )
            last = _next_number(line_number, f"{row[1]}-{row[2]}", int(row[2]), last)
            rule = Rule(f"{row[1]}-{row[2]}", row[1], row[3], row[4] is not None, row[5])
            rules[rule.id] = rule
        elif re.match(r"\|\s*[A-Z]+-\d", line):
            raise SpecError(
                f"rules.md:{line_number}: not of the form `| ID | 10, 04 or both (host) | rule |`: {line}"
            )
    if empty := sorted(set(titles) - {rule.section for rule in rules.values()}):
        raise SpecError(f"rules.md: no rules in section {', '.join(empty)}")
    return Catalogue(titles, rules)


def _next_number(line_number: int, name: str, number: int, last: int) -> int:
    if number != last + 1:
        raise SpecError(f"rules.md:{line_number}: {name} follows number {last}; ids are dense and in order")
    return number


def parse_invariants(text: str) -> list[Invariant]:
    """Read the headings of invariants.md, which are numbered from 1 without gaps."""
    found = [
        Invariant(int(match[1]), match[2])
        for line in text.splitlines()
        if (match := _INVARIANT.fullmatch(line))
    ]
    numbers = [invariant.number for invariant in found]
    if numbers != list(range(1, len(numbers) + 1)):
        raise SpecError(f"invariants.md: the headings are numbered {numbers}, not 1, 2, 3 ...")
    return found


# What no issue has asked for yet: (section or ids, which set, reason). `04` means the rows that only the
# earlier ruleset has. A rule on this list counts as `later` until it is held; take lines away as issues open.
LATER: tuple[tuple[str, str, str], ...] = (
    (
        "FLOW SEL CHAIN ORD PIN COOL BILL REC ADV LIVE STORE CFG",
        "04",
        "the ruleset 2026-04 comes after 2026-10 is complete",
    ),
    ("SEL-9 SEL-10 SEL-11 COOL-21 BILL-7", "any", "upgrades from older releases come with 2026-04"),
    ("STORE-3 STORE-4 STORE-5", "any", "legacy credential files come with 2026-04 and its migration"),
    (
        "FLOW-9 FLOW-10 FLOW-11 FLOW-12 FLOW-16 FLOW-17",
        "any",
        "managed workers, delegation and transcript leaves need more facts of the host",
    ),
    ("OUT", "any", "continuation after an output limit needs the transcript facts"),
    ("CYB", "any", "access programs are a unit of their own"),
    ("MIS", "any", "holding a conversation is a unit of its own"),
    ("STOP", "any", "local faults of a host are a unit of their own"),
    ("GATE", "any", "shared admission is a unit of its own"),
    ("CFG-6", "any", "listing resolved models comes with the commands of a complete ruleset"),
)


def later_reasons(catalogue: Catalogue, table: tuple[tuple[str, str, str], ...] = LATER) -> dict[str, str]:
    """Rule id -> why it is not due yet. Raises SpecError if the table names what does not exist."""
    reasons: dict[str, str] = {}
    for names, sets, reason in table:
        for rule in _named(catalogue, names):
            if sets in ("any", rule.sets):
                reasons.setdefault(rule.id, reason)
    return reasons


def _named(catalogue: Catalogue, names: str) -> Iterator[Rule]:
    for name in names.split():
        if name in catalogue.titles:
            yield from catalogue.of(name)
        elif name in catalogue.rules:
            yield catalogue.rules[name]
        else:
            raise SpecError(f"LATER names {name}, which rules.md does not have")

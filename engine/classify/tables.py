"""The classification tables: phrases, codes and decision rows, and what is compiled from them.

Two layers. *Phrases* (`says_*`) and *codes* (`tokens`) name what a provider can say; they grow one line at a
time and decide nothing. *Decision rows* (`ruleset_*`) say which reading wins when several things were said;
their order is a ruleset's theory and differs between rulesets.
"""

from functools import lru_cache

import msgspec

from standby.engine.classify import ruleset_2026_04, ruleset_2026_10
from standby.engine.classify.operator_rows import check_operator_rows, compiled
from standby.engine.classify.providers import FamilyFinder, families_containing, families_exact
from standby.engine.classify.table_rows import RowTable, TableRow
from standby.events.evidence import OperatorRow
from standby.events.vocabulary import Failure

TABLE = 1
"""Version of phrases, codes and rows together. A test pins their content to it: whoever changes a line that has
been released gives the tables a new number."""


class RulesetTable(msgspec.Struct, frozen=True):
    """What a ruleset brings to classification, as values: rows and named strategies."""

    id: str
    rows: tuple[TableRow, ...]
    families: FamilyFinder
    """How provider ids are compared: whole, or by what they contain."""
    nothing: Failure
    """What is said when no row matches."""
    nothing_rules: tuple[str, ...] = ()
    """The rules that want it said."""
    general: frozenset[str] = frozenset({"CLS-26", "OURS-2"})
    """Rules that the ruleset has about what counts and what goes first, whichever row wins."""


_WHERE_IT_STOOD = frozenset({"CLS-8", "CLS-20", "CLS-29", "CLS-30"})
"""What the later document adds: where a status and a type were read, and that they last."""

_2026_10 = RulesetTable(
    "2026-10",
    ruleset_2026_10.ROWS,
    families_exact,
    Failure.UNCLASSIFIED,
    ("CLS-16",),
    _WHERE_IT_STOOD | {"CLS-26", "OURS-2"},
)
_2026_04 = RulesetTable("2026-04", ruleset_2026_04.ROWS, families_containing, Failure.UNKNOWN)
RULESETS = {table.id: table for table in (_2026_10, _2026_04)}


@lru_cache(maxsize=32)
def ruleset_table(ruleset: str, extra_rows: tuple[OperatorRow, ...] = ()) -> RowTable:
    """The compiled rows of a ruleset, operator rows in front.

    Raises:
        KeyError: the ruleset is unknown.
        BadPolicy: an operator row cannot be used.
    """
    check_rows(extra_rows)
    return RowTable((*map(compiled, extra_rows), *RULESETS[ruleset].rows))


def check_rows(rows: tuple[OperatorRow, ...]) -> None:
    """Check operator rows, their ids against the built-in ones too.

    Raises:
        BadPolicy: with every problem of every row.
    """
    check_operator_rows(rows, {one.id for table in RULESETS.values() for one in table.rows})

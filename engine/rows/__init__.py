"""The classification tables: phrases, codes and decision rows, and what is compiled from them.

Two layers. *Phrases* (`says_*`) and *codes* (`tokens`) name what a provider can say; they grow one line at a
time and decide nothing. *Decision rows* (`ruleset_*`) say which reading wins when several things were said;
their order is a ruleset's theory and differs between rulesets.
"""

from functools import cache, lru_cache

import msgspec

from standby.engine.rows import ruleset_2026_04, ruleset_2026_10
from standby.engine.rows.model import Context, Entry, Row, Table
from standby.engine.rows.operator import OperatorTable, check_operator_rows
from standby.engine.rows.phrases import Phrasebook, Say, say
from standby.engine.rows.providers import FamilyFinder, families_containing, families_exact
from standby.engine.rows.says_access import ACCESS_SAYS
from standby.engine.rows.says_quota import QUOTA_SAYS, SPLIT_402_SAYS
from standby.engine.rows.says_request import REQUEST_SAYS
from standby.engine.rows.says_service import SERVICE_SAYS
from standby.engine.rows.says_transport import TRANSPORT_SAYS
from standby.engine.rows.words import Words
from standby.events.evidence import OperatorRow
from standby.events.vocabulary import Failure

__all__ = [
    "RULESETS",
    "SAYS",
    "TABLE",
    "Context",
    "Entry",
    "Row",
    "RulesetTable",
    "Say",
    "Table",
    "check_operator_rows",
    "compiled_operator_rows",
    "find_phrases",
    "phrasebook",
    "ruleset_table",
]

TABLE = "1"
"""Version of phrases, codes and rows together. A test pins their content to it: whoever changes a line that has
been released gives the tables a new number."""

SCOPED_SAYS = (
    say("key-limit.words", "key ~1 limit ~2 exceed|reach|hit", "api key budget limit", seen="OpenRouter"),
    say(
        "free-models.words", "free models per day|hour|min", seen="OpenRouter: one allowance of all free models"
    ),
    say("workers-ai.quota", "workers ai ~6 quota limit exceed", "workers ai ~6 quota"),
    say("not-found.words", "not found"),
    say("model-reference.words", "invalid model reference", seen="a local reference, not the provider's"),
)

GENERAL_SAYS: tuple[Say, ...] = (
    *QUOTA_SAYS, *REQUEST_SAYS, *SERVICE_SAYS, *TRANSPORT_SAYS, *ACCESS_SAYS, *SCOPED_SAYS,
)  # fmt: skip
SAYS = (*GENERAL_SAYS, *SPLIT_402_SAYS)
"""All phrase lines. Those of the 402 split are looked for only where a 402 is."""


class RulesetTable(msgspec.Struct, frozen=True):
    """What a ruleset brings to classification, as values: rows and named strategies."""

    id: str
    rows: tuple[Row, ...]
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


@cache
def phrasebook(with_402: bool = False) -> Phrasebook:
    """The phrases of every reply, or those that only count beside a 402; compiled once."""
    return Phrasebook(SPLIT_402_SAYS if with_402 else GENERAL_SAYS)


def find_phrases(words: Words, status: int | None) -> tuple[str, ...]:
    """Ids of all phrase lines that a reply says, in table order."""
    found = phrasebook().find(words)
    if status == 402 or "402" in words.unique:
        found += phrasebook(True).find(words)
    return found


@lru_cache(maxsize=32)
def ruleset_table(ruleset: str, extra_rows: tuple[OperatorRow, ...] = ()) -> Table:
    """The compiled rows of a ruleset, operator rows in front. Raises KeyError for an unknown ruleset."""
    return Table((*compiled_operator_rows(extra_rows).rows, *RULESETS[ruleset].rows))


@lru_cache(maxsize=32)
def compiled_operator_rows(rows: tuple[OperatorRow, ...]) -> OperatorTable:
    """Operator rows as literals to look for and rows to try first; checked (raises BadPolicy)."""
    taken = {one.id for table in RULESETS.values() for one in table.rows} | {s.id for s in SAYS}
    check_operator_rows(rows, taken)
    return OperatorTable(rows)

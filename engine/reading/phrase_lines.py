"""All phrase lines of a reply, and how they are found in it.

A phrase line names what a provider can say; it decides nothing. Its id is a stored name whose meaning never
changes.
"""

from functools import cache, lru_cache

from standby.engine.classify.normalise import normalise
from standby.engine.classify.operator_rows import operator_hit
from standby.engine.reading.phrases import Phrasebook, Say, say
from standby.engine.reading.says_access import ACCESS_SAYS
from standby.engine.reading.says_quota import QUOTA_SAYS, SPLIT_402_SAYS
from standby.engine.reading.says_request import REQUEST_SAYS
from standby.engine.reading.says_service import SERVICE_SAYS
from standby.engine.reading.says_transport import TRANSPORT_SAYS
from standby.engine.reading.word_index import WordIndex
from standby.events.evidence import OperatorRow

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


@cache
def phrasebook(with_402: bool = False) -> Phrasebook:
    """The phrases of every reply, or those that only count beside a 402; compiled once."""
    return Phrasebook(SPLIT_402_SAYS if with_402 else GENERAL_SAYS)


def find_phrases(words: WordIndex, status: int | None) -> tuple[str, ...]:
    """Ids of all phrase lines that a reply says, in table order."""
    found = phrasebook().find(words)
    if status == 402 or "402" in words.unique:
        found += phrasebook(True).find(words)
    return found


@lru_cache(maxsize=32)
def _literals(rows: tuple[OperatorRow, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (operator_hit(one.id), tuple(normalise(t).strip() for t in one.text)) for one in rows if one.text
    )


def find_operator_literals(rows: tuple[OperatorRow, ...], folded: list[str]) -> tuple[str, ...]:
    """The hits of operator rows whose literals occur, in their order (OURS-6)."""
    found = []
    for hit, literals in _literals(rows):
        if any(literal in text for literal in literals for text in folded):
            found.append(hit)
    return tuple(found)

"""Evidence of a failure: what is kept of a provider's reply, typed, masked and limited.

The raw reply never enters an event. One function (`engine.reading.extract`) reads the whole bounded reply once,
keeps the typed fields below, and only these are classified, live and in replay. So a decision can be recomputed
for ever, although the text may have been cut, withheld or erased: the text itself lies in the side table of the
log, and the event knows it by a salted digest only.
"""

import msgspec

from standby.events.vocabulary import (
    Effects,
    Failure,
    Origin,
    RefusalKind,
    Stage,
    ToolReceipt,
    WaitSource,
)


class StatedWait(msgspec.Struct, gc=False, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One wait that the provider stated.

    `ms` is counted from the moment at which the reply arrived. A wait that cannot be one (negative, not a
    number, over 31 days) is recorded with `ignored` and never obeyed (OURS-4).
    """

    source: WaitSource
    ms: int
    name: str = ""
    """Which header or field said so, in lower case; "" for running text."""
    ignored: bool = False


class Evidence(
    msgspec.Struct, gc=False, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """What a failed call left behind, as far as rules look at it."""

    provider: str = ""
    model: str = ""
    """The provider and model that the failing call went to; readings are scoped by them (OURS-3)."""
    status: int | None = None
    """Numeric HTTP status, from a status field or from the head of the text (CLS-29)."""
    code: str = ""
    error_type: str = ""
    param: str = ""
    hits: tuple[str, ...] = ()
    """Ids of the text rows that matched anywhere in the bounded reply, in table order."""
    waits: tuple[StatedWait, ...] = ()
    origin: Origin = Origin.PROVIDER
    stage: Stage = Stage.PROMPT
    table: int = 0
    """Version of the classification tables that `hits` were taken with."""
    text: str = ""
    """Salted digest of the kept text in the side table; "" when none was kept."""
    size: int = 0
    """Length of the reply in bytes before it was cut."""
    soft: bool = False
    """The status was read from a text or a body; no status field gave it (CLS-8, CLS-29)."""
    tokens: tuple[str, ...] = ()
    """Further structured codes and types of the reply, squashed (lower case, letters and digits only)."""
    request_tokens: int | None = None
    """Tokens that the request had, where the refusal of an oversized one says so (CHAIN-8)."""


class OperatorRow(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A classification row of an operator, tried before the built-in ones (OURS-6).

    A row matches if every matcher that it fills in matches; inside one matcher any value suffices. `text`
    holds literals that are looked for in the whole bounded reply, whatever their case, quotes or width.
    `engine.rows` validates rows when a policy is adopted.
    """

    id: str
    reason: Failure
    providers: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    kind: RefusalKind = RefusalKind.GENERIC
    """Which refusal; looked at only where `reason` is a refusal."""
    flags: tuple[str, ...] = ()
    """Names of the `Reading` fields that the row switches on: `long_window`, `missing_model` and so on."""
    note: str = ""
    """Why the row exists and where its failure was seen."""


_RANK = {Effects.NONE: 0, Effects.POSSIBLE: 1, Effects.COMMITTED: 2}


def worst(one: Effects, other: Effects) -> Effects:
    """Of two claims about effects the worse stands."""
    return one if _RANK[one] >= _RANK[other] else other


_CLAIMS = {
    ToolReceipt.REJECTED: Effects.NONE,
    ToolReceipt.STARTED: Effects.POSSIBLE,
    ToolReceipt.FINISHED: Effects.COMMITTED,
}


def claimed_by(receipts: tuple[ToolReceipt, ...]) -> Effects:
    """What receipts of unsafe operations claim together: one that was rejected claims nothing (REC-8)."""
    effects = Effects.NONE
    for receipt in receipts:
        effects = worst(effects, _CLAIMS[receipt])
    return effects

"""The decision row: which evidence gets which reading, and how a table of rows is searched.

A row matches when every matcher that it fills in matches:

    providers   the provider of the call belongs to one of these families (empty: any provider)
    statuses    the HTTP status is one of these         soft     it came from a text (True) or a field (False)
    tokens      one of the structured codes or types is one of these (squashed: letters and digits only)
    says        for each entry one of its `|` alternatives was said: a phrase group or a single line
    unless      none of these was said, and no such token is there
    not_statuses, origin, bare

The first matching row of a table wins; the later ones that match too are reported beside it (OURS-5). A row
without a reason says that the evidence is understood and means nothing (`None`).

A row that stands for a documented rule names it, so that a reading can tell by which rule it was made. A row
that only says what a provider's own words or numbers mean names none, and one that belongs to providers names
the rule that keeps it there (CLS-31) in any case.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from standby.events.vocabulary import Failure, Origin, RefusalKind


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decision row; see the module's text."""

    id: str
    reason: Failure | None
    providers: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()
    not_statuses: tuple[int, ...] = ()
    tokens: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """A second matcher on codes and types, for rows of operators that name both."""
    params: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    soft: bool | None = None
    bare: bool = False
    """Only when nothing was said: no status beside the one asked for, no text, no code."""
    statusless: bool = False
    """Only when no status is known."""
    origin: Origin | None = None
    kind: RefusalKind = RefusalKind.GENERIC
    flags: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Ids of the documented rules that the row stands for."""
    seen: str = ""


def row(
    id: str,
    reason: Failure | None,
    *,
    status: int | Iterable[int] = (),
    not_status: Iterable[int] = (),
    tokens: str = "",
    says: str | Sequence[str] = (),
    unless: str = "",
    providers: str = "",
    flags: str = "",
    soft: bool | None = None,
    bare: bool = False,
    statusless: bool = False,
    origin: Origin | None = None,
    kind: RefusalKind = RefusalKind.GENERIC,
    rule: str = "",
    seen: str = "",
) -> TableRow:
    """A row, short to write: words are separated by spaces."""
    return TableRow(
        id=id,
        reason=reason,
        statuses=(status,) if isinstance(status, int) else tuple(status),
        not_statuses=tuple(not_status),
        tokens=tuple(tokens.split()),
        says=(says,) if isinstance(says, str) else tuple(says),
        unless=tuple(unless.split()),
        providers=tuple(providers.split()),
        flags=tuple(flags.split()),
        soft=soft,
        bare=bare,
        statusless=statusless,
        origin=origin,
        kind=kind,
        rules=(*rule.split(), *(["CLS-31"] if providers else ())),
        seen=seen,
    )


class Context(msgspec.Struct, gc=False):
    """What rows are matched against: evidence in the form of sets."""

    families: frozenset[str]
    status: int | None
    soft: bool
    tokens: AbstractSet[str]
    said: AbstractSet[str]
    """Ids of hits and their groups."""
    hits: tuple[str, ...]
    param: str
    origin: Origin
    bare: bool


class Entry(msgspec.Struct):
    """A row of a table, with its matchers as sets."""

    row: TableRow
    number: int
    says: tuple[frozenset[str], ...]
    wanted: frozenset[str]
    """All that `says` names."""
    tokens: frozenset[str]
    unless: frozenset[str]
    providers: frozenset[str]
    statuses: frozenset[int]
    not_statuses: frozenset[int]
    guarded: bool
    generic: bool
    """Asks for a status and for nothing that was said: a drawer that a closer look may overrule (OURS-2)."""
    coded: bool
    """Asks for a structured code, which beats prose (OURS-2)."""


_FEW = 3
"""Up to so many statuses are a surer thing to file by than a phrase."""


class RowTable:
    """Rows in order, filed by the surest thing that each asks for."""

    def __init__(self, rows: Sequence[TableRow]) -> None:
        self.rows = tuple(rows)
        self._by_said: dict[str, list[Entry]] = {}
        self._by_token: dict[str, list[Entry]] = {}
        self._by_status: dict[int | None, list[Entry]] = {}
        self._always: list[Entry] = []
        ids: set[str] = set()
        for number, one in enumerate(self.rows):
            if one.id in ids:
                raise ValueError(f"row id used twice: {one.id}")
            ids.add(one.id)
            self._file(_entry(one, number))

    def _file(self, one: Entry) -> None:
        few = 0 < len(one.statuses) <= _FEW
        if one.says and not few:
            for word in one.says[0]:
                self._by_said.setdefault(word, []).append(one)
        elif one.tokens and not few:
            for token in one.tokens:
                self._by_token.setdefault(token, []).append(one)
        elif one.statuses:
            for status in one.statuses:
                self._by_status.setdefault(status, []).append(one)
        else:
            self._always.append(one)

    def matches(self, context: Context) -> list[Entry]:
        """All rows that match, the winner first."""
        candidates = [*self._always, *self._by_status.get(context.status, ())]
        for word in self._by_said.keys() & context.said:
            candidates += self._by_said[word]
        for token in self._by_token.keys() & context.tokens:
            candidates += self._by_token[token]
        found = {one.number: one for one in candidates if _is_match(one, context)}
        return [found[number] for number in sorted(found)]


def _entry(one: TableRow, number: int) -> Entry:
    says = tuple(frozenset(entry.split("|")) for entry in one.says)
    return Entry(
        row=one,
        number=number,
        says=says,
        wanted=frozenset().union(*says),
        tokens=frozenset(one.tokens),
        unless=frozenset(one.unless),
        providers=frozenset(one.providers),
        statuses=frozenset(one.statuses),
        not_statuses=frozenset(one.not_statuses),
        guarded=bool(
            one.soft is not None or one.bare or one.statusless or one.origin or one.params or one.types
        ),
        generic=bool(one.statuses and not (one.says or one.tokens or one.params)),
        coded=bool(one.tokens and not one.says),
    )


def _is_match(one: Entry, context: Context) -> bool:
    status = context.status
    if one.statuses and status not in one.statuses:
        return False
    if one.not_statuses and status in one.not_statuses:
        return False
    if one.providers and one.providers.isdisjoint(context.families):
        return False
    if one.tokens and one.tokens.isdisjoint(context.tokens):
        return False
    said = context.said
    for alternatives in one.says:
        if alternatives.isdisjoint(said):
            return False
    if one.unless and not (one.unless.isdisjoint(said) and one.unless.isdisjoint(context.tokens)):
        return False
    return not one.guarded or _passes_guards(one.row, context)


def _passes_guards(one: TableRow, context: Context) -> bool:
    if one.soft is not None and one.soft is not context.soft:
        return False
    if one.bare and not context.bare:
        return False
    if one.statusless and context.status is not None:
        return False
    if one.params and context.param not in one.params:
        return False
    if one.types and context.tokens.isdisjoint(one.types):
        return False
    return one.origin is None or one.origin is context.origin

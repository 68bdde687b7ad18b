"""Rows of operators (OURS-6): checked when they are loaded, tried before every built-in row."""

from collections.abc import Collection, Iterable

from standby.engine.classify.normalise import normalise, squash
from standby.engine.classify.table_rows import TableRow
from standby.events.errors import BadPolicy
from standby.events.evidence import OperatorRow
from standby.events.vocabulary import Failure

FLAGS = frozenset({
    "long_window", "missing_model", "names_reasoning", "organisation_tpm", "size_ceiling", "subscription",
})  # fmt: skip
"""What a row may switch on in a reading."""
_MAX_ROWS = 256
_MAX_LITERALS = 32
_ID = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")


def _problems(one: OperatorRow) -> Iterable[str]:
    if not one.id or not set(one.id) <= _ID or len(one.id) > 64:
        yield "its id must be 1 to 64 of a-z, 0-9, '.', '-' and '_'"
    if not (one.statuses or one.codes or one.types or one.params or one.text):
        yield "it has no matcher: fill in statuses, codes, types, params or text"
    if bad := [s for s in one.statuses if not 100 <= s <= 599]:
        yield f"status {bad[0]} is no HTTP status (100 to 599)"
    if bad_flags := [f for f in one.flags if f not in FLAGS]:
        yield f"flag {bad_flags[0]!r} is unknown; known are {', '.join(sorted(FLAGS))}"
    for name in ("providers", "codes", "types", "params", "text"):
        values = getattr(one, name)
        if len(values) > _MAX_LITERALS:
            yield f"{name} has {len(values)} entries, at most {_MAX_LITERALS} are allowed"
        if any(not value.strip() or len(value) > 200 for value in values):
            yield f"{name} has an entry that is empty or longer than 200 characters"
    if any(len(normalise(literal).strip()) < 3 for literal in one.text):
        yield "text has a literal of fewer than 3 characters, which would match almost anything"
    if any(not squash(token) for token in (*one.codes, *one.types)):
        yield "a code or type has no letters or digits"
    if one.reason in (Failure.INTERRUPTED, Failure.UNKNOWN):
        yield f"reason {one.reason.value!r} cannot be given by a row"


def check_operator_rows(rows: Iterable[OperatorRow], taken: Collection[str] = ()) -> None:
    """Raise BadPolicy with every problem of every row, or return. `taken` are the built-in ids."""
    rows = tuple(rows)
    problems: list[str] = []
    if len(rows) > _MAX_ROWS:
        problems.append(f"there are {len(rows)} rows, at most {_MAX_ROWS} are allowed")
    seen: set[str] = set()
    for number, one in enumerate(rows[:_MAX_ROWS], 1):
        name = f"row {number} ({one.id!r})"
        problems += [f"{name}: {problem}" for problem in _problems(one)]
        if one.id in seen:
            problems.append(f"{name}: its id is used twice")
        if one.id in taken:
            problems.append(f"{name}: a built-in row has this id; choose another")
        seen.add(one.id)
    if problems:
        raise BadPolicy("classification rows cannot be used: " + "; ".join(problems))


def compiled(one: OperatorRow) -> TableRow:
    codes = tuple(squash(code) for code in one.codes)
    types = tuple(squash(name) for name in one.types)
    return TableRow(
        id=one.id,
        reason=one.reason,
        providers=tuple(name.strip().lower().replace("_", "-") for name in one.providers),
        statuses=one.statuses,
        tokens=codes or types,
        types=types if codes else (),
        params=one.params,
        says=(operator_hit(one.id),) if one.text else (),
        kind=one.kind,
        flags=one.flags,
        rules=("OURS-6",),
        seen=one.note,
    )


def operator_hit(row_id: str) -> str:
    """The hit that an operator row's literal leaves: in a group of its own, apart from all phrase lines."""
    return f"operator.{row_id}"

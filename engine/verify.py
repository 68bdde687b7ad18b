"""`verify`: a log proves itself, from facts, in a fresh process.

For every commit: its hash follows from its predecessor and its bytes; its bytes are a commit; its runtime was
the one in force and did not go back in time; it was needed; the decisions in it are those that `plan` gives
for its fact on the log before it, under the decision logic that the log names; and the turn table allows them.
One fold does for any number of writers, since every commit was decided on the whole log before it.

Each commit is *proved*, *not provable* (its evidence was erased on purpose, so nobody can check any more that
the typed evidence says what the text said; all else was checked) or *refused*. What is proved is that
decisions follow from facts, not that the facts are true.
"""

from collections.abc import Callable, Iterable

import msgspec

from standby.engine.apply import adopt
from standby.engine.plan import decide, is_noop
from standby.engine.view import View
from standby.events.codec import decode, encode, link, shape_of
from standby.events.commit import SHAPE, Commit
from standby.events.errors import DamagedLog, LogTooNew, Refused, StandbyError
from standby.events.facts import (
    CallFailed,
    Fact,
    ProfilesObserved,
    RuntimeRecovering,
    SubjectErased,
    TurnRequested,
)
from standby.events.names import SideEntry
from standby.events.store import START, CheckpointRow, Head, StoredRow


class Report(msgspec.Struct, kw_only=True):
    """What `verify` found. `refused_at` is None when the log holds."""

    commits: int = 0
    facts: int = 0
    decisions: int = 0
    """Decisions that were recomputed and agree."""
    proved: int = 0
    not_provable: list[int] = []
    """Positions whose evidence text was erased."""
    refused_at: int | None = None
    problem: str = ""
    head: Head = START

    @property
    def holds(self) -> bool:
        """Whether nothing was refused."""
        return self.refused_at is None


def check_commit(view: View, commit: Commit) -> None:
    """Recompute a commit's decisions on the log before it, then fold it.

    Raises:
        Refused: the decisions are not the ones that follow, or the table does not allow them.
    """
    where = view.position + 1
    stamp = commit.stamp()
    try:
        if is_noop(view, commit.fact, stamp):
            raise Refused(f"position {where} repeats what the log already says", where)
        draft = decide(view, commit.fact, stamp)
    except LogTooNew:
        raise
    except Refused as error:
        raise Refused(f"position {where}: {error}", where) from error
    except StandbyError as error:
        raise Refused(f"position {where} holds an impossible fact: {error}", where) from error
    expected = tuple(draft.decisions)
    if expected != commit.decisions:
        raise Refused(_difference(where, expected, commit.decisions), where)
    adopt(view, draft, commit)


def _difference(where: int, expected: tuple[object, ...], stored: tuple[object, ...]) -> str:
    for index, (wanted, found) in enumerate(zip(expected, stored, strict=False)):
        if wanted != found:
            return (
                f"position {where}: decision {index + 1} is not the one that follows from the log: "
                f"stored {_say(found)}, recomputed {_say(wanted)}"
            )
    return f"position {where}: {len(stored)} decisions are stored, {len(expected)} follow from the log"


def _say(value: object) -> str:
    return msgspec.json.encode(value).decode()


def verify(
    rows: Iterable[StoredRow],
    *,
    side_entry: Callable[[str], SideEntry | None] | None = None,
    side_entries: Iterable[SideEntry] = (),
    checkpoint: CheckpointRow | None = None,
    encode_view: Callable[[View], bytes] | None = None,
    head: Head | None = None,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check a whole log.

    Args:
        rows: every stored commit from the first.
        aside: looks up the side table; without it texts are not checked.
        asides: the whole side table: each entry has to give its alias.
        checkpoint, encode_view: a checkpoint to hold against the fold, and how a view is written.
        head: a head that was kept elsewhere; the log has to contain it.
        progress: called with the position now and then.

    Raises:
        LogTooNew: the log needs newer code; nothing is said about it.
    """
    report = Report()
    view = View()
    previous = START
    words = _Words()
    seen_head, seen_checkpoint = head is None, checkpoint is None or encode_view is None
    try:
        for row in rows:
            previous = _check_row(view, row, previous, report, words)
            if head is not None and row.position == head.position:
                seen_head = row.hash == head.hash
                if not seen_head:
                    raise DamagedLog(
                        f"position {row.position} is not the one that the kept head names", row.position
                    )
            if checkpoint is not None and encode_view is not None and row.position == checkpoint.position:
                _check_checkpoint(checkpoint, row, encode_view(view))
                seen_checkpoint = True
            if progress is not None and row.position % 1000 == 0:
                progress(row.position)
        if not seen_checkpoint and checkpoint is not None:
            where = (
                "after the log's end: the tail was cut off, or"
                if checkpoint.position > 0
                else "before its start:"
            )
            raise DamagedLog(
                f"a checkpoint stands at position {checkpoint.position}, {where} the checkpoint is forged; "
                "compare with a head that was kept elsewhere",
                previous.position + 1,
            )
        if not seen_head and head is not None:
            raise DamagedLog(
                f"the log ends at position {previous.position}, before the kept head {head.position}: "
                "its tail was cut off",
                previous.position + 1,
            )
        if side_entry is not None:
            words.check(report, side_entry)
        _check_side_entries(side_entries)
    except LogTooNew:
        raise
    except (DamagedLog, Refused, StandbyError) as error:
        report.refused_at = getattr(error, "position", None) or view.position + 1
        report.problem = str(error)
    report.head = previous
    report.proved = report.commits - len(report.not_provable)
    return report


def _check_row(
    view: View,
    row: StoredRow,
    previous: Head,
    report: Report,
    words: "_Words",
) -> Head:
    position = previous.position + 1
    if row.position != position:
        raise DamagedLog(f"position {position} is missing, position {row.position} follows", position)
    if not isinstance(row.body, bytes) or not isinstance(row.hash, bytes):
        raise DamagedLog(f"position {position} holds no bytes", position)
    if link(previous.hash, row.body) != row.hash:
        raise DamagedLog(
            f"position {position}: its bytes or its predecessor's are not what was written (hash differs)",
            position,
        )
    commit = decode(row.body, position)
    if encode(commit) != row.body and shape_of(row.body) == SHAPE:
        raise DamagedLog(f"position {position} is not in canonical form", position)
    check_commit(view, commit)
    report.commits += 1
    report.facts += 1
    report.decisions += len(commit.decisions)
    words.note(position, commit.fact, view)
    return Head(position, row.hash)


class _Words:
    """Names and texts that the log speaks of, to be held against the side table once all erasures are known."""

    def __init__(self) -> None:
        self._erased: set[str] = set()
        self._texts: list[tuple[int, str, str]] = []
        """(position, alias, whose erasure takes it along)."""
        self._names: dict[str, int] = {}
        """Alias of a session or profile, and the position that speaks of it first."""

    def note(self, position: int, fact: Fact, view: View) -> None:
        """Remember what a fact refers to."""
        if isinstance(fact, SubjectErased):
            self._erased.add(fact.subject)
        elif isinstance(fact, CallFailed | RuntimeRecovering) and fact.evidence.text:
            turn = view.turns.get(fact.turn)
            session = turn.request.session if turn is not None and turn.request is not None else ""
            self._texts.append((position, fact.evidence.text, session))
        elif isinstance(fact, TurnRequested):
            self._names.setdefault(fact.session, position)
        elif isinstance(fact, ProfilesObserved):
            for profile in fact.profiles:
                self._names.setdefault(profile.alias, position)

    def check(self, report: Report, side_entry: Callable[[str], SideEntry | None]) -> None:
        """Each is there and is what it was, or was erased on purpose."""
        for alias, position in self._names.items():
            if alias not in self._erased:
                self._found(position, alias, "name", side_entry(alias))
        for position, alias, session in self._texts:
            found = side_entry(alias)
            if found is None and session in self._erased:
                report.not_provable.append(position)
            else:
                self._found(position, alias, "text", found)

    @staticmethod
    def _found(position: int, alias: str, what: str, found: SideEntry | None) -> None:
        if found is None:
            raise DamagedLog(f"position {position}: its {what} {alias} is missing and was not erased", position)
        if not found.intact():
            raise DamagedLog(f"position {position}: its {what} {alias} was altered", position)


def _check_side_entries(side_entries: Iterable[SideEntry]) -> None:
    for side_entry in side_entries:
        if not side_entry.intact():
            raise DamagedLog(f"the side-table text of {side_entry.alias} was altered")


def _check_checkpoint(checkpoint: CheckpointRow, row: StoredRow, expected: bytes) -> None:
    if checkpoint.hash != row.hash or checkpoint.body != expected:
        raise DamagedLog(
            f"the checkpoint at position {row.position} is not what the log gives; delete it with "
            "`standby replay --rebuild`",
            row.position,
        )

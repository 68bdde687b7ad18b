"""The core behind a door: a log, its live view, and the one way in which commits come about.

Under the store's write lock: read the tail that others wrote, fold it, plan on the whole log, insert at the
next position (the head rule). There is nothing to retry and no decision rests on a stale view. Clock and
randomness come in here and nowhere below.
"""

import random
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from standby.engine.apply import adopt, apply
from standby.engine.checkpoint import VERSION, dump, load
from standby.engine.machine import TERMINAL
from standby.engine.plan import decide, is_noop
from standby.engine.view import View
from standby.events.codec import COMMIT_LIMIT, canonical, decode, encode, link
from standby.events.commit import Commit, Stamp
from standby.events.errors import BadReport, DamagedLog
from standby.events.facts import (
    Fact,
    ObservedProfile,
    PolicyAdopted,
    ProfilesObserved,
    RuntimeStarted,
    SubjectErased,
    TurnTakenOver,
)
from standby.events.memory import MemoryStore
from standby.events.names import SALT_BYTES, SideEntry, alias_for
from standby.events.policy import Policy
from standby.events.sqlite import SQLiteStore
from standby.events.store import CheckpointRow, Store, StoredRow, Transaction

CLOCK_SLACK_MS = 60_000
"""How far a clock may fall back before the runtime goes on in a new epoch; less is waited out."""

CHECKPOINT_EVERY = 50_000
"""A core that has folded more commits than this since the last checkpoint writes one when it closes."""


def wall_clock() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _entropy() -> int:
    return random.getrandbits(32)


def open_store(where: str | Path, *, synchronous: str = "full", create: bool = True) -> Store:
    """The store that a path names; ":memory:" is one that nobody keeps."""
    if str(where) == ":memory:":
        return MemoryStore()
    return SQLiteStore(where, synchronous=synchronous, create=create)


def fold_row(view: View, row: StoredRow) -> Commit:
    """Check a stored row against its predecessor and fold it.

    Raises:
        DamagedLog: position, bytes or hash are not what they should be.
    """
    position = view.position + 1
    if row.position != position:
        raise DamagedLog(f"position {position} is missing, position {row.position} follows", position)
    if not isinstance(row.body, bytes) or link(view.hash, row.body) != row.hash:
        raise DamagedLog(
            f"position {position} is not what was written: its hash differs; run `standby verify`, "
            "and restore the log from a copy",
            position,
        )
    commit = decode(row.body, position)
    apply(view, commit)
    view.hash = row.hash
    return commit


def _stands(store: Store, checkpoint: CheckpointRow) -> bool:
    """Whether the log still holds the commit that a checkpoint stands at."""
    if checkpoint.position < 1:
        return False
    found = next(iter(store.read(checkpoint.position - 1)), None)
    return found is not None and (found.position, found.hash) == (checkpoint.position, checkpoint.hash)


def load_view(store: Store, *, checkpointed: bool = True, upto: int | None = None) -> View:
    """The view of a log: from its newest checkpoint where that fits, and the tail after it."""
    view = View()
    row = store.checkpoint() if checkpointed and upto is None else None
    if row is not None and _stands(store, row):
        view = load(row) or view
    for stored in store.read(view.position):
        if upto is not None and stored.position > upto:
            break
        fold_row(view, stored)
    return view


class Group:
    """A transaction of a core, or a part of one that is open already."""

    __slots__ = ("_core", "_own")

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._own: AbstractContextManager[Transaction] | None = None

    def __enter__(self) -> Transaction:
        core = self._core
        core.lock.acquire()
        if core.transaction is not None:
            return core.transaction
        try:
            self._own = own = core.store.transaction()
            core.transaction = core.enter(own)
        except BaseException:
            core.lock.release()
            raise
        return core.transaction

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        core = self._core
        made: list[Commit] = []
        try:
            if self._own is not None:
                core.transaction = None
                if kind is not None:
                    core.invalidate()
                try:
                    self._own.__exit__(kind, error, trace)
                except BaseException:
                    core.invalidate()
                    raise
                made, core.made = core.made, made
        finally:
            core.lock.release()
        if made:
            core.tell(made)


class Core:
    """A log that is written to as one runtime.

    Args:
        store: where commits lie.
        slot: name of the runtime; None takes a random one. Give a name of its own to a service that is
            restarted in place, so that what was local to its former life ends in the log, too.
        clock: epoch milliseconds; tests and simulations bring their own.
        draw: gives 32 random bits.
    """

    def __init__(
        self,
        store: Store,
        *,
        instance: str | None = None,
        clock: Callable[[], int] = wall_clock,
        entropy: Callable[[], int] = _entropy,
        salt: Callable[[], bytes] = lambda: secrets.token_bytes(SALT_BYTES),
    ) -> None:
        self.store = store
        self.instance = instance or f"r-{secrets.token_hex(6)}"
        self.clock = clock
        self._entropy = entropy
        self._salt = salt
        self.lock = RLock()
        self.transaction: Transaction | None = None
        """The transaction that is open; use `group`."""
        self._stale = False
        self._wrote = False
        """Whether the open transaction holds commits of ours, which the view holds already."""
        self._watchers: list[Callable[[Commit], None]] = []
        self.made: list[Commit] = []
        """Commits of the open transaction that watchers are told of once it is written."""
        self._aliases: dict[tuple[str, str], str] = {}
        self.view = load_view(store)
        self._folded_from = self.view.position
        self.epoch = 0
        self.start()

    # ---- writing -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to write as this slot; whatever wrote as it before is ended."""
        with self.group() as transaction:
            runtime = self.view.runtimes.get(self.instance)
            self.epoch = (runtime.epoch if runtime else 0) + 1
            self._append(transaction, RuntimeStarted(instance=self.instance, epoch=self.epoch))

    def submit(self, fact: Fact, side_entries: Iterable[SideEntry] = ()) -> Commit | None:
        """Commit a fact and the decisions that follow from it.

        Returns:
            The commit, or None when the log already says so and nothing was written.

        Raises:
            BadReport: the fact makes no sense on this log; nothing was written.
            RuntimeEnded: the slot was started again elsewhere.
        """
        with self.group() as transaction:
            for side_entry in side_entries:
                transaction.put_side_entry(side_entry)
            return self._append(transaction, fact)

    def group(self) -> "Group":
        """One transaction for everything that is submitted inside; each fact keeps its own commit.

        If the transaction fails none of it was written. A view that held some of it is read again from the log.
        """
        return Group(self)

    def enter(self, own: AbstractContextManager[Transaction]) -> Transaction:
        """Take the store's lock, and read what others wrote."""
        transaction = own.__enter__()
        self._wrote = False
        try:
            self._catch_up(transaction)
        except BaseException as error:
            self._stale = True
            own.__exit__(type(error), error, error.__traceback__)
            raise
        return transaction

    def invalidate(self) -> None:
        """A transaction failed: whatever it added to the view or to the known names was not written."""
        self._stale = self._stale or self._wrote
        self._aliases.clear()
        self.made.clear()

    def watch(self, watcher: Callable[[Commit], None]) -> None:
        """Call `watcher` with each commit that is made here, after it was written."""
        self._watchers.append(watcher)

    def tell(self, made: list[Commit]) -> None:
        """Tell the watchers of what was written."""
        for commit in made:
            for watcher in self._watchers:
                watcher(commit)

    def _catch_up(self, transaction: Transaction) -> None:
        if self._stale:
            self.view = load_view(self.store)
            self._aliases.clear()
            self._stale = False
        for row in transaction.tail(self.view.position):
            if isinstance(fold_row(self.view, row).fact, SubjectErased):
                self._aliases.clear()

    def _append(self, transaction: Transaction, fact: Fact) -> Commit | None:
        view = self.view
        fact = canonical(fact)
        at_ms = self.clock()
        runtime = view.runtimes.get(self.instance)
        if runtime is not None and not isinstance(fact, RuntimeStarted):
            if runtime.epoch == self.epoch and runtime.at_ms - at_ms > CLOCK_SLACK_MS:
                self._begin_again(transaction)
            else:
                at_ms = max(at_ms, runtime.at_ms)
        stamp = Stamp(at_ms, self._entropy(), self.instance, self.epoch)
        if is_noop(view, fact, stamp):
            return None
        draft = decide(view, fact, stamp)
        commit = Commit(at_ms, self.instance, self.epoch, stamp.entropy, fact, tuple(draft.decisions))
        body = encode(commit)
        if len(body) > COMMIT_LIMIT:
            raise BadReport(
                f"the commit would have {len(body)} bytes, at most {COMMIT_LIMIT} are allowed; "
                "shorten the chain or the policy"
            )
        self._wrote = True
        row = transaction.append(body)
        adopt(view, draft, commit)
        view.hash = row.hash
        if self._watchers:
            self.made.append(commit)
        return commit

    def _begin_again(self, transaction: Transaction) -> None:
        """The clock had run far ahead and was set right: go on in a new epoch, with the turns of the old one.

        Moments never fall within one runtime, so in the old epoch time would stand still for as long.
        """
        old = (self.instance, self.epoch)
        self.epoch += 1
        self._append(transaction, RuntimeStarted(instance=self.instance, epoch=self.epoch))
        view = self.view
        for key in sorted(view.turns.keys_now()):
            turn = view.turns.get(key)
            if turn is not None and turn.state not in TERMINAL and (turn.runtime, turn.epoch) == old:
                self._append(transaction, TurnTakenOver(turn=key))

    # ---- names ---------------------------------------------------------------------------------------------

    def alias(self, kind: str, name: str, transaction: Transaction) -> str:
        """The alias of a name, made up and written down when it is new."""
        alias = self._aliases.get((kind, name))
        if alias is None:
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise BadReport(f"the {kind} {name!r} is no text: {error.reason}") from error
            alias = transaction.alias(kind, name)
        if alias is None:
            salt = self._salt()
            alias = alias_for(kind, salt, name)
            transaction.put_side_entry(SideEntry(alias, kind, alias, salt, name))
        self._aliases[kind, name] = alias
        return alias

    def text_entry(self, text: str, subject: str) -> SideEntry:
        """A side-table entry for a text that goes when `subject` is erased."""
        salt = self._salt()
        return SideEntry(alias_for("text", salt, text, subject), "text", subject, salt, text)

    def known_alias(self, kind: str, name: str) -> str | None:
        """The alias of a name, or None if the log does not know it."""
        with self.group() as transaction:
            return transaction.alias(kind, name)

    def name_of(self, alias: str) -> str:
        """The name behind an alias; the alias itself when it was erased."""
        side_entry = self.store.side_entry(alias) if alias else None
        return alias if side_entry is None else side_entry.text

    def text_of(self, alias: str) -> str:
        """A kept text, or "" when there is none (any more)."""
        side_entry = self.store.side_entry(alias) if alias else None
        return "" if side_entry is None else side_entry.text

    # ---- configuration -------------------------------------------------------------------------------------

    def adopt(self, policy: Policy) -> bool:
        """Adopt a policy unless it is the one in force; says whether it was new."""
        with self.group() as transaction:
            if self.view.policy_at and self.view.policy() == policy:
                return False
            return self._append(transaction, PolicyAdopted(policy=policy)) is not None

    def observe(
        self, profiles: tuple[ObservedProfile, ...], order: dict[str, tuple[str, ...]] | None = None
    ) -> bool:
        """Report the credentials there are, unless the log knows just these."""
        fact = ProfilesObserved(profiles=profiles, order=order or {})
        with self.group() as transaction:
            known = {
                alias: health.observed
                for alias, health in self.view.profiles.items()
                if health.observed is not None
            }
            same = known == {p.alias: p for p in profiles} and self.view.order == fact.order
            stocked = [
                alias for known_profiles in self.view.known_profiles.values() for alias in known_profiles
            ]
            if same and sorted(stocked) == sorted(known):
                return False
            return self._append(transaction, fact) is not None

    def erase(self, kind: str, name: str) -> int:
        """Delete a name and every text that belongs to it; says how many entries went.

        Raises:
            BadReport: the log does not know the name.
        """
        with self.group() as transaction:
            alias = transaction.alias(kind, name)
            if alias is None:
                raise BadReport(f"no {kind} {name!r} is known to this log")
            self._append(transaction, SubjectErased(subject=alias))
            gone = transaction.erase(alias)
            self._aliases.clear()
            return gone

    # ---- the end -------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write a checkpoint of the present view."""
        with self.lock:
            self.store.save_checkpoint(
                CheckpointRow(self.view.position, self.view.hash, VERSION, dump(self.view))
            )

    def close(self) -> None:
        """Checkpoint if that is worth it, and give the store back."""
        with self.lock:
            if not self._stale and self.view.position - self._folded_from >= CHECKPOINT_EVERY:
                self.checkpoint()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

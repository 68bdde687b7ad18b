"""Faults to plant: each makes the engine break one invariant in a way that somebody could write by mistake.

A fault is a small patch. Live decisions and recomputation run the same faulty code, so that only the naive
model, or the log itself, can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import SystemRandom
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from standby.engine import checkpoint, fold, plan, turn, verify
from standby.engine.apply import apply
from standby.engine.decide import cooldowns, notices, profiles, retry, selection, sticky
from standby.engine.deciding import Draft
from standby.engine.reading import extract as extraction
from standby.engine.reading.masking import mask
from standby.events import codec
from standby.events.decisions import (
    AttemptStarted,
    BlockSet,
    NoticeDue,
    SelectionInherited,
    StickySet,
    TurnAnswered,
)
from standby.events.vocabulary import BlockKind, Failure, SelectionSource
from standby.projections import health, sessions

__all__ = ["FAULTS", "Fault", "planted"]


class _Equal:
    """A hash that is always the right one."""

    __hash__ = None  # type: ignore[assignment]  # replaced on purpose

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


class Fault(NamedTuple):
    """What is patched, and the invariant whose property has to notice."""

    invariant: int
    patches: Callable[[], list[Any]]
    """Context managers, made anew each time."""


def _budget() -> list[Any]:
    right = retry.budget
    return [patch.object(retry, "budget", lambda *args: right(*args) + 1)]


def _used_up_forgotten() -> list[Any]:
    """A candidate's profiles are taken in turn for ever."""
    right = fold._FOLDS[AttemptStarted]

    def started(view: Any, event: AttemptStarted, stamp: Any) -> None:
        right(view, event, stamp)
        view.turns.edit(event.turn).used = frozenset()

    return [patch.dict(fold._FOLDS, {AttemptStarted: started})]


def _strictness() -> list[Any]:
    right = selection.resolve

    def lax(*args: Any) -> Any:
        found = right(*args)
        return found._replace(override=None) if found.override == () else found

    return [patch.object(plan, "resolve", lax)]


def _written_selection() -> list[Any]:
    """A fallback writes the session's selection, as older releases did."""
    right = Draft.emit

    def emit(draft: Draft, decision: Any) -> None:
        right(draft, decision)
        if isinstance(decision, TurnAnswered) and decision.fallback:
            request = draft.turn(decision.turn).request
            assert request is not None
            written = SelectionInherited(
                rules=("FLOW-5",), session=request.session, model=decision.model, source=SelectionSource.AUTO
            )
            right(draft, written)

    return [patch.object(Draft, "emit", emit)]


def _scoped_only() -> list[Any]:
    """What blocks a whole profile is overlooked."""
    right = health.blocking

    def narrow(one: health.Health, *args: Any) -> Any:
        scoped = tuple(entry for entry in one.cooldowns if entry.model)
        return right(msgspec.structs.replace(one, cooldowns=scoped), *args)

    return [patch.object(profiles, "blocking", narrow)]


def _block(**changes: Callable[[BlockSet], Any]) -> list[Any]:
    """Blocks are decided with other fields."""

    def made(**fields: Any) -> BlockSet:
        right = BlockSet(**fields)
        return msgspec.structs.replace(right, **{name: change(right) for name, change in changes.items()})

    return [patch.object(cooldowns, "BlockSet", made)]


def _shortened() -> list[Any]:
    return [patch.object(cooldowns, "cooldown_of", lambda *args: None)]


def _effects_ignored() -> list[Any]:
    return [patch.object(turn.Turn, "replayable", property(lambda self: True))]


def _claims_of_others_ignored() -> list[Any]:
    def kept(one: Any, event: Any, *, first: bool) -> None:
        one.reports = (*one.reports, event)

    return [patch.object(turn, "fold_claims", kept)]


def _notices(**changes: Any) -> list[Any]:
    return [patch.object(notices, "NoticeDue", lambda **fields: NoticeDue(**{**fields, **changes}))]


def _sticky_cap() -> list[Any]:
    """The cap is ignored: only the idle window counts."""
    return [patch.object(sticky, "min", lambda idle, cap: idle, create=True)]


def _sticky_for_ever() -> list[Any]:
    def made(**fields: Any) -> StickySet:
        return StickySet(**{**fields, "until_ms": fields["until_ms"] + 1})

    return [patch.object(sticky, "StickySet", made)]


def _forgetful_checkpoint() -> list[Any]:
    right = checkpoint._decoder

    class Forgetful:
        def decode(self, body: bytes) -> Any:
            return msgspec.structs.replace(right.decode(body), order={})

    return [patch.object(checkpoint, "_decoder", Forgetful())]


def _mutable_view() -> list[Any]:
    """A fold that plan thinks with writes through to the view below."""
    from standby.projections import tables

    return [patch.object(tables, "copy", lambda record: record)]


FAULTS: dict[str, Fault] = {
    "one retry more than the budget": Fault(1, _budget),
    "used-up profiles are forgotten": Fault(1, _used_up_forgotten),
    "strictness is ignored": Fault(2, _strictness),
    "a fallback writes the selection": Fault(2, _written_selection),
    "profile-wide blocks are overlooked": Fault(3, _scoped_only),
    "a rate limit lasts a second longer": Fault(
        4, lambda: _block(until_ms=lambda b: b.until_ms + 1000 * (b.reason is Failure.RATE_LIMIT))
    ),
    "an earlier deadline shortens": Fault(4, _shortened),
    "a disable is scoped to a model": Fault(
        5, lambda: _block(model=lambda b: "openai/alpha" if b.kind is BlockKind.DISABLED else b.model)
    ),
    "a missing model blocks the profile": Fault(
        5, lambda: _block(model=lambda b: "" if b.reason is Failure.MODEL_NOT_FOUND else b.model)
    ),
    "effects are ignored": Fault(6, _effects_ignored),
    "effects that others report are ignored": Fault(6, _claims_of_others_ignored),
    "a notice is not remembered": Fault(
        7, lambda: [patch.object(sessions, "fold_notice", lambda session, event: None)]
    ),
    "notices are shown in groups": Fault(7, lambda: _notices(quiet=False)),
    "the sticky cap is ignored": Fault(8, _sticky_cap),
    "stickiness lasts a millisecond longer": Fault(8, _sticky_for_ever),
    "stickiness survives its end": Fault(8, lambda: [patch.object(sticky, "_end", lambda *args: None)]),
    "a checkpoint forgets the stored order": Fault(10, _forgetful_checkpoint),
    "the chain is not checked": Fault(11, lambda: [patch.object(verify, "link", lambda *args: _Equal())]),
    "decisions are not recomputed": Fault(11, lambda: [patch.object(verify, "check_commit", apply)]),
    "a secret is kept as the provider quotes it": Fault(
        12, lambda: [patch.object(extraction, "mask", lambda text, secrets=(): text)]
    ),
    "secrets that the host names are not looked for": Fault(
        12, lambda: [patch.object(extraction, "mask", lambda text, secrets=(): mask(text, ()))]
    ),
    "an explicit order is ignored": Fault(
        13, lambda: [patch.object(profiles, "explicit_order", lambda *args: None)]
    ),
    "the last use does not count": Fault(
        13, lambda: [patch.object(profiles, "_tier", lambda one, ruleset, now_ms: 0)]
    ),
    "plan changes the view": Fault(15, _mutable_view),
    "a wait is drawn from the system's chance": Fault(
        15,
        lambda: [
            patch.object(retry, "delay_ms", lambda retry, base, cap, draw: SystemRandom().randrange(1000, 2000))
        ],
    ),
    "mappings are written as they were filled": Fault(
        15, lambda: [patch.object(codec, "_encoder", msgspec.json.Encoder())]
    ),
    "decisions about providers come as mappings were filled": Fault(
        15, lambda: [patch.object(selection, "sorted", list, create=True)]
    ),
}


@contextmanager
def planted(name: str) -> Iterator[Fault]:
    """The engine with this fault."""
    fault = FAULTS[name]
    with ExitStack() as stack:
        for one in fault.patches():
            stack.enter_context(one)
        yield fault

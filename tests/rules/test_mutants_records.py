"""What is held of sessions, runtimes, profiles and turns of which nothing was said, and what folds keep."""

import msgspec
import pytest

from standby.engine.turn import Turn
from standby.events import decisions as d
from standby.events.vocabulary import Effects, Failure, SelectionSource
from standby.projections.health import Health
from standby.projections.runtimes import Runtime
from standby.projections.sessions import Marker, Session, fold_mark
from tests.harness import A, B, World, chain

MARK = d.SkipMarked(rules=(), session="s", model=A, profile="p", until_ms=2_000, reason=Failure.AUTH)


def said(record: msgspec.Struct) -> dict[str, object]:
    """The fields that hold anything."""
    return {key: value for key, value in msgspec.structs.asdict(record).items() if value}


def test_a_record_of_the_unknown_says_nothing() -> None:
    assert said(Session()) == {"source": SelectionSource.DEFAULT}
    assert said(Runtime()) == {}
    assert said(Health()) == {}
    assert said(Turn()) == {"state": "new", "source": SelectionSource.DEFAULT, "effects": Effects.NONE}


@pytest.mark.rule("PIN-9")
def test_compactions_are_counted_and_an_older_count_takes_none_back() -> None:
    w = World(chain(A, B))
    for count, held in ((1, 1), (3, 3), (2, 3)):
        w.service.compacted("s", count)
        session = w.view.sessions.get(w.service.core.known_alias("session", "main/s") or "")
        assert session is not None
        assert session.compactions == held


@pytest.mark.rule("SKIP-2")
def test_a_marker_replaces_its_twin_only_and_those_that_are_over_are_swept() -> None:
    session = Session()
    fold_mark(session, MARK, "r1", 1, 1_000)
    fold_mark(session, msgspec.structs.replace(MARK, until_ms=3_000), "r1", 2, 1_000)
    assert session.markers == (Marker(A, "p", 3_000, "r1", 2, Failure.AUTH),)
    for other in ({"model": B}, {"profile": "q"}):
        fold_mark(session, msgspec.structs.replace(MARK, **other), "r1", 2, 1_000)
    fold_mark(session, MARK, "r2", 1, 1_000)
    assert [(one.model, one.profile, one.runtime) for one in session.markers] == [
        (A, "p", "r1"),
        (B, "p", "r1"),
        (A, "q", "r1"),
        (A, "p", "r2"),
    ]
    fold_mark(session, msgspec.structs.replace(MARK, model="x/y", until_ms=9_000), "r1", 2, 2_000)
    assert [one.until_ms for one in session.markers] == [3_000, 9_000], "a moment that is now has passed"

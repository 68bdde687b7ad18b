"""One state machine that interleaves everything, on a virtual clock, against the naive model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.properties.holds import splits
from tests.properties.play import POLICIES, Play
from tests.properties.strategies import FAILURE, REQUEST, SCRIPT, SLEEP_MS, SLOT, SMALL


class Service(RuleBasedStateMachine):
    """Two runtimes, two sessions, five profiles of three providers, six policies."""

    @initialize(policy=st.integers(0, len(POLICIES) - 1), known_profiles=st.integers(0, 3))
    def begin(self, policy: int, known_profiles: int) -> None:
        self.play = Play(policy=policy, known_profiles=known_profiles)

    def any_in(self, *states: str) -> bool:
        return bool(self.play.turns) and self.play.found(0, *states) is not None

    @rule(
        request=REQUEST,
        script=SCRIPT,
        wait_s=st.sampled_from([None, 5, 90, 600]),
        pause=st.sampled_from([1, 1000, 40_000]),
    )
    def story(self, request: dict[str, Any], script: list[int], wait_s: int | None, pause: int) -> None:
        """A whole turn: these failures one after the other, then an answer."""
        self.play.story(script, wait_s=wait_s, pause=pause, **request)

    @rule(request=REQUEST)
    def request(self, request: dict[str, Any]) -> None:
        self.play.request(**request)

    @precondition(lambda self: self.any_in("calling", "orphaned"))
    @rule(number=SMALL, failure=FAILURE)
    def fail(self, number: int, failure: dict[str, Any]) -> None:
        self.play.fail(number, **failure)

    @precondition(lambda self: self.any_in("calling", "orphaned"))
    @rule(number=SMALL, effects=st.sampled_from([0, 0, 0, 0, 1, 2]))
    def succeed(self, **fields: Any) -> None:
        self.play.succeed(**fields)

    @precondition(lambda self: self.any_in("calling", "orphaned"))
    @rule(what=st.sampled_from(["unknown", "effects", "response", "switch"]), number=SMALL, detail=SMALL)
    def during(self, what: str, number: int, detail: int) -> None:
        """Something happens while a call is under way."""
        args = (number, detail) if what in ("unknown", "switch") else (number,)
        getattr(self.play, what)(*args)

    @precondition(lambda self: self.any_in("waiting", "repairing"))
    @rule(number=SMALL, early=st.booleans(), fits=st.booleans())
    def goes_on(self, number: int, early: bool, fits: bool) -> None:
        self.play.wait(number, early=early)
        self.play.repair(number, fits=fits)

    @precondition(lambda self: bool(self.play.turns))
    @rule(
        what=st.sampled_from(["cancel", "deadline", "take_over", "take_over", "again"]),
        number=SMALL,
        instance=SLOT,
    )
    def control(self, what: str, number: int, instance: int) -> None:
        args = {"deadline": (number,), "again": (number, number, instance)}.get(what, (number, instance))
        getattr(self.play, what)(*args)

    @precondition(lambda self: bool(self.play.turns))
    @rule(number=SMALL, attempt=SMALL, instance=SLOT, good=st.booleans(), failure=FAILURE)
    def late(self, number: int, attempt: int, instance: int, good: bool, failure: dict[str, Any]) -> None:
        self.play.late(number, attempt, instance, good=good, **failure)

    @rule(
        what=st.sampled_from(["select", "select", "pin", "reset", "compact"]),
        session=SLOT,
        instance=SLOT,
        which=st.none() | SMALL,
    )
    def user(self, what: str, session: int, instance: int, which: int | None) -> None:
        args = (session, instance) if what in ("reset", "compact") else (session, which, instance)
        getattr(self.play, what)(*args)

    @rule(what=st.sampled_from(["adopt", "observe", "remove"]), number=SMALL, order=SLOT)
    def change(self, what: str, number: int, order: int) -> None:
        args = (number, order) if what == "observe" else (number,)
        getattr(self.play, what)(*args)

    @rule(
        profile=SMALL, exhausted=st.booleans(), valid=st.sampled_from([True, True, False]),
        in_s=st.sampled_from([-5, 0, 60, 600, 7200]), ago_s=st.sampled_from([0, 0, 10, 600]),
    )  # fmt: skip
    def quota(self, **fields: Any) -> None:
        self.play.quota(**fields)

    @rule(ms=SLEEP_MS)
    def sleep(self, ms: int) -> None:
        self.play.sleep(ms)

    @rule(instance=SLOT, checkpoint=st.booleans())
    def restart(self, **fields: Any) -> None:
        self.play.restart(**fields)

    def teardown(self) -> None:
        if not hasattr(self, "play") or self.play.broken:
            return
        play = self.play
        play.drain([0, 1, 2])
        play.verified()
        splits(play)


@pytest.mark.invariant(1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13)
class TestService(Service.TestCase):  # type: ignore[valid-type,misc]  # made by Hypothesis
    """Run by pytest; `make test-long` looks far longer."""

    settings = settings(stateful_step_count=50)

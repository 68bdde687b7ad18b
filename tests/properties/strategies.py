"""Steps that Hypothesis may take, as (method of `Play`, arguments), and histories made of them by focus."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from standby.events.vocabulary import SelectionSource
from tests.properties.play import FAILURES, POLICIES, STOCK, Play

__all__ = ["FAILURE", "FOCUS", "KIND", "REQUEST", "SCRIPT", "SLEEP_MS", "SLOT", "SMALL", "History", "histories"]

Step = tuple[str, dict[str, Any]]

SMALL = st.integers(0, 5)
SLOT = st.integers(0, 1)
KIND = st.integers(0, len(FAILURES) - 1) | st.integers(0, 2)
EFFECTS = st.sampled_from([0, 0, 0, 0, 1, 2])
RARELY = st.sampled_from([False] * 5 + [True])
WAIT_S = st.sampled_from([None, None, 1, 5, 30, 90, 600, 3600])
SLEEP_MS = st.sampled_from(
    [1, 999, 5_000, 30_000, 59_999, 60_000, 120_000, 300_000, 600_000, 1_800_000, 86_400_001]
)
REQUEST = st.fixed_dictionaries(
    {
        "session": SLOT,
        "instance": SLOT,
        "kind": st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4]),
        "surface": st.sampled_from([0, 0, 0, 1, 2]),
        "continuable": st.booleans(),
    },
    optional={
        "model": st.sampled_from([None, None, 0, 1, 2, 3]),
        "source": st.sampled_from([SelectionSource.DEFAULT, SelectionSource.USER, SelectionSource.CRON]),
        "fallbacks": st.sampled_from([None, None, None, (), (1,), (3, 1)]),
        "locked": RARELY,
        "rerouted": RARELY,
        "max_retries": st.integers(0, 3),
    },
)
FAILURE = st.fixed_dictionaries(
    {"kind": KIND, "wait_s": WAIT_S, "late_ms": st.sampled_from([0, 0, 0, 700, 4000])},
    optional={
        "effects": EFFECTS,
        "delivered": RARELY,
        "repairable": st.booleans(),
        "format_repair": st.booleans(),
    },
)
SCRIPT = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 5, 6, 7, 8, 9, 10]), max_size=5)


class History(NamedTuple):
    """A policy, the credentials there are, and what then happens."""

    policy: int
    known_profiles: int
    steps: list[Step]

    def play(self) -> Play:
        """Take every step, with the naive model looking on, and bring every turn to its end."""
        play = Play(policy=self.policy, known_profiles=self.known_profiles)
        for name, fields in self.steps:
            getattr(play, name)(**fields)
        play.drain([0, 1, 2])
        return play


def _step(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.fixed_dictionaries(fields))


def _story(script: st.SearchStrategy[list[int]] = SCRIPT, **fields: Any) -> st.SearchStrategy[Step]:
    """Whole turns on plain terms, unless `fields` says otherwise."""
    terms = {
        "session": SLOT,
        "instance": SLOT,
        **{key: st.sampled_from(value) for key, value in fields.items()},
    }
    more = st.fixed_dictionaries(
        {"script": script, "wait_s": WAIT_S, "pause": st.sampled_from([1, 1000, 40_000])}
    )
    both = st.tuples(st.fixed_dictionaries(terms), more).map(lambda pair: {**pair[0], **pair[1]})
    return st.tuples(st.just("story"), both)


_LIMITED = st.lists(st.just(0), min_size=1, max_size=4)
_plain = _step("request", session=SLOT, instance=SLOT)
_limit = _step("fail", number=SMALL, kind=st.just(0), wait_s=st.sampled_from([1, 5, 30, 90, 600, 3600]))
_claim = _step(
    "late", number=SMALL, attempt=SMALL, instance=SLOT, kind=st.integers(0, 3), effects=st.sampled_from([1, 2])
)
_request = st.tuples(st.just("request"), REQUEST)
_fail = st.tuples(st.just("fail"), st.tuples(SMALL, FAILURE).map(lambda pair: {"number": pair[0], **pair[1]}))
_wait = _step("wait", number=SMALL)
_sleep = _step("sleep", ms=SLEEP_MS)
_restart = _step("restart", instance=SLOT, checkpoint=st.booleans())
_adopt = _step("adopt", policy=st.integers(0, len(POLICIES) - 1))
_observe = _step("observe", known_profiles=st.integers(0, len(STOCK) - 1), order=SLOT)
_select = _step("select", session=SLOT, model=st.none() | SMALL, instance=SLOT)
_succeed = _step("succeed", number=SMALL, effects=EFFECTS)
_take_over = _step("take_over", number=SMALL, instance=SLOT)
_late = _step(
    "late",
    number=SMALL,
    attempt=SMALL,
    instance=SLOT,
    kind=st.integers(0, 3),
    good=st.booleans(),
    effects=EFFECTS,
    wait_s=WAIT_S,
    late_ms=st.integers(0, 5000),
)
_quota = _step(
    "quota",
    profile=SMALL,
    exhausted=st.booleans(),
    valid=st.sampled_from([True, True, False]),
    in_s=st.sampled_from([-5, 0, 60, 600, 7200]),
    ago_s=st.sampled_from([0, 0, 10, 600]),
)

FOCUS: dict[int, list[st.SearchStrategy[Step]]] = {
    1: [_story(), _request, _fail, _wait, _step("response", number=SMALL), _step("repair", number=SMALL)],
    2: [_story(model=[None, None, 0, 1]), _select, _restart, _adopt, _request, _fail],
    3: [_story(), _story(_LIMITED, max_retries=[0]), _sleep, _request, _fail, _wait, _restart],
    4: [_story(_LIMITED), _plain, _plain, _limit, _limit, _late, _quota, _succeed, _sleep],
    5: [
        _story(st.lists(st.sampled_from([2, 6, 7, 8, 9, 5, 10]), max_size=3)),
        _request, _fail, _succeed, _sleep,
    ],
    6: [
        _request, _plain, _fail, _limit, _wait, _late, _claim, _take_over,
        _step("unknown", number=SMALL, effects=EFFECTS),
        _step("effects", number=SMALL),
        _step("cancel", number=SMALL, instance=SLOT),
        _step("switch", number=SMALL, model=SMALL),
    ],
    7: [_story(_LIMITED, max_retries=[0], surface=[0, 0, 1, 2], kind=[0, 0, 0, 2]), _select, _sleep, _restart],
    8: [
        _story(
            st.sampled_from([[0], [0, 0], [0, 0, 0]]),
            max_retries=[0], kind=[0, 0, 0, 2], session=[0], instance=[0],
        ),
        _story(st.just([]), session=[0], instance=[0]),
        _step("sleep", ms=st.sampled_from([30_000, 58_000, 60_000, 300_000, 599_000, 600_000])),
        _step("select", session=st.just(0), model=st.sampled_from([None, 0, 1]), instance=SLOT),
        _adopt, _restart,
    ],
    13: [
        _story(), _observe, _sleep, _adopt, _request, _fail,
        _step("pin", session=SLOT, profile=SMALL, instance=SLOT),
        _step("reset", session=SLOT, instance=SLOT), _step("remove", profile=SMALL), _restart],
}  # fmt: skip
"""What happens in histories that are made to break one invariant."""


def histories(focus: int) -> st.SearchStrategy[History]:
    """Histories that look for a break of this invariant."""
    return st.builds(
        History,
        # Stickiness shows soonest under short windows.
        policy=st.sampled_from([0, 1, 5, 5, 5]) if focus == 8 else st.integers(0, len(POLICIES) - 1),
        known_profiles=st.integers(0, len(STOCK) - 1),
        steps=st.lists(st.one_of(FOCUS[focus]), min_size=1, max_size=14),
    )

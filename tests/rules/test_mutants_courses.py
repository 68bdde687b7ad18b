"""The course of each failure reason, whatever words it was recognised by: what is tried again, what its profile
suffers, how far the candidate rotates, and whether the chain goes on."""

from typing import NamedTuple

import pytest

from standby.engine.steps import CallModel, Settled, SettleUnknown, Wait
from standby.events import decisions as d
from standby.events.evidence import OperatorRow
from standby.events.policy import Policy, Recovery
from standby.events.vocabulary import Effects, Failure, Stage, TurnEnd
from standby.hosts.reports import Unknown
from standby.hosts.turns import TurnHandle
from tests.harness import START_MS, A, B, World, chain, of, reply

PROFILES = {"openai": ["openai:one", "openai:two", "openai:three"], "anthropic": ["anthropic:one"]}
STATED_S = 7
"""Stated with every failure; only rate limits are timed by it."""


class Course(NamedTuple):
    reason: Failure
    retries: int
    block: tuple[str, str, int] | None
    """Kind, model or "" for all of them, and length."""
    profiles: int
    """How many of the three are tried."""
    leads_on: bool


COURSES = [
    Course(Failure.RATE_LIMIT, 15, ("cooldown", A, 7_000), 2, True),
    Course(Failure.OVERLOADED, 8, None, 2, True),
    Course(Failure.SERVER_ERROR, 8, None, 3, True),
    Course(Failure.TIMEOUT, 8, ("cooldown", A, 30_000), 3, True),
    Course(Failure.AUTH, 0, ("cooldown", "", 30_000), 3, True),
    Course(Failure.AUTH_PERMANENT, 0, ("disabled", "", 600_000), 3, True),
    Course(Failure.BILLING, 0, ("disabled", "", 600_000), 3, True),
    Course(Failure.SESSION_EXPIRED, 0, ("cooldown", "", 30_000), 3, True),
    Course(Failure.MODEL_NOT_FOUND, 0, ("cooldown", A, 30_000), 3, True),
    Course(Failure.TLS_CERTIFICATE, 0, None, 1, True),
    Course(Failure.CONTEXT_OVERFLOW, 0, None, 1, True),
    Course(Failure.EMPTY_RESPONSE, 0, None, 3, True),
    Course(Failure.NO_ERROR_DETAILS, 0, None, 3, True),
    Course(Failure.UNCLASSIFIED, 0, ("cooldown", "", 30_000), 3, True),
    Course(Failure.FORMAT, 0, None, 1, False),
    Course(Failure.REQUEST_SIZE_CEILING, 0, None, 1, False),
    Course(Failure.REFUSAL, 0, None, 1, False),
    Course(Failure.OUTPUT_LIMIT, 0, None, 1, False),
]
each = pytest.mark.parametrize("course", COURSES, ids=[course.reason.value for course in COURSES])


def words(reason: Failure) -> str:
    return f"zz{reason.value}zz"


ROWS = tuple(
    OperatorRow(id=f"own-{course.reason.value}", reason=course.reason, text=(words(course.reason),))
    for course in COURSES
)


def policy(**recovery: int) -> Policy:
    return chain(A, B, rows=ROWS, recovery=Recovery(**recovery))


def fail(w: World, turn: TurnHandle, reason: Failure) -> CallModel | Wait | Settled:
    text = words(reason)
    step = w.fail(turn, reply(None, text, message=text, stage=Stage.STREAM), retry_after=STATED_S)
    assert turn.state.attempts[0].reason is reason
    assert isinstance(step, CallModel | Wait | Settled)
    return step


@pytest.mark.rule("REC-1", "REC-2", "FLOW-3")
@each
def test_only_what_may_pass_is_tried_again_with_the_same_profile(course: Course) -> None:
    w = World(policy(), PROFILES)
    step = fail(w, w.turn(), course.reason)
    assert (step.of if isinstance(step, Wait) else 0) == course.retries


@pytest.mark.rule("COOL-2", "COOL-4", "COOL-10", "COOL-17", "COOL-22", "BILL-2", "BILL-3")
@each
def test_each_reason_blocks_what_it_is_about_for_its_time(course: Course) -> None:
    w = World(policy(max_retries=0), PROFILES)
    turn = w.turn()
    fail(w, turn, course.reason)
    blocks = [(one.kind.value, one.model, one.until_ms - START_MS) for one in of(turn, d.BlockSet)]
    assert blocks == ([] if course.block is None else [course.block])


@pytest.mark.rule("FLOW-1", "REC-9", "REC-17", "ADV-1", "ADV-2")
@each
def test_profiles_come_before_the_next_model_as_far_as_another_one_may_do(course: Course) -> None:
    w = World(policy(max_retries=0), PROFILES)
    turn = w.turn()
    step = turn.step
    while isinstance(step, CallModel) and step.model == A:
        step = fail(w, turn, course.reason)
    tried = w.tried(turn)
    assert (
        tried[: course.profiles]
        == [(A, f"openai:{name}") for name in ("one", "two", "three")][: course.profiles]
    )
    if course.leads_on:
        assert tried[course.profiles :] == [(B, "anthropic:one")]
    else:
        assert len(tried) == course.profiles
        assert isinstance(step, Settled)
        assert (step.end, step.reason) == (TurnEnd.SURFACED, course.reason)


@pytest.mark.rule("REC-9")
def test_without_a_fallback_every_profile_may_be_tried_after_a_rate_limit() -> None:
    w = World(chain(A, rows=ROWS, recovery=Recovery(max_retries=0)), PROFILES)
    turn = w.turn()
    while isinstance(turn.step, CallModel):
        fail(w, turn, Failure.RATE_LIMIT)
    assert [profile for _, profile in w.tried(turn)] == PROFILES["openai"]


@pytest.mark.rule("ADV-1")
def test_a_call_that_nobody_saw_end_is_tried_again_and_blames_no_profile() -> None:
    w = World(policy(), PROFILES)
    turn = w.turn()
    w.restart()
    again = w.service.reopen(turn.id)
    assert isinstance(again.step, SettleUnknown)
    step = again.report(Unknown(effects=Effects.NONE))
    assert isinstance(step, Wait)
    assert (step.of, step.reason, of(again, d.BlockSet)) == (8, Failure.INTERRUPTED, [])

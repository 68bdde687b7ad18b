"""PROBE, closer: what looks transient, what is graver, and how much of the throttle is remembered."""

from itertools import pairwise

import pytest

from standby.engine.decide.probe import CallCandidate, SkipCandidate, all_blocked, reason_of
from standby.engine.decide.profiles import Ranked
from standby.engine.deciding import Draft
from standby.engine.rulesets import ruleset_of
from standby.engine.steps import CallModel
from standby.events.commit import Stamp
from standby.events.policy import Recovery
from standby.events.vocabulary import BlockKind, Failure, SkipBecause
from standby.projections.health import CooldownEntry, Health
from standby.projections.runtimes import PROBES_KEPT, Runtime, fold_probe
from tests.harness import START_MS, A, B, World, chain, reply

HOUR = 3_600_000


def test_of_very_many_providers_the_one_that_was_checked_longest_ago_is_forgotten() -> None:
    runtime = Runtime(epoch=1)
    for number in range(256):
        fold_probe(runtime, f"p{number}", 1_000 - number)
    assert (len(runtime.probes), PROBES_KEPT) == (256, 256)
    fold_probe(runtime, "newest", 2_000)
    assert len(runtime.probes) == 256
    assert "p255" not in runtime.probes
    assert {"p0", "p254", "newest"} <= set(runtime.probes)


A2 = "openai/alpha-two"
TRANSIENT = {
    Failure.RATE_LIMIT,
    Failure.OVERLOADED,
    Failure.TIMEOUT,
    Failure.UNKNOWN,
    Failure.UNCLASSIFIED,
    Failure.EMPTY_RESPONSE,
    Failure.NO_ERROR_DETAILS,
}
GRAVEST_FIRST = [
    Failure.AUTH_PERMANENT,
    Failure.AUTH,
    Failure.SESSION_EXPIRED,
    Failure.BILLING,
    Failure.FORMAT,
    Failure.MODEL_NOT_FOUND,
    Failure.OVERLOADED,
    Failure.TIMEOUT,
    Failure.RATE_LIMIT,
    Failure.EMPTY_RESPONSE,
    Failure.NO_ERROR_DETAILS,
    Failure.UNCLASSIFIED,
    Failure.UNKNOWN,
    # These block nothing, and have a place for the sake of the table.
    Failure.SERVER_ERROR,
    Failure.INTERRUPTED,
    Failure.TLS_CERTIFICATE,
    Failure.CONTEXT_OVERFLOW,
    Failure.REQUEST_SIZE_CEILING,
    Failure.REFUSAL,
    Failure.OUTPUT_LIMIT,
]


def entry(reason: Failure, kind: BlockKind = BlockKind.COOLDOWN) -> CooldownEntry:
    return CooldownEntry("", reason, kind, START_MS + HOUR, START_MS)


def blocked(*cooldowns: CooldownEntry, fallback: bool = False) -> SkipCandidate | CallCandidate:
    """What becomes of the selected model, or of its sibling, whose profiles are blocked by these cells."""
    w = World(chain(A, A2, B, recovery=Recovery(max_retries=0)))
    turn = w.turn()
    if fallback:
        step = w.fail(turn, reply(503, "", message="server down"))
        assert isinstance(step, CallModel)
        assert step.model == A2
    policy = w.view.policy()
    draft = Draft(w.view, Stamp(w.now_ms, 500, "main", 1))
    left = [Ranked(f"p{number}", Health(), one) for number, one in enumerate(cooldowns)]
    return all_blocked(draft, turn.state, policy, ruleset_of(policy), left)


@pytest.mark.rule("PROBE-4")
@pytest.mark.parametrize("reason", list(Failure))
@pytest.mark.parametrize("kind", list(BlockKind))
def test_a_sibling_is_tried_where_what_cools_it_looks_transient(reason: Failure, kind: BlockKind) -> None:
    tried = reason in TRANSIENT and kind is BlockKind.COOLDOWN
    assert isinstance(blocked(entry(reason, kind), fallback=True), CallCandidate if tried else SkipCandidate)


@pytest.mark.rule("PROBE-6")
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("reason", [Failure.AUTH, Failure.AUTH_PERMANENT])
def test_what_another_try_cannot_cure_passes_the_candidate_over(reason: Failure, fallback: bool) -> None:
    way = blocked(entry(reason), fallback=fallback)
    assert isinstance(way, SkipCandidate)
    assert (way.because, way.reason, way.rules) == (SkipBecause.AUTH, reason, ("PROBE-6",))


@pytest.mark.rule("PROBE-1")
@pytest.mark.parametrize(("graver", "lesser"), list(pairwise(GRAVEST_FIRST)))
def test_of_two_reasons_the_graver_says_why_a_provider_is_out(graver: Failure, lesser: Failure) -> None:
    assert reason_of([entry(lesser), entry(graver)]) is graver
    assert reason_of([entry(graver), entry(lesser)]) is graver
    assert reason_of([entry(graver), entry(lesser, BlockKind.DISABLED)]) is lesser, (
        "an account outweighs a cooldown"
    )

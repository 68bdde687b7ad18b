"""OBS: what the operator sees."""

import logging
from typing import Any

import msgspec
import pytest

from standby.engine.decide.ending import soonest_expiry
from standby.engine.decide.profiles import Ranked
from standby.engine.steps import Settled
from standby.engine.texts.failures import attempt_line, failure_message
from standby.engine.turn import Attempt, Turn
from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import BlockKind, Failure
from standby.hosts.observe import LOGGER, observe
from standby.projections.health import CooldownEntry, Health
from tests.harness import START_MS, A, B, C, World, chain, of

AT_ONCE = Recovery(max_retries=0)
A2 = "openai/alpha-two"


def world(*models: str, **fields: Any) -> World:
    return World(chain(*(models or (A, B)), recovery=AT_ONCE, **fields))


@pytest.mark.rule("OBS-1")
def test_each_attempt_is_recorded_with_reason_status_code_and_a_summary() -> None:
    w = world(A, B, C)
    turn = w.turn()
    for kind in ("rate_limit", "billing", "timeout"):
        w.fail(turn, kind)
    step = turn.step
    assert isinstance(step, Settled)
    assert [(one.model, one.profile, one.reason, one.status, one.code) for one in step.attempts] == [
        (A, "openai:one", Failure.RATE_LIMIT, 429, "rate_limit_exceeded"),
        (B, "anthropic:one", Failure.BILLING, 402, "insufficient_credits"),
        (C, "google:one", Failure.TIMEOUT, None, "ETIMEDOUT"),
    ]
    assert [attempt_line(one) for one in step.attempts] == [
        f"{A}: rate limit (HTTP 429, rate_limit_exceeded)",
        f"{B}: billing (HTTP 402, insufficient_credits)",
        f"{C}: timeout (ETIMEDOUT)",
    ]


@pytest.mark.rule("OBS-1")
def test_attempts_that_did_not_fail_have_a_line_too() -> None:
    attempt = Attempt(1, 0, A, "", START_MS)
    assert attempt_line(attempt) == f"{A}: not finished"
    ended = msgspec.structs.replace(attempt, ended_ms=START_MS)
    assert attempt_line(ended) == f"{A}: left"
    assert attempt_line(msgspec.structs.replace(ended, succeeded=True)) == f"{A}: answered"


def profile(*cooldowns: tuple[str, Failure, int]) -> Ranked:
    health = Health(
        cooldowns=tuple(
            CooldownEntry(model, reason, BlockKind.COOLDOWN, START_MS + until, 0)
            for model, reason, until in cooldowns
        )
    )
    return Ranked("p", health, health.cooldowns[0])


LIMIT, AUTH = Failure.RATE_LIMIT, Failure.AUTH


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ([profile((A2, LIMIT, 10))], None),
        ([profile((A2, LIMIT, 90), (A, LIMIT, 10))], 10),
        ([profile((A, LIMIT, 10)), profile((A, LIMIT, 50))], 50),
        ([profile(("", AUTH, 40)), profile(("", AUTH, 30))], 30),
        ([profile(("", AUTH, 30)), profile((A, LIMIT, 50)), profile((A, LIMIT, 20))], 30),
        ([profile(("", AUTH, 70)), profile((A, LIMIT, 50)), profile((A, LIMIT, 20))], 50),
        ([profile((A, LIMIT, 0))], None),
    ],
)
def test_the_expiry_knows_the_models_of_the_chain(profiles: list[Ranked], expected: int | None) -> None:
    found = soonest_expiry(profiles, A, START_MS)
    assert found == (None if expected is None else START_MS + expected)


@pytest.mark.rule("OBS-2")
def test_a_failed_turn_says_when_which_of_its_models_can_be_tried() -> None:
    w = world(A, B)
    unrelated = w.turn("unrelated", model=A2, fallbacks=[])
    w.fail(unrelated, "rate_limit", retry_after=61)
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=300)
    step = w.fail(turn, "rate_limit", retry_after=200)
    assert isinstance(step, Settled)
    assert (step.soonest_ms, step.soonest_model) == (START_MS + 200_000, B)


class Records(logging.Handler):
    """Keeps the extras of what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.found: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.levels.append(record.levelno)
        self.found.append(vars(record))

    def steps(self) -> list[tuple[object, ...]]:
        return [
            tuple(
                one.get(key)
                for key in (
                    "decision",
                    "fallbackStepFromModel",
                    "fallbackStepToModel",
                    "fallbackStepFromFailureReason",
                    "fallbackStepFinalOutcome",
                )
            )
            for one in self.found
        ]


def observed(w: World) -> Records:
    records = Records()
    logger = logging.Logger("test")
    logger.addHandler(records)
    observe(w.service.core, logger)
    return records


@pytest.mark.rule("OBS-3")
def test_each_step_of_the_chain_is_a_record_with_flat_fields() -> None:
    w = world(A, B, C)
    records = observed(w)
    turn = w.turn()
    w.fail(turn, "rate_limit")
    w.fail(turn, "billing")
    w.answer(turn)
    assert records.steps() == [
        ("candidate_failed", A, B, "rate_limit", "next_fallback"),
        ("candidate_failed", B, C, "billing", "next_fallback"),
        ("candidate_succeeded", B, C, "billing", "succeeded"),
    ]
    first = records.found[0]
    assert first["event"] == "model_fallback_decision"
    assert first["fallbackStepFromFailureDetail"] == "rate limit (HTTP 429, rate_limit_exceeded)"
    assert (first["requestedProvider"], first["requestedModel"]) == ("openai", "alpha")
    assert (first["candidateProvider"], first["candidateModel"]) == ("openai", "alpha")
    assert (first["nextCandidateProvider"], first["nextCandidateModel"]) == ("anthropic", "beta")
    assert (first["attempt"], first["status"], first["isPrimary"]) == (1, 429, True)
    assert (records.found[1]["isPrimary"], records.found[1]["fallbackStepChainPosition"]) == (False, 2)
    assert records.levels == [logging.WARNING, logging.WARNING, logging.INFO]


@pytest.mark.rule("OBS-3")
def test_the_first_failure_can_be_rebuilt_when_the_last_fallback_fails_too() -> None:
    w = world(A, B)
    records = observed(w)
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "server_error")
    assert records.steps() == [
        ("candidate_failed", A, B, "overloaded", "next_fallback"),
        ("candidate_failed", B, None, "server_error", "chain_exhausted"),
    ]


@pytest.mark.rule("OBS-3")
def test_skips_checks_and_stops_are_records_and_retries_and_rotations_are_not() -> None:
    w = World(chain(A, B), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn("blocker")
    w.fail(turn, "billing")
    w.fail(turn, "billing")
    turn.cancel()
    records = observed(w)
    skipped = w.turn()
    w.fail(skipped, "overloaded")
    w.wait(skipped)
    w.fail(skipped, "refusal")
    w.sleep(9 * 60_000)
    w.answer(w.turn())
    assert records.steps() == [
        ("skip_candidate", A, B, "billing", "next_fallback"),
        ("candidate_failed", B, None, "refusal", "stopped"),
        ("probe_cooldown_candidate", None, None, None, None),
    ]
    assert records.found[0]["skippedBecause"] == "cooldown"
    assert records.found[0]["fallbackStepFromFailureDetail"] == "provider openai is in cooldown (billing)"


@pytest.mark.rule("OBS-3")
def test_an_answer_without_a_step_before_it_and_a_cancel_are_no_records() -> None:
    w = world()
    records = observed(w)
    w.run()
    w.turn().cancel()
    assert records.found == []


@pytest.mark.rule("OBS-3")
def test_repeated_auth_records_are_held_back_for_thirty_seconds() -> None:
    w = world(A, B)
    w.run("s", "auth_permanent")
    records = observed(w)

    def skipped() -> list[object]:
        """How many were held back, of the skips that were written."""
        w.run("s")
        return [one.get("suppressed") for one in records.found if one["decision"] == "skip_candidate"]

    assert skipped() == [None]
    w.sleep(29_999)
    assert skipped() == [None]
    assert skipped() == [None]
    w.sleep(1)
    assert skipped() == [None, 2]
    broke = world(A, B)
    broke.run("s", "billing")
    other = observed(broke)
    broke.run("s")
    broke.run("s")
    assert [one["decision"] for one in other.found].count("skip_candidate") == 2, "only auth is held back"


@pytest.mark.rule("OBS-3")
def test_records_hold_no_name_and_no_word_of_a_provider_and_come_after_the_commit() -> None:
    w = world(A, B)
    seen: list[int] = []
    w.service.core.watch(lambda commit: seen.append(w.store.head().position))
    records = observed(w)
    w.run("secret-session", "rate_limit")
    said = " ".join(str(value) for one in records.found for value in one.values())
    assert "secret-session" not in said
    assert "openai:one" not in said
    assert "Rate limit reached" not in said
    assert seen == [w.store.head().position - 2, w.store.head().position - 1, w.store.head().position]
    assert LOGGER == "standby.model_fallback"


@pytest.mark.rule("OBS-4")
@pytest.mark.parametrize(
    ("script", "waits", "text"),
    [
        (("rate_limit", "rate_limit"), (50, 45), "⚠️ Rate-limited — ready in ~45s. Please wait a moment."),
        (
            ("rate_limit", "rate_limit"),
            (600, 95),
            "⚠️ Rate-limited — ready in ~2 min. Please try again shortly.",
        ),
        (
            ("rate_limit", "overloaded"),
            (),
            "⚠️ All models are temporarily rate-limited. Please try again in a few minutes.",
        ),
        (
            ("overloaded", "overloaded"),
            (),
            "⚠️ The providers are overloaded. Please try again in a few minutes.",
        ),
        (
            ("rate_limit", "billing"),
            (),
            "⚠️ A provider account has no credit left. Top it up, or choose another model.",
        ),
        (
            ("server_error", "timeout"),
            (),
            "⚠️ The providers have trouble right now. Please try again in a few minutes.",
        ),
        (
            ("rate_limit", "auth"),
            (),
            "⚠️ The request failed: auth. anthropic/beta can be tried again in ~30s.",
        ),
    ],
)
def test_the_message_tells_what_the_attempts_have_in_common(
    script: tuple[str, ...], waits: tuple[int, ...], text: str
) -> None:
    w = world()
    turn = w.turn()
    for place, kind in enumerate(script):
        w.fail(turn, kind, **({"retry_after": waits[place]} if waits else {}))
    assert isinstance(turn.step, Settled)
    assert failure_message(turn.state, w.now_ms) == text


@pytest.mark.rule("OBS-4")
def test_an_expiry_that_has_passed_is_not_promised() -> None:
    turn = Turn(attempts=(Attempt(1, 0, A, "", 0, reason=Failure.RATE_LIMIT),), soonest_ms=START_MS)
    assert "ready in ~1s" in failure_message(turn, START_MS - 1)
    assert "ready" not in failure_message(turn, START_MS)


@pytest.mark.rule("OBS-5")
def test_a_missing_model_shows_as_such() -> None:
    w = world()
    records = observed(w)
    turn = w.turn()
    w.fail(turn, "model_not_found")
    w.answer(turn)
    assert "OBS-5" in of(turn, d.ChainAdvanced)[0].rules
    assert records.found[0]["reason"] == "model_not_found"
    assert [one["fallbackStepFromFailureReason"] for one in records.found] == ["model_not_found"] * 2

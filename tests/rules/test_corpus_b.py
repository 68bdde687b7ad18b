"""Recorded scenarios about cooldowns, checks, delays, skip markers and notices, answered by the engine.

The data and how to read it: see `test_corpus_a`. A case that a rule contradicts is in `OTHERWISE` with that
rule, and our own reading is asserted in its place.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from standby.engine.decide.cooldowns import Blame, block
from standby.engine.decide.probe import reason_of
from standby.engine.decide.retry import schedule
from standby.engine.deciding import Draft
from standby.engine.plan import plan
from standby.engine.rulesets import HealthRule, ruleset_of
from standby.engine.texts.notices import notice_text
from standby.engine.turn import Turn
from standby.engine.view import View
from standby.events import decisions as d
from standby.events.commit import Stamp
from standby.events.facts import ObservedProfile, TurnRequested
from standby.events.policy import ModelChain, Policy
from standby.events.vocabulary import BlockKind, Failure
from standby.hosts.settings import Settings
from standby.hosts.settings.environment import SKIP_TTL_VARIABLE, with_environment
from standby.projections.health import CooldownEntry, Health, blocking, documented_stats

DATA = Path(__file__).resolve().parent.parent / "data" / "scenarios.jsonl"
POLICY = Policy()
RULESET = ruleset_of(POLICY)

OTHERWISE = {
    "s-0029": "COOL-5",  # recorded: a counter ends with its cooldown
    "s-0039": "COOL-2",  # recorded: rate limits without timing climb a ladder
    "s-0040": "COOL-25",  # recorded: a rate limit without timing blocks
    "s-0042": "COOL-25",  # the same
    "s-0043": "COOL-25",  # the same; the auth failure has a window of its own
    "s-0047": "BILL-2",  # recorded: billing windows double
    "s-0049": "BILL-2",
    "s-0050": "BILL-2",
    "s-0051": "BILL-2",
    "s-0061": "OURS-1",  # recorded: asked without a model, another model's limit blocks
    "s-0095": "PROBE-3",  # recorded: a rate-limited primary is checked at any time
}


def cases(kind: str) -> list[Any]:
    every = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    return [
        pytest.param(case["id"], case["input"], case["expected"]["new"], id=case["id"])
        for case in every
        if case["kind"] == kind
    ]


def wanted(case: str, recorded: Any, ours: dict[str, Any]) -> Any:
    """What the case has to give: as recorded, or our reading where a rule says otherwise."""
    if case not in OTHERWISE:
        return recorded
    assert ours[case] != recorded, f"{case} is answered as recorded by now; take it off the list"
    return ours[case]


def blame(reason: str, model: str, wait_ms: int | None, at_ms: int, *, started: bool = True) -> Blame:
    """What a failure of a turn with a fallback says about profile p."""
    return Blame(
        profile="p",
        model=model,
        reason=Failure(reason),
        wait_ms=wait_ms,
        received_ms=at_ms,
        evidence_ms=at_ms,
        subscription=False,
        leads_on=True,
        provider_started=started,
    )


# ---- what a failure does to its profile ----------------------------------------------------------------

NOTHING = (None, None, None, None, None, 0)


def disabled(ms: int, count: int) -> tuple[Any, ...]:
    return (None, ms, None, None, "billing", count)


def cooled(ms: int, count: int) -> tuple[Any, ...]:
    return (ms, None, "auth", None, None, count)


COOLDOWNS: dict[str, Any] = {
    # The third falls into the minute of the second, which it does not move.
    "s-0029": [cooled(30_000, 1), cooled(60_000, 2), cooled(29_999, 3), cooled(300_000, 4)],
    "s-0039": [NOTHING] * 4,
    "s-0040": [NOTHING],
    "s-0042": [NOTHING] * 2,
    "s-0043": [NOTHING, cooled(30_000, 1)],
    "s-0047": [disabled(600_000, 2)],
    "s-0049": [disabled(600_000, 4)],
    "s-0050": [disabled(600_000, 6)],
    "s-0051": [disabled(600_000, 9)],
}


def view_with(existing: dict[str, Any]) -> View:
    """A view in which the profile has failed before, with no window open."""
    view = View()
    health = view.profiles.edit("p")
    for reason, count in existing.get("failureCounts", {}).items():
        counter = reason if reason in ("billing", "auth_permanent") else "ladder"
        health.counters = {**health.counters, counter: count}
    health.last_failure_ms = existing.get("lastFailureAt")
    return view


def shown(view: View, at_ms: int) -> tuple[Any, ...]:
    stats = documented_stats(view.profiles["p"], at_ms)
    cooldown, out = stats.get("cooldownUntil"), stats.get("disabledUntil")
    return (
        None if cooldown is None else int(cooldown) - at_ms,
        None if out is None else int(out) - at_ms,
        stats.get("cooldownReason"),
        stats.get("cooldownModel"),
        stats.get("disabledReason"),
        stats.get("errorCount", 0),
    )


@pytest.mark.rule("COOL-4", "COOL-7")
@pytest.mark.parametrize(("case", "given", "expected"), cases("cooldown"))
def test_cooldowns(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    view = view_with(given.get("existing", {}))
    found = []
    for event in given["events"]:
        at_ms = event["at"]
        model = f"x/{event['model']}" if "model" in event else ""
        draft = Draft(view, Stamp(at_ms, 0, "main", 1))
        block(draft, POLICY, RULESET, blame(event["reason"], model, None, at_ms))
        draft.settle(view)
        found.append(shown(view, at_ms))
    recorded = [
        (
            step["cooldownMs"],
            step["disabledMs"],
            step["cooldownReason"],
            step["cooldownModel"],
            step["disabledReason"],
            step["errorCount"],
        )
        for step in expected["steps"]
    ]
    assert found == wanted(case, recorded, COOLDOWNS)


@pytest.mark.rule("COOL-23", "COOL-10")
@pytest.mark.parametrize(("case", "given", "expected"), cases("failure_reason"))
def test_which_failures_are_recorded(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    view = View()
    draft = Draft(view, Stamp(1000, 0, "main", 1))
    started = given.get("providerStarted", False)
    block(draft, POLICY, RULESET, blame(given["failoverReason"], "x/m", 60_000, 1000, started=started))
    recorded = [one.reason.value for one in draft.decisions if isinstance(one, d.BlockSet)]
    assert recorded == ([expected["reason"]] if expected["reason"] is not None else [])


# ---- whether a block counts ----------------------------------------------------------------------------

_OF_MODELS = (HealthRule.PROVIDER_TIMED, HealthRule.MODEL_LADDER, HealthRule.TIMEOUT)


def entry(stats: dict[str, Any]) -> CooldownEntry:
    """The cell that the documented entry is a view of; only some reasons block a model alone."""
    if "disabledUntil" in stats:
        return CooldownEntry(
            "", Failure(stats["disabledReason"]), BlockKind.DISABLED, stats["disabledUntil"], 0
        )
    counts = stats.get("failureCounts", {})
    reason = Failure(stats.get("cooldownReason") or max(counts, key=lambda key: counts[key], default="unknown"))
    scoped = RULESET.courses[reason].health in _OF_MODELS and "cooldownModel" in stats
    model = f"x/{stats['cooldownModel']}" if scoped else ""
    return CooldownEntry(model, reason, BlockKind.COOLDOWN, stats["cooldownUntil"], 0)


@pytest.mark.rule("COOL-6")
@pytest.mark.parametrize(("case", "given", "expected"), cases("in_cooldown"))
def test_whether_a_profile_is_in_cooldown(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    health = Health(cooldowns=(entry(given["stats"]),))
    model = f"x/{given['forModel']}" if "forModel" in given else ""
    found = blocking(health, model, given["now"]) is not None
    assert found is wanted(case, expected["inCooldown"], {"s-0061": False})


@pytest.mark.rule("PROBE-1")
@pytest.mark.parametrize(("case", "given", "expected"), cases("unavailable_reason"))
def test_why_a_provider_is_out(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    stats = given["store"]["usageStats"]
    cooldowns = [entry(stats[name]) for name in given["profileIds"]]
    assert reason_of(cooldowns).value == expected["reason"]


# ---- checks --------------------------------------------------------------------------------------------


@pytest.mark.rule("PROBE-2", "PROBE-3", "PROBE-4")
@pytest.mark.parametrize(("case", "given", "expected"), cases("probe"))
def test_skip_or_check(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """The recorded action "suspend_session" has no rule: the candidate is passed over."""
    now = given["now"]
    candidate = f"{given['candidate']['provider']}/{given['candidate']['model']}"
    provider = given["candidate"]["provider"]
    primary = given["isPrimary"]
    models = (candidate, "other/b") if primary else (f"{provider}/first", candidate, "other/b")
    view = View()
    stamp = Stamp(now, 0, "main", 1)
    view.runtimes["main"].epoch = 1
    # Of a fallback only its own chance is looked at: the throttle holds for the primary before it.
    checks = given.get("lastProbe", {}) if primary else {provider: now}
    view.runtimes["main"].probes = dict(checks)
    health = view.profiles.edit("p")
    health.observed = ObservedProfile(alias="p", provider=provider)
    health.cooldowns = (entry(given["store"]["usageStats"]["p"]),)
    view.known_profiles = {provider: ("p",)}
    view.policies = {1: Policy(models=ModelChain(primary=models[0], fallbacks=models[1:]))}
    view.policy_at = 1
    decisions = plan(view, TurnRequested(turn="t", session="s"), stamp)
    checked = [one for one in decisions if isinstance(one, d.ProbeAdmitted)]
    skipped = [one for one in decisions if isinstance(one, d.CandidateSkipped) and one.model == candidate]
    assert bool(checked) is not bool(skipped)
    found = ("attempt", checked[0].primary) if checked else ("skip", skipped[0].reason)
    recorded = (
        ("attempt", expected["markProbe"])
        if expected["type"] == "attempt"
        else ("skip", Failure(expected["reason"]))
    )
    assert found == wanted(case, recorded, {"s-0095": ("skip", Failure.RATE_LIMIT)})


# ---- delays and settings -------------------------------------------------------------------------------


@pytest.mark.rule("REC-2", "TIME-4")
@pytest.mark.parametrize(("case", "given", "expected"), cases("retry_delay"))
def test_delays(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    now = 1_700_000_000_000
    turn = Turn(retries=given["retryNumber"] - 1, outage_ms=now - given.get("elapsedMs", 0))
    wait = schedule(
        turn,
        POLICY,
        RULESET,
        Failure.SERVER_ERROR,
        wait_ms=given.get("retryAfterMs"),
        received_ms=now,
        now_ms=now,
        # The recorded factor is 0.5 and what was drawn; ours is drawn in thousandths.
        entropy=round(given["random"] * 1000),
    )
    assert (None if wait is None else wait.until_ms - now) == expected["delayMs"]


@pytest.mark.rule("SKIP-1")
@pytest.mark.parametrize(("case", "given", "expected"), cases("skip_ttl"))
def test_the_variable_of_the_skip_cache(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    settings = with_environment(Settings(policy=POLICY), {SKIP_TTL_VARIABLE: given["value"]})
    assert settings.policy.skip_ttl_ms == expected["ttlMs"]


# ---- notices -------------------------------------------------------------------------------------------


@pytest.mark.rule("NOTE-1", "NOTE-9")
@pytest.mark.parametrize(("case", "given", "expected"), cases("notice"))
def test_notices(case: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    selected = f"{given['selectedProvider']}/{given['selectedModel']}"
    active = f"{given['activeProvider']}/{given['activeModel']}"
    attempts = given["attempts"]
    first = attempts[0] if attempts else {}
    reason = Failure(first["reason"]) if "reason" in first else None
    due = d.NoticeDue(
        rules=(),
        session="s",
        turn="t",
        selected=selected,
        active=active,
        reason=reason,
        more=max(0, len(attempts) - 1),
    )
    told = notice_text(due, first.get("error", ""), first.get("status"), first.get("code", ""))
    # The models are equal: nothing is due, which `announce` decides and test_note holds.
    assert (None if selected == active else told) == expected["notice"]
    left = given.get("previousActiveModel", selected)
    returned = d.NoticeDue(rules=(), session="s", turn="t", selected=selected, active=left, returned=True)
    assert notice_text(returned) == expected["cleared"]


def test_every_exception_is_a_case() -> None:
    kinds = ("cooldown", "in_cooldown", "probe")
    known = {case.values[0] for kind in kinds for case in cases(kind)}
    assert set(OTHERWISE) <= known

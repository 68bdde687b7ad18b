"""Holding what was played against what its scenario expects."""

from typing import Any, Final

from standby.engine.texts.decision_records import ChainStep
from standby.events.decisions import NoticeDue
from standby.hosts.service import Standby
from standby.hosts.simulate.played import PlayedTurn
from standby.hosts.simulate.scenario import Health, Scenario, Status

SHOWN_BY: Final = {
    "says": ("OBS-4", "FLOW-14"),
    "statuses": ("NOTE-5", "REC-7"),
    "records": ("OBS-1", "OBS-3"),
    "soonest": ("OBS-2", "OURS-10"),
    "cost": ("FLOW-13",),
    "status": ("LIVE-5",),
    "health": ("COOL-7", "COOL-6", "COOL-24"),
}
"""Rules about what is shown make no decision; the expectation that looks at it shows them."""


def check_turn(turn: PlayedTurn, start_ms: int) -> list[str]:
    """What did not come out as expected, a sentence each."""
    expect = turn.step.expect
    if expect is None:
        return []
    if turn.ended_ms is None and expect.over is not False:
        return [f"turn {turn.id}: it never ended ({turn.state.state})"]
    found = _found(turn, start_ms)
    problems = [
        f"turn {turn.id}: expected {name} {_say(wanted)}, found {_say(found[name])}"
        for name in found
        if (wanted := getattr(expect, name)) is not None and wanted != found[name]
    ]
    said = "" if turn.failure is None else str(turn.failure)
    if expect.says is not None and expect.says not in said:
        problems.append(f"turn {turn.id}: expected says {_say(expect.says)}, found {_say(said)}")
    named = {rule for commit in turn.commits for d in commit.decisions for rule in d.rules}
    problems += [f"turn {turn.id}: no decision names {rule}" for rule in expect.rules if rule not in named]
    return problems


def _found(turn: PlayedTurn, start_ms: int) -> dict[str, Any]:
    """What the turn came to, by the names of what can be expected."""
    state, result = turn.state, turn.result
    cost = "" if result is None or result.usage.cost is None else f"{result.usage.cost:f}"
    told = [] if result is None else list(result.notices)
    return {
        "answered": state.answered,
        "end": state.end,
        "reason": state.reason,
        "over": turn.ended_ms is not None,
        "attempts": len(state.attempts),
        "models": [attempt.model for attempt in state.attempts],
        "profiles": turn.profiles,
        "skips": [f"{skip.model}: {skip.because.value}" for skip in state.skips],
        "notices": sum(not d.quiet for c in turn.commits for d in c.decisions if isinstance(d, NoticeDue)),
        "told": told,
        "statuses": turn.statuses,
        "records": [record_line(step) for step in turn.records],
        "soonest": state.soonest_model,
        "target": state.target,
        "cost": cost,
        "at": None if turn.ended_ms is None else turn.ended_ms - start_ms,
    }


def record_line(step: ChainStep) -> str:
    """A decision record in a line: which model was left, why, for which one, and what came of it."""
    if not step.left:
        return f"{step.candidate}: {step.decision}"
    why = f" {step.left_reason.value}" if step.left_reason is not None else ""
    to = f" -> {step.to}" if step.to else ""
    return f"{step.left}{why}{to}: {step.outcome}"


def check_status(service: Standby, wanted: Status, where: str) -> list[str]:
    """What `/status` does not show as expected."""
    found = service.status(wanted.session, agent=wanted.agent)
    return [
        f"{where}: expected the status to show {name} {_say(value)}, found {_say(getattr(found, name))}"
        for name in ("selected", "active", "reason", "strict")
        if (value := getattr(wanted, name)) is not None and value != getattr(found, name)
    ]


_KEYS: Final = {
    "cooldown_until": "cooldownUntil",
    "cooldown_model": "cooldownModel",
    "disabled_until": "disabledUntil",
    "blocked_until": "blockedUntil",
    "errors": "errorCount",
}


def check_health(service: Standby, wanted: Health, start_ms: int, where: str) -> list[str]:
    """What the documented `usageStats` of a profile do not show as expected."""
    stats = service.usage_stats().get(wanted.profile, {})
    found: dict[str, Any] = {name: stats.get(key) for name, key in _KEYS.items()}
    found["free"] = not any(key in stats for key in ("cooldownUntil", "disabledUntil", "blockedUntil"))
    reasons = (stats.get(key) for key in ("disabledReason", "blockedReason", "cooldownReason"))
    found["reason"] = next((one for one in reasons if one is not None), None)
    for name in ("cooldown_until", "disabled_until", "blocked_until"):
        found[name] = None if found[name] is None else found[name] - start_ms
    return [
        f"{where}: expected {wanted.profile} to have {name} {_say(value)}, found {_say(found[name])}"
        for name in found
        if (value := getattr(wanted, name)) is not None and value != found[name]
    ]


def check_rules(scenario: Scenario, named: set[str]) -> list[str]:
    """Rules that the scenario says it shows, and that neither a decision nor an expectation has shown."""
    shown = set(named)
    for step in scenario.steps:
        for name, rules in SHOWN_BY.items():
            if getattr(step if name in ("status", "health") else step.expect, name, None) is not None:
                shown.update(rules)
    return [f"nothing shows {rule}: no decision names it" for rule in scenario.shows if rule not in shown]


def count_of(scenario: Scenario) -> int:
    """How many things the scenario expects."""
    tables = [table for step in scenario.steps for table in (step.expect, step.status, step.health)]
    count = len(scenario.shows)
    for table in tables:
        for name in table.__struct_fields__ if table is not None else ():
            if name == "rules":
                count += len(getattr(table, name))
            elif name not in ("session", "agent", "profile"):
                count += getattr(table, name) is not None
    return count


def _say(value: Any) -> str:
    value = getattr(value, "value", value)
    return "nothing" if value is None or value == "" else repr(value)

"""Holding a played turn against what its scenario expects of it."""

from typing import TYPE_CHECKING, Any

from standby.events.decisions import NoticeDue
from standby.hosts.simulate.scenario import duration_ms

if TYPE_CHECKING:
    from standby.hosts.simulate.play import PlayedTurn

__all__ = ["check_turn", "rules_named"]


def check_turn(turn: "PlayedTurn", start_ms: int) -> list[str]:
    """What did not come out as expected, a sentence each."""
    expect = turn.step.expect
    if expect is None:
        return []
    state = turn.state
    if state is None:
        return [f"turn {turn.id}: it never ended"]
    found: dict[str, Any] = {
        "answered": state.answered,
        "end": state.end,
        "reason": state.reason,
        "attempts": len(state.attempts),
        "models": [a.model for a in state.attempts],
        "profiles": [a.profile for a in getattr(turn.settled, "attempts", ())],
        "notices": sum(not d.quiet for c in turn.commits for d in c.decisions if isinstance(d, NoticeDue)),
    }
    problems = [
        f"turn {turn.id}: expected {name} {_say(wanted)}, found {_say(found[name])}"
        for name in found
        if (wanted := getattr(expect, name)) is not None and wanted != found[name]
    ]
    if expect.at is not None and (turn.ended_ms or 0) - start_ms != duration_ms(expect.at):
        problems.append(
            f"turn {turn.id}: expected to be over {expect.at} after the start, "
            f"found {(turn.ended_ms or 0) - start_ms} ms"
        )
    named = rules_named(turn)
    problems += [f"turn {turn.id}: no decision names {rule}" for rule in expect.rules if rule not in named]
    return problems


def rules_named(turn: "PlayedTurn") -> set[str]:
    """The rules that the turn's decisions name."""
    return {rule for commit in turn.commits for d in commit.decisions for rule in d.rules}


def _say(value: Any) -> str:
    return repr(getattr(value, "value", value))

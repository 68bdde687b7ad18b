"""The examples: each plays as it says, proves itself, reads in a minute, and notices what is otherwise."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from standby.events.errors import BadScript
from standby.events.vocabulary import TurnEnd
from standby.hosts.simulate import Loaded, load_scenario, play
from standby.hosts.simulate.scenario import Expect
from tests.simulate.readme import EXAMPLES, SCENARIOS, readme

pytestmark = pytest.mark.checkout

SECTIONS = (
    *("FLOW", "SEL", "CHAIN", "ORD", "PIN", "COOL", "BILL", "REC"),
    *("ADV", "PROBE", "STICK", "SKIP", "LIVE", "NOTE", "OBS", "OURS"),
)
each = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


def changed(loaded: Loaded, **fields: Any) -> Loaded:
    """The same scenario with other parts."""
    scenario = msgspec.structs.replace(loaded.scenario, **fields)
    return Loaded(scenario, loaded.settings, loaded.changes, loaded.error)


@each
def test_it_plays_as_it_says_and_verifies(path: Path) -> None:
    played = play(load_scenario(path))
    assert played.problems == []
    assert played.report.holds
    assert played.report.decisions > 0
    assert played.turns


@each
def test_it_is_told_well(path: Path) -> None:
    scenario = load_scenario(path).scenario
    text = path.read_text(encoding="utf-8")
    assert scenario.title
    assert len(scenario.about.split()) >= 20
    assert scenario.shows
    assert text.count("\n") <= 100, "nobody reads that in a minute"
    assert max(map(len, text.splitlines())) <= 180
    assert all(step.expect is not None for step in scenario.steps if step.turn is not None)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_has_an_example(section: str) -> None:
    own = [path for path in SCENARIOS if path.stem.startswith(section.lower() + "-")]
    shown = {rule for path in own for rule in load_scenario(path).scenario.shows}
    assert any(rule.startswith(section + "-") for rule in shown)


@each
def test_without_its_outcomes_it_fails(path: Path) -> None:
    loaded = load_scenario(path)
    if not loaded.scenario.outcomes:
        pytest.skip("nothing goes wrong in it")
    try:
        problems = play(changed(loaded, outcomes=[])).problems
    except BadScript as error:
        problems = [str(error)]
    assert problems


_OTHER: dict[str, Any] = {
    "answered": "nobody/nothing",
    "end": TurnEnd.STOPPED,
    "over": False,
    "attempts": 99,
    "models": ["nobody/nothing"],
    "profiles": ["nobody"],
    "skips": ["nobody/nothing: gate"],
    "notices": 99,
    "told": ["Nothing was ever told."],
    "says": "Nobody says this.",
    "statuses": ["Retrying… 99/99"],
    "records": ["nobody/nothing: succeeded"],
    "soonest": "nobody/nothing",
    "target": "nobody/nothing",
    "cost": "99",
    "rules": ["OURS-99"],
    "at": 1,
}


@each
def test_each_expectation_can_fail(path: Path) -> None:
    loaded = load_scenario(path)
    steps = loaded.scenario.steps
    broken = 0
    for number, step in enumerate(steps):
        for name, other in _OTHER.items():
            said = getattr(step.expect, name) if step.expect is not None else None
            if said is None or said == []:
                continue
            expect = msgspec.structs.replace(step.expect or Expect(), **{name: other})
            one = msgspec.structs.replace(step, expect=expect)
            played = play(changed(loaded, steps=[*steps[:number], one, *steps[number + 1 :]]))
            assert any(name in problem or "OURS-99" in problem for problem in played.problems), (number, name)
            broken += 1
    assert broken
    played = play(changed(loaded, shows=[*loaded.scenario.shows, "GATE-1"]))
    assert played.problems == ["nothing shows GATE-1: no decision names it"]


@each
def test_each_look_at_a_session_or_profile_can_fail(path: Path) -> None:
    loaded = load_scenario(path)
    steps = loaded.scenario.steps
    for number, step in enumerate(steps):
        if step.status is not None:
            one = msgspec.structs.replace(step, status=msgspec.structs.replace(step.status, selected="x/y"))
        elif step.health is not None:
            one = msgspec.structs.replace(step, health=msgspec.structs.replace(step.health, reason="nothing"))
        else:
            continue
        played = play(changed(loaded, steps=[*steps[:number], one, *steps[number + 1 :]]))
        assert [problem.split(":")[0] for problem in played.problems] == [f"steps[{number}]"]


def test_the_page_about_them_is_up_to_date() -> None:
    assert (EXAMPLES / "README.md").read_text(encoding="utf-8") == readme(), (
        "run python -m tests.simulate.readme"
    )

"""Scenario files that are wrong: the message names file, place and key, and there is no traceback."""

import json
import tomllib
from pathlib import Path

import pytest

from standby.events.errors import BadScript
from standby.hosts.simulate import load_scenario, parse_scenario, play

GOOD = """\
[policy.agents.defaults.model]
primary = "openai/alpha"

[[profiles]]
name = "openai:one"

[[outcomes]]
kind = "no_credit"
[[steps]]
turn = { session = "s", id = "first" }
"""


def added(text: str) -> str:
    """What is said of the good file with something below it."""
    with pytest.raises(BadScript) as caught:
        parse_scenario(GOOD + text, "my.toml")
    return str(caught.value)


def test_the_good_file_is_good() -> None:
    assert play(parse_scenario(GOOD)).report.holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[steps]]\nturn = { session = "s", modle = "x" }',
            'my.toml:12: steps[1].turn.modle: unknown key; did you mean "model"?',
        ),
        ("[[step]]\nrestart = true", 'my.toml:11: step: unknown key; did you mean "steps"?'),
        ("[[steps]]\nturn = {}", 'my.toml:12: steps[1].turn: the key "session" is missing'),
        (
            "[[steps]]\nturn = { session = 5 }",
            "my.toml:12: steps[1].turn.session: has to be text, not a whole number",
        ),
        ("[[steps]]\nturn = 5", "my.toml:12: steps[1].turn: has to be a table, not a whole number"),
        (
            "[[steps]]\nrestart = 1979-05-27",
            "my.toml:12: steps[1].restart: has to be true or false, not a date or time",
        ),
        (
            '[[steps]]\nafter = "soon"\nrestart = true',
            "my.toml:12: steps[1].after: 'soon' is no duration; write milliseconds",
        ),
        (
            "[[steps]]\nafter = -1\nrestart = true",
            "my.toml:12: steps[1].after: -1 ms is no duration: it has to be between",
        ),
        (
            '[[steps]]\nafter = "400d"\nrestart = true',
            "my.toml:12: steps[1].after: 34560000000 ms is no duration",
        ),
        ("[[steps]]\nafter = true\nrestart = true", "my.toml:12: steps[1].after: True is no duration"),
        (
            '[[steps]]\nrestart = true\ncancel = "first"',
            "my.toml:11: steps[1]: says cancel and restart; each step says one thing",
        ),
        ("[[steps]]", "my.toml:11: steps[1]: says nothing; each step says one thing"),
        (
            "[[steps]]\nat = 5\nduring = 5\nrestart = true",
            "my.toml:11: steps[1]: says at and during; say in one way",
        ),
        (
            "[[steps]]\nrestart = true\nexpect = { attempts = 1 }",
            "my.toml:13: steps[1].expect: only a turn has an expect",
        ),
        (
            '[[steps]]\ncancel = "frist"',
            'my.toml:12: steps[1].cancel: there is no turn "frist" before this step; did you mean "first"?',
        ),
        (
            '[[steps]]\ncancel = "b"\n[[steps]]\nturn = { session = "s", id = "b" }',
            'steps[1].cancel: the turn "b" is requested only further down',
        ),
        ('[[steps]]\nrecovering = { turn = "x" }', "my.toml:12: steps[1].recovering.turn: there is no turn"),
        (
            '[[steps]]\nturn = { session = "s", id = "first" }',
            'my.toml:12: steps[1].turn.id: the id "first" is used twice',
        ),
        (
            '[[steps]]\nremove = "openai:two"',
            'my.toml:12: steps[1].remove: there is no profile "openai:two"; did you mean "openai:one"?',
        ),
        ('[[steps]]\nquota = { profile = "x" }', "my.toml:12: steps[1].quota.profile: there is no profile"),
        (
            '[[outcomes]]\nprofile = "x"\nkind = "no_credit"',
            "my.toml:12: outcomes[1].profile: there is no profile",
        ),
        ('[[outcomes]]\nturn = "x"\nkind = "no_credit"', "my.toml:12: outcomes[1].turn: there is no turn"),
        (
            '[[outcomes]]\nkind = "no_credits"',
            'my.toml:12: outcomes[1].kind: "no_credits" is none of its words; did you mean "no_credit"?',
        ),
        ("[[outcomes]]\nstatus = 999", "my.toml:12: outcomes[1].status: has to be at most 599"),
        ("[[outcomes]]\ntimes = 0", "my.toml:12: outcomes[1].times: has to be at least 1"),
        (
            "[[outcomes]]\nretry_after = inf\nstatus = 429",
            "my.toml:12: outcomes[1].retry_after: has to be at most",
        ),
        ("[[outcomes]]\nretry_after = nan\nstatus = 429", "my.toml:12: outcomes[1].retry_after: "),
        ("[[outcomes]]\nsince = 5\nuntil = 5", "my.toml:13: outcomes[1].until: it is over before it begins"),
        (
            '[[outcomes]]\nstatus = 500\nswitch_to = "a/b"',
            "my.toml:11: outcomes[1]: a call that is left for another model",
        ),
        (
            "[[outcomes]]\nstatus = 500\nbody = { day = 1979-05-27 }",
            "my.toml:13: outcomes[1].body: cannot be sent as JSON",
        ),
        (
            '[[profiles]]\nname = "openai:one"',
            'my.toml:12: profiles[1].name: the profile "openai:one" is there twice',
        ),
        ('[[profiles]]\nname = "one"', 'my.toml:11: profiles[1]: write the name as "provider:account"'),
        (
            '[order]\nopenai = ["openai:on"]',
            'my.toml:12: order.openai[0]: there is no profile "openai:on"; did you mean',
        ),
        (
            '[[steps]]\npolicy.agents.defaults.model.primry = "a/b"',
            'my.toml:12: steps[1].policy.agents.defaults.model.primry: unknown key; did you mean "primary"?',
        ),
        ("[policy.retry.provider]\nmaxRetries = -1", "my.toml:12: policy.retry.provider.maxRetries: "),
        ("title = 5 5", "my.toml:11: this is not TOML"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    assert message in added(text)


def test_rules_that_there_are_not() -> None:
    with pytest.raises(
        BadScript, match=r'my.toml:1: shows\[0\]: there is no rule "BIL-2"; did you mean "BILL-2"'
    ):
        parse_scenario('shows = ["BIL-2"]\n' + GOOD, "my.toml")
    text = '[[steps]]\nturn = { session = "s" }\nexpect = { rules = ["FLOW-99"] }'
    assert "my.toml:13: steps[1].expect.rules[0]: there is no rule" in added(text)


def test_steps_stand_in_the_order_of_time() -> None:
    out = '[[steps]]\nat = "10m"\nrestart = true\n[[steps]]\nat = "5m"\nrestart = true'
    assert "my.toml:15: steps[2].at: 300000 ms is before the step above it (600000 ms)" in added(out)
    late = parse_scenario(
        GOOD + '[[steps]]\nafter = "1m"\nrestart = true\n[[steps]]\nat = "5s"\nrestart = true', "my.toml"
    )
    with pytest.raises(BadScript, match=r"my.toml:14: steps\[2\]: restart: is to happen at 5000 ms"):
        play(late)


def test_a_step_that_cannot_be_done_is_named() -> None:
    text = GOOD + '[[steps]]\npin = { session = "s", provider = "anthropic", profile = "openai:one" }'
    with pytest.raises(BadScript, match=r"my.toml:11: steps\[1\]: pin: profile .* belongs to openai"):
        play(parse_scenario(text, "my.toml"))
    with pytest.raises(BadScript, match=r"my.toml:1: steps\[0\]: turn: .*selects no model"):
        play(parse_scenario('[[steps]]\nturn = { session = "s" }', "my.toml"))
    text = GOOD + '[[steps]]\ntake_over = "first"'
    with pytest.raises(BadScript, match="turn first is over"):
        play(parse_scenario(text, "my.toml"))


def test_json_is_read_like_toml() -> None:
    data = tomllib.loads(GOOD)
    loaded = parse_scenario(json.dumps(data), "my.json", as_json=True)
    assert loaded.scenario == parse_scenario(GOOD).scenario
    assert loaded.settings == parse_scenario(GOOD).settings
    data["steps"][0]["turn"]["modle"] = "x"
    with pytest.raises(BadScript, match=r'^my.json: steps\[0\].turn.modle: unknown key; did you mean "model"'):
        parse_scenario(json.dumps(data), "my.json", as_json=True)
    del data["steps"][0]["turn"]["modle"]
    data["policy"]["agents"]["defaults"]["model"]["primry"] = "a/b"
    with pytest.raises(BadScript, match=r"^my.json: policy.agents.defaults.model.primry: unknown key"):
        parse_scenario(json.dumps(data), "my.json", as_json=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "my.json:1: this is not JSON"),
        ('{\n"title": nope}', "my.json:2: this is not JSON"),
        ('{"outcomes": [{"retry_after": NaN}]}', "my.json:1: this is not JSON: NaN is no number here"),
        ("[]", "my.json: a scenario is a table of its parts, not a list"),
        ("null", "my.json: a scenario is a table of its parts"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_scenario(text: str, message: str) -> None:
    with pytest.raises(BadScript) as caught:
        parse_scenario(text, "my.json", as_json=True)
    assert message in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadScript, match=r"nothing\.toml: the scenario cannot be read: No such file"):
        load_scenario(tmp_path / "nothing.toml")
    with pytest.raises(BadScript, match="the scenario cannot be read"):
        load_scenario(tmp_path)
    odd = tmp_path / "odd.toml"
    odd.write_bytes(b'title = "a"\nabout = "\xff"')
    with pytest.raises(BadScript, match=r"odd.toml:2: the scenario is not UTF-8"):
        load_scenario(odd)
    odd.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_scenario(odd).scenario.steps
    odd.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(BadScript, match="larger than"):
        load_scenario(odd)

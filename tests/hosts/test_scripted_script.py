"""Scripts: what they say, whose turn it is, and how mistakes in them are named."""

from pathlib import Path

import pytest

from standby.events.errors import BadScript
from standby.hosts.scripted import Kind, Lane, Reply, Script, answer, load, parse

FULL = """
[keys]
first = "aaaa"
longer = "-aaaa"

[[lane]]
model = "gpt-a"
key = "first"
replies = [
    { kind = "rate_limited", retry_after = 2 },
    { answer = "Hello", delay_ms = 20, repeat = true },
]

[[lane]]
model = "gpt-a"

[[lane.replies]]
status = 418
headers = { x-tea = "yes" }
body = { error = "short and stout" }

[[lane]]
key = "longer"
replies = [{ hang = true }]

[[lane]]
replies = [{ answer = "anything" }]

[default]
answer = "ok"
"""


def test_a_whole_script_is_read() -> None:
    script = parse(FULL)
    assert script.lane[0].replies[0] == Reply(kind=Kind.RATE_LIMITED, retry_after=2)
    assert script.lane[0].replies[1] == Reply(answer="Hello", delay_ms=20, repeat=True)
    assert script.lane[1].replies[0].body == {"error": "short and stout"}
    assert script.default == Reply(answer="ok")


@pytest.mark.parametrize(
    ("model", "alias", "place"),
    [
        ("gpt-a", "first", 0),
        ("gpt-a", "", 1),
        ("gpt-a", "longer", 1),
        ("gpt-b", "longer", 2),
        ("gpt-b", "", 3),
    ],
)
def test_the_most_specific_lane_is_taken(model: str, alias: str, place: int) -> None:
    assert parse(FULL).lane_for(model, alias) == place


def test_no_lane_may_match() -> None:
    assert Script.of({"gpt-a": ["Hello"]}).lane_for("gpt-b", "") is None


def test_keys_are_known_by_their_end_and_the_longest_wins() -> None:
    script = parse(FULL)
    assert script.alias("sk-PLACEHOLDER-aaaa") == "longer"
    assert script.alias("sk-PLACEHOLDERaaaa") == "first"
    assert script.alias("sk-PLACEHOLDER-bbbb") == ""
    assert script.alias("") == ""


def test_replies_come_in_order_and_only_a_repeating_last_one_goes_on() -> None:
    going_on = Lane(replies=(answer("a"), answer("b", repeat=True)))
    assert [going_on.at(n).answer for n in range(4)] == ["a", "b", "b", "b"]  # type: ignore[union-attr]  # none ends
    ending = Lane(replies=(answer("a"), answer("b")))
    assert [ending.at(n) for n in range(4)] == [answer("a"), answer("b"), None, None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lane = [}", r"s\.toml: this is not TOML: .*line 1"),
        ("[[lane]]\nreplies = []", r"s\.toml: lane\[0\]\.replies: a lane needs at least one reply"),
        ("[[lane]]\nmodel = 'm'", r"s\.toml: lane\[0\]: .*missing required field `replies`"),
        (
            "[[lane]]\nreplies = [{answer = 'a'}, {stauts = 429}]",
            r"s\.toml: lane\[0\]\.replies\[1\]\.stauts: unknown key; did you mean 'status'",
        ),
        ("[[lane]]\nmodle = 'm'\nreplies = [{}]", r"lane\[0\]\.modle: unknown key; did you mean 'model'"),
        ("[[lanes]]\nreplies = [{}]", r"s\.toml: lanes: unknown key; did you mean 'lane'"),
        ("[default]\nanswr = 'a'", r"default\.answr: unknown key; did you mean 'answer'"),
        ("[default]\nzzz = 1", r"default\.zzz: unknown key; known keys: answer, "),
        ("[[lane]]\nreplies = [{status = 'x'}]", r"lane\[0\]\.replies\[0\]\.status: Expected `int"),
        ("[[lane]]\nreplies = [{status = 99}]", r"lane\[0\]\.replies\[0\]\.status: Expected `int` >= 200"),
        ("[[lane]]\nreplies = [{delay_ms = -1}]", r"replies\[0\]\.delay_ms: Expected `int` >= 0"),
        ("[[lane]]\nreplies = [{kind = 'tired'}]", r"replies\[0\]\.kind: Invalid enum value 'tired'"),
        ("[[lane]]\nkey = 'x'\nreplies = [{}]", r"lane\[0\]\.key: 'x' is not a name under \[keys\]"),
        ("[keys]\nfirst = ''", r"keys\.first: give the last characters"),
        (
            "[[lane]]\nreplies = [{repeat = true}, {}]",
            r"lane\[0\]\.replies\[0\]\.repeat: only the last reply",
        ),
        (
            "[[lane]]\nreplies = [{}]\n[[lane]]\nreplies = [{}]",
            r"lane\[1\]: lane\[0\] has the same model and key",
        ),
        ("[[lane]]\nreplies = [{hang = true, close = true}]", r"replies\[0\]: .*one way only"),
        ("[[lane]]\nreplies = [{answer = 'a', kind = 'no_credit'}]", r"replies\[0\]: .*holds no answer"),
        ("[[lane]]\nreplies = [{error_after = 1}]", r"replies\[0\]: error_after needs a kind"),
        ("[[lane]]\nreplies = [{retry_after = 1}]", r"replies\[0\]: retry_after belongs to a kind"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadScript, match=words) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadScript, match=r"none\.toml: the script cannot be read"):
        load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(BadScript, match="not UTF-8"):
        load(tmp_path / "bytes.toml")


def test_scripts_from_python_are_checked_too() -> None:
    with pytest.raises(BadScript, match="one way only"):
        Reply(hang=True, cut_after=1)
    with pytest.raises(BadScript, match="a lane needs at least one reply"):
        Script.of({"gpt-a": []})
    with pytest.raises(BadScript, match="not a name under"):
        Script.of([Lane(key="first", replies=(answer("a"),))])

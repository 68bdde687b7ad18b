"""`standby simulate` from outside: exits, streams, the log that it keeps, and the same bytes every time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from standby.events.sqlite import SQLiteStore
from standby.hosts.cli.app import app
from tests.simulate.readme import SCENARIOS

pytestmark = pytest.mark.checkout

WALLET = next(path for path in SCENARIOS if path.stem == "bill-empty-wallet")
OWNERS = next(path for path in SCENARIOS if path.stem == "ours-two-owners")

WRONG = """\
[policy.agents.defaults.model]
primary = "openai/alpha"
[[steps]]
turn = { session = "s" }
expect = { answered = "openai/beta", rules = ["BILL-2"] }
"""


def standby(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def outside(*arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "standby", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "NO_COLOR": "", **environment},
    )


def test_it_tells_the_story_and_says_that_all_is_as_expected() -> None:
    text = standby("simulate", WALLET).stdout
    assert text.startswith("An empty wallet\n")
    assert "block_set          profile=anthropic:work reason=billing kind=disabled until=+10m0.2s" in text
    assert "[BILL-2 BILL-5 COOL-17]" in text
    assert "turn-1  chat     400 ms  2         answered by anthropic/claude-sonnet-4-5" in text
    assert "everything is as expected" in text
    assert '{"' not in text, "no JSON among the lines for people"
    assert "\x1b" not in text
    short = standby("simulate", WALLET, "-q").stdout
    assert "block_set" not in short
    assert "answered by" in short


def test_an_expectation_that_does_not_hold_is_status_1(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG)
    result = standby("simulate", file, status=1)
    assert (
        "NOT AS EXPECTED  turn turn-1: expected answered 'openai/beta', found 'openai/alpha'" in result.stdout
    )
    assert "NOT AS EXPECTED  turn turn-1: no decision names BILL-2" in result.stdout
    assert "everything is as expected" not in result.stdout
    value = json.loads(standby("simulate", file, "--json", status=1).stdout)
    assert len(value["problems"]) == 2
    assert value["verified"] is True


def test_several_files_get_a_line_each(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(WRONG)
    *lines, end = standby("simulate", WALLET, OWNERS).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [str(WALLET), str(OWNERS)]
    assert lines[0].endswith("  as expected  An empty wallet")
    assert "3 turns  " in lines[0]
    assert end == "2 scenarios, none not as expected"
    result = standby("simulate", WALLET, wrong, status=1)
    first, second, end = result.stdout.splitlines()
    assert first.endswith("as expected  An empty wallet")
    assert "NOT AS EXPECTED: turn turn-1: expected answered 'openai/beta'" in second
    assert second.endswith("; turn turn-1: no decision names BILL-2")
    assert end == "2 scenarios, 1 not as expected"
    found = [
        json.loads(line) for line in standby("simulate", WALLET, wrong, "--json", status=1).stdout.splitlines()
    ]
    assert [(one["file"], len(one["problems"])) for one in found] == [(str(WALLET), 0), (str(wrong), 2)]


def test_several_files_have_no_log_of_their_own_and_all_have_to_be_read_first(tmp_path: Path) -> None:
    log, bad = tmp_path / "log.db", tmp_path / "bad.toml"
    assert "one scenario" in standby("simulate", WALLET, OWNERS, "--log", log, status=2).stderr
    assert not log.exists()
    bad.write_text(WRONG.replace("turn =", "trun ="))
    result = standby("simulate", WALLET, bad, status=2)
    assert (result.stdout, "steps[0].trun" in result.stderr) == ("", True)


def test_a_file_that_cannot_be_played_is_status_2_with_its_place_and_leaves_no_log(tmp_path: Path) -> None:
    file, log = tmp_path / "bad.toml", tmp_path / "log.db"
    file.write_text(WRONG.replace("turn =", "trun ="))
    result = standby("simulate", file, "--log", log, status=2)
    assert result.stdout == ""
    assert result.stderr == f'standby: {file}:4: steps[0].trun: unknown key; did you mean "turn"?\n'
    file.write_text(WRONG.replace('primary = "openai/alpha"', ""))
    result = standby("simulate", file, "--log", log, status=2)
    assert result.stderr.startswith(f"standby: {file}:3: steps[0]: turn: turn turn-1 selects no model")
    assert list(tmp_path.iterdir()) == [file]


def test_only_a_new_file_is_taken_for_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    standby("simulate", WALLET, "--log", log)
    before = log.read_bytes()
    assert "exists already" in standby("simulate", WALLET, "--log", log, status=2).stderr
    assert log.read_bytes() == before
    assert (
        "there is no folder" in standby("simulate", WALLET, "--log", tmp_path / "a" / "b.db", status=2).stderr
    )


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_its_log_is_a_log_for_every_other_command(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    value = json.loads(standby("simulate", path, "--log", log, "--json").stdout)
    assert value["problems"] == []
    proved = json.loads(standby("verify", "--log", log, "--json").stdout)
    assert proved["commits"] == len(value["commits"])
    assert value["commits"][-1]["hash"] in standby("head", "--log", log).stdout
    for turn in value["turns"]:
        story = json.loads(standby("explain", turn["id"], "--log", log, "--json").stdout)
        assert (story.get("answered_by") or None) == turn["answered"]
    standby("status", "--log", log)
    assert standby("log", "--log", log).stdout.count("turn_requested") == len(value["turns"])


def logged(log: Path) -> list[tuple[int, bytes, bytes]]:
    store = SQLiteStore(log, create=False)
    try:
        return [(row.position, row.body, row.hash) for row in store.read()]
    finally:
        store.close()


@pytest.mark.parametrize("path", [WALLET, OWNERS], ids=lambda path: path.stem)
def test_the_same_file_gives_the_same_bytes_on_every_run_and_hash_seed(path: Path, tmp_path: Path) -> None:
    found = []
    for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"), ("4711", "America/New_York")):
        log = tmp_path / f"{seed}.db"
        ran = outside("simulate", path, "--log", log, PYTHONHASHSEED=seed, TZ=zone)
        assert (ran.returncode, ran.stderr) == (0, "")
        found.append((logged(log), ran.stdout))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 5


def test_a_terminal_gets_colours() -> None:
    ran = outside("simulate", WALLET, FORCE_COLOR="1", TERM="xterm-256color")
    assert "\x1b[" in ran.stdout
    assert ran.returncode == 0


def test_json_files_play_like_toml_files(tmp_path: Path) -> None:
    import tomllib

    file = tmp_path / "wallet.json"
    file.write_text(json.dumps(tomllib.loads(WALLET.read_text())))
    assert standby("simulate", file, "--json").stdout == standby("simulate", WALLET, "--json").stdout

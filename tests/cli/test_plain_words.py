"""What commands say to people: once, in words, and without contradiction; misspelt names are refused."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from standby.hosts.cli.output import local_time
from tests.cli.conftest import Run
from tests.cli.logs import A, B, Made, rows, sql


def value(output: str) -> Any:
    return json.loads(output)


# ---- log, explain ----------------------------------------------------------------------------------------


def test_log_shows_the_gist_of_a_failure_and_keeps_the_evidence_for_json(run: Run, made: Made) -> None:
    only = ("log", "--type", "call_failed", "--turn", "t-limited", "--log", str(made.path))
    first, second = [line for line in run(*only).stdout.splitlines() if " call_failed " in line]
    assert first.endswith(
        "call_failed          turn=t-limited 1: HTTP 429, rate_limit_exceeded, rate_limit_error, "
        'wait 10 min 0 s "Rate limit reached"'
    )
    assert "\\" not in first + second
    assert len(second) < 250
    found = [value(line) for line in run(*only, "--json").stdout.splitlines()]
    assert [one["fact"]["evidence"]["status"] for one in found] == [429, 429]


def test_explain_puts_what_a_session_keeps_into_words(run: Run, made: Made) -> None:
    plain = run("explain", "t-limited", "--log", str(made.path)).stdout
    (story,) = [value(run("explain", "t-limited", "--json", "--log", str(made.path)).stdout)]
    (sticky,) = [one for one in story["steps"] if one["what"] == "sticky_set"]
    until = local_time(sticky["until_ms"])
    assert f"session alice stays on {B} until {until}, then {A} is tried again  [STICK-1]" in plain
    assert "session alice keeps to openai:two for openai  [PIN-2]" in plain
    assert f"the user is told that {B} answered instead of {A} because of rate_limit" in plain
    assert "session=" not in plain


def test_log_refuses_a_turn_that_is_not_there(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    refused = run("log", "--turn", "zz", *log, status=2)
    assert refused.stdout == ""
    assert "no turn 'zz'" in refused.stderr
    # A turn that is there and has nothing of the kind is no mistake.
    assert run("log", "--turn", "t-plain", "--type", "block_set", *log).stdout == ""
    assert run("log", "--turn", "t-plain", "--since", "20", *log).stdout == ""


# ---- status ----------------------------------------------------------------------------------------------


def test_status_does_not_call_a_blocked_profile_usable(run: Run, made: Made) -> None:
    plain = run("status", "--log", str(made.path)).stdout
    at = plain.splitlines().index("  anthropic:one  anthropic api_key, credential present")
    assert any("blocked   all models until" in line for line in plain.splitlines()[at : at + 3])
    assert "usable" not in plain


def test_status_says_that_a_name_was_erased(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    run("erase", "--profile", "openai:one", "--force", *log)
    (gone,) = [
        one for one in value(run("status", "--json", *log).stdout)["profiles"] if one["alias"] == one["profile"]
    ]
    plain = run("status", *log).stdout
    (line,) = [line for line in plain.splitlines() if line.startswith(f"  {gone['alias']}")]
    assert line.startswith(f"  {gone['alias']}  ")
    assert "its name was erased" in line
    assert "  ," not in line


# ---- verify ----------------------------------------------------------------------------------------------


def test_verify_says_once_what_is_wrong(run: Run, made: Made) -> None:
    with sql(made.path) as connection:
        connection.execute("UPDATE commits SET body = body || ' ' WHERE position = 5")
    done = run("verify", "--log", str(made.path), status=2)
    assert done.stdout.splitlines()[-1] == "verdict     refused at position 5"
    assert done.stderr == (
        "standby: the log is refused at position 5: its bytes or its predecessor's are not what was written "
        "(hash differs)\n"
    )
    with sql(made.path) as connection:
        connection.execute("DELETE FROM commits WHERE position = 5")
    done = run("verify", "--log", str(made.path), status=2)
    assert done.stderr == "standby: the log is refused at position 5: it is missing, position 6 follows\n"


# ---- session ---------------------------------------------------------------------------------------------

CHANGES = [("reset",), ("default",), ("unpin",), ("pin", "openai:two")]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
@pytest.mark.parametrize("name", ["alcie", "main/alice"])
def test_no_change_makes_a_session_from_a_misspelt_name(
    run: Run, made: Made, change: tuple[str, ...], name: str
) -> None:
    before = rows(made.path)
    said = run("session", change[0], name, *change[1:], "--log", str(made.path), status=2).stderr
    assert "alice" in said
    assert rows(made.path) == before


def test_selecting_may_make_a_session_and_says_so(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    assert run("session", "select", "dora", B, *log).stderr == "dora is a new session\n"
    assert run("session", "select", "dora", A, *log).stderr == ""


def test_a_model_that_no_policy_names_is_taken_with_a_note(run: Run, made: Made) -> None:
    done = run("session", "select", "alice", "nosuch/x", "--json", "--log", str(made.path))
    assert done.stderr == "no policy names nosuch/x; it is strict: no fallback\n"
    assert (value(done.stdout)["selected"], value(done.stdout)["strict"]) == ("nosuch/x", True)


# ---- auth, replay, erase ---------------------------------------------------------------------------------


def test_a_list_of_one_provider_does_not_deny_the_others(run: Run, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    assert "no credentials yet" in run("auth", "list", "nosuch", *state).stdout
    run("auth", "add", "openai", *state, input="sk-test-PLACEHOLDER-words\n")
    said = run("auth", "list", "nosuch", *state).stdout
    assert "no credentials for nosuch; there are some for: openai" in said
    assert "no credentials yet" not in said


def test_replay_before_the_first_commit_names_no_moment(run: Run, made: Made) -> None:
    log = ("--at", "0", "--log", str(made.path))
    plain = run("replay", *log).stdout
    assert "0 facts; the state before the first commit" in plain
    assert "1970" not in plain
    found = run("replay", "--json", *log).stdout
    assert value(found)["at_ms"] is None
    assert "1970" not in found


def test_a_blocked_profile_is_erased_only_with_force(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    (block,) = next(
        one["blocks"]
        for one in value(run("status", "--json", *log).stdout)["profiles"]
        if one["profile"] == "anthropic:one"
    )
    before = rows(made.path)
    warning = (
        f"anthropic:one is disabled until {local_time(block['until_ms'])} (billing); "
        "after this it counts as a new profile"
    )
    refused = run("erase", "--profile", "anthropic:one", *log, status=2)
    assert warning in refused.stderr
    assert "--force" in refused.stderr
    assert rows(made.path) == before
    done = run("erase", "--profile", "anthropic:one", "--force", *log)
    assert done.stderr == warning + "\n"
    assert "erased 1 entry" in done.stdout


def test_a_profile_without_blocks_needs_no_force(run: Run, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standby.hosts.cli.erase.wall_clock", lambda: made.end_ms + 86_400_000)
    done = run("erase", "--profile", "anthropic:one", "--log", str(made.path))
    assert (done.stderr, "erased 1 entry" in done.stdout) == ("", True)


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"standby {version('standby')}\n"

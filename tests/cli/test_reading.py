"""`standby status`, `log`, `explain`, `replay`: what they say, and that saying it writes nothing."""

import json
import re
from typing import Any

import pytest

from standby.events.decisions import CandidateSkipped, FailureClassified
from standby.hosts.cli.output import local_time
from tests.cli.conftest import Run
from tests.cli.logs import A, B, Made, commit_at, rows

READ_ONLY = [
    ("status",), ("status", "--json"), ("log",), ("log", "--json"), ("explain", "last"), ("verify",),
    ("head",), ("replay",), ("replay", "--at", "7"), ("export",), ("session", "show", "alice"),
]  # fmt: skip


@pytest.mark.parametrize("command", READ_ONLY)
def test_reading_writes_no_commit_and_prints_no_control_codes(
    run: Run, made: Made, command: tuple[str, ...]
) -> None:
    before = rows(made.path)
    output = run(*command, "--log", str(made.path)).stdout
    assert rows(made.path) == before
    assert output
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", output) is None


def values(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


# ---- status --------------------------------------------------------------------------------------------


@pytest.mark.rule("LIVE-5", "STICK-6")
def test_status_names_the_selected_model_and_the_active_fallback_with_its_cause(run: Run, made: Made) -> None:
    (found,) = values(run("status", "--json", "--session", "alice", "--log", str(made.path)).stdout)
    (alice,) = found["sessions"]
    assert alice["selected"] == A
    assert alice["active_fallback"] == {"model": B, "reason": "rate_limit"}
    assert alice["sticky"]["model"] == B
    assert {pin["profile"]: pin["by"] for pin in alice["pins"]} == {
        "anthropic:one": "automatic",
        "openai:two": "automatic",
    }
    plain = run("status", "--log", str(made.path)).stdout
    assert f"selected  {A} (default)" in plain
    assert f"active    fallback {B} because of rate_limit" in plain
    assert f"sticky    {B} until {local_time(alice['sticky']['until_ms'])}" in plain


def test_status_shows_a_strict_selection_a_users_pin_and_what_is_unfinished(run: Run, made: Made) -> None:
    (found,) = values(run("status", "--json", "--session", "carol", "--log", str(made.path)).stdout)
    (carol,) = found["sessions"]
    assert (carol["selected"], carol["source"], carol["strict"]) == (B, "user", True)
    assert carol["active_fallback"] is None
    assert {pin["profile"]: pin["by"] for pin in carol["pins"]} == {
        "anthropic:one": "automatic",
        "openai:two": "user",
    }
    (turn,) = found["unfinished"]
    assert (turn["turn"], turn["state"], turn["model"]) == (made.turns["open"], "calling", B)
    plain = run("status", "--log", str(made.path)).stdout
    assert "strict: no fallback" in plain
    assert made.turns["open"] in plain


def test_status_shows_blocks_and_until_when(run: Run, made: Made) -> None:
    state = values(run("status", "--json", "--log", str(made.path)).stdout)[0]
    profiles = {profile["profile"]: profile for profile in state["profiles"]}
    (limited,) = profiles["openai:one"]["blocks"]
    assert (limited["model"], limited["reason"], limited["kind"]) == (A, "rate_limit", "cooldown")
    assert profiles["openai:one"]["usage_stats"]["cooldownUntil"] == limited["until_ms"]
    (wallet,) = profiles["anthropic:one"]["blocks"]
    assert (wallet["model"], wallet["reason"], wallet["kind"]) == ("", "billing", "disabled")
    plain = run("status", "--log", str(made.path)).stdout
    assert f"{A} until {local_time(limited['until_ms'])}" in plain
    assert f"all models until {local_time(wallet['until_ms'])}" in plain


def test_status_shows_policy_and_head(run: Run, made: Made) -> None:
    (found,) = values(run("status", "--json", "--log", str(made.path)).stdout)
    assert found["policy"]["primary"] == A
    assert found["policy"]["ruleset"] == "2026-10"
    head = run("head", "--log", str(made.path)).stdout.strip()
    assert f"{found['head']['position']}:{found['head']['hash']}" == head
    assert values(run("head", "--json", "--log", str(made.path)).stdout) == [found["head"]]
    assert head in run("status", "--log", str(made.path)).stdout


def test_an_unknown_session_is_said_with_those_there_are(run: Run, made: Made) -> None:
    said = run("status", "--session", "nobody", "--log", str(made.path), status=2).stderr
    assert "knows no session 'nobody'" in said
    assert "alice, bob, carol" in said


# ---- log -----------------------------------------------------------------------------------------------


def test_log_shows_every_commit_with_its_decisions_and_rules(run: Run, made: Made) -> None:
    plain = run("log", "--log", str(made.path)).stdout
    found = values(run("log", "--json", "--log", str(made.path)).stdout)
    stored = rows(made.path)
    assert [one["position"] for one in found] == [row[0] for row in stored]
    assert [bytes.fromhex(one["hash"]) for one in found] == [row[2] for row in stored]
    for one in found:
        for event in (one["fact"], *one.get("decisions", ())):
            assert event["type"] in plain
            for rule in event.get("rules", ()):
                assert rule in plain
    assert "session=main/alice" in plain
    assert found[4]["at"] == "2027-01-15T08:00:00.250Z"
    assert found[4]["at_ms"] == 1_800_000_000_250


def positions(run: Run, made: Made, *filters: str) -> list[int]:
    return [one["position"] for one in values(run("log", "--json", *filters, "--log", str(made.path)).stdout)]


def test_log_filters(run: Run, made: Made) -> None:
    every = [(at, commit_at(made.path, at)) for at, _, _ in rows(made.path)]

    def where(test: Any) -> list[int]:
        return [at for at, commit in every if test(commit)]

    turn = made.turns["limited"]
    of_turn = where(lambda commit: getattr(commit.fact, "turn", "") == turn)
    assert len(of_turn) == 4
    assert positions(run, made, "--turn", turn) == of_turn
    assert positions(run, made, "--turn", turn[:6]) == of_turn
    assert "no turn" in run("log", "--turn", turn[2:], "--log", str(made.path), status=2).stderr
    alices = {made.turns[name] for name in ("plain", "limited", "sticky")}
    assert positions(run, made, "--session", "alice") == where(lambda c: getattr(c.fact, "turn", "") in alices)
    classified = where(lambda c: any(isinstance(d, FailureClassified) for d in c.decisions))
    assert positions(run, made, "--type", "failure_classified") == classified
    skipped = where(lambda c: any(isinstance(d, FailureClassified | CandidateSkipped) for d in c.decisions))
    assert positions(run, made, "--type", "failure_classified", "--type", "candidate_skipped") == skipped
    late = where(lambda c: c.at_ms >= made.end_ms - 600)
    assert 0 < len(late) < len(every)
    assert positions(run, made, "--since", str(made.end_ms - 600)) == late
    assert positions(run, made, "--since", local_time(made.end_ms - 600)) == late
    assert positions(run, made, "--since", "12") == [at for at, _ in every if at >= 12]
    assert positions(run, made, "--last", "3") == [at for at, _ in every][-3:]
    by_profile = positions(run, made, "--profile", "google:one")
    assert 3 in by_profile
    assert 0 < len(by_profile) < len(every) / 2
    assert positions(run, made, "--turn", turn, "--type", "turn_answered") == of_turn[-1:]


def test_a_misspelt_type_gets_a_hint(run: Run, made: Made) -> None:
    said = run("log", "--type", "turn", "--log", str(made.path), status=2).stderr
    assert "turn_requested" in said
    assert "block_set" not in said
    assert "is no moment" in run("log", "--since", "soon", "--log", str(made.path), status=2).stderr


# ---- explain -------------------------------------------------------------------------------------------


@pytest.mark.rule("OBS-1", "OURS-12")
def test_explain_tells_each_attempt_with_reason_row_and_rules(run: Run, made: Made) -> None:
    (story,) = values(run("explain", made.turns["limited"], "--json", "--log", str(made.path)).stdout)
    assert (story["selected"], story["answered_by"], story["session"]) == (A, B, "alice")
    assert [one["model"] for one in story["chain"]] == [A, B, "google/gamma"]
    steps = story["steps"]
    attempts = [(one["model"], one["profile"]) for one in steps if one["what"] == "attempt_started"]
    assert attempts == [(A, "openai:one"), (A, "openai:two"), (B, "anthropic:one")]
    failed = [one for one in steps if one["what"] == "call_failed"]
    assert [one["status"] for one in failed] == [429, 429]
    assert failed[0]["waits"] == [{"from": "retry-after", "wait_ms": 600_000, "ignored": False}]
    assert "Rate limit reached" in failed[0]["said"]
    read = [one for one in steps if one["what"] == "failure_classified"]
    assert [one["reason"] for one in read] == ["rate_limit", "rate_limit"]
    assert all(one["row"] and one["lost"] for one in read)
    assert all(one.get("rules") for one in steps if one["what"] not in ("call_failed", "call_succeeded"))
    # Whatever rule a step names is told in words.
    named = {rule for one in steps for rule in one.get("rules", ())} | set(story["chain_rules"])
    assert set(story["rules"]) == named
    assert all(story["rules"].values())


def test_explain_says_the_same_to_people(run: Run, made: Made) -> None:
    (story,) = values(run("explain", made.turns["limited"], "--json", "--log", str(made.path)).stdout)
    plain = run("explain", made.turns["limited"], "--log", str(made.path)).stdout
    for step in story["steps"]:
        for rule in step.get("rules", ()):
            assert rule in plain
        if step["what"] == "failure_classified":
            assert f"row {step['row']} won" in plain
            assert all(lost in plain for lost in step["lost"])
    assert "stated a wait of 10 min 0 s (retry-after)" in plain
    assert f"blocks openai:one for {A} until" in plain
    assert story["told"][0]["text"].startswith(f"↪️ Model Fallback: {B} (selected {A}")
    assert story["told"][0]["text"] in plain
    assert all(words in plain for words in story["rules"].values())
    why = plain.splitlines()[-1]
    assert why == "Why  " + story["why"]
    assert f"{A} failed 2 times (rate_limit)" in why
    assert f"{B} answered, because it was the next candidate" in why


def test_explain_tells_waits(run: Run, made: Made) -> None:
    (story,) = values(run("explain", made.turns["busy"], "--json", "--log", str(made.path)).stdout)
    (wait,) = [one for one in story["steps"] if one["what"] == "retry_scheduled"]
    assert story["waited_ms"] == wait["until_ms"] - wait["at_ms"] > 0
    assert (wait["reason"], wait["retry"]) == ("overloaded", 1)
    plain = run("explain", made.turns["busy"], "--log", str(made.path)).stdout
    assert f"retry 1 of {wait['of']} because of overloaded" in plain
    assert f"{A} answered when it was tried again, because it is the selected model" in plain


@pytest.mark.rule("OURS-12", "OBS-4", "OURS-10")
def test_explain_tells_why_nobody_answered_and_when_somebody_can(run: Run, made: Made) -> None:
    (story,) = values(run("explain", made.turns["none"], "--json", "--log", str(made.path)).stdout)
    skipped = [one for one in story["steps"] if one["what"] == "candidate_skipped"]
    assert [one["because"] for one in skipped] == ["cooldown"] * 3
    assert all(one["until_ms"] > one["at_ms"] for one in skipped)
    assert story["outcome"] == "failed"
    assert story["soonest_ms"] in [one["until_ms"] for one in skipped if one["model"] == story["soonest_model"]]
    plain = run("explain", made.turns["none"], "--log", str(made.path)).stdout
    for one in skipped:
        assert f"passed over {one['model']}: cooldown, last reason {one['reason']}" in plain
        assert local_time(one["until_ms"]) in plain
    assert f"{story['soonest_model']} at {local_time(story['soonest_ms'])}" in plain
    assert story["told"][-1]["text"] in plain


def test_explain_an_unfinished_turn_and_a_sticky_one(run: Run, made: Made) -> None:
    plain = run("explain", made.turns["open"], "--log", str(made.path)).stdout
    assert "unfinished" in plain
    assert plain.splitlines()[-1].endswith(f"{B} is being called.")
    plain = run("explain", made.turns["sticky"], "--log", str(made.path)).stdout
    assert f"{B} went first, since the session still stayed on it" in plain
    assert plain.splitlines()[-1].endswith("because the session stays on this fallback for a while.")


def test_explain_takes_a_beginning_or_last(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    whole = run("explain", made.turns["limited"], *log).stdout
    assert run("explain", "t-lim", *log).stdout == whole
    assert run("explain", "last", *log).stdout == run("explain", made.turns["none"], *log).stdout
    said = run("explain", "t-", *log, status=2).stderr
    assert f"stands for {len(made.turns)} turns" in said
    assert "no turn 'x'" in run("explain", "x", *log, status=2).stderr


# ---- replay --------------------------------------------------------------------------------------------


@pytest.mark.invariant(10)
def test_replay_gives_what_a_live_process_sees_from_a_checkpoint(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    plain = run("replay", *log).stdout
    assert f"{len(rows(made.path))} facts; the rebuilt projections equal the live ones" in plain
    rebuilt = run("replay", "--rebuild", *log).stdout
    assert "equal the live ones" in rebuilt
    assert "there was none, one is written at position" in rebuilt
    assert "dropped" not in rebuilt
    # Now the live view comes from the checkpoint, the replayed one from facts.
    (found,) = values(run("replay", "--json", *log).stdout)
    assert found["equal"] is True
    assert "1 dropped" in run("replay", "--rebuild", *log).stdout


def test_replay_shows_the_state_as_it_was(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    at = positions(run, made, "--turn", made.turns["limited"])
    (before,) = values(run("replay", "--at", str(at[0]), "--json", *log).stdout)
    (after,) = values(run("replay", "--at", str(at[-1]), "--json", *log).stdout)
    assert before["head"]["position"] == at[0]
    assert before["head"]["hash"] == rows(made.path)[at[0] - 1][2].hex()

    def alice(state: Any) -> Any:
        return next(one for one in state["sessions"] if one["session"] == "alice")

    assert alice(before)["active_fallback"] is None
    assert alice(after)["active_fallback"] == {"model": B, "reason": "rate_limit"}
    assert not any(profile["blocks"] for profile in before["profiles"])
    timestamp = commit_at(made.path, at[-1]).at_ms
    by_time = values(run("replay", "--at", str(timestamp), "--json", *log).stdout)[0]
    assert by_time["at_ms"] == timestamp
    assert by_time["head"]["position"] > at[-1], "the next turn began in the same millisecond"
    assert alice(by_time) == {**alice(after), "last_turn": made.turns["sticky"]}
    assert "the state at " + local_time(timestamp) in run("replay", "--at", local_time(timestamp), *log).stdout


def test_replay_says_what_cannot_be(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    assert "the log ends at position" in run("replay", "--at", "999", *log, status=2).stderr
    assert "leave --at away" in run("replay", "--at", "3", "--rebuild", *log, status=2).stderr

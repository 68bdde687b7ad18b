"""The demo: what it meets, what it shows, and that a changed reply changes its course."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from standby.engine.verify import verify
from standby.events.errors import BadInput, BadScript
from standby.events.sqlite import SQLiteStore
from standby.hosts.demo import demo_command
from standby.hosts.demo.play import conversation, play
from standby.hosts.demo.steps_shown import Stage
from standby.hosts.scripted.script import parse

SCRIPT = files("standby.hosts.demo").joinpath("script.toml").read_text("utf-8")


class Played(NamedTuple):
    """What a demo printed as JSON."""

    lines: list[dict[str, Any]]
    log: Path

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == kind]

    def events(self, turn: int) -> list[str]:
        """Types of the decisions that were shown for a turn."""
        shown, at = [], 0
        for line in self.lines:
            at = line["turn"] if line["kind"] == "say" else at
            if line["kind"] == "event" and at == turn:
                shown.append(line["event"]["type"])
        return shown


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The whole demo, once, in a process of its own."""
    log = tmp_path_factory.mktemp("demo") / "kept.db"
    program = "import typer; from standby.hosts.demo import demo_command; typer.run(demo_command)"
    done = subprocess.run(
        [sys.executable, "-c", program, "--json", "--log", str(log)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    return Played([msgspec.json.decode(line) for line in done.stdout.splitlines()], log)


def test_every_turn_is_answered_by_the_model_that_the_script_leaves(played: Played) -> None:
    models = [line["model"].partition("/")[0] for line in played.kinds("answer")]
    assert models == ["openai"] * 3 + ["anthropic", "openai"] + ["anthropic"] * 2 + ["openai"]


def test_it_meets_what_it_promises(played: Played) -> None:
    assert played.events(2) == [
        "attempt_started",
        "failure_classified",
        "block_set",
        "retry_scheduled",
        "attempt_started",
        "block_cleared",
    ]
    assert played.events(3).count("attempt_started") == 2
    assert played.events(4).count("retry_scheduled") == 2
    assert "chain_advanced" in played.events(4)
    assert "sticky_set" in played.events(6)
    assert "sticky_set" in played.events(7)
    assert "chain_advanced" not in played.events(7)
    assert played.events(8)[0] == "sticky_ended"
    reasons = [line["event"]["reason"] for line in played.lines if "failure_classified" in str(line)]
    assert reasons == ["rate_limit", "billing", "overloaded", "overloaded", "overloaded", "rate_limit"]


def test_notices_come_and_go(played: Played) -> None:
    told = [line["text"] for line in played.kinds("notice")]
    went, came = "↪️ Model Fallback: anthropic/claude-demo", "↪️ Model Fallback cleared: openai/gpt-demo"
    assert [text.startswith(start) for text, start in zip(told, (went, came) * 2, strict=True)] == [True] * 4


def test_it_waits_as_long_as_it_says_and_not_longer_than_a_quarter_of_a_minute_or_so(played: Played) -> None:
    status = [line["text"] for line in played.kinds("status")]
    assert "Retrying… 2/16 (in 2 s)" in status
    assert "Trying fallback model…" in status
    assert 8 < played.lines[-1]["seconds"] < 40


def test_it_ends_with_stats_usage_and_the_proof(played: Played) -> None:
    (stats,) = played.kinds("usage_stats")
    assert stats["stats"]["openai:work"]["disabledReason"] == "billing"
    (usage,) = played.kinds("usage")
    assert usage["calls"] == 8
    assert float(usage["cost"]) > 0
    (verified,) = played.kinds("verified")
    assert verified["holds"]
    assert verified["decisions"] > 40


def test_the_log_is_kept_where_it_says(played: Played) -> None:
    assert played.kinds("start")[0]["log"] == str(played.log)
    store = SQLiteStore(played.log, create=False)
    report = verify(store.read(), side_entry=store.side_entry, side_entries=store.side_entries())
    store.close()
    assert report.holds
    assert report.commits == played.kinds("verified")[0]["commits"]


def beginning(tmp_path: Path, change: Callable[[str], str], *, as_json: bool = True) -> tuple[Played, str]:
    """The first three turns with a changed script."""
    out = io.StringIO()
    log = tmp_path / "log.db"
    with redirect_stdout(out), Stage(as_json=as_json) as stage:
        assert play(log, stage, parse(change(SCRIPT)), conversation()[:3]).holds
    said = out.getvalue()
    return Played([msgspec.json.decode(line) for line in said.splitlines()] if as_json else [], log), said


def test_a_changed_reply_changes_the_course(tmp_path: Path) -> None:
    changed, _ = beginning(tmp_path, lambda text: text.replace("{ status = 429,", '{ kind = "bad_key" }, {', 1))
    assert "retry_scheduled" not in changed.events(2)
    reasons = [line["event"]["reason"] for line in changed.lines if "failure_classified" in str(line)]
    assert reasons[0] == "auth"


def test_a_turn_that_fails_is_told_and_the_demo_goes_on(tmp_path: Path) -> None:
    broken, _ = beginning(tmp_path, lambda text: '[default]\nkind = "bad_request"\n')
    assert len(broken.kinds("failure")) == 3
    assert broken.kinds("answer") == []


def test_a_terminal_gets_colours_and_a_line_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    _, said = beginning(tmp_path, str, as_json=False)
    assert "\x1b[31mfailed" in said
    assert "Retrying… 2/16 (in 2 s)" in said
    assert "Retrying…" not in said.rpartition("\x1b[2K")[2]


def test_piped_output_is_plain_and_aligned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    _, said = beginning(tmp_path, str, as_json=False)
    lines = said.splitlines()
    assert "\x1b" not in said
    assert any(line[8:16] == "answer  " for line in lines)
    assert any(line[8:16] == "wait    " and "try 2 of 16" in line for line in lines)
    assert lines[-1].startswith("Verified: ")
    assert lines[-1].endswith("decisions recomputed, all agree.")


def test_it_writes_on_no_log_that_exists(tmp_path: Path) -> None:
    there = tmp_path / "there.db"
    there.write_bytes(b"mine")
    with pytest.raises(BadInput, match="exists already"):
        demo_command(log=there)
    assert there.read_bytes() == b"mine"


def test_a_wrong_script_is_refused_before_anything_begins(tmp_path: Path) -> None:
    script = tmp_path / "script.toml"
    script.write_text("[[lane]]\nmodle = 1\n")
    with pytest.raises(BadScript, match="did you mean 'model'"):
        demo_command(log=tmp_path / "log.db", script=script)
    assert not (tmp_path / "log.db").exists()

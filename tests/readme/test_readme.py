"""The README is true: its Python runs, its policy is one, and its commands run as printed, in order."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import standby
from standby.hosts.settings import parse_settings

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def test_the_embedding_example_runs_and_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = next(text for text in blocks("python") if "start_turn" in text)
    body = code.split("with standby.open", 1)[1]
    assert len(body.splitlines()) <= 20
    calls: list[tuple[str, str]] = []

    def call(model: str, profile: str) -> tuple[int, dict[str, str], str]:
        calls.append((model, profile))
        if model.startswith("openai/"):
            return 402, {}, '{"error": {"code": "insufficient_quota", "message": "no credit"}}'
        return 200, {}, "fine"

    exec(compile(code, "README", "exec"), {"call": call})
    assert calls == [
        ("openai/gpt-5", "openai:a"),
        ("openai/gpt-5", "openai:b"),
        ("anthropic/claude-sonnet-4-5", "anthropic:a"),
    ]
    printed = capsys.readouterr().out
    assert printed.startswith("anthropic/claude-sonnet-4-5 ['↪️ Model Fallback: anthropic/claude-sonnet-4-5")


def test_the_runner_example_names_what_there_is() -> None:
    code = next(text for text in blocks("python") if "Runner(" in text)
    compile(code, "README", "exec")
    from standby.hosts.runner import Runner

    parameters = Runner.run.__annotations__
    assert {"session", "prompt", "on_notice"} <= set(parameters)


def test_the_policy_is_one() -> None:
    (text,) = blocks("toml")
    settings = parse_settings(text)
    assert settings.policy.models.primary == "openai/gpt-5"
    assert settings.policy.recovery.max_retry_delay_ms == 30_000
    assert tomllib.loads(text)["standby"]["stickiness"]["idleMs"] == settings.policy.stickiness.idle_ms


COMMANDS = [
    line.removeprefix("$ ").split("#")[0].strip() for text in blocks("console") for line in text.splitlines()
]


def test_all_commands_run_as_printed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    ours = [command for command in COMMANDS if command.startswith("standby ")]
    assert len(ours) >= 10
    for command in ours:
        words = [sys.executable, "-m"]
        for word in shlex.split(command):  # a shell would do this
            words += sorted(map(str, tmp_path.glob(word))) if "*" in word else [word]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout.strip(), command
        if "explain" in command:
            assert "answered" in done.stdout
        if "verify" in command:
            assert "agree" in done.stdout


def test_the_other_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    said = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", README))
    assert said <= targets
    assert {"demo", "test"} <= said


def test_the_command_table_is_complete() -> None:
    from standby.hosts.cli.app import app

    table = README.split("## Commands", 1)[1].split("## ", 1)[0]
    named = set(
        re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    there: set[Any] = {command.name for command in app.registered_commands}
    there |= {group.name for group in app.registered_groups}
    assert named == there


def test_every_name_that_the_door_example_imports_is_in_the_door() -> None:
    imported = re.search(r"from standby import \(?([^)]*?)\)?\n\n", README)
    assert imported is not None
    names = set(re.findall(r"\w+", imported[1]))
    assert {"Settled", "Failed"} <= names <= set(standby.__all__)

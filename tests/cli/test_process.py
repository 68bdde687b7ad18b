"""The command as its users start it: a process of its own, pipes, signals, a terminal, another writer."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from standby.events.sqlite import SQLiteStore
from tests.cli.logs import Made, rows
from tests.harness import World

COMMAND = [sys.executable, "-m", "standby"]


def environment(**more: str) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def started(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        env=environment(**more),
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_the_log_comes_from_the_environment(made: Made) -> None:
    done = started("verify", STANDBY_LOG=str(made.path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith("holds")


def test_the_default_log_is_in_the_users_data_folder(tmp_path: Path) -> None:
    done = started("status", XDG_DATA_HOME=str(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert "standby.db" in done.stderr


def test_a_refusal_is_a_message_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of ours\n" * 20)
    done = started("verify", "--log", str(tmp_path / "notes.txt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("standby: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["verify", "--nonsense"], ["explain"], ["log", "--last", "x"]]
)
def test_misuse_is_status_2(arguments: Sequence[str]) -> None:
    done = started(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_piped_line_is_never_wrapped(made: Made) -> None:
    done = started("log", "--log", str(made.path), COLUMNS="40")
    assert max(map(len, done.stdout.splitlines())) > 200
    assert sum(line[:6].strip().isdigit() for line in done.stdout.splitlines()) == len(rows(made.path))


def test_a_terminal_without_the_letters_gets_their_numbers(made: Made) -> None:
    done = started("explain", "t-limited", "--log", str(made.path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\u21aa" in done.stdout


PIPES = [(["export"], "1"), (["export"], ""), (["head"], ""), (["head", "--json"], "")]
"""Output that goes out as it is written, in blocks, line by line, and at the very end."""


@pytest.mark.parametrize(("command", "unbuffered"), PIPES)
def test_a_reader_that_goes_away_is_no_accident(made: Made, command: list[str], unbuffered: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, *command, "--log", str(made.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED=unbuffered),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert said == ""


def test_following_shows_what_another_process_writes_and_ends_with_130(made: Made) -> None:
    process = subprocess.Popen(
        [*COMMAND, "log", "--follow", "--json", "--type", "turn_requested", "--log", str(made.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        before = [json.loads(process.stdout.readline()) for _ in made.turns]
        assert [one["fact"]["turn"] for one in before] == list(made.turns.values())
        world = World(store=SQLiteStore(made.path), instance="other", now_ms=made.end_ms)
        world.turn("zoe", turn="t-followed")
        world.service.close()
        line = json.loads(process.stdout.readline())
        assert line["fact"]["turn"] == "t-followed"
        assert "main/zoe" in line["names"].values()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in said
    finally:
        process.kill()
        process.wait()


def test_reading_goes_on_while_another_process_writes(made: Made) -> None:
    store = SQLiteStore(made.path)
    with store.transaction():
        for command in (["status"], ["log"], ["verify"], ["explain", "last"], ["replay"], ["head"]):
            done = started(*command, "--log", str(made.path))
            assert (done.returncode, done.stderr) == (0, ""), command
    store.close()


def on_a_terminal(*arguments: str) -> str:
    """What a terminal gets to see, both streams together."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment(TERM="xterm-256color"),
    )
    os.close(terminal)
    seen = b""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        ready, _, _ = select.select([controller], [], [], 1)
        if not ready:
            continue
        try:
            part = os.read(controller, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    process.wait(timeout=60)
    os.close(controller)
    assert process.returncode == 0
    return seen.decode()


def test_a_terminal_gets_colours_and_progress(made: Made) -> None:
    seen = on_a_terminal("verify", "--log", str(made.path))
    assert "\x1b[1;32mholds\x1b[0m" in seen
    assert "verifying" in seen
    assert "fallback anthropic/beta because of rate_limit" in on_a_terminal("status", "--log", str(made.path))

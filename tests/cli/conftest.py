"""Logs and a runner for tests of commands."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from standby.hosts.cli.app import app
from tests.cli.logs import Made, make_log
from tests.harness import START_MS

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The log that others are copied from; nobody writes to it."""
    return make_log(tmp_path_factory.mktemp("log") / "original.db")


@pytest.fixture
def made(original: Made, tmp_path: Path) -> Made:
    """A copy to do anything with."""
    copy = Made(tmp_path / "standby.db")
    shutil.copyfile(original.path, copy.path)
    copy.turns, copy.end_ms = original.turns, original.end_ms
    return copy


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in this process; no variable of the machine reaches it."""
    for name in ("STANDBY_LOG", "STANDBY_POLICY", "STANDBY_STATE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for module in ("erase", "replay", "session", "status"):
        # The log is of one day; questions about "now" are asked on that day.
        monkeypatch.setattr(f"standby.hosts.cli.{module}.wall_clock", lambda: START_MS + 60_000)

    def invoke(*arguments: str, input: str | None = None, status: int = 0) -> Result:
        result = CliRunner().invoke(app, arguments, input=input, catch_exceptions=False)
        assert result.exit_code == status, result.output
        return result

    return invoke

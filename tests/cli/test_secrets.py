"""No secret comes out of any command: not from a credential, not from what a provider quoted (invariant 12)."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.logs import KEPT_SECRET, PLANTED, Made

OF_STORE = "sk-test-PLACEHOLDER-stored-credential-000"


@pytest.mark.invariant(12)
def test_a_planted_secret_comes_out_nowhere(run: Run, made: Made, tmp_path: Path) -> None:
    log, state = ("--log", str(made.path)), ("--state", str(tmp_path / "state"))
    outputs = {"add": run("auth", "add", "openai", "--name", "one", *state, input=OF_STORE).output}
    commands: list[tuple[str, ...]] = [
        ("status",), ("log",), ("explain", "t-limited"), ("verify",), ("replay",), ("session", "show", "alice"),
    ]  # fmt: skip
    for command in commands:
        outputs[" ".join(command)] = run(*command, *log).output
        outputs[" ".join((*command, "--json"))] = run(*command, "--json", *log).output
    outputs["export"] = run("export", *log).output
    outputs["export with names"] = run("export", "--with-names", *log).output
    outputs["list"] = run("auth", "list", *state).output
    outputs["list in JSON"] = run("auth", "list", "--json", *state).output
    outputs["twice"] = run("auth", "add", "openai", "--name", "one", *state, input=OF_STORE, status=2).output
    tables = tmp_path / "tables.db"
    outputs["tables"] = run("export", "--with-names", "--sqlite", str(tables), *log).output
    outputs["remove"] = run("auth", "remove", "openai:one", *state, *log).output
    # The place was looked at: what the provider said around the secret is there.
    assert "Incorrect API key provided" in outputs["explain t-limited"]
    assert "Incorrect API key provided" in outputs["export with names"]
    for secret in (PLANTED, KEPT_SECRET, OF_STORE):
        assert [name for name, output in outputs.items() if secret in output] == []
        for file in (made.path, tables):
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            assert secret.encode() not in file.read_bytes()
    # The store alone holds it, as long as it is there.
    (store,) = (tmp_path / "state").rglob("*.sqlite")
    assert OF_STORE.encode() not in store.read_bytes()


def test_a_text_cannot_move_the_cursor(run: Run, made: Made) -> None:
    run("session", "select", "\x1b[2Jevil\nline\u202e", "openai/alpha", "--log", str(made.path))
    for command in (("status",), ("log",), ("session", "show", "\x1b[2Jevil\nline\u202e")):
        output = run(*command, "--log", str(made.path)).stdout
        assert "\x1b" not in output
        assert "\u202e" not in output
        assert "\\x1b[2Jevil\\nline\\u202e" in output or "\\u001b[2Jevil\\nline" in output

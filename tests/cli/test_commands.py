"""Every command there is: it explains itself, it speaks JSON, and it is mounted."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from standby.hosts.cli.app import app
from tests.cli.conftest import Run

EXPECTED = {
    "auth add", "auth list", "auth order clear", "auth order set", "auth order show", "auth remove",
    "classify", "demo", "erase", "explain", "export", "head", "log", "replay", "run",
    "session default", "session pin", "session reset", "session select", "session show", "session unpin",
    "simulate", "status", "verify",
}  # fmt: skip


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path), command
        return
    for name, one in below.items():
        yield from commands(one, (*path, name))


ALL = dict(commands(get_command(app)))


def test_all_are_mounted() -> None:
    assert set(ALL) == EXPECTED


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_explains_itself_and_speaks_json(run: Run, name: str) -> None:
    command = ALL[name]
    assert any("--json" in option.opts for option in command.params), name
    helped = run(*name.split(), "--help").stdout
    assert command.help.splitlines()[0][:40] in " ".join(helped.split())
    # No key may be an argument: what a shell remembers is no place for it.
    assert not any("--key" in option.opts for option in command.params)

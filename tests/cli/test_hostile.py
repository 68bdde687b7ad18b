"""Input that no user types by intent: each ends in one clear line and status 2, never in a traceback."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from standby.events.codec import decode, link
from standby.events.errors import BadInput, DamagedLog
from standby.events.sqlite import SQLiteStore
from standby.hosts.cli import app as boundary
from tests.cli.conftest import Run
from tests.cli.logs import Made, rows
from tests.cli.test_process import COMMAND, environment
from tests.harness import World

NO_TEXT = "name-\udcff"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
HUGE = "9" * 5000


def process(
    *arguments: str, given: bytes = b"", cwd: Path | None = None, more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=given,
        capture_output=True,
        env=environment(**(more or {})),
        timeout=60,
        check=False,
        cwd=cwd,
    )


def refused(done: subprocess.CompletedProcess[bytes]) -> str:
    """What it said, which has to be one line."""
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), said
    assert "Traceback" not in said
    assert said.startswith("standby")
    assert said.count("\n") == 1
    return said


# ---- arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "--turn", NO_TEXT),
        ("explain", NO_TEXT),
        ("session", "select", NO_TEXT, "alpha/one"),
        ("session", "pin", "ann", NO_TEXT),
        ("auth", "list", NO_TEXT),
        ("run", "hello", "--system", NO_TEXT),
        ("--version", NO_TEXT),
    ],
)
def test_an_argument_that_is_not_text_is_named(arguments: tuple[str, ...]) -> None:
    said = refused(process(*arguments))
    assert "the argument name-\\udcff is not utf-8 text" in said


def test_a_locale_without_letters_is_named_as_the_reason() -> None:
    said = refused(process("session", "show", "café", more=ASCII))
    assert "is not ascii text" in said
    assert "LC_ALL=C.UTF-8" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "--since", "0001-01-01"),
        ("log", "--since", HUGE),
        ("log", "--since", HUGE + "d"),
        ("replay", "--at", HUGE),
    ],
)
def test_a_moment_beyond_the_calendar_is_no_moment(run: Run, made: Made, arguments: tuple[str, ...]) -> None:
    said = run(*made.args(*arguments), status=2).stderr
    assert said.count("\n") == 1
    assert "is no moment; give a date and time" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("log", "--last", "99999999999999999999"), "--last"),
        (("run", "hello", "--timeout", "1e400"), "--timeout"),
        (("run", "hello", "--timeout", "1e300"), "--timeout"),
    ],
)
def test_a_number_out_of_range_is_misuse(run: Run, made: Made, arguments: tuple[str, ...], option: str) -> None:
    said = run(*made.args(*arguments), status=2).stderr
    assert f"Invalid value for '{option}'" in said
    assert "less than or equal to" in said


# ---- standard input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, ASCII])
def test_a_key_that_is_not_text_is_not_stored_and_not_shown(tmp_path: Path, more: dict[str, str]) -> None:
    state = ("--state", str(tmp_path))
    said = refused(process("auth", "add", "openai", *state, given=b"sk-test-PLACEHOLDER\xff\xfe\n", more=more))
    assert said == "standby: the key on standard input is not UTF-8 text (at byte 20); send it as UTF-8\n"
    kept = [one for one in tmp_path.rglob("*") if one.is_file() and b"PLACEHOLDER" in one.read_bytes()]
    assert kept == []


def test_a_prompt_that_is_not_text_is_not_asked(tmp_path: Path) -> None:
    said = refused(process("run", "--log", str(tmp_path / "l.db"), "--model", "openai/x", given=b"\xff\xfe"))
    assert "what is piped in is not UTF-8 text" in said


# ---- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"\\ud800": 1}', '{"title": "\\udfff"}'])
def test_half_a_character_in_a_scenario_is_named(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "half.json").write_text(text)
    assert "stands for half a character" in run("simulate", str(tmp_path / "half.json"), status=2).stderr


def test_whole_characters_in_escapes_are_none_of_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "whole.json").write_text('{"title": "\\ud83d\\ude00", "nonsense": 1}')
    said = run("simulate", str(tmp_path / "whole.json"), status=2).stderr
    assert "half a character" not in said
    assert "nonsense" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [("a=" + "[" * 20_000, "it is nested too deeply"), ("a=" + HUGE, "a value of it cannot be used")],
)
def test_a_script_of_the_demo_is_read_with_care(run: Run, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "script.toml").write_text(text)
    assert said in run("demo", "--script", str(tmp_path / "script.toml"), status=2).stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file here")
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hello", "--policy", "/dev/zero"),
        ("simulate", "/dev/zero"),
        ("demo", "--script", "/dev/zero"),
        ("classify", "--status", "500", "--extra-rows", "/dev/zero"),
    ],
)
def test_no_file_is_read_without_end(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    limited = f"ulimit -v 2000000; exec {sys.executable} -m standby {' '.join(arguments)}"
    done = subprocess.run(
        ["sh", "-c", limited],
        capture_output=True,
        env=environment(XDG_DATA_HOME=str(tmp_path)),
        timeout=60,
        check=False,
    )
    assert "/dev/zero: this file is larger than" in refused(done)


def test_rows_nested_too_deeply_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('[{"id": "x", "nonsense": ' + "[" * 200_000)
    said = run("classify", "--status", "500", "--extra-rows", str(tmp_path / "rows.json"), status=2).stderr
    assert "cannot be used" in said


# ---- the boundary ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UnicodeDecodeError("utf-8", b"key-PLACEHOLDER\xff", 15, 16, "bad"), "a text is not valid Unicode"),
        (OverflowError("PLACEHOLDER"), "a number is too large"),
        (RecursionError("PLACEHOLDER"), "something is nested too deeply"),
        (ValueError("PLACEHOLDER"), "a value is impossible"),
    ],
)
def test_what_no_check_foresaw_is_still_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("standby.hosts.cli.status.open_log", fail)
    said = run("status", status=2).stderr
    assert said.startswith(f"standby status: {words}; check what was given")
    assert "PLACEHOLDER" not in said
    monkeypatch.setenv("STANDBY_DEBUG", "1")
    with pytest.raises(type(error)):
        run("status")


def test_a_fault_of_our_own_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import standby.hosts.core as core\n"
        "def load_view(*a, **k):\n    raise KeyError('PLACEHOLDER')\n"
        "core.load_view = load_view\n"
    )
    path = tmp_path / "l.db"
    SQLiteStore(path).close()
    where = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    said = refused(process("status", "--log", str(path), more={"PYTHONPATH": where}))
    assert said == "standby: a fault in standby itself (KeyError); STANDBY_DEBUG=1 shows it\n"
    shown = process("status", "--log", str(path), more={"PYTHONPATH": where, "STANDBY_DEBUG": "1"}).stderr
    assert b"KeyError: 'PLACEHOLDER'" in shown


def test_every_refusal_is_a_kind_of_what_the_boundary_knows() -> None:
    assert not issubclass(BadInput, ValueError)  # else a clear message would be lost
    assert [kind for kind, _ in boundary._UNFORESEEN][-1] is ValueError  # the widest comes last


# ---- output ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["status", "log", "log --json", "export", "explain last", "classify --rows"]
)
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_a_closed_output_is_nothing_to_complain_about(made: Made, command: str, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m standby {command} {closed}"],
        capture_output=True,
        env=environment(STANDBY_LOG=str(made.path)),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("command", ["head", "export"])
def test_a_full_disk_is_said_in_a_line(made: Made, command: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, command],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(STANDBY_LOG=str(made.path)),
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("locale", [ASCII, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}])
@pytest.mark.parametrize("command", [("export", "--with-names"), ("log", "--json"), ("status", "--json")])
def test_json_is_utf_8_in_every_locale(
    tmp_path: Path, locale: dict[str, str], command: tuple[str, ...]
) -> None:
    world = World(store=SQLiteStore(tmp_path / "l.db"))
    world.turn("zoë-\N{GRINNING FACE}", turn="t-letters")
    world.service.close()
    done = process(*command, "--log", "l.db", cwd=tmp_path, more=locale)
    assert (done.returncode, done.stderr) == (0, b"")
    for line in done.stdout.decode("utf-8").splitlines():
        json.loads(line)
    assert "zoë-\N{GRINNING FACE}" in done.stdout.decode("utf-8")


# ---- the log ---------------------------------------------------------------------------------------------

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "reading":
    connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM commits").fetchone()
print("ready", flush=True)
sys.stdin.read()
"""


def found_on_disk(path: Path, word: bytes) -> list[str]:
    """The files of a log that hold a word. Read by a process of its own: see `_inspect`."""
    files = sorted(str(one) for one in path.parent.glob(path.name + "*"))
    found = subprocess.run(["grep", "-la", word, *files], capture_output=True, text=True, check=False)
    return [name.removeprefix(str(path)) for name in found.stdout.split()]


def held_log(path: Path, how: str) -> subprocess.Popen[str]:
    """A log with a name in its write-ahead file, and a process that has it open."""
    world = World(store=SQLiteStore(path))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), "open"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    world.turn("mallory", turn="t-erased")
    if how == "reading":
        holder.communicate()
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), "reading"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        holder.stdout.readline()
    world.service.close()
    return holder


def test_what_was_erased_is_gone_while_others_have_the_log_open(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    holder = held_log(path, "open")
    try:
        assert "-wal" in found_on_disk(path, b"mallory")
        done = run("erase", "--session", "mallory", "--log", str(path), "--json")
        assert json.loads(done.stdout)["scrubbed"] is True
        assert done.stderr == ""
        assert found_on_disk(path, b"mallory") == []
    finally:
        holder.communicate()


def test_a_reader_that_holds_old_pages_is_told_of(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    holder = held_log(path, "reading")
    try:
        done = run("erase", "--session", "mallory", "--log", str(path))
        assert "other processes are still reading" in done.stderr
        assert "until the next checkpoint" in done.stderr
        assert "erased 1 entry" in done.stdout
        assert "-wal" in found_on_disk(path, b"mallory")
    finally:
        holder.communicate()
    store = SQLiteStore(path)
    assert store.scrub()
    assert found_on_disk(path, b"mallory") == []
    store.close()


NESTED = b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b',"shape":1}'


def test_nested_bytes_are_a_damaged_commit_at_their_position() -> None:
    with pytest.raises(DamagedLog, match="position 7 is not a readable commit") as caught:
        decode(NESTED, 7)
    assert caught.value.position == 7


@pytest.mark.parametrize("command", ["verify", "status", "log", "replay"])
def test_a_log_that_ends_in_nested_bytes_is_refused(run: Run, made: Made, command: str) -> None:
    position, _, digest = rows(made.path)[-1]
    with sqlite3.connect(made.path) as connection:
        connection.execute("INSERT INTO commits VALUES (?, ?, ?)", (position + 1, NESTED, link(digest, NESTED)))
    connection.close()
    said = run(command, "--log", str(made.path), status=2).stderr
    assert f"position {position + 1}" in said
    assert "is not a readable commit" in said

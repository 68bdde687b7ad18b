"""`standby run`: what goes where, and how it exits."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from standby.hosts.cli.app import Boundary
from standby.hosts.cli.run import run_command
from standby.hosts.scripted import (
    ScriptedProvider,
    answer,
    bad_key,
    cut_stream,
    no_credit,
    overloaded,
    rate_limited,
)

KEY = "sk-test-PLACEHOLDER-run"
POLICY = """
[agents.defaults.model]
primary = "openai/alpha"
fallbacks = ["spare/beta"]

[models.providers.openai]
baseUrl = "{url}"
apiKeyEnv = "RUN_TEST_KEY"
[[models.providers.openai.models]]
id = "alpha"
cost = {{ input = 2.5, output = 10 }}

[models.providers.spare]
baseUrl = "{url}"
api = "openai-chat"

[standby.recovery]
baseMs = 5
transientRetries = 1
"""

Run = Callable[..., Result]


class Site:
    """A provider, a settings file, a log, a folder for credentials."""

    def __init__(self, folder: Path, server: ScriptedProvider) -> None:
        self.server = server
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY.format(url=server.base_url))
        self.log = folder / "logs" / "log.db"
        self.state = folder / "state"

    @property
    def options(self) -> list[str]:
        return ["--policy", str(self.policy), "--log", str(self.log), "--state", str(self.state)]

    def run(self, *arguments: str, stdin: str = "") -> Result:
        app = typer.Typer(cls=Boundary, pretty_exceptions_enable=False)
        app.callback()(lambda: None)
        app.command("run")(run_command)
        return CliRunner().invoke(app, ["run", *self.options, *arguments], input=stdin)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    monkeypatch.setenv("RUN_TEST_KEY", KEY)
    servers: list[ScriptedProvider] = []

    def make(**replies: Any) -> Site:
        server = ScriptedProvider(replies).start()
        servers.append(server)
        return Site(tmp_path, server)

    yield make
    for server in servers:
        server.stop()


def test_the_answer_alone_goes_to_standard_output(site: Callable[..., Site]) -> None:
    at = site(alpha=["Good day."])
    done = at.run("Hello?")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "Good day.\n", "")
    (request,) = at.server.requests
    assert request.stream
    assert request.body["messages"] == [{"role": "user", "content": "Hello?"}]
    assert at.log.exists()


def test_without_streaming_nothing_is_streamed(site: Callable[..., Site]) -> None:
    at = site(alpha=["Good day."])
    done = at.run("--no-stream", "--system", "Be brief.", "Hello?")
    assert (done.exit_code, done.stdout) == (0, "Good day.\n")
    (request,) = at.server.requests
    assert not request.stream
    assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}


def test_a_prompt_can_be_piped_in(site: Callable[..., Site]) -> None:
    at = site(alpha=["Good day."])
    assert at.run(stdin="Hello from a pipe").stdout == "Good day.\n"
    assert at.server.requests[0].body["messages"][0]["content"] == "Hello from a pipe"


def test_a_fallback_is_told_beside_the_answer(site: Callable[..., Site]) -> None:
    at = site(alpha=[no_credit()], beta=["Here."])
    done = at.run("Hello?")
    assert done.stdout == "Here.\n"
    assert done.stderr.startswith("↪️ Model Fallback: spare/beta (selected openai/alpha; billing")


def test_a_failed_turn_exits_1_and_says_when_to_try_again(site: Callable[..., Site]) -> None:
    at = site(alpha=[rate_limited(120)], beta=[overloaded(repeat=True)])
    done = at.run("Hello?")
    assert done.exit_code == 1
    assert done.stdout == ""
    first, second, third = done.stderr.splitlines()
    assert first.startswith("⚠️ ")
    assert second.startswith("openai/alpha can be tried again at ")
    assert third.startswith("Why: standby explain t-")


def test_what_broke_off_is_kept_and_not_asked_for_again(site: Callable[..., Site]) -> None:
    at = site(alpha=[cut_stream("One two three", after=2)], beta=["Never."])
    done = at.run("Hello?")
    assert done.exit_code == 1
    assert done.stdout.startswith("One")
    assert done.stdout.endswith("\n")
    assert "broke off" in done.stderr
    assert len(at.server.requests) == 1


def test_json_tells_all_of_an_answer(site: Callable[..., Site]) -> None:
    at = site(alpha=[no_credit()], beta=["Here."])
    done = at.run("--json", "--session", "mine", "Hello?")
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    said = msgspec.json.decode(line)
    assert (said["answered"], said["model"], said["selected"]) == (True, "spare/beta", "openai/alpha")
    assert (said["session"], said["text"]) == ("mine", "Here.")
    assert [one["reason"] for one in said["attempts"]] == ["billing", None]
    assert said["attempts"][0]["profile"] == "inline-api-key:openai"
    assert len(said["notices"]) == 1
    assert said["cost"] is None
    assert said["usage"]["output"] > 0
    assert done.stderr == ""


def test_json_tells_all_of_a_failure(site: Callable[..., Site]) -> None:
    at = site(alpha=[rate_limited(120)], beta=[overloaded(repeat=True)])
    done = at.run("--json", "Hello?")
    assert done.exit_code == 1
    said = msgspec.json.decode(done.stdout)
    assert (said["answered"], said["end"], said["soonest_model"]) == (False, "exhausted", "openai/alpha")
    assert said["soonest"].endswith("Z")
    assert said["first_failure"] == "attempt 1 at openai/alpha failed: rate_limit, HTTP 429"


def test_the_price_gives_the_cost(site: Callable[..., Site]) -> None:
    at = site(alpha=["Good day."])
    said = msgspec.json.decode(at.run("--json", "Hello?").stdout)
    assert float(said["cost"]) == pytest.approx(
        (said["usage"]["input"] * 2.5 + said["usage"]["output"] * 10) / 1e6
    )


def test_a_model_of_ones_own_is_for_these_turns_only(site: Callable[..., Site]) -> None:
    at = site(alpha=["First."], beta=["Second."])
    assert at.run("--model", "spare/beta", "Hello?").stdout == "Second.\n"
    assert at.run("Hello?").stdout == "First.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "nowhere.toml", "Hello?"], "cannot be read"),
        ([""], "nothing to ask"),
        (["--log", str(Path(__file__)), "Hello?"], "not a"),
    ],
    ids=["settings", "prompt", "log"],
)
def test_bad_input_exits_2(site: Callable[..., Site], arguments: list[str], message: str) -> None:
    at = site(alpha=["Never."])
    done = at.run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert at.server.requests == ()


def test_a_conversation_on_a_terminal(site: Callable[..., Site], tmp_path: Path) -> None:
    at = site(alpha=["First.", no_credit(repeat=True)], beta=["Second.", answer("Third.")])
    program = "import typer; from standby.hosts.cli.run import run_command; typer.run(run_command)"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *at.options],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        os.close(theirs)
        os.write(ours, b"One?\n\nTwo?\nThree?\n\x04")
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 0, err
    assert [line.lstrip("> ") for line in out.splitlines() if line.strip("> ")] == [
        "First.",
        "Second.",
        "Third.",
    ]
    assert err.count("↪️ Model Fallback") == 1
    last = at.server.requests[-1].body["messages"]
    assert [(one["role"], one["content"]) for one in last] == [
        ("user", "One?"),
        ("assistant", "First."),
        ("user", "Two?"),
        ("assistant", "Second."),
        ("user", "Three?"),
    ]


def test_credentials_come_from_the_store_of_the_agent(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    from standby.hosts.credential_values import api_key
    from standby.hosts.credentials import CredentialStore

    at = site(alpha=["Good day."])
    at.policy.write_text(at.policy.read_text().replace('apiKeyEnv = "RUN_TEST_KEY"\n', ""))
    with CredentialStore.for_agent("main", root=at.state) as keys:
        keys.add(api_key("openai", "sk-test-PLACEHOLDER-stored"), name="stored")
    # A usual key that stays here is no loss where another one is stored.
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = at.run("--json", "Hello?")
    assert done.stderr == ""
    assert msgspec.json.decode(done.stdout)["attempts"][0]["profile"] == "openai:stored"


def test_an_order_that_names_a_profile_that_is_not_there_is_told(site: Callable[..., Site]) -> None:
    from standby.hosts.credential_values import api_key
    from standby.hosts.credentials import CredentialStore

    at = site(alpha=["Good day."], beta=["Good day."])
    at.policy.write_text(at.policy.read_text() + '\n[auth.order]\nopenai = ["openai:work", "openai:own"]\n')
    with CredentialStore.for_agent("main", root=at.state) as keys:
        keys.add(api_key("openai", "sk-test-PLACEHOLDER-stored"), name="own")
    done = at.run("Hello?")
    assert (done.exit_code, done.stdout) == (0, "Good day.\n")
    assert done.stderr == "auth.order.openai names openai:work, which is not there; see `standby auth list`\n"


def test_a_usual_key_that_stays_here_is_told(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = site(alpha=["Good day."])
    at.policy.write_text(at.policy.read_text().replace('apiKeyEnv = "RUN_TEST_KEY"\n', ""))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = at.run("Hello?")
    assert (done.exit_code, done.stdout) == (0, "Good day.\n")
    assert done.stderr == (
        f"OPENAI_API_KEY is not sent to {at.server.base_url}; name it with models.providers.openai.apiKeyEnv\n"
    )
    assert at.server.requests[0].key == ""
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert "is not sent" not in at.run("Hello?").stderr


def test_a_turn_without_credentials_says_which_would_help(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = site(alpha=["Never."])
    at.policy.write_text('[agents.defaults.model]\nprimary = "openai/alpha"\nfallbacks = ["groq/beta"]\n')
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = at.run("Hello?")
    assert done.exit_code == 1
    *_, first, second, why = done.stderr.splitlines()
    assert first == ("openai has no usable credential: set OPENAI_API_KEY, or run `standby auth add openai`.")
    assert second == "groq has no usable credential: set GROQ_API_KEY, or run `standby auth add groq`."
    assert why.startswith("Why: standby explain t-")


def test_a_server_that_wanted_a_key_after_all_says_how_to_give_one(site: Callable[..., Site]) -> None:
    at = site(alpha=["Never."], beta=[bad_key(repeat=True)])
    done = at.run("--model", "spare/beta", "Hello?")
    assert done.exit_code == 1
    assert (
        "spare has no usable credential: set models.providers.spare.apiKeyEnv, or run `standby auth add spare`."
        in done.stderr.splitlines()
    )

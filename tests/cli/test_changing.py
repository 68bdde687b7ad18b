"""`standby session`, `auth`, `erase`: what they change, in the log and beside it."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from standby.events.facts import CredentialRemoved, ModelSelected, PolicyAdopted, ProfilePinned, SessionReset
from tests.cli.conftest import Run
from tests.cli.logs import A, B, Made, commit_at, rows

KEY = "sk-test-PLACEHOLDER-of-the-command-line"


def value(output: str) -> Any:
    return json.loads(output)


def last_fact(made: Made) -> Any:
    return commit_at(made.path, len(rows(made.path))).fact


# ---- session -------------------------------------------------------------------------------------------


def session(run: Run, made: Made, *words: str) -> Any:
    return value(run("session", *words, "--json", "--log", str(made.path)).stdout)


@pytest.mark.rule("SEL-5", "LIVE-1")
def test_select_pin_default_and_reset(run: Run, made: Made) -> None:
    found = session(run, made, "select", "alice", B)
    assert (found["selected"], found["source"], found["strict"]) == (B, "user", True)
    fact = last_fact(made)
    assert isinstance(fact, ModelSelected)
    assert fact.model == B
    found = session(run, made, "select", "alice", A)
    assert (found["selected"], found["strict"]) == (A, False)
    found = session(run, made, "pin", "alice", "openai:one")
    assert {"provider": "openai", "profile": "openai:one", "by": "user", "displaced": False} in found["pins"]
    assert isinstance(last_fact(made), ProfilePinned)
    found = session(run, made, "unpin", "alice", "openai")
    assert "openai" not in [pin["provider"] for pin in found["pins"]]
    found = session(run, made, "reset", "alice", "--kind", "new")
    assert isinstance(last_fact(made), SessionReset)
    found = session(run, made, "default", "alice")
    assert (found["selected"], found["override"], found["source"]) == (A, "", "default")
    run("verify", "--log", str(made.path))


def test_a_model_may_come_with_a_profile(run: Run, made: Made) -> None:
    found = session(run, made, "select", "alice", f"{A}@openai:two")
    assert found["selected"] == A
    assert {"provider": "openai", "profile": "openai:two", "by": "user", "displaced": False} in found["pins"]
    # An @ inside a model's own name is no profile.
    assert session(run, made, "select", "alice", "google/model@20260101")["selected"] == "google/model@20260101"


def test_a_new_session_can_be_given_a_model_before_its_first_turn(run: Run, made: Made) -> None:
    assert session(run, made, "select", "dora", B)["selected"] == B
    plain = run("session", "show", "dora", "--log", str(made.path)).stdout
    assert f"selected  {B} (user, strict: no fallback)" in plain


def test_what_a_session_cannot_have_is_said_and_changes_nothing(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    said = run("session", "select", "alice", f"{A}@openai:none", *log, status=2).stderr
    assert "'openai:none' is not known" in said
    said = run("session", "pin", "alice", "openai:none", *log, status=2).stderr
    assert "openai:one, openai:two" in said
    assert "has no pin for 'google'" in run("session", "unpin", "alice", "google", *log, status=2).stderr
    run("session", "select", "alice", "", *log, status=2)
    run("session", "reset", "alice", "--kind", "sometime", *log, status=2)
    (found,) = [session(run, made, "show", "alice")]
    assert (found["selected"], found["override"]) == (A, "")


def test_a_policy_is_adopted_and_a_broken_one_refused(run: Run, made: Made, tmp_path: Path) -> None:
    good = tmp_path / "good.toml"
    good.write_text(f'[agents.defaults.model]\nprimary = "{B}"\nfallbacks = ["{A}"]\n')
    found = value(
        run("session", "default", "alice", "--json", "--policy", str(good), "--log", str(made.path)).stdout
    )
    assert found["selected"] == B
    assert any(
        isinstance(commit_at(made.path, at).fact, PolicyAdopted) for at in range(3, len(rows(made.path)) + 1)
    )
    before = len(rows(made.path))
    broken = tmp_path / "broken.toml"
    broken.write_text('[agents.defaults.model]\nprimry = "x/y"\n')
    said = run("session", "default", "alice", "--policy", str(broken), "--log", str(made.path), status=2).stderr
    assert "broken.toml" in said
    assert "primry" in said
    missing = run(
        "session", "default", "alice", "--policy", str(tmp_path / "no.toml"), "--log", str(made.path), status=2
    )
    assert "no.toml" in missing.stderr
    assert len(rows(made.path)) == before


# ---- auth ----------------------------------------------------------------------------------------------


def auth(run: Run, tmp_path: Path, *words: str, **more: Any) -> Any:
    return run("auth", *words, "--state", str(tmp_path / "state"), **more)


@pytest.mark.rule("STORE-2")
def test_a_key_from_a_pipe_is_stored_privately_and_never_shown(run: Run, tmp_path: Path) -> None:
    added = auth(run, tmp_path, "add", "openai", "--name", "one", input=f"{KEY}\n")
    assert added.stdout.startswith("added openai:one")
    (store,) = (tmp_path / "state").rglob("*.sqlite")
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    plain = auth(run, tmp_path, "list")
    found = value(auth(run, tmp_path, "list", "--json").stdout)
    assert [(one["profile"], one["kind"], one["usable"]) for one in found["credentials"]] == [
        ("openai:one", "api_key", True)
    ]
    assert "openai:one" in plain.stdout
    for result in (added, plain):
        assert KEY not in result.output
    assert KEY not in json.dumps(found)


def test_a_key_can_stay_in_its_variable(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auth(run, tmp_path, "add", "openai", "--key-env", "SOME_KEY")
    assert "its variable is not set" in auth(run, tmp_path, "list").stdout
    monkeypatch.setenv("SOME_KEY", KEY)
    result = auth(run, tmp_path, "list")
    assert "env:SOME_KEY" in result.stdout
    assert "usable" in result.stdout
    assert KEY not in result.output


def test_a_hidden_prompt_asks_on_a_terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def hidden(prompt: str) -> str:
        asked.append(prompt)
        return KEY

    monkeypatch.setattr("standby.hosts.cli.auth.getpass.getpass", hidden)
    monkeypatch.setattr("standby.hosts.cli.auth._on_terminal", lambda: True)
    result = auth(run, tmp_path, "add", "openai")
    assert len(asked) == 1
    assert KEY not in result.output
    assert "openai:default" in auth(run, tmp_path, "list").stdout


def test_a_key_is_no_argument(run: Run, tmp_path: Path) -> None:
    auth(run, tmp_path, "add", "openai", KEY, status=2)
    auth(run, tmp_path, "add", "openai", "--key", KEY, status=2)
    assert "no key came" in auth(run, tmp_path, "add", "openai", input="\n", status=2).stderr


def test_tokens_expire_and_keys_do_not(run: Run, tmp_path: Path) -> None:
    auth(
        run,
        tmp_path,
        "add",
        "anthropic",
        "--kind",
        "token",
        "--expires",
        "2001-01-01T00:00:00Z",
        input="t-PLACEHOLDER\n",
    )
    assert "expired 2001-01-01" in auth(run, tmp_path, "list").stdout
    (found,) = value(auth(run, tmp_path, "list", "--json").stdout)["credentials"]
    assert (found["expires_ms"], found["expires"]) == (978_307_200_000, "2001-01-01T00:00:00.000Z")
    assert "for tokens" in auth(run, tmp_path, "add", "openai", "--expires", "1h", input=KEY, status=2).stderr
    assert "OAuth" in auth(run, tmp_path, "add", "openai", "--kind", "oauth", input=KEY, status=2).stderr


@pytest.mark.rule("ORD-9")
def test_the_order_of_a_provider(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        auth(run, tmp_path, "add", "openai", "--name", name, input=f"{KEY}{name}\n")
    assert "no order is stored" in auth(run, tmp_path, "order", "show", "openai").stdout
    auth(run, tmp_path, "order", "set", "openai", "openai:two", "openai:one")
    found = value(auth(run, tmp_path, "order", "show", "openai", "--json").stdout)
    assert found["order"] == ["openai:two", "openai:one"]
    assert "order of openai: openai:two, openai:one" in auth(run, tmp_path, "list").stdout
    assert "openai:three" in auth(run, tmp_path, "order", "set", "openai", "openai:three", status=2).stderr
    auth(run, tmp_path, "order", "clear", "openai")
    assert value(auth(run, tmp_path, "order", "show", "openai", "--json").stdout)["order"] is None


@pytest.mark.rule("PIN-5")
def test_removing_a_credential_tells_the_log(run: Run, made: Made, tmp_path: Path) -> None:
    auth(run, tmp_path, "add", "openai", "--name", "two", input=f"{KEY}\n")
    result = auth(run, tmp_path, "remove", "openai:two", "--log", str(made.path))
    assert "was told" in result.stdout
    fact = last_fact(made)
    assert isinstance(fact, CredentialRemoved)
    pins = session(run, made, "show", "alice")["pins"]
    assert "openai:two" not in [pin["profile"] for pin in pins]
    found = value(run("status", "--json", "--log", str(made.path)).stdout)
    (gone,) = [one for one in found["profiles"] if one["profile"] == "openai:two"]
    assert gone["there"] is False
    run("verify", "--log", str(made.path))
    assert "no credential 'openai:two'" in auth(run, tmp_path, "remove", "openai:two", status=2).stderr


def test_removing_without_a_log_makes_none(run: Run, tmp_path: Path) -> None:
    auth(run, tmp_path, "add", "openai", input=f"{KEY}\n")
    found = value(
        auth(run, tmp_path, "remove", "openai:default", "--json", "--log", str(tmp_path / "no.db")).stdout
    )
    assert found == {"removed": "openai:default", "reported": False, "log": None}
    assert not (tmp_path / "no.db").exists()


# ---- erase ---------------------------------------------------------------------------------------------


def test_an_erased_session_leaves_a_log_that_verifies(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    assert b"main/alice" in made.path.read_bytes()
    found = value(run("erase", "--session", "alice", "--json", *log).stdout)
    assert found["erased"] == 3
    report = value(run("verify", "--json", *log).stdout)
    failed = [at for at, body, _ in rows(made.path) if b'"call_failed"' in body and b'"t-limited"' in body]
    assert report["holds"] is True
    assert report["not_provable"] == failed
    assert len(failed) == 2
    plain = run("verify", *log).stdout
    assert "not provable 2, their evidence was erased: position " + ", ".join(map(str, failed)) in plain
    everything = [run(*command, *log).stdout for command in (("status",), ("log",), ("explain", "t-limited"))]
    assert not any("alice" in output for output in everything)
    assert "text was erased" in everything[-1]
    assert "knows no session 'alice'" in run("erase", "--session", "alice", *log, status=2).stderr


def test_a_name_of_a_profile_can_go(run: Run, made: Made) -> None:
    log = ("--log", str(made.path))
    assert "erased 1 entry" in run("erase", "--profile", "openai:one", "--force", *log).stdout
    assert "openai:one" not in run("log", *log).stdout
    assert value(run("verify", "--json", *log).stdout)["not_provable"] == []
    assert "one of them" in run("erase", *log, status=2).stderr
    assert "one of them" in run("erase", "--session", "bob", "--profile", "google:one", *log, status=2).stderr

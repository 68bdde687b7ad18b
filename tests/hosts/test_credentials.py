"""The credential store: kinds, ids, order, references, and who may read its file."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import platformdirs
import pytest

from standby.events.errors import BadInput
from standby.events.vocabulary import CredentialKind
from standby.hosts.credential_values import ApiKey, Credential, EnvRef, api_key, from_environment, oauth, token
from standby.hosts.credentials import CredentialStore, agent_path
from standby.hosts.providers import Secret

KEY = "sk-test-PLACEHOLDER-0123456789"
OAUTH = oauth(
    "openai",
    "access-PLACEHOLDER",
    "refresh-PLACEHOLDER",
    expires_ms=1_800_000_000_000,
    email="a@example.org",
    project_id="proj-1",
    enterprise_url="https://git.example.org",
)
ALL: list[Credential] = [api_key("openai", KEY), OAUTH, token("openai", "token-PLACEHOLDER", expires_ms=5)]

posix = pytest.mark.skipif(os.name != "posix", reason="file modes say nothing there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agents" / "main" / "agent" / "standby-agent.sqlite"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("credential", ALL, ids=lambda c: type(c).__name__)
@pytest.mark.rule("ORD-7", "ORD-11", "STORE-1")
def test_each_kind_is_kept_as_it_is(path: Path, credential: Credential) -> None:
    with CredentialStore(path) as store:
        profile = store.add(credential)
    with CredentialStore(path) as store:
        assert store.get(profile) == credential


@pytest.mark.rule("ORD-6")
def test_ids_come_from_the_email_or_the_name(path: Path) -> None:
    with CredentialStore(path) as store:
        assert store.add(api_key("openai", KEY)) == "openai:default"
        assert store.add(OAUTH) == "openai:a@example.org"
        assert store.add(api_key("openai", KEY), name="work") == "openai:work"
        assert store.add(OAUTH, name="private") == "openai:private"
        assert store.add(api_key("anthropic", KEY)) == "anthropic:default"
        listed = [info.id for info in store.list("openai")]
    assert listed == ["openai:a@example.org", "openai:default", "openai:private", "openai:work"]


def test_what_exists_is_replaced_only_when_asked(path: Path) -> None:
    with CredentialStore(path) as store:
        store.add(api_key("openai", KEY))
        with pytest.raises(BadInput, match="'openai:default' exists already"):
            store.add(api_key("openai", "sk-other-PLACEHOLDER"))
        assert store.resolve("openai:default").reveal() == KEY
        store.add(api_key("openai", "sk-other-PLACEHOLDER"), replace=True)
        assert store.resolve("openai:default").reveal() == "sk-other-PLACEHOLDER"
        assert [info.generation for info in store.list()] == [2]
        store.remove("openai:default")
        store.add(api_key("openai", KEY))
        assert [info.generation for info in store.list()] == [3], "an old report must not fit the new key"


@pytest.mark.rule("STORE-1")
@pytest.mark.invariant(12)
def test_lists_reprs_and_errors_show_no_secret(path: Path) -> None:
    with CredentialStore(path) as store:
        for credential in ALL:
            store.add(credential, name=type(credential).__name__.lower())
        shown = repr(store) + repr(store.list()) + repr(ALL) + repr([store.get(i.id) for i in store.list()])
        for wrong in (lambda: store.add(ALL[0], name="apikey"), lambda: store.get("openai:none")):
            with pytest.raises(BadInput) as caught:
                wrong()
            shown += str(caught.value)
        info = {info.kind: info for info in store.list()}
    assert "PLACEHOLDER" not in shown
    assert info[CredentialKind.OAUTH].email == "a@example.org"
    assert info[CredentialKind.OAUTH].expires_ms == 1_800_000_000_000
    assert info[CredentialKind.TOKEN].expires_ms == 5
    assert {i.source for i in info.values()} == {"stored"}


@pytest.mark.parametrize("credential", ALL, ids=lambda c: type(c).__name__)
def test_a_call_gets_the_secret_with_its_kind(path: Path, credential: Credential) -> None:
    texts = {"ApiKey": KEY, "OAuth": "access-PLACEHOLDER", "Token": "token-PLACEHOLDER"}
    kinds = {"ApiKey": CredentialKind.API_KEY, "OAuth": CredentialKind.OAUTH, "Token": CredentialKind.TOKEN}
    name = type(credential).__name__
    with CredentialStore(path) as store:
        assert store.resolve(store.add(credential)) == Secret(texts[name], kinds[name])


# References


@pytest.mark.invariant(12)
def test_a_reference_is_looked_up_at_each_call_and_never_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", KEY)
    with CredentialStore(path) as store:
        store.add(api_key("openai", "env:OWN_KEY"))
        assert store.get("openai:default") == ApiKey(provider="openai", key=EnvRef("OWN_KEY"))
        assert store.resolve("openai:default").reveal() == KEY
        monkeypatch.setenv("OWN_KEY", " sk-new-PLACEHOLDER\n")
        assert store.resolve("openai:default").reveal() == "sk-new-PLACEHOLDER"
        assert [(info.source, info.usable) for info in store.list()] == [("env:OWN_KEY", True)]
        monkeypatch.delenv("OWN_KEY")
        assert [info.usable for info in store.list()] == [False]
        with pytest.raises(BadInput, match="'openai:default' refers to the environment variable OWN_KEY"):
            store.resolve("openai:default")
        assert store.resolve("openai:default", environ={"OWN_KEY": KEY}).reveal() == KEY
    assert b"PLACEHOLDER" not in path.read_bytes()


def test_each_part_of_a_login_may_be_a_reference(path: Path) -> None:
    login = oauth("openai", "env:ACCESS", "env:REFRESH")
    with CredentialStore(path) as store:
        profile = store.add(login)
        assert store.get(profile) == login
        secret = store.resolve(profile, environ={"ACCESS": "a-PLACEHOLDER"})
    assert secret == Secret("a-PLACEHOLDER", CredentialKind.OAUTH)


@pytest.mark.parametrize("text", ["", "  \n", "env:", "env:sk-PLACEHOLDER-1", "env:A B"])
def test_a_value_that_is_none_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        api_key("openai", text)
    assert "PLACEHOLDER" not in str(caught.value)


def test_the_end_of_a_pasted_line_is_dropped() -> None:
    assert api_key("openai", f" {KEY}\r\n").key == Secret(KEY)


def test_the_conventional_variable_of_a_provider_is_found() -> None:
    found = from_environment("anthropic", {"ANTHROPIC_API_KEY": KEY})
    assert found == ApiKey(provider="anthropic", key=EnvRef("ANTHROPIC_API_KEY"))
    assert from_environment("anthropic", {"ANTHROPIC_API_KEY": " "}) is None
    assert from_environment("anthropic", {}) is None
    assert from_environment("ollama", {"OLLAMA_API_KEY": KEY}) is None
    assert from_environment("unheard-of", {}) is None


# Order


@pytest.mark.rule("ORD-9")
def test_an_order_is_stored_read_and_cleared(path: Path) -> None:
    with CredentialStore(path) as store:
        for name in ("a", "b", "c"):
            store.add(api_key("openai", KEY), name=name)
        store.add(api_key("anthropic", KEY))
        assert store.order("openai") is None
        store.set_order("openai", ["openai:c", "openai:a"])
        store.set_order("openai", ["openai:b", "openai:c", "openai:a"])
    with CredentialStore(path) as store:
        assert store.order("openai") == ("openai:b", "openai:c", "openai:a")
        assert store.order("anthropic") is None
        store.remove("openai:c")
        assert store.order("openai") == ("openai:b", "openai:a")
        store.clear_order("openai")
        assert store.order("openai") is None
        store.clear_order("openai")
        store.set_order("openai", ["openai:a"])
        store.remove("openai:a")
        assert store.order("openai") is None


@pytest.mark.parametrize("profiles", [[], ["openai:none"], ["anthropic:default"], ["openai:default"] * 2])
def test_an_order_that_makes_no_sense_is_refused(path: Path, profiles: list[str]) -> None:
    with CredentialStore(path) as store:
        store.add(api_key("openai", KEY))
        store.add(api_key("anthropic", KEY))
        store.set_order("openai", ["openai:default"])
        with pytest.raises(BadInput, match="stored: openai:default"):
            store.set_order("openai", profiles)
        assert store.order("openai") == ("openai:default",)


# Mistakes


@pytest.mark.parametrize(
    ("provider", "name", "words"),
    [
        ("Open AI", None, "Provider 'Open AI'"),
        ("", None, "Provider ''"),
        ("a:b", None, "Provider 'a:b'"),
        ("openai", "", "Credential name ''"),
        ("openai", "a b", "Credential name 'a b'"),
        ("openai", "a:b", "Credential name 'a:b'"),
    ],
)
def test_ids_must_be_readable(path: Path, provider: str, name: str | None, words: str) -> None:
    with CredentialStore(path) as store, pytest.raises(BadInput, match=words):
        store.add(api_key(provider, KEY), name=name)


def test_an_unknown_id_names_the_known_ones(path: Path) -> None:
    with CredentialStore(path) as store:
        store.add(api_key("openai", KEY))
        for wrong in (store.get, store.remove, store.resolve):
            with pytest.raises(BadInput, match=r"no credential 'openai:x' .*stored: openai:default"):
                wrong("openai:x")


# The file


@posix
@pytest.mark.rule("STORE-2")
def test_the_file_is_private_from_the_beginning(path: Path) -> None:
    before = os.umask(0)
    try:
        with CredentialStore(path) as store:
            assert mode(path) == 0o600
            store.add(api_key("openai", KEY))
            assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    finally:
        os.umask(before)
    assert mode(path.parent) == 0o700


@posix
@pytest.mark.rule("STORE-2")
@pytest.mark.parametrize("wide", [0o644, 0o640, 0o606, 0o660, 0o700 | 0o010])
def test_a_file_that_others_may_use_is_refused_or_repaired(path: Path, wide: int) -> None:
    with CredentialStore(path) as store:
        store.add(api_key("openai", KEY))
    path.chmod(wide)
    with pytest.raises(BadInput, match=f"mode {wide:04o}.*chmod 600"):
        CredentialStore(path)
    assert mode(path) == wide
    with CredentialStore(path, repair=True) as store:
        assert store.resolve("openai:default").reveal() == KEY
    assert mode(path) == 0o600


@pytest.mark.rule("STORE-2")
def test_there_is_one_file_for_each_agent(tmp_path: Path) -> None:
    with CredentialStore.for_agent("one", root=tmp_path) as one:
        one.add(api_key("openai", KEY))
    with CredentialStore.for_agent("two", root=tmp_path) as two:
        assert two.list() == ()
    assert one.path == tmp_path / "agents" / "one" / "agent" / "standby-agent.sqlite"
    assert agent_path().is_relative_to(platformdirs.user_data_dir("standby", appauthor=False))
    for wrong in ("", "..", "a/b", "../x", ".hidden"):
        with pytest.raises(BadInput, match="Agent"):
            agent_path(wrong)


def test_a_removed_secret_is_gone_from_the_file(path: Path) -> None:
    with CredentialStore(path) as store:
        store.add(api_key("openai", KEY))
        assert KEY.encode() in path.read_bytes()
        store.remove("openai:default")
    assert KEY.encode() not in path.read_bytes()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_bytes(b"not a database, but long enough to be looked at as one" * 20)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("create table credentials (id text)")
    connection.close()
    for file, words in ((text, "no credential file"), (other, "another program's database")):
        file.chmod(0o600)
        before = file.read_bytes()
        with pytest.raises(BadInput, match=words):
            CredentialStore(file)
        assert file.read_bytes() == before
    with pytest.raises(BadInput, match="not an ordinary file"):
        CredentialStore(tmp_path)


def test_a_file_of_a_newer_version_is_not_touched(path: Path) -> None:
    CredentialStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(
        "insert into _sqlite_migrations (migration_set, name, applied_at) "
        "values ('standby-credentials', 'later', '')"
    )
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"newer version of standby .*later"):
        CredentialStore(path)
    assert path.read_bytes() == before


def test_threads_and_processes_share_the_file(path: Path) -> None:
    code = (
        "import sys\n"
        "from standby.hosts.credentials import CredentialStore, api_key\n"
        "with CredentialStore(sys.argv[1]) as store:\n"
        "    for n in range(20): store.add(api_key('openai', 'sk-PLACEHOLDER'), name=f'{sys.argv[2]}-{n}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(n)], env=environment) for n in range(2)
    ]
    with CredentialStore(path) as store:
        threads = [
            threading.Thread(
                target=lambda n=n: [store.add(api_key("openai", KEY), name=f"t{n}-{i}") for i in range(10)]
            )
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [process.wait(30) for process in processes] == [0, 0]
        assert len(store.list()) == 70


def test_a_locked_file_is_an_error_that_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standby.hosts.credential_file._BUSY_S", 0.05)
    with CredentialStore(path) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("begin exclusive")
        with pytest.raises(BadInput, match="cannot be written now"):
            store.add(api_key("openai", KEY))
        other.execute("rollback")
        other.close()
        store.add(api_key("openai", KEY))

"""Two processes on one log see each other's blocks, also those that were set while both were open."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from standby.engine.verify import verify
from standby.events.sqlite import SQLiteStore
from standby.hosts.credential_values import api_key
from standby.hosts.credentials import CredentialStore
from tests.kill.arena import child_process, scripted_process

POLICY = '[agents.defaults.model]\nprimary = "openai/alpha"\nfallbacks = []\n'
SCRIPT = """
[keys]
one = "aaaa"
two = "bbbb"

[[lane]]
model = "alpha"
key = "one"
replies = [{ %s, repeat = true }]

[[lane]]
model = "alpha"
key = "two"
replies = [{ answer = "Here.", repeat = true }]
"""


def ask(process: "subprocess.Popen[str]", session: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(session + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.invariant(3)
@pytest.mark.rule("COOL-8", "BILL-5", "ORD-5")
@pytest.mark.parametrize("failure", ['kind = "rate_limited", retry_after = 300', 'kind = "no_credit"'])
def test_a_blocked_profile_is_blocked_for_the_other_process(tmp_path: Path, failure: str) -> None:
    script, requests, log = tmp_path / "script.toml", tmp_path / "requests.jsonl", tmp_path / "log.db"
    policy, keys = tmp_path / "policy.toml", tmp_path / "keys.sqlite"
    script.write_text(SCRIPT % failure)
    policy.write_text(POLICY)
    with CredentialStore(keys) as store:
        store.add(api_key("openai", "sk-test-PLACEHOLDER-aaaa"), name="one")
        store.add(api_key("openai", "sk-test-PLACEHOLDER-bbbb"), name="two")
        store.set_order("openai", ["openai:one", "openai:two"])
    with ExitStack() as stack:
        base_url = stack.enter_context(scripted_process(script, requests))
        config = {"log": str(log), "policy": str(policy), "keys": str(keys), "base_url": base_url}
        left, right = (
            stack.enter_context(
                child_process("partner.py", {**config, "instance": instance}, stdin=subprocess.PIPE)
            )
            for instance in ("left", "right")
        )
        for process in (left, right):
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
        said = [ask(left, "a"), ask(right, "b"), ask(left, "c"), ask(right, "d")]
    assert said == ["Here."] * 4
    used = [msgspec.json.decode(line)["key_name"] for line in requests.read_bytes().splitlines()]
    assert used == ["one", "two", "two", "two", "two"]
    store_again = SQLiteStore(log, create=False)
    report = verify(
        store_again.read(), side_entry=store_again.side_entry, side_entries=store_again.side_entries()
    )
    store_again.close()
    assert report.holds, report.problem

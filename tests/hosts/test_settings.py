"""What a settings file sets: every key of the table, and everything that a policy can hold."""

import re
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from standby.engine.steps import CallModel, Settled
from standby.events.evidence import OperatorRow
from standby.events.policy import (
    AgentModels,
    Consent,
    ModelChain,
    Policy,
    Price,
    Probes,
    ProfileRule,
    Recovery,
    Stickiness,
)
from standby.events.vocabulary import CredentialKind, Failure, RefusalKind
from standby.hosts.providers.values import Wire
from standby.hosts.settings import KEYS, ProviderSettings, Settings, load_settings, parse_settings
from tests.harness import World

# A text for each key of the table; its last line is the one that uses the key.
ROW = '[[standby.rows]]\nid = "r"\nreason = "billing"\ntext = ["no money"]\n'
PRICED = '[[models.providers.openai.models]]\nid = "m"\n'
SAMPLES = {
    "agents.defaults.model": 'agents.defaults.model = "openai/a"',
    "agents.defaults.model.primary": 'agents.defaults.model.primary = "openai/a"',
    "agents.defaults.model.fallbacks": "agents.defaults.model.fallbacks = []",
    "agents.defaults.imageModel": 'agents.defaults.imageModel = "openai/a"',
    "agents.defaults.imageModel.primary": 'agents.defaults.imageModel.primary = "openai/a"',
    "agents.defaults.imageModel.fallbacks": 'agents.defaults.imageModel.fallbacks = ["openai/a"]',
    "agents.defaults.models.*.alias": '[agents.defaults.models."openai/a"]\nalias = "quick"',
    "agents.defaults.timeoutSeconds": "agents.defaults.timeoutSeconds = 1.5",
    "agents.entries.*.model": '[agents.entries.a]\nmodel = "openai/a"',
    "agents.entries.*.model.primary": '[agents.entries.a]\nmodel.primary = "openai/a"',
    "agents.entries.*.model.fallbacks": "[agents.entries.a]\nmodel.fallbacks = []",
    "agents.entries.*.runtime.type": '[agents.entries.a]\nruntime.type = "acp"',
    "auth.order.*": 'auth.order.openai = ["openai:default"]',
    "auth.profiles.*.provider": '[auth]\nprofiles."openai:default".provider = "openai"',
    "auth.profiles.*.mode": '[auth.profiles."openai:default"]\nprovider = "openai"\nmode = "oauth"',
    "auth.profiles.*.email": '[auth.profiles."openai:a"]\nprovider = "openai"\nemail = "a@example.org"',
    "retry.provider.maxRetries": "retry.provider.maxRetries = 0",
    "retry.provider.maxRetryDelayMs": "retry.provider.maxRetryDelayMs = 0",
    "retry.provider.timeoutMs": "retry.provider.timeoutMs = 1",
    "models.providers.*.baseUrl": '[models.providers.openai]\nbaseUrl = "http://localhost:1/v1"',
    "models.providers.*.api": '[models.providers.openai]\napi = "anthropic-messages"',
    "models.providers.*.apiKeyEnv": '[models.providers.openai]\napiKeyEnv = "MY_KEY"',
    "models.providers.*.headers.*": '[models.providers.openai]\nheaders.X-Team = "search"',
    "models.providers.*.models.[id].contextWindow": PRICED + "contextWindow = 1",
    "models.providers.*.models.[id].contextTokens": PRICED + "contextTokens = 1",
    "models.providers.*.models.[id].cost.input": PRICED + "cost = { input = 1, output = 2 }",
    "models.providers.*.models.[id].cost.output": PRICED + "cost = { input = 1, output = 2 }",
    "models.providers.*.models.[id].cost.cacheRead": PRICED
    + "cost.input = 1\ncost.output = 2\ncost.cacheRead = 1",
    "standby.ruleset": 'standby.ruleset = "2026-10"',
    "standby.logic": "standby.logic = 1",
    "standby.rememberedDefaults.*": 'standby.rememberedDefaults.main = "openai/a"',
    "standby.recovery.baseMs": "standby.recovery.baseMs = 1",
    "standby.recovery.rateLimitRetries": "standby.recovery.rateLimitRetries = 1",
    "standby.recovery.rateLimitCapMs": "standby.recovery.rateLimitCapMs = 1",
    "standby.recovery.transientRetries": "standby.recovery.transientRetries = 1",
    "standby.recovery.transientWindowMs": "standby.recovery.transientWindowMs = 1",
    "standby.recovery.transientCapMs": "standby.recovery.transientCapMs = 1",
    "standby.stickiness.idleMs": "standby.stickiness.idleMs = 1",
    "standby.stickiness.capMs": "standby.stickiness.capMs = 1",
    "standby.probes.intervalMs": "standby.probes.intervalMs = 1",
    "standby.probes.marginMs": "standby.probes.marginMs = 1",
    "standby.skipTtlMs": "standby.skipTtlMs = 60_000",
    "standby.sharedMarkers": "standby.sharedMarkers = true",
    "standby.localCooldownMs": "standby.localCooldownMs = 1",
    "standby.selfManaged": 'standby.selfManaged = ["groq"]',
    "standby.consent.*": "standby.consent.billing = false",
    "standby.rows.[id].reason": '[[standby.rows]]\nid = "r"\ntext = ["no money"]\nreason = "billing"',
    "standby.rows.[id].providers": ROW + 'providers = ["openai"]',
    "standby.rows.[id].statuses": ROW + "statuses = [402]",
    "standby.rows.[id].codes": ROW + 'codes = ["broke"]',
    "standby.rows.[id].types": ROW + 'types = ["broke"]',
    "standby.rows.[id].params": ROW + 'params = ["model"]',
    "standby.rows.[id].text": '[[standby.rows]]\nid = "r"\nreason = "auth"\ncodes = ["a"]\ntext = ["no money"]',
    "standby.rows.[id].kind": ROW + 'kind = "cyber_policy"',
    "standby.rows.[id].flags": ROW + 'flags = ["long_window"]',
    "standby.rows.[id].note": ROW + 'note = "seen in May"',
    "standby.evidenceBytes": "standby.evidenceBytes = 0",
    "standby.synchronous": 'standby.synchronous = "normal"',
}
# What these say is what holds without them, as long as there is only one ruleset and one logic.
ONLY_VALUE = {"standby.ruleset", "standby.logic"}
# These tables are refused without the key.
NEEDED = {"auth.profiles.*.provider", "standby.rows.[id].reason"}


def test_every_key_has_a_sample() -> None:
    assert set(SAMPLES) == {key.path for key in KEYS}


@pytest.mark.parametrize("path", sorted(set(SAMPLES) - ONLY_VALUE - NEEDED))
def test_every_key_changes_something(path: str) -> None:
    before, _, last = SAMPLES[path].rpartition("\n")
    changed = parse_settings(SAMPLES[path])
    assert changed != parse_settings(before)
    assert changed.warnings == ()
    assert last


@pytest.mark.parametrize("path", sorted(ONLY_VALUE | NEEDED))
def test_the_other_keys_are_understood(path: str) -> None:
    assert parse_settings(SAMPLES[path]).warnings == ()


def leaves(kind: Any, at: str = "") -> set[str]:
    """Every field of a struct, and of the structs that its fields hold, as the table writes them."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return {leaf for name, hint in hints.items() for leaf in leaves(hint, f"{at}.{name}" if at else name)}
    if origin is dict:
        return leaves(args[1], f"{at}.*")
    if origin is tuple and isinstance(args[0], type) and issubclass(args[0], msgspec.Struct):
        return leaves(args[0], f"{at}.*")
    if origin in (types.UnionType, typing.Union):
        structs = [arg for arg in args if isinstance(arg, type) and issubclass(arg, msgspec.Struct)]
        return set().union(*(leaves(struct, at) for struct in structs)) if structs else {at}
    return {at}


def test_everything_that_settings_hold_can_be_set() -> None:
    reached = {re.sub(r"\{0\}/\{1\}|\{[01]\}", "*", key.into) for key in KEYS}
    special = {
        "agents": "the ids below agents.entries",
        "warnings": "what reading found",
        "policy.rows.*.id": "the id of the table",
        "policy.consent.*.reason": "policy.consent.*",
        "policy.consent.*.models": "policy.consent.*",
        "policy.aliases.*": "policy.aliases",
    }
    assert leaves(Settings) - reached == set(special)
    assert reached - leaves(Settings) == {"policy.consent.*", "policy.aliases"}


WHOLE = """
[agents.defaults]
model = { primary = "openai/gpt-a", fallbacks = ["quick", "openrouter/meta/llama:free"] }
imageModel = "openai/gpt-a"
timeoutSeconds = 0.25
models."groq/llama".alias = "quick"

[agents.entries.main.model]
fallbacks = []
[agents.entries.coder]
model = "quick"
runtime.type = "acp"
[agents.entries.plain]

[auth]
order.openai = ["openai:b@example.org", "openai:default"]
[auth.profiles."openai:default"]
provider = "openai"
mode = "api_key"
[auth.profiles."openai:b@example.org"]
provider = "openai"
mode = "oauth"
email = "b@example.org"

[retry.provider]
maxRetries = 3
maxRetryDelayMs = 1_000
timeoutMs = 5_000

[models.providers.house]
baseUrl = "http://localhost:8000/v1/"
api = "openai-completions"
apiKeyEnv = ["FIRST", "SECOND"]
headers = { X-Team = "search" }
models = [
  { id = "big/one", contextWindow = 1000, contextTokens = 900, cost.input = 0.15, cost.output = 2 },
  { id = "free", cost = { input = 0, output = 0, cacheRead = 1e-6 } },
]

[standby]
rememberedDefaults.main = "quick"
skipTtlMs = 1000
sharedMarkers = true
localCooldownMs = 5
selfManaged = ["house"]
evidenceBytes = 100
synchronous = "normal"
recovery = { baseMs = 1, rateLimitRetries = 2, rateLimitCapMs = 3, transientRetries = 4 }
stickiness = { idleMs = 7, capMs = 8 }
probes = { intervalMs = 9, marginMs = 10 }
consent = { billing = false, rate_limit = true, timeout = ["quick"] }
[[standby.rows]]
id = "two"
reason = "refusal"
kind = "misalignment"
codes = ["a"]
[[standby.rows]]
id = "one"
reason = "billing"
text = ["no money"]
"""


@pytest.mark.rule("CFG-1", "CFG-4", "CFG-5", "OURS-13", "OURS-7")
def test_a_file_becomes_a_policy() -> None:
    settings = parse_settings(WHOLE)
    llama = "groq/llama"
    assert settings.policy == Policy(
        models=ModelChain(primary="openai/gpt-a", fallbacks=(llama, "openrouter/meta/llama:free")),
        images=ModelChain(primary="openai/gpt-a"),
        agents={
            "main": AgentModels(model=ModelChain(fallbacks=()), remembered=llama),
            "coder": AgentModels(model=ModelChain(primary=llama), acp=True),
        },
        order={"openai": ("openai:b@example.org", "openai:default")},
        profiles={
            "openai:default": ProfileRule(provider="openai", mode=CredentialKind.API_KEY),
            "openai:b@example.org": ProfileRule(provider="openai", mode=CredentialKind.OAUTH),
        },
        aliases={"quick": llama},
        recovery=Recovery(
            max_retries=3,
            max_retry_delay_ms=1000,
            base_ms=1,
            rate_limit_retries=2,
            rate_limit_cap_ms=3,
            transient_retries=4,
        ),
        stickiness=Stickiness(idle_ms=7, cap_ms=8),
        probes=Probes(interval_ms=9, margin_ms=10),
        skip_ttl_ms=1000,
        shared_markers=True,
        local_cooldown_ms=5,
        attempt_timeout_ms=250,
        self_managed=("house",),
        prices={
            "house/big/one": Price(input=150_000, output=2_000_000),
            "house/free": Price(input=0, output=0, cached=1),
        },
        windows={"house/big/one": 1000},
        context_tokens={"house/big/one": 900},
        consent=(
            Consent(reason=Failure.BILLING, models=()),
            Consent(reason=Failure.RATE_LIMIT),
            Consent(reason=Failure.TIMEOUT, models=(llama,)),
        ),
        rows=(
            OperatorRow(id="two", reason=Failure.REFUSAL, kind=RefusalKind.MISALIGNMENT, codes=("a",)),
            OperatorRow(id="one", reason=Failure.BILLING, text=("no money",)),
        ),
    )
    assert settings.providers == {
        "house": ProviderSettings(
            base_url="http://localhost:8000/v1/",
            wire=Wire.OPENAI_CHAT,
            api_key_env=("FIRST", "SECOND"),
            headers={"X-Team": "search"},
        )
    }
    assert settings.agents == ("main", "coder", "plain")
    assert settings.emails == {"openai:b@example.org": "b@example.org"}
    assert (settings.request_timeout_ms, settings.evidence_bytes, settings.synchronous) == (5000, 100, "normal")
    assert settings.warnings == ()


DOCUMENTED = """
[agents.defaults]
model = { primary = "openai/gpt-a", fallbacks = ["groq/llama"] }
timeoutSeconds = 90
embeddedAgent.cyberFailover = "ask"
[agents.entries.coder]
model = "anthropic/beta"
[retry.provider]
maxRetries = 2
maxRetryDelayMs = 5_000
timeoutMs = 7_000
"""


@pytest.mark.rule("CFG-5")
def test_the_documented_keys_of_agents_and_retries_decide_a_turn() -> None:
    settings = parse_settings(DOCUMENTED)
    assert settings.request_timeout_ms == 7_000
    (warning,) = settings.warnings
    assert "agents.defaults.embeddedAgent.cyberFailover: has no effect" in warning
    w = World(settings.policy, {"openai": ["openai:one"], "anthropic": ["anthropic:one"], "groq": ["groq:one"]})
    turn = w.turn(agent="coder")
    assert isinstance(turn.step, CallModel)
    assert (turn.step.model, turn.step.timeout_ms) == ("anthropic/beta", 90_000)
    ended = w.give_up(turn, "server_error")
    assert isinstance(ended, Settled), "an agent's own model is strict"
    assert [one.model for one in turn.state.attempts] == ["anthropic/beta"] * 3, "one call and two retries"
    other = w.turn("other")
    step = w.fail(other, "rate_limit", retry_after=6)
    assert isinstance(step, CallModel), "six seconds are more than is waited for"
    assert step.model == "groq/llama"


def test_an_empty_file_leaves_everything_to_the_ruleset() -> None:
    assert parse_settings("") == Settings(policy=Policy())
    assert parse_settings("").evidence_bytes == 2048
    assert parse_settings("").synchronous == "full"


def test_in_the_log_profiles_stand_under_their_aliases() -> None:
    settings = parse_settings(WHOLE)
    policy = settings.policy_with({"openai:default": "p-1", "openai:b@example.org": "p-2"}.__getitem__)
    assert policy.order == {"openai": ("p-2", "p-1")}
    assert {alias: rule.mode for alias, rule in policy.profiles.items()} == {
        "p-1": CredentialKind.API_KEY,
        "p-2": CredentialKind.OAUTH,
    }
    assert b"example.org" not in msgspec.json.encode(policy)
    assert msgspec.structs.replace(policy, order={}, profiles={}) == msgspec.structs.replace(
        settings.policy, order={}, profiles={}
    )


def test_endpoints_come_from_the_file_and_the_table_of_providers() -> None:
    settings = parse_settings(WHOLE)
    house = settings.endpoint("house")
    assert (house.base_url, house.wire) == ("http://localhost:8000/v1", Wire.OPENAI_CHAT)
    assert house.headers == (("X-Team", "search"),)
    assert settings.endpoint("anthropic").wire is Wire.ANTHROPIC_MESSAGES


def test_the_models_of_a_provider_may_be_described_without_saying_where_it_is() -> None:
    settings = parse_settings('[[models.providers.own.models]]\nid = "m"\ncontextWindow = 5\n')
    assert settings.policy.windows == {"own/m": 5}
    assert settings.providers == {}


def test_settings_load_no_http_client() -> None:
    code = "import sys; from standby.hosts.settings import load_settings; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.checkout
def test_the_example_is_read_without_a_word() -> None:
    settings = load_settings(Path(__file__).resolve().parents[2] / "examples" / "policy.toml")
    assert settings.warnings == ()
    assert settings.policy.models.fallbacks == ("anthropic/claude-sonnet-4-5", "openai/gpt-5-mini")
    assert set(settings.providers) == {"openai", "anthropic"}

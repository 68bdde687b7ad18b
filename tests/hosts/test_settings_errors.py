"""What is wrong with a settings file: every message names file, line and key, and no secret."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.events.codec import COMMIT_LIMIT
from standby.events.errors import BadPolicy
from standby.hosts.settings import KEYS, Settings, load_settings, parse_settings

KEY = "sk-test-PLACEHOLDER-0123456789"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.toml"
MODEL = "[[models.providers.openai.models]]\n"
ROW = "[[standby.rows]]\n"
USE_INSTEAD = (
    "settings hold no secrets: name the environment variable that holds it with apiKeyEnv, "
    "or keep it with `standby auth add`"
)


def refusal(text: str) -> str:
    with pytest.raises(BadPolicy) as caught:
        parse_settings(text, name="p.toml")
    return str(caught.value)


UNKNOWN = [
    (
        '[agents.defaults.model]\nprimary = "openai/a"\nfalbacks = []',
        '3: agents.defaults.model.falbacks: unknown key; did you mean "fallbacks"?',
    ),
    ("agent.defaults = {}", '1: agent: unknown key; did you mean "agents"?'),
    ("retry.provider.max_retries = 1",
     '1: retry.provider.max_retries: unknown key; did you mean "maxRetries"?'),
    ("retry.provider.MAX-RETRIES = 1",
     '1: retry.provider.MAX-RETRIES: unknown key; did you mean "maxRetries"?'),
    ("\nstandby.stickiness.IdleMS = 1", '2: standby.stickiness.IdleMS: unknown key; did you mean "idleMs"?'),
    (
        "fallbacks = []",
        '1: fallbacks: unknown key; did you mean "agents.defaults.model.fallbacks"?',
    ),
    (
        "[standby.probes]\nxyz = 1\n",
        "2: standby.probes.xyz: unknown key; known here: intervalMs, marginMs",
    ),
    (
        MODEL + 'id = "a"\ncost = { input = 1, output = 1, chacheRead = 1 }',
        '3: models.providers.openai.models[0].cost.chacheRead: unknown key; did you mean "cacheRead"?',
    ),
    (MODEL + 'ids = "a"\nid = "b"',
     '2: models.providers.openai.models[0].ids: unknown key; did you mean "id"?'),
    (
        'standby.consent.biling = true',
        '1: standby.consent.biling: "biling" is none of auth, auth_permanent, format, rate_limit, overloaded, '
        "billing, server_error, timeout, tls_certificate, model_not_found, session_expired, context_overflow, "
        "request_size_ceiling, refusal, output_limit, empty_response, no_error_details, unclassified, unknown, "
        'interrupted; did you mean "billing"?',
    ),
    ('"*" = 1', '1: "*": unknown key; known here: agents, auth, models, retry, standby'),
    ('models.providers.openai.models."[id]" = 1', "1: models.providers.openai.models: "
     "has to be an array of tables, each with an id, not a table"),
]  # fmt: skip

IMPOSSIBLE = [
    # ---- types ----
    ("agents = 1", "1: agents: has to be a table, not a whole number"),
    ("agents.defaults.model = 1.5", "1: agents.defaults.model: has to be text, not a number"),
    ("agents.defaults.model.fallbacks = 'x/y'",
     "1: agents.defaults.model.fallbacks: has to be a list, not text"),
    ("standby.sharedMarkers = 1", "1: standby.sharedMarkers: has to be true or false, not a whole number"),
    ("standby.skipTtlMs = true", "1: standby.skipTtlMs: has to be a whole number, not a truth value"),
    ("standby.skipTtlMs = 1.0", "1: standby.skipTtlMs: "
     "has to be a whole number; write 1.0 without decimal point and exponent"),
    ("standby.skipTtlMs = 1.5", "1: standby.skipTtlMs: has to be a whole number; 1.5 has a fraction"),
    ("standby.skipTtlMs = nan", "1: standby.skipTtlMs: has to be a whole number; NaN is none"),
    ("standby.skipTtlMs = {}", "1: standby.skipTtlMs: has to be a whole number, not a table"),
    ("standby.skipTtlMs = 2026-10-01", "1: standby.skipTtlMs: has to be a whole number, not a date or time"),
    ("standby.rows = [1]", "1: standby.rows[0]: has to be a table with an id, not a whole number"),
    ("[models.providers.openai]\nmodels = 'a'", "2: models.providers.openai.models: "
     "has to be an array of tables, each with an id, not text"),
    ("standby.consent.billing = 3", "1: standby.consent.billing: has to be a list, not a whole number"),
    ("agents.defaults.timeoutSeconds = true", "1: agents.defaults.timeoutSeconds: "
     "has to be a number, not a truth value"),
    ("agents.defaults.timeoutSeconds = '5'", "1: agents.defaults.timeoutSeconds: has to be a number, not text"),
    ("models.providers.openai.apiKeyEnv = ['A', 1]", "1: models.providers.openai.apiKeyEnv[1]: "
     "has to be the name of an environment variable, not a whole number"),
    ("models.providers.openai.headers.X = 1", "1: models.providers.openai.headers.X: "
     "has to be text, not a whole number"),
    # ---- numbers ----
    ("retry.provider.maxRetries = -1", "1: retry.provider.maxRetries: has to lie between 0 and 1000"),
    ("retry.provider.timeoutMs = 0", "1: retry.provider.timeoutMs: has to lie between 1 and 2678400000"),
    ("standby.evidenceBytes = 2049", "1: standby.evidenceBytes: has to lie between 0 and 2048"),
    ("standby.localCooldownMs = 2678400001", "1: standby.localCooldownMs: has to lie between 0 and 2678400000"),
    ("standby.logic = 2", "1: standby.logic: has to lie between 1 and 1"),
    ("agents.defaults.timeoutSeconds = 0", "1: agents.defaults.timeoutSeconds: has to be more than 0"),
    ("agents.defaults.timeoutSeconds = -1",
     "1: agents.defaults.timeoutSeconds: has to lie between 0 and 2678400"),
    ("agents.defaults.timeoutSeconds = nan",
     "1: agents.defaults.timeoutSeconds: has to lie between 0 and 2678400"),
    ("agents.defaults.timeoutSeconds = 0.0001", "1: agents.defaults.timeoutSeconds: "
     "is finer than 1/1000, which is the smallest step here"),
    (MODEL + "id='a'\ncost = {input = inf, output = 1}", "3: models.providers.openai.models[0].cost.input: "
     "has to lie between 0 and 1000000"),
    (MODEL + "id='a'\ncost = {input = 1e999999999999999999999, output = 1}",
     "3: models.providers.openai.models[0].cost.input: has to lie between 0 and 1000000"),
    (MODEL + "id='a'\ncost = {input = 1e-7, output = 1}", "3: models.providers.openai.models[0].cost.input: "
     "is finer than 1/1000000, which is the smallest step here"),
    (MODEL + "id='a'\ncontextWindow = 0", "3: models.providers.openai.models[0].contextWindow: "
     "has to lie between 1 and 1000000000"),
    # ---- words ----
    ("agents.defaults.model = ' '", "1: agents.defaults.model: is empty"),
    ("agents.defaults.model = 'gpt-a'", "1: agents.defaults.model: "
     '"gpt-a" is neither provider/model nor the alias of a model'),
    ("agents.defaults.model = 'openai/'", "1: agents.defaults.model: "
     '"openai/" is neither provider/model nor the alias of a model'),
    ("agents.defaults.models.'x/y'.alias = 'sonnet'\nagents.defaults.model = 'sonet'",
     "2: agents.defaults.model: "
     '"sonet" is neither provider/model nor the alias of a model; did you mean "sonnet"?'),
    ("agents.defaults.model.fallbacks = [\n 'a/b',\n 'a /b']", "3: agents.defaults.model.fallbacks[1]: "
     '"a /b" is not a model: write it as provider/model'),
    ("agents.defaults.models.gpt.alias = 'x'", "1: agents.defaults.models.gpt: "
     '"gpt" is neither provider/model nor the alias of a model'),
    ("agents.defaults.models.'x/y'.alias = 'a/b'", '1: agents.defaults.models."x/y".alias: '
     '"a/b" is not a short name: no spaces and no \'/\''),
    ("agents.defaults.models.'x/y'.alias = 's'\nagents.defaults.models.'x/z'.alias = 's'",
     '2: agents.defaults.models."x/z".alias: the alias "s" belongs to x/y already'),
    ("agents.entries.'a b'.model = 'x/y'", '1: agents.entries."a b": '
     '"a b" is not the id of an agent: use letters, digits, ".", "_" and "-"'),
    ("[agents.entries.'']", '1: agents.entries."": is empty'),
    ("agents.entries.a.runtime.type = 'apc'", "1: agents.entries.a.runtime.type: "
     '"apc" is none of acp, embedded; did you mean "acp"?'),
    ("standby.ruleset = '2026-04'", '1: standby.ruleset: "2026-04" is known, but its decisions are not '
     "implemented in this version; choose 2026-10"),
    ("standby.ruleset = '2026-11'", '1: standby.ruleset: "2026-11" is none of'),
    ("standby.synchronous = 'off'", '1: standby.synchronous: "off" is none of full, normal'),
    ("models.providers.openai.api = 'openai'", '1: models.providers.openai.api: "openai" is none of '
     'openai-completions, openai-chat, anthropic-messages'),
    ("auth.profiles.a = {provider = 'openai', mode = 'apikey'}", '1: auth.profiles.a.mode: '
     '"apikey" is none of oauth, token, api_key; did you mean "api_key"?'),
    ("auth.profiles.a = {provider = 'openai', email = 'me'}", '1: auth.profiles.a.email: '
     '"me" is not an email address'),
    ("auth.profiles.a = {provider = 'o\\u0000'}".replace("'", '"'), "1: auth.profiles.a.provider: "
     "has spaces around it or control characters in it"),
    (f"auth.profiles.a = {{provider = '{'x' * 201}'}}",
     "1: auth.profiles.a.provider: is longer than 200 characters"),
    # ---- lists ----
    ("auth.order.openai = ['openai:a', 'openai:a']",
     '1: auth.order.openai[1]: "openai:a" stands in the list twice'),
    ("auth.order.openai = []", "1: auth.order.openai: "
     "is an empty list; leave the key out, or name what belongs there"),
    ("models.providers.openai.apiKeyEnv = []", "1: models.providers.openai.apiKeyEnv: "
     "is an empty list; name at least one environment variable, or leave the key out"),
    ("models.providers.openai.apiKeyEnv = ['A', 'A']", "1: models.providers.openai.apiKeyEnv[1]: "
     "A stands in the list twice"),
    (f"agents.defaults.model.fallbacks = {[f'p/{n}' for n in range(32)]}",
     "1: agents.defaults.model.fallbacks: "
     "makes a chain of 33 models, the selected one included; at most 32 are tried"),
    (f"agents.defaults.model = 'p/0'\n[agents.entries.a.model]\nfallbacks = {[f'p/{n}' for n in range(1, 33)]}",
     "3: agents.entries.a.model.fallbacks: "
     "makes a chain of 33 models, the selected one included; at most 32 are tried"),
    # ---- tables ----
    ("[auth.profiles.a]\nmode = 'oauth'", '1: auth.profiles.a: the key "provider" is missing'),
    (MODEL + "contextWindow = 1", '1: models.providers.openai.models[0]: the key "id" is missing'),
    (MODEL + "id = 'a'\ncost.input = 1",
     '3: models.providers.openai.models[0].cost: the key "output" is missing'),
    (MODEL + "id = 'a'\n" + MODEL + "id = 'a'",
     '4: models.providers.openai.models[1].id: the id "a" is used twice'),
    (ROW + "id = 'a'\ntext = ['abc']", '1: standby.rows[0]: the key "reason" is missing'),
    (ROW + "id = 'a'\nreason = 'billing'", "1: standby.rows[0]: it has no matcher: "
     "fill in statuses, codes, types, params or text"),
    (ROW + "id = 'a'\nreason = 'auth'\ncodes = ['x']\n" + ROW + "id = 'b'\nreason = 'auth'\nstatuses = [402]\n"
     "flags = ['nope']", "5: standby.rows[1]: flag 'nope' is unknown; known are"),
    (ROW + "id = 'a'\nreason = 'auth'\nstatuses = [99]", "4: standby.rows[0].statuses[0]: "
     "has to lie between 100 and 599"),
    # ---- between keys ----
    ("auth.profiles.'openai:a'.provider = 'groq'", '1: auth.profiles."openai:a".provider: '
     'the profile is called "openai:a", so it belongs to "openai", not to "groq"'),
    ("auth.order.openai = ['openai:a', 'groq:a']", '1: auth.order.openai[1]: '
     'the profile "groq:a" belongs to "groq", not to "openai"'),
    ("auth.profiles.mine.provider = 'groq'\nauth.order.openai = [\n'mine']", '3: auth.order.openai[0]: '
     'the profile "mine" belongs to "groq", not to "openai"'),
    ("models.providers.own.baseUrl = 'http://localhost/'",
     "1: models.providers.own: the provider is not known by "
     "name: give its baseUrl and its api, such as openai-completions"),
    ("[models.providers.openai]\nbaseUrl = 'ftp://x'", "2: models.providers.openai.baseUrl: "
     "Provider 'openai': the base URL must begin with http:// or https://"),
    *((f"models.providers.openai.baseUrl = 'http://{bad}'", "1: models.providers.openai.baseUrl: "
       "is not the URL of a server, such as http://localhost:8000/v1")
      for bad in ("[::1", "host:port", "host:99999", "host:0", "a b")),
    ("[models.providers.openai.headers]\nX-A = 'a'\nx-a = 'b'", "2: models.providers.openai.headers.X-A: "
     "the header is given twice"),
    ("models.providers.openai.headers.'x y' = 'a'", '1: models.providers.openai.headers."x y": '
     "is not the name of an HTTP header"),
    ('models.providers.openai.headers.x = "a\\nb"', "1: models.providers.openai.headers.x: "
     "is not the value of an HTTP header: plain ASCII without spaces around it"),
]  # fmt: skip

SYNTAX = [
    ("a = 1\nb = \n", "p.toml:2: this is not TOML: Invalid value"),
    ("a = [\n1,\n", "p.toml:2: this is not TOML: "),
    ("a = 1\n\na = 2", "p.toml:3: this is not TOML: Cannot overwrite a value"),
    ("a = " + "[" * 5000 + "]" * 5000, "p.toml: this is no settings file: it is nested "),
    ("a." * 5000 + "a = 1", "p.toml: this is no settings file: it is nested more than 32 levels deep"),
    ("a = " + "9" * 5000, "p.toml:1: this is not TOML: "),
]


@pytest.mark.parametrize(("text", "message"), UNKNOWN, ids=lambda value: value[:40])
def test_an_unknown_key_is_an_error_with_a_suggestion(text: str, message: str) -> None:
    assert refusal(text) == f"p.toml:{message}"


@pytest.mark.parametrize(("text", "message"), IMPOSSIBLE, ids=lambda value: value[:40])
def test_a_value_that_cannot_be_is_an_error(text: str, message: str) -> None:
    assert refusal(text).startswith(f"p.toml:{message}")


@pytest.mark.parametrize(("text", "message"), SYNTAX, ids=lambda value: value[:20])
def test_what_is_not_toml_is_an_error(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


def test_as_many_fallbacks_as_a_chain_can_hold_are_fine() -> None:
    fallbacks = [f"p/{n}" for n in range(32)]
    text = f"[agents.defaults.model]\nprimary = 'p/0'\nfallbacks = {fallbacks}"
    assert parse_settings(text).policy.models.fallbacks == tuple(fallbacks)


def test_an_agent_with_a_primary_of_its_own_counts_that_one() -> None:
    fallbacks = [f"p/{n}" for n in range(32)]
    text = f"agents.defaults.model = 'p/x'\n[agents.entries.a.model]\nprimary = 'p/0'\nfallbacks = {fallbacks}"
    assert parse_settings(text).policy.agents["a"].model.fallbacks == tuple(fallbacks)
    acp = text + "\n[agents.entries.a.runtime]\ntype = 'acp'"
    assert "makes a chain of 33 models" in refusal(acp)
    remembered = acp + "\n[standby.rememberedDefaults]\na = 'p/1'"
    assert parse_settings(remembered).policy.agents["a"].remembered == "p/1"


def test_a_name_may_have_two_hundred_characters() -> None:
    model = "openai/" + "m" * 193
    assert parse_settings(f"agents.defaults.model = '{model}'").policy.models.primary == model


def test_there_are_not_more_rows_than_a_table_takes() -> None:
    rows = "".join(f"{ROW}id = 'r{n}'\nreason = 'auth'\nstatuses = [499]\n" for n in range(257))
    assert refusal(rows).startswith("p.toml:1: standby.rows: ")
    assert "at most 256 are allowed" in refusal(rows)


def test_a_policy_that_does_not_fit_into_a_commit_is_an_error() -> None:
    rows = "".join(
        f"{ROW}id = 'r{n}'\nreason = 'auth'\ntext = ['{'word ' * 35}{n}']\nnote = '{'n' * 190}'\n"
        for n in range(200)
    )
    assert refusal(rows).startswith("p.toml: the policy has ")
    assert f"at most {COMMIT_LIMIT - 1024} fit into the log" in refusal(rows)


# ---- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.rule("STORE-1")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[models.providers.openai]\napiKey = 'whatever'", "2: models.providers.openai.apiKey: "),
        ("[models.providers.openai]\napi_key = {source = 'env'}", "2: models.providers.openai.api_key: "),
        ("[auth.profiles.a]\nprovider = 'openai'\nkey = 'whatever'", "3: auth.profiles.a.key: "),
        ("[auth.profiles.a]\nprovider = 'openai'\nrefresh = 'whatever'", "3: auth.profiles.a.refresh: "),
        ("standby.accessToken = 'whatever'", "1: standby.accessToken: "),
        (
            "models.providers.openai.headers.Authorization = 'x'",
            "1: models.providers.openai.headers.Authorization: ",
        ),
        ("models.providers.openai.headers.x-api-key = 'x'", "1: models.providers.openai.headers.x-api-key: "),
    ],
)
def test_a_key_that_holds_a_secret_is_refused(text: str, where: str) -> None:
    assert refusal(text) == f"p.toml:{where}{USE_INSTEAD}"


@pytest.mark.rule("STORE-1")
@pytest.mark.invariant(12)
@pytest.mark.parametrize(
    "text",
    [
        f"agents.defaults.model = '{KEY}'",
        f"agents.defaults.model.fallbacks = ['x/y', '{KEY}']",
        f"agents.defaults.model.fallbacks = [['{KEY}']]",
        f"auth.order.openai = ['openai:{KEY}']",
        f"auth.order.'{KEY}' = ['a']",
        f"models.providers.openai.apiKeyEnv = '{KEY}'",
        f"models.providers.openai.apiKeyEnv = ['A', 'not a name: {KEY[8:]}']",
        f"models.providers.openai.headers.X-Proxy = 'Bearer {KEY[8:]}'",
        f"models.providers.openai.baseUrl = 'https://user:{KEY[8:]}@host/v1'",
        f"models.providers.openai.baseUrl = 'https://host/v1?key={KEY}'",
        f"standby.synchronous = '{KEY}'",
        f"unknown = '{KEY}'",
        f"{KEY} = 1",
        f"[[standby.rows]]\nid = '{KEY}'",
        f"[standby]\nnote = '{KEY}",
        f"[standby]\nnote = {KEY}",
    ],
)
def test_no_message_repeats_a_secret(text: str) -> None:
    assert KEY[8:] not in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "auth.order.openai = ['openai:sk-personal', 'openai:token']",
        "[auth.profiles.'openai:token']\nprovider = 'openai'\nmode = 'token'",
        "agents.defaults.model = 'xai/grok-4-fast-reasoning'",
        "agents.defaults.model = 'fireworks/accounts/fireworks/models/llama-v3p1-405b-instruct'",
        "models.providers.openai.apiKeyEnv = 'OPENAI_API_KEY'",
    ],
)
def test_what_only_resembles_a_secret_is_fine(text: str) -> None:
    assert parse_settings(text).warnings == ()


# ---- warnings ------------------------------------------------------------------------------------------------


@pytest.mark.rule("CFG-3")
def test_cooldown_settings_of_the_earlier_rules_are_a_warning() -> None:
    settings = parse_settings("[auth.cooldowns]\nbillingBackoffHours = 5\nanything = {}", name="p.toml")
    assert settings.warnings == (
        "p.toml:1: auth.cooldowns: has no effect: "
        "the rules of 2026-10 have their windows and ladders built in (CFG-3)",
    )
    assert settings.policy == Settings().policy


def test_access_escalation_that_is_not_made_is_a_warning() -> None:
    settings = parse_settings("[agents.defaults.embeddedAgent.cyberFailover]\nmode = 'off'")
    assert len(settings.warnings) == 1
    assert "CYB-4" in settings.warnings[0]
    message = "agents.defaults.embeddedAgent.cyberFailure: unknown key; did you mean "
    assert message in refusal("[agents.defaults.embeddedAgent.cyberFailure]\nmode = 'off'")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("agents.defaults.model = 'opneai/a'", "1: agents.defaults.model"),
        ("agents.defaults.imageModel.primary = 'opneai/a'", "1: agents.defaults.imageModel.primary"),
        (
            "[agents.defaults.model]\nfallbacks = [\n'groq/a',\n'opneai/a']",
            "4: agents.defaults.model.fallbacks[1]",
        ),
        ("agents.entries.a.model = 'opneai/a'", "1: agents.entries.a.model"),
        ("standby.rememberedDefaults.main = 'opneai/a'", "1: standby.rememberedDefaults.main"),
        ("auth.order.opneai = ['opneai:a']", "1: auth.order.opneai"),
        ("auth.profiles.a.provider = 'opneai'", "1: auth.profiles.a.provider"),
        ("standby.selfManaged = ['groq', 'opneai']", "1: standby.selfManaged[1]"),
    ],
)
def test_a_provider_that_nobody_knows_is_a_warning(text: str, where: str) -> None:
    assert parse_settings(text, name="p.toml").warnings == (
        f'p.toml:{where}: the provider "opneai" is neither known by name nor in models.providers; '
        'did you mean "openai"?',
    )


def test_a_provider_is_warned_about_once_and_not_when_it_is_described() -> None:
    assert len(parse_settings("agents.defaults.model = {primary = 'z/a', fallbacks = ['z/b']}").warnings) == 1
    described = MODEL.replace("openai", "z") + "id = 'a'\ncontextWindow = 1"
    assert parse_settings("agents.defaults.model = 'z/a'\n" + described).warnings == ()


@pytest.mark.rule("SKIP-1")
@pytest.mark.parametrize(("given_ms", "taken_ms"), [(1, 1000), (999, 1000), (600_001, 600_000)])
def test_a_skip_time_out_of_bounds_is_brought_into_them(given_ms: int, taken_ms: int) -> None:
    settings = parse_settings(f"[standby]\nskipTtlMs = {given_ms}", name="p.toml")
    assert settings.policy.skip_ttl_ms == taken_ms
    assert settings.warnings == (
        f"p.toml:2: standby.skipTtlMs: is brought to {taken_ms}: it lies between 1 s and 10 min (SKIP-1)",
    )


# ---- files ---------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(BadPolicy, match="cannot be read"):
        load_settings(missing)
    with pytest.raises(BadPolicy, match="cannot be read"):
        load_settings(tmp_path)
    odd = tmp_path / "odd.toml"
    odd.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(BadPolicy) as caught:
        load_settings(odd)
    assert str(caught.value) == f"{odd}:2: the settings are not UTF-8 text; save the file as UTF-8"
    odd.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(BadPolicy, match="larger than 1048576 bytes"):
        load_settings(odd)


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes("\ufeff# größer\r\n[standby]\r\nskipTtlMs = 5000\r\n".encode())
    assert load_settings(path).policy.skip_ttl_ms == 5000
    path.write_bytes(b"\xef\xbb\xbf[standby]\r\nskipTtl = 5000\r\n")
    with pytest.raises(BadPolicy) as caught:
        load_settings(path)
    assert str(caught.value) == f'{path}:2: standby.skipTtl: unknown key; did you mean "skipTtlMs"?'


SAMPLED = [key.path for key in KEYS]
NAMES = st.sampled_from(
    [part for path in SAMPLED for part in path.split(".")]
    + ["a", "openai", "openai/a", "billing", "id", "x y", ""]
)
VALUES = st.recursive(
    st.none().map(lambda _: "x/y")
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["openai/a", "openai:a", "billing", "api_key"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def written(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(name)} = {written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" if not c.isalnum() else c for c in value) + '"'
    return repr(value).lower()


def outcome(text: str) -> str:
    """The message of a refusal; for settings, one like it."""
    try:
        settings = parse_settings(text, name="p.toml")
    except BadPolicy as error:
        return str(error)
    return f"p.toml:0: {type(settings).__name__}: fine"


def below(path: list[str], value: Any) -> dict[str, Any]:
    """TOML data with a value at the path of a key."""
    name = "openai" if path[0] == "*" else path[0]
    if len(path) == 1:
        return {name: value}
    if path[1] == "[id]":
        return {name: [{"id": "a", **(below(path[2:], value) if path[2:] else {})}]}
    return {name: below(path[1:], value)}


@given(st.sampled_from(SAMPLED), VALUES)
def test_any_value_of_a_key_is_either_settings_or_a_located_error(path: str, value: Any) -> None:
    text = "\n".join(f"{written(name)} = {written(one)}" for name, one in below(path.split("."), value).items())
    assert re.match(r"p\.toml:[01]: \S.*: ", outcome(text))


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_toml_is_either_settings_or_a_located_error(data: dict[str, Any]) -> None:
    text = "\n".join(f"{written(name)} = {written(value)}" for name, value in data.items())
    assert re.match(r"p\.toml:\d+: \S.*: ", outcome(text))


@pytest.mark.checkout
@given(st.data())
def test_a_damaged_file_is_either_settings_or_a_located_error(data: st.DataObject) -> None:
    text = EXAMPLE.read_text("utf-8")
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.sampled_from(["", "x", '"', "[", "= 1\n", "\n"])) + text[at + 1 :]
    assert re.match(r"p\.toml:\d+: ", outcome(damaged))

"""Which profiles the log learns of, and which secret a call gets."""

from typing import Any

import pytest

from standby.events import facts as f
from standby.events.errors import BadInput
from standby.events.facts import Usage
from standby.events.policy import Price
from standby.events.vocabulary import CredentialKind
from standby.hosts.credential_values import api_key, token
from standby.hosts.credentials import CredentialStore
from standby.hosts.runner.keys import Keys
from standby.hosts.settings import parse_settings
from standby.projections.costs import TurnUsage, price_of, usage_of
from tests.hosts.runners import POLICY, house

KEY = "sk-test-PLACEHOLDER-0001"


def names(keys: Keys) -> dict[str, tuple[bool, bool]]:
    return {profile.name: (profile.usable, profile.inline) for profile in keys.profiles()[0]}


def test_stored_credentials_come_first_and_settings_add_inline_ones(tmp_path: Any) -> None:
    settings = parse_settings(POLICY)
    with CredentialStore(tmp_path / "keys.sqlite") as store:
        store.add(api_key("openai", KEY), name="work")
        store.add(token("openai", "env:STATIC", expires_ms=5), name="static")
        store.set_order("openai", ["openai:work", "openai:static"])
        keys = Keys(settings, store, {"FIRST_KEY": KEY})
        assert names(keys) == {
            "openai:static": (False, False),
            "openai:work": (True, False),
            "inline-api-key:openai": (True, True),
            "inline-api-key:anthropic": (False, True),
        }
        found, order = keys.profiles()
        assert order == {"openai": ("openai:work", "openai:static")}
        assert [(p.kind, p.expires_ms) for p in found[:2]] == [
            (CredentialKind.TOKEN, 5),
            (CredentialKind.API_KEY, None),
        ]


def test_the_first_variable_that_is_set_gives_the_key() -> None:
    settings = parse_settings('[models.providers.openai]\napiKeyEnv = ["ONE", "TWO"]\n')
    keys = Keys(settings, None, {"ONE": " ", "TWO": KEY})
    secret = keys.secret("inline-api-key:openai")
    assert secret is not None
    assert secret.reveal() == KEY


def test_a_known_providers_usual_variable_counts_only_at_its_own_address() -> None:
    chain = '[agents.defaults]\nmodel = "openai/alpha"\n'
    assert names(Keys(parse_settings(chain), None, {"OPENAI_API_KEY": KEY})) == {
        "inline-api-key:openai": (True, True)
    }
    assert names(Keys(parse_settings(chain), None, {})) == {"inline-api-key:openai": (False, True)}
    elsewhere = chain + '[models.providers.openai]\nbaseUrl = "http://127.0.0.1:9/v1"\n'
    assert names(Keys(parse_settings(elsewhere), None, {"OPENAI_API_KEY": KEY})) == {}


def test_a_stored_credential_leaves_the_usual_variable_alone(tmp_path: Any) -> None:
    chain = parse_settings('[agents.defaults]\nmodel = "openai/alpha"\n')
    with CredentialStore(tmp_path / "keys.sqlite") as store:
        store.add(api_key("openai", KEY))
        assert list(names(Keys(chain, store, {"OPENAI_API_KEY": KEY}))) == ["openai:default"]


def test_a_provider_without_a_key_gets_no_profile() -> None:
    assert names(Keys(parse_settings('[agents.defaults]\nmodel = "ollama/small"\n'), None, {})) == {}
    assert Keys(None, None, {}).secret("") is None


@pytest.mark.parametrize("profile", ["inline-api-key:openai", "openai:gone"])
def test_a_secret_that_is_not_there_is_said_so(profile: str, tmp_path: Any) -> None:
    with CredentialStore(tmp_path / "keys.sqlite") as store:
        keys = Keys(parse_settings(POLICY), store, {})
        with pytest.raises(BadInput, match=r"FIRST_KEY|openai:gone"):
            keys.secret(profile)
    with pytest.raises(BadInput, match="no credential store"):
        Keys(None, None, {}).secret("openai:gone")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_log_learns_of_credentials_and_of_changes_once(kind: str) -> None:
    with house(kind, {"alpha": ["1", "2", "3"]}, environ={"FIRST_KEY": KEY}) as at:
        at.run()
        at.run()
        at.environ["SECOND_KEY"] = KEY
        at.run()
        seen = at.facts(f.ProfilesObserved)
        assert [[(p.provider, p.usable, p.inline) for p in fact.profiles] for fact in seen] == [
            [("openai", True, True), ("anthropic", False, True)],
            [("openai", True, True), ("anthropic", True, True)],
        ]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_model_that_only_a_turn_names_is_called_with_its_providers_usual_key(kind: str) -> None:
    with house(kind, {"alpha": ["1", "2"]}, policy="", environ={"OPENAI_API_KEY": KEY}) as at:
        results = [at.run(model="openai/alpha") for _ in range(2)]
        seen = at.facts(f.ProfilesObserved)
        assert [r.settled.attempts[0].profile for r in results] == ["inline-api-key:openai"] * 2
        assert len(seen) == 1


# ---- usage and cost ----------------------------------------------------------------------------------------

PRICES = {
    "openai/alpha": Price(input=2_500_000, output=10_000_000, cached=1_250_000),
    "anthropic/beta": Price(input=3_000_000, output=15_000_000),
}


def test_cached_tokens_have_their_own_price_where_there_is_one() -> None:
    used = Usage(input=1000, output=100, cached=400)
    assert price_of(used, PRICES["openai/alpha"]) == 600 * 2_500_000 + 400 * 1_250_000 + 100 * 10_000_000
    assert price_of(used, PRICES["anthropic/beta"]) == 1000 * 3_000_000 + 100 * 15_000_000


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
def test_every_completed_call_counts_at_its_own_price() -> None:
    first, second = Usage(input=1_000_000, output=0), Usage(input=0, output=1_000_000, cached=0)
    usage = usage_of([("openai/alpha", first), ("anthropic/beta", second)], PRICES)
    assert (usage.input, usage.output) == (1_000_000, 1_000_000)
    assert str(usage.cost) == "17.500000000000"
    assert [call.cost_trillionths for call in usage.calls] == [2_500_000 * 10**6, 15_000_000 * 10**6]
    assert (usage.model, usage.context) == ("anthropic/beta", 1_000_000)


@pytest.mark.rule("FLOW-13")
@pytest.mark.invariant(14)
@pytest.mark.parametrize(
    "unknown", [("groq/gamma", Usage(input=1)), ("openai/alpha", None)], ids=["no price", "no counts"]
)
def test_one_unknown_cost_makes_the_whole_unknown(unknown: tuple[str, Usage | None]) -> None:
    usage = usage_of([("openai/alpha", Usage(input=5, output=5)), unknown], PRICES)
    assert usage.cost is None
    assert usage.calls[0].cost_trillionths is not None
    assert usage.input >= 5


def test_a_turn_without_a_completed_call_cost_nothing() -> None:
    assert usage_of([], PRICES) == TurnUsage()
    assert usage_of([], PRICES).cost == 0


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.rule("FLOW-13")
def test_the_cost_of_a_turn_comes_from_the_policys_prices(kind: str) -> None:
    priced = POLICY + (
        '[[models.providers.openai.models]]\nid = "alpha"\ncost = { input = 2.5, output = 10 }\n'
    )
    with house(kind, {"alpha": ["Four chars each."]}, policy=priced) as at:
        result = at.run()
    used = result.usage
    assert used.input
    assert used.output
    assert used.cost_trillionths == used.input * 2_500_000 + used.output * 10_000_000

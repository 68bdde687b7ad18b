"""ORD: the order in which a provider's auth profiles are tried."""

from pathlib import Path

import pytest

from standby.engine.decide.profiles import ranked
from standby.engine.rulesets import ruleset_of
from standby.engine.steps import CallModel
from standby.events import decisions as d
from standby.events.policy import ProfileRule, Recovery
from standby.events.vocabulary import BlockKind, CredentialKind, Failure
from standby.hosts.credential_values import ApiKey, OAuth, Token, api_key, oauth, token
from standby.hosts.credentials import CredentialStore
from standby.hosts.providers.secret import Secret
from standby.hosts.reports import Profile
from tests.harness import START_MS, A, B, World, chain, of, reply

KEY, TOKEN, OAUTH = CredentialKind.API_KEY, CredentialKind.TOKEN, CredentialKind.OAUTH


def profile(name: str, kind: CredentialKind = KEY, expires_ms: int | None = None) -> Profile:
    return Profile(name=name, provider="openai", kind=kind, expires_ms=expires_ms)


def keys(*names: str) -> list[Profile]:
    return [profile(name) for name in names]


def ordered(world: World, model: str = A) -> list[str]:
    """The profiles of openai for a model, best first, by name."""
    policy = world.view.policy()
    found = ranked(world.view, policy, ruleset_of(policy), "openai", model, "main", world.now_ms)
    return [world.service.core.name_of(one.alias) for one in found]


def called_with(world: World, session: str = "s") -> str:
    step = world.turn(session).step
    assert isinstance(step, CallModel)
    return step.profile


@pytest.mark.rule("ORD-1", "ORD-9")
def test_the_list_comes_from_the_first_source_that_exists() -> None:
    known_profiles = keys("a", "b", "c", "d")
    configured = {name: ProfileRule(provider="openai") for name in ("b", "c")}
    assert ordered(World(chain(A), known_profiles)) == ["a", "b", "c", "d"], "what is stored"
    assert ordered(World(chain(A, profiles=configured), known_profiles)) == ["b", "c"], "auth.profiles"
    policy = chain(A, profiles=configured, order={"openai": ("d", "b")})
    assert ordered(World(policy, known_profiles)) == ["d", "b"], "auth.order"
    assert ordered(World(policy, known_profiles, order={"openai": ["c", "a"]})) == ["c", "a"], (
        "the agent's stored order"
    )


@pytest.mark.rule("ORD-1")
def test_the_source_is_named_with_the_call() -> None:
    w = World(chain(A, order={"openai": ("b", "a")}), keys("a", "b"))
    turn = w.turn()
    assert w.tried(turn) == [(A, "b")]
    assert "ORD-1" in of(turn, d.AttemptStarted)[0].rules


@pytest.mark.rule("ORD-1")
def test_configured_profiles_that_the_store_does_not_know_say_nothing_and_an_order_does() -> None:
    unknown = {"gone": ProfileRule(provider="openai")}
    assert ordered(World(chain(A, profiles=unknown), keys("a"))) == ["a"]
    assert ordered(World(chain(A, order={"openai": ("gone",)}), keys("a"))) == []
    assert ordered(World(chain(A), keys("a", "b"), order={"openai": ["gone"]})) == ["a", "b"]


@pytest.mark.rule("ORD-1")
@pytest.mark.parametrize(
    ("mode", "kind", "usable"),
    [(KEY, KEY, True), (OAUTH, TOKEN, True), (KEY, OAUTH, False), (TOKEN, KEY, False)],
)
def test_a_configured_mode_has_to_fit(mode: CredentialKind, kind: CredentialKind, usable: bool) -> None:
    rules = {"a": ProfileRule(provider="openai", mode=mode)}
    assert ordered(World(chain(A, profiles=rules), [profile("a", kind)])) == (["a"] if usable else [])


@pytest.mark.rule("ORD-3")
def test_usable_oauth_goes_before_expired_and_expired_stays_eligible() -> None:
    gone, fresh = START_MS, START_MS + 1
    w = World(chain(A), [profile("old", OAUTH, gone), profile("new", OAUTH, fresh), profile("never", OAUTH)])
    assert ordered(w) == ["new", "never", "old"], "expired at this very moment is expired"
    turn = w.turn()
    assert "ORD-3" in of(turn, d.AttemptStarted)[0].rules
    assert called_with(World(chain(A), [profile("old", OAUTH, gone)])) == "old", "to be refreshed"


@pytest.mark.rule("ORD-4")
def test_inside_a_tier_the_longest_unused_goes_first() -> None:
    w = World(chain(A), [*keys("a", "b", "c"), profile("login", OAUTH)])
    for session in ("1", "2"):
        turn = w.turn(session)
        # The login is used again and again: kinds come before use.
        assert w.tried(turn) == [(A, "login")]
        w.sleep(1000)
        w.answer(turn)
    w = World(chain(A), keys("a", "b", "c"))
    used = []
    for session in "wxyz":
        turn = w.turn(session)
        used.append(w.tried(turn)[0][1])
        w.sleep(1000)
        w.answer(turn)
    assert used == ["a", "b", "c", "a"]
    assert "ORD-4" in of(w.turn("v"), d.AttemptStarted)[0].rules


@pytest.mark.rule("ORD-5")
def test_blocked_profiles_go_last_soonest_expiry_first() -> None:
    w = World(chain(A, recovery=Recovery(max_retries=0)), keys("a", "b", "c"))
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=300)
    w.fail(turn, "rate_limit", retry_after=200)
    assert w.tried(turn)[-1] == (A, "c")
    assert ordered(w) == ["c", "b", "a"]
    fresh = w.turn("another")
    assert w.tried(fresh) == [(A, "c")]
    assert "ORD-5" in of(fresh, d.AttemptStarted)[0].rules
    w.sleep(200_000)
    assert ordered(w) == ["b", "c", "a"], "a block that ends at this very moment has ended"


@pytest.mark.rule("ORD-5")
def test_an_explicit_order_does_not_keep_blocked_profiles_in_front() -> None:
    w = World(chain(A, order={"openai": ("a", "b")}), keys("a", "b"))
    w.fail(w.turn(), "billing")
    assert ordered(w) == ["b", "a"]


PLACEHOLDER = "sk-test-PLACEHOLDER-0000"


@pytest.mark.rule("ORD-6")
def test_ids_are_default_without_an_email_and_the_email_with_one(tmp_path: Path) -> None:
    with CredentialStore(tmp_path / "credentials.db") as store:
        assert store.add(api_key("openai", PLACEHOLDER)) == "openai:default"
        for person in ("ann@example.org", "bob@example.org"):
            login = oauth("openai", PLACEHOLDER, PLACEHOLDER, email=person)
            assert store.add(login) == f"openai:{person}"
        assert {info.id for info in store.list()} == {
            "openai:default",
            "openai:ann@example.org",
            "openai:bob@example.org",
        }
        names = [Profile(name=info.id, provider=info.provider, kind=info.kind) for info in store.list()]
    w = World(chain(A), names)
    assert ordered(w) == ["openai:ann@example.org", "openai:bob@example.org", "openai:default"]


@pytest.mark.rule("ORD-7", "ORD-11")
def test_each_kind_of_credential_keeps_what_it_is_made_of(tmp_path: Path) -> None:
    login = oauth(
        "google",
        PLACEHOLDER,
        PLACEHOLDER + "-refresh",
        expires_ms=START_MS,
        email="ann@example.org",
        project_id="project",
        enterprise_url="https://example.org",
    )
    with CredentialStore(tmp_path / "credentials.db") as store:
        for credential in (api_key("openai", PLACEHOLDER), token("aws", PLACEHOLDER, START_MS), login):
            store.add(credential)
        key, renewed, static = (store.get(info.id) for info in sorted(store.list(), key=lambda i: i.kind))
    assert isinstance(key, ApiKey)
    assert key.provider == "openai"
    assert isinstance(renewed, OAuth)
    assert (renewed.email, renewed.expires_ms, renewed.project_id) == ("ann@example.org", START_MS, "project")
    assert renewed.enterprise_url == "https://example.org"
    assert isinstance(renewed.refresh, Secret)
    assert renewed.refresh.reveal() == PLACEHOLDER + "-refresh"
    assert isinstance(static, Token)
    assert static.expires_ms == START_MS
    assert not hasattr(static, "refresh"), "nobody renews it"


USAGE_LIMIT = {
    "error": {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_in_seconds": 7200,
    }
}


@pytest.mark.rule("ORD-8", "COOL-13", "COOL-18")
def test_a_subscription_and_a_key_take_turns_in_one_order() -> None:
    known_profiles = [profile("key"), profile("plan", OAUTH)]
    w = World(chain(A, B, order={"openai": ("plan", "key")}), known_profiles)
    turn = w.turn(harness="codex")
    assert w.tried(turn) == [(A, "plan")]
    w.fail(turn, reply(429, USAGE_LIMIT))
    assert w.tried(turn)[-1] == (A, "key"), "the next in order serves, not the next model"
    (window,) = of(turn, d.BlockSet)
    assert (window.kind, window.until_ms, window.model) == (BlockKind.WINDOW, START_MS + 7_200_000, "")
    w.answer(turn)

    w.sleep(7_199_999)
    for session in ("s", "another"):
        during = w.turn(session)
        assert w.tried(during) == [(A, "key")]
        assert "ORD-8" in of(during, d.AttemptStarted)[0].rules
        w.answer(during)
    w.sleep(1)
    # Both come back: the session that was driven away and the one that began meanwhile.
    for session in ("s", "another"):
        after = w.turn(session)
        assert w.tried(after) == [(A, "plan")]
        assert "COOL-18" in of(after, d.PinSet)[0].rules
        w.answer(after)
    w.proved()


@pytest.mark.rule("ORD-8", "COOL-18")
def test_only_an_earlier_profile_is_gone_back_to() -> None:
    known_profiles = [profile("plan", OAUTH), *keys("one", "two")]
    w = World(
        chain(A, order={"openai": ("plan", "one", "two")}, recovery=Recovery(max_retries=0)), known_profiles
    )
    turn = w.turn()
    w.fail(turn, reply(429, USAGE_LIMIT))
    w.answer(turn)
    # An overload blocks nothing: the turn goes on to a later profile, and the pin stays where it was.
    second = w.turn()
    w.fail(second, "overloaded")
    assert w.tried(second) == [(A, "one"), (A, "two")]
    assert of(second, d.PinSet) == []
    w.answer(second)
    assert called_with(w) == "one"


@pytest.mark.rule("ORD-8")
def test_without_a_stated_reset_none_is_made_up() -> None:
    known_profiles = [profile("key"), profile("plan", OAUTH)]
    w = World(chain(A, order={"openai": ("plan", "key")}, recovery=Recovery(max_retries=0)), known_profiles)
    turn = w.turn()
    w.fail(
        turn, reply(429, {"error": {"type": "usage_limit_reached", "message": "The usage limit was reached"}})
    )
    assert w.tried(turn)[-1] == (A, "key")
    assert of(turn, d.BlockSet) == []
    w.answer(turn)
    assert called_with(w) == "plan"


@pytest.mark.rule("ORD-9")
def test_a_stored_order_counts_as_explicit() -> None:
    known_profiles = [profile("login", OAUTH), *keys("a", "b")]
    w = World(chain(A, order={"openai": ("login", "a", "b")}), known_profiles, order={"openai": ["b", "login"]})
    turn = w.turn()
    assert w.tried(turn) == [(A, "b")]
    assert "ORD-9" in of(turn, d.AttemptStarted)[0].rules
    w.sleep(1000)
    w.answer(turn)
    # Neither kind nor use reorders it.
    assert ordered(w) == ["b", "login"]


@pytest.mark.rule("ORD-10")
def test_without_an_order_kinds_come_oauth_then_token_then_key() -> None:
    w = World(chain(A), [profile("key"), profile("static", TOKEN), profile("login", OAUTH)])
    assert ordered(w) == ["login", "static", "key"]
    turn = w.turn()
    assert "ORD-10" in of(turn, d.AttemptStarted)[0].rules
    w.fail(turn, "auth")
    w.fail(turn, "auth")
    assert [name for _, name in w.tried(turn)] == ["login", "static", "key"]


@pytest.mark.rule("ORD-11")
def test_a_static_token_that_expired_is_not_used_and_not_refreshed() -> None:
    known_profiles = [profile("static", TOKEN, START_MS + 1000), profile("key")]
    w = World(chain(A), known_profiles)
    assert ordered(w) == ["static", "key"]
    w.sleep(1000)
    assert ordered(w) == ["key"]
    assert called_with(World(chain(A), [profile("lasting", TOKEN)])) == "lasting"
    alone = World(chain(A, B), [profile("static", TOKEN, START_MS)])
    turn = alone.turn()
    assert of(turn, d.CandidateSkipped)[0].reason is Failure.AUTH


@pytest.mark.rule("ORD-12")
@pytest.mark.parametrize("harness", ["codex", "embedded"])
def test_the_runtime_stays_whichever_profile_pays(harness: str) -> None:
    w = World(chain(A, order={"openai": ("plan", "key")}), [profile("plan", OAUTH), profile("key")])
    turn = w.turn(harness=harness)
    subscription = turn.step
    w.fail(turn, "auth")
    by_key = turn.step
    assert isinstance(subscription, CallModel)
    assert isinstance(by_key, CallModel)
    assert (subscription.profile, by_key.profile) == ("plan", "key")
    assert subscription.harness == by_key.harness == harness

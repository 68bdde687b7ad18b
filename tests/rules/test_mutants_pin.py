"""PIN, closer."""

import pytest

from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import CredentialKind
from standby.hosts.reports import Profile
from tests.harness import START_MS, A, B, World, chain, of


@pytest.mark.rule("PIN-11", "PIN-12")
@pytest.mark.parametrize(("expires_ms", "rule"), [(START_MS, "PIN-12"), (START_MS + 1, "PIN-11")])
def test_a_pinned_token_is_gone_at_the_very_moment_of_its_expiry(expires_ms: int, rule: str) -> None:
    token = Profile(name="pinned", provider="openai", kind=CredentialKind.TOKEN, expires_ms=expires_ms)
    spare = Profile(name="spare", provider="openai", kind=CredentialKind.TOKEN)
    other = Profile(name="other", provider="anthropic")
    w = World(chain(A, B, recovery=Recovery(max_retries=0)), [token, spare, other])
    w.service.pin("s", "openai", "pinned")
    turn = w.turn()
    if rule == "PIN-11":
        w.fail(turn, "auth")
    started = of(turn, d.AttemptStarted)[-1]
    assert w.tried(turn)[-1] == (A, "spare")
    assert rule in started.rules


@pytest.mark.rule("PIN-1", "PIN-2")
def test_rotating_past_a_healthy_pin_to_an_earlier_profile_of_the_order_does_not_move_it() -> None:
    policy = chain(A, B, recovery=Recovery(max_retries=0), order={"openai": ("first", "second")})
    w = World(policy, {"openai": ["first", "second"], "anthropic": ["other"]})
    turn = w.turn()
    w.fail(turn, "auth")
    w.answer(turn)
    w.sleep(600_000)
    turn = w.turn()
    assert w.tried(turn) == [(A, "second")], "what drove the session here was no rate limit"
    w.fail(turn, "server_error")
    assert w.tried(turn)[-1] == (A, "first")
    assert of(turn, d.PinSet) == []
    w.answer(turn)
    assert w.tried(w.turn()) == [(A, "second")]


@pytest.mark.rule("PIN-6")
def test_a_pin_that_the_user_takes_away_is_gone_and_nothing_is_said_where_there_was_none() -> None:
    w = World(chain(A, B), {"openai": ["first", "second"], "anthropic": ["other"]})
    w.service.pin("s", "openai", None)
    assert w.decisions(d.PinCleared) == []
    w.service.pin("s", "openai", "second")
    w.service.pin("s", "openai", None)
    (cleared,) = w.decisions(d.PinCleared)
    assert (cleared.provider, cleared.rules) == ("openai", ("PIN-6",))
    assert w.tried(w.turn()) == [(A, "first")]

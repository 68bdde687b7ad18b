"""ORD, closer: which stored profiles a provider's list can hold at all."""

import pytest

from standby.engine.steps import CallModel, Settled
from standby.events import decisions as d
from standby.events.policy import ProfileRule, Recovery
from standby.events.vocabulary import SkipBecause
from standby.hosts.reports import Profile
from tests.harness import A, B, World, chain, of

AT_ONCE = Recovery(max_retries=0)


def tried(w: World, **fields: str) -> list[str]:
    """The profiles that a turn tries when each fails, in order."""
    turn = w.turn(**fields)
    while not isinstance(turn.step, Settled):
        assert isinstance(turn.step, CallModel)
        w.fail(turn, "auth")
    return [profile for _, profile in w.tried(turn)]


@pytest.mark.rule("ORD-1")
def test_an_entry_of_the_configuration_counts_for_the_provider_that_it_names() -> None:
    listed = {"one": ProfileRule(provider="azure"), "two": ProfileRule(provider="openai")}
    w = World(chain(A, recovery=AT_ONCE, profiles=listed), {"openai": ["one", "two", "three"]})
    assert tried(w) == ["two"]


@pytest.mark.rule("ORD-1")
@pytest.mark.parametrize(("agent", "expected"), [("main", ["all", "mine"]), ("other", ["all", "theirs"])])
def test_an_agents_own_profile_serves_no_other_agent(agent: str, expected: list[str]) -> None:
    profiles = [
        Profile(name="all", provider="openai"),
        Profile(name="mine", provider="openai", agent="main"),
        Profile(name="theirs", provider="openai", agent="other"),
    ]
    assert tried(World(chain(A, recovery=AT_ONCE), profiles), agent=agent) == expected


@pytest.mark.rule("ORD-1", "PIN-12")
def test_an_order_of_accounts_that_are_all_gone_is_no_reason_to_call_without_one() -> None:
    w = World(chain(A, B, order={"openai": ("gone",)}), {"anthropic": ["there"]})
    turn = w.turn()
    (skip,) = of(turn, d.CandidateSkipped)
    assert (skip.model, skip.because) == (A, SkipBecause.NO_CREDENTIAL)
    assert set(skip.rules) >= {"ORD-1", "PIN-12"}
    assert w.tried(turn) == [(B, "there")]


@pytest.mark.rule("ORD-1")
def test_a_provider_that_needs_no_account_is_called_without_one() -> None:
    assert World(chain(A, B), {"anthropic": ["there"]}).turn().state.attempts[0].profile == ""

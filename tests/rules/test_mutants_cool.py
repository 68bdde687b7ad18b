"""COOL, closer: reports that came too late to move their turn, and calls without a profile."""

import pytest

from standby.events import decisions as d
from standby.events.policy import Recovery
from standby.events.vocabulary import Effects
from standby.hosts.service import Succeeded, Unknown
from tests.harness import A, B, World, chain, of

AT_ONCE = Recovery(max_retries=0)


@pytest.mark.rule("COOL-9")
def test_a_success_that_is_reported_late_ends_the_block_and_an_unknown_end_does_not() -> None:
    w = World(chain(A, B, recovery=AT_ONCE))
    limited, answered, lost = w.turn("one"), w.turn("two"), w.turn("three")
    w.fail(limited, "rate_limit", retry_after=60)
    lost.cancel()
    lost.report(Unknown(effects=Effects.NONE))
    assert w.decisions(d.BlockCleared) == []
    answered.cancel()
    answered.report(Succeeded())
    (cleared,) = w.decisions(d.BlockCleared)
    assert (cleared.profile, cleared.model) == (w.alias("openai:one"), A)
    w.proved()


@pytest.mark.rule("COOL-25")
@pytest.mark.parametrize("profiles", [[], ["openai:one"]])
def test_that_no_cooldown_is_invented_is_said_of_profiles_only(profiles: list[str]) -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": profiles, "anthropic": ["anthropic:one"]})
    turn = w.turn()
    w.fail(turn, "rate_limit")
    (classified,) = of(turn, d.FailureClassified)
    assert ("COOL-25" in classified.rules) is bool(profiles)
    assert of(turn, d.BlockSet) == []

"""PIN: the profile that a session keeps to."""

from collections.abc import Sequence

import pytest

from standby.engine.steps import CallModel, Settled
from standby.engine.texts.failures import failure_message
from standby.events import decisions as d
from standby.events.errors import BadReport
from standby.events.policy import Recovery
from standby.events.vocabulary import CredentialKind, ResetKind, SkipBecause, TurnKind
from standby.hosts.reports import Profile
from tests.harness import A, B, World, chain, of

THREE = {"openai": ["a", "b", "c"], "anthropic": ["x", "y"]}


def world(**fields: object) -> World:
    return World(chain(A, B, recovery=Recovery(max_retries=0), **fields), THREE)


def profile_of(w: World, session: str = "s", **fields: object) -> str:
    """The profile that a whole turn of the session is answered with."""
    turn = w.turn(session, **fields)
    step = turn.step
    assert isinstance(step, CallModel)
    w.sleep(1000)
    w.answer(turn)
    return step.profile


def pins(w: World, session: str = "s", agent: str = "main") -> dict[str, tuple[str, bool]]:
    """provider -> (profile, whether the user's), as stored."""
    alias = w.service.core.known_alias("session", f"{agent}/{session}")
    found = w.view.sessions.get(alias or "")
    assert found is not None
    return {provider: (w.service.core.name_of(pin.profile), pin.user) for provider, pin in found.pins.items()}


@pytest.mark.rule("PIN-1")
def test_a_session_keeps_its_profile_and_another_one_takes_its_turn() -> None:
    w = world()
    first = w.turn()
    assert of(first, d.PinSet)[0].rules == ("PIN-1",)
    w.sleep(1000)
    w.answer(first)
    assert [profile_of(w) for _ in range(3)] == ["a", "a", "a"]
    assert profile_of(w, "another") == "b"
    assert "PIN-1" in of(w.turn(), d.AttemptStarted)[0].rules


@pytest.mark.rule("PIN-2")
@pytest.mark.parametrize("kind", [ResetKind.NEW, ResetKind.RESET])
def test_an_automatic_pin_goes_at_a_reset(kind: ResetKind) -> None:
    w = world()
    assert profile_of(w) == "a"
    w.service.reset("s", kind=kind)
    assert "PIN-2" in w.decisions(d.PinCleared)[0].rules
    assert pins(w) == {}
    assert profile_of(w) == "b", "the longest unused one again"


@pytest.mark.rule("PIN-2")
@pytest.mark.parametrize("kind", ["auth", "billing"])
def test_an_automatic_pin_rotates_while_its_profile_is_out(kind: str) -> None:
    w = world()
    assert profile_of(w) == "a"
    turn = w.turn()
    w.fail(turn, kind)
    assert w.tried(turn)[-1] == (A, "b")
    assert "PIN-2" in of(turn, d.PinSet)[0].rules
    w.answer(turn)
    w.sleep(3_600_000)
    assert profile_of(w) == "b", "the new pin holds after the old profile is back"


@pytest.mark.rule("PIN-2")
def test_a_failure_that_blocks_nothing_moves_no_pin() -> None:
    w = world()
    turn = w.turn()
    w.fail(turn, "overloaded")
    assert w.tried(turn)[-1] == (A, "b")
    w.answer(turn)
    assert pins(w)["openai"] == ("a", False)
    assert profile_of(w) == "a"


@pytest.mark.rule("PIN-4")
def test_a_users_pin_survives_resets_compaction_and_cooldown() -> None:
    w = world()
    w.service.select_model("s", A, profile="c")
    assert profile_of(w) == "c"
    for kind in ResetKind:
        w.service.reset("s", kind=kind)
        assert pins(w) == {"openai": ("c", True)}
    w.service.compacted("s", 1)
    assert profile_of(w) == "c"
    turn = w.turn()
    assert "PIN-4" in of(turn, d.AttemptStarted)[0].rules
    w.fail(turn, "auth")
    # The next eligible profile of the same provider serves, and the stored pin stays.
    assert w.tried(turn)[-1] == (A, "a")
    w.answer(turn)
    assert pins(w) == {"openai": ("c", True)}
    assert profile_of(w) == "b", "c still cools"
    w.sleep(3_600_000)
    assert profile_of(w) == "c"
    w.proved()


@pytest.mark.rule("PIN-4")
def test_a_pin_has_to_be_of_a_known_profile_of_the_models_provider() -> None:
    w = world()
    with pytest.raises(BadReport, match="not known"):
        w.service.select_model("s", A, profile="nobody")
    with pytest.raises(BadReport, match="belongs to anthropic"):
        w.service.select_model("s", A, profile="x")
    w.service.pin("s", "anthropic", "y")
    assert pins(w) == {"anthropic": ("y", True)}


def owned(*pairs: tuple[str, str]) -> list[Profile]:
    return [Profile(name=name, provider="openai", agent=agent) for name, agent in pairs]


@pytest.mark.rule("PIN-5")
def test_a_removed_credential_takes_the_selections_of_its_account_along_and_nothing_else() -> None:
    w = world()
    w.service.select_model("s", "openai/other", profile="c")
    w.service.select_model("t", A, profile="b")
    w.service.remove_profile("c")
    assert [one.rules for one in w.decisions(d.PinCleared)] == [("PIN-5",)]
    assert (pins(w), pins(w, "t")) == ({}, {"openai": ("b", True)})
    turn = w.turn()
    assert of(turn, d.ChainPlanned)[0].selected == "openai/other", "the selected model stays"
    assert w.tried(turn)[0][1] in ("a", "b")
    w.proved()


@pytest.mark.rule("PIN-5")
def test_another_agents_credential_of_the_same_account_and_its_selections_stay() -> None:
    w = World(chain(A), owned(("c", ""), ("d", "")))
    for agent in ("one", "two"):
        w.service.select_model("s", A, profile="c", agent=agent)
    w.service.remove_profile("c", agent="one")
    assert (pins(w, agent="one"), pins(w, agent="two")) == ({}, {"openai": ("c", True)})

    w = World(chain(A), owned(("c", "two"), ("d", "")))
    w.service.pin("s", "openai", "c", agent="two")
    w.service.remove_profile("c", agent="one")
    assert profile_of(w, agent="two") == "c", "what the other agent owns is still there"
    w.service.remove_profile("c", agent="two")
    assert pins(w, agent="two") == {}
    assert profile_of(w, agent="two") == "d"


@pytest.mark.rule("PIN-6")
def test_another_provider_clears_a_pin_and_another_account_replaces_it() -> None:
    w = world()
    w.service.select_model("s", A, profile="b")
    w.service.select_model("s", A, profile="c")
    replaced = w.decisions(d.PinSet)[-1]
    assert ("PIN-6" in replaced.rules, pins(w)) == (True, {"openai": ("c", True)})
    w.service.select_model("s", "openai/other")
    assert pins(w) == {"openai": ("c", True)}, "the same provider: it fits"
    w.service.select_model("s", B)
    assert ([one.rules for one in w.decisions(d.PinCleared)], pins(w)) == ([("PIN-6",)], {})


@pytest.mark.rule("PIN-7")
@pytest.mark.parametrize("key", ["s", "global", "unknown"])
def test_pins_of_one_agents_session_are_no_other_agents(key: str) -> None:
    w = world()
    for agent in ("one", "two"):
        assert profile_of(w, key, agent=agent) in ("a", "b")
    before = pins(w, key, "two")
    w.service.reset(key, agent="one")
    assert "PIN-7" in w.decisions(d.PinCleared)[0].rules
    assert pins(w, key, "one") == {}
    assert pins(w, key, "two") == before == {"openai": ("b", False)}
    turn = w.turn(key, agent="one")
    w.fail(turn, "auth")
    w.answer(turn)
    assert pins(w, key, "two") == before, "nor does a rotation reach over"


@pytest.mark.rule("PIN-9")
def test_compaction_changes_no_profile() -> None:
    w = world()
    assert profile_of(w) == "a"
    assert profile_of(w, "another") == "b"
    assert profile_of(w, kind=TurnKind.COMPACTION) == "a"
    before = w.decisions(d.PinSet)
    for count in (1, 2):
        w.service.compacted("s", count)
    assert w.decisions(d.PinSet) == before
    assert w.decisions(d.PinCleared) == []
    assert profile_of(w) == "a"


@pytest.mark.rule("PIN-9")
def test_a_compaction_follows_the_ordinary_order_when_its_profile_fails() -> None:
    w = world()
    assert profile_of(w) == "a"
    turn = w.turn(kind=TurnKind.COMPACTION)
    w.fail(turn, "auth")
    assert w.tried(turn) == [(A, "a"), (A, "b")]


@pytest.mark.rule("PIN-11")
def test_rotation_runs_through_the_rest_of_the_order_and_comes_back() -> None:
    w = world(order={"openai": ("a", "b", "c")})
    w.service.select_model("s", A, profile="b")
    turn = w.turn()
    for _ in range(2):
        w.fail(turn, "auth")
    assert w.tried(turn) == [(A, "b"), (A, "a"), (A, "c")]
    w.answer(turn)
    out = w.turn()
    assert w.tried(out) == [(A, "c")]
    assert "PIN-11" in of(out, d.AttemptStarted)[0].rules
    w.answer(out)
    w.sleep(3_600_000)
    assert profile_of(w) == "b"


def seen(*names: str, expired: Sequence[str] = (), unusable: Sequence[str] = ()) -> list[Profile]:
    return [
        Profile(
            name=name,
            provider="openai",
            kind=CredentialKind.TOKEN,
            expires_ms=1 if name in expired else None,
            usable=name not in unusable,
        )
        for name in names
    ]


@pytest.mark.rule("PIN-12")
@pytest.mark.parametrize(
    "meanwhile",
    [seen("a"), seen("a", "c", expired=["c"]), seen("a", "c", unusable=["c"])],
    ids=["missing", "expired", "unusable"],
)
def test_a_credential_that_is_out_for_a_while_clears_no_users_pin(meanwhile: list[Profile]) -> None:
    w = World(chain(A), seen("a", "c"))
    w.service.select_model("s", A, profile="c")
    w.service.observe(meanwhile)
    turn = w.turn()
    assert w.tried(turn) == [(A, "a")]
    assert "PIN-12" in of(turn, d.AttemptStarted)[0].rules
    w.answer(turn)
    assert pins(w) == {"openai": ("c", True)}
    w.service.observe(seen("a", "c"))
    assert profile_of(w) == "c"


@pytest.mark.rule("PIN-12")
def test_an_order_that_names_a_deleted_account_calls_for_choosing_another() -> None:
    w = World(chain(A, order={"openai": ("gone",)}), seen("a"))
    turn = w.turn()
    step = turn.step
    assert isinstance(step, Settled)
    skip = of(turn, d.CandidateSkipped)[0]
    assert (skip.because, "PIN-12" in skip.rules) == (SkipBecause.NO_CREDENTIAL, True)
    assert "Choose another" in failure_message(turn.state, w.now_ms)
    there = World(chain(A, order={"openai": ("gone", "a")}), seen("a"))
    assert there.tried(there.turn()) == [(A, "a")]


@pytest.mark.rule("PIN-13")
def test_going_back_to_the_default_keeps_a_pin_that_fits_and_clears_one_that_does_not() -> None:
    w = world()
    w.service.select_model("fits", "openai/other", profile="c")
    w.service.select_model("fits", None)
    assert pins(w, "fits") == {"openai": ("c", True)}
    turn = w.turn("fits")
    assert (of(turn, d.ChainPlanned)[0].selected, w.tried(turn)) == (A, [(A, "c")])

    w.service.select_model("other", B, profile="y")
    w.service.select_model("other", None)
    assert (pins(w, "other"), w.decisions(d.PinCleared)[-1].rules) == ({}, ("PIN-13",))
    assert of(w.turn("other"), d.ChainPlanned)[0].selected == A

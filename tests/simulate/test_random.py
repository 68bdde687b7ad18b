"""Small random scenarios: none breaks the player, every log verifies, and the naive model finds nothing wrong.

The naive model (`tests.properties.naive`) knows the bound of invariant 1 and predicts from the facts alone what
is blocked, selected, sticky and told; here it sees logs that the runner's driver made, several runtimes among
them, with switches, pins, restarts and take-overs in the middle of turns.
"""

import json
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from standby.events.codec import decode
from standby.events.errors import BadScript
from standby.events.facts import ResponseCompleted
from standby.events.vocabulary import Effects, ResetKind, StopKind, Surface, TurnKind
from standby.hosts.scripted.replies import Kind
from standby.hosts.simulate import Played, PlayedTurn, parse_scenario, play
from tests.properties.naive import Naive
from tests.properties.naive_words import REASONS

MODELS = ("openai/a", "openai/b", "anthropic/c", "openrouter/d")
PROFILES = ("openai:one", "openai:two", "anthropic:one", "anthropic:two")
RUNTIMES = ("main", "other")
SESSIONS = ("s1", "s2")
SPANS = ("100ms", "1s", "10s", "40s", "3m", "12m", "2h")

sessions, profiles, models = (st.sampled_from(one) for one in (SESSIONS, PROFILES, MODELS))


def words(enum: Any) -> st.SearchStrategy[str]:
    return st.sampled_from([one.value for one in enum])


def table(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


failures = st.one_of(
    table({"kind": words(Kind)}, retry_after=st.sampled_from((0, 0.5, 3, 30, 90, 5000))),
    table({"status": st.sampled_from((400, 402, 418, 429, 500, 529))}, body=st.just("Not now.")),
    table({"code": st.sampled_from(("ETIMEDOUT", "ECONNRESET", "CERT_INVALID"))}),
    table({"switch_to": models}),
    table({"stop": words(StopKind)}, fallback_worthy=st.booleans()),
)
where = table(
    {},
    model=models,
    profile=profiles,
    times=st.integers(1, 20),
    until=st.sampled_from(SPANS),
    took=st.sampled_from(("0", "200ms", "30s", "5m")).map(lambda span: 0 if span == "0" else span),
    effects=words(Effects),
    delivered=st.booleans(),
    stream=st.booleans(),
    repairable=st.booleans(),
    provider_started=st.booleans(),
    finished_work=st.booleans(),
)
# Failures of which the naive model knows what they mean.
told = st.one_of(
    table(
        {
            "status": st.just(status),
            "body": st.just({"error": {"code": code, "message": "Not now."}} if code else "Not now."),
        },
        retry_after=st.sampled_from((0, 1, 3, 30, 90, 5000)),
    )
    for status, code in REASONS
    if status is not None
)
left = st.one_of(table({"code": st.just("ETIMEDOUT")}), table({"switch_to": models}))


def outcomes(kinds: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.builds(lambda one, other: {**other, **one}, kinds, where), max_size=5)


turns = table(
    {"session": sessions},
    model=models,
    fallbacks=st.lists(models, max_size=2, unique=True),
    kind=words(TurnKind),
    surface=words(Surface),
    locked=st.booleans(),
    continuable=st.booleans(),
    timeout=st.sampled_from(("10s", "1m")),
    deadline=st.sampled_from(("20s", "10m")),
    max_retries=st.integers(0, 3),
    repairs=st.booleans(),
    answer_required=st.booleans(),
)


def policy(primary: str, fallbacks: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    return {"agents": {"defaults": {"model": {"primary": primary, "fallbacks": fallbacks}}}, **settings}


extras = st.sampled_from(
    (
        {},
        {"retry": {"provider": {"maxRetries": 1}}},
        {"standby": {"localCooldownMs": 20_000}},
        {"standby": {"skipTtlMs": 60_000}},
        {"standby": {"consent": {"billing": ["openai/b"], "rate_limit": False}}},
        {"auth": {"order": {"openai": ["openai:two", "openai:one"]}}},
    )
)
policies = st.builds(policy, models, st.lists(models, max_size=3, unique=True), extras)
quotas = table(
    {"profile": profiles}, exhausted=st.booleans(), resets=st.sampled_from(SPANS), valid=st.booleans()
)
ABOUT_TURNS = ("cancel", "deadline", "no_progress", "response", "effects", "take_over")


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Steps whose turns stand before what is said about them."""
    found: list[dict[str, Any]] = []
    ids = 0
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("turn", "turn", "turn", "about", "else")))
        step: dict[str, Any] = draw(
            st.one_of(
                st.just({}),
                st.sampled_from(SPANS).map(lambda span: {"during": span}),
                st.sampled_from(SPANS).map(lambda span: {"after": span}),
            )
        )
        if kind == "turn" or (kind == "about" and not ids):
            ids += 1
            step |= {"turn": {**draw(turns), "id": f"t{ids}"}}
        elif kind == "about":
            step |= {draw(st.sampled_from(ABOUT_TURNS)): f"t{draw(st.integers(1, ids))}"}
        else:
            step |= draw(OTHERS)
        if draw(st.booleans()):
            step["runtime"] = draw(st.sampled_from(RUNTIMES))
        found.append(step)
    return found


OTHERS = st.one_of(
    st.just({"restart": True}),
    policies.map(lambda one: {"policy": one}),
    table({"session": sessions}, model=models).map(lambda one: {"select": one}),
    table({"session": sessions}, kind=words(ResetKind)).map(lambda one: {"reset": one}),
    st.builds(
        lambda session, profile: {
            "pin": {"session": session, "provider": profile.partition(":")[0], "profile": profile}
        },
        sessions,
        profiles,
    ),
    quotas.map(lambda one: {"quota": one}),
    table({"session": sessions}).map(lambda one: {"compaction": one}),
    profiles.map(lambda one: {"remove": one}),
    st.lists(profiles, unique=True).map(lambda names: {"profiles": [{"name": name} for name in names]}),
)


def scenarios(kinds: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    there = st.lists(profiles, unique=True).map(lambda names: [{"name": name} for name in names])
    return st.fixed_dictionaries(
        {
            "policy": policies,
            "profiles": there,
            "outcomes": outcomes(kinds),
            "steps": steps(),
            "seed": st.integers(0, 1000),
        }
    ).map(known)


def known(data: dict[str, Any]) -> dict[str, Any]:
    """The same scenario, in which every profile that something names has been there once."""
    there = {one["name"] for one in data["profiles"]}
    there |= {one["name"] for step in data["steps"] for one in step.get("profiles", ())}
    missing = [{"name": name} for name in PROFILES if name not in there]
    return {**data, "profiles": [*data["profiles"], *missing]}


def played(data: dict[str, Any]) -> Played | None:
    """The scenario played; None when the player refuses a step, which it may do only by saying which."""
    loaded = parse_scenario(json.dumps(data), "random.json", as_json=True)
    try:
        return play(loaded)
    except BadScript as error:
        message = str(error)
    event(message.partition("]: ")[2].partition(":")[0] + " refused")
    assert message.startswith("random.json: steps[")
    return None


def most(turn: PlayedTurn) -> int:
    """Attempts that a turn has at most: each candidate once with each profile or with none, fifteen retries
    of each and for each response that was completed meanwhile, two repairs of each, and one last word."""
    chain = len(turn.state.candidates)
    responses = sum(isinstance(commit.fact, ResponseCompleted) for commit in turn.commits)
    return chain * (len(PROFILES) + 1 + 2 + 15) + 15 * responses + 1


@pytest.mark.invariant(1)
@given(scenarios(failures))
def test_random_scenarios_play_to_an_end_and_verify(data: dict[str, Any]) -> None:
    found = played(data)
    if found is None:
        return
    assert found.report.holds, found.report.problem
    for turn in found.turns:
        assert len(turn.state.attempts) <= most(turn)
        # Only a turn whose runtime was restarted is left without an end.
        assert (turn.ended_ms is not None) is (turn.state.state in ("answered", "failed"))
        if turn.ended_ms is None:
            assert any("restart" in step for step in data["steps"])
            event("a turn was left behind")


@pytest.mark.invariant(1)
@given(scenarios(st.one_of(told, told, left)))
def test_random_scenarios_fit_the_naive_model(data: dict[str, Any]) -> None:
    found = played(data)
    if found is None:
        return
    assert found.report.holds, found.report.problem
    naive = Naive()
    for row in found.store.read():
        naive.see(decode(row.body, row.position))
    event(f"turns over: {sum(turn.ended_ms is not None for turn in found.turns)}")


@given(scenarios(failures))
def test_random_scenarios_play_the_same_way_twice(data: dict[str, Any]) -> None:
    one, two = played(data), played(data)
    if one is None or two is None:
        assert one is two
        return
    assert [(row.position, row.body, row.hash) for row in one.store.read()] == [
        (row.position, row.body, row.hash) for row in two.store.read()
    ]
    assert one.problems == two.problems

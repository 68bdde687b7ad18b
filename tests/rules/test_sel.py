"""SEL: where a selection comes from, and whether it may fall back."""

from typing import Any, NamedTuple

import pytest

from standby.engine.decide.selection import edit_fallbacks
from standby.engine.steps import Settled
from standby.events import decisions as d
from standby.events.policy import AgentModels, ModelChain, Policy
from standby.events.vocabulary import SelectionSource, TurnEnd, TurnKind
from standby.hosts.turns import TurnHandle
from tests.harness import A, B, C, World, chain, of

D = "groq/delta"


class Plan(NamedTuple):
    models: list[str]
    source: SelectionSource
    strict: bool
    rules: tuple[str, ...]


def plan_of(turn: TurnHandle) -> Plan:
    planned = of(turn, d.ChainPlanned)[0]
    return Plan([c.model for c in planned.candidates], planned.source, planned.strict, planned.rules)


def plan(world: World, session: str = "s", **fields: Any) -> Plan:
    return plan_of(world.turn(session, **fields))


def agents(policy: Policy | None = None, **entries: AgentModels) -> World:
    base = policy or chain(A, B)
    return World(Policy(models=base.models, agents=entries))


def models(primary: str = "", fallbacks: tuple[str, ...] | None = None) -> ModelChain:
    return ModelChain(primary=primary, fallbacks=fallbacks)


@pytest.mark.rule("SEL-1")
def test_the_configured_default_goes_with_the_configured_fallbacks() -> None:
    got = plan(World(chain(A, B, C)))
    assert (got.models, got.source, got.strict) == ([A, B, C], SelectionSource.DEFAULT, False)
    assert "SEL-1" in got.rules
    assert plan(World(chain(B, C))).models == [B, C]


@pytest.mark.rule("SEL-2")
@pytest.mark.parametrize(
    ("own", "expected", "strict"),
    [(None, [C], True), ((), [C], True), ((D,), [C, D], False)],
    ids=["nothing said", "empty on purpose", "opted in"],
)
def test_an_agents_own_primary_is_strict_unless_it_brings_fallbacks(
    own: tuple[str, ...] | None, expected: list[str], strict: bool
) -> None:
    w = agents(x=AgentModels(model=models(C, own)))
    got = plan(w, agent="x")
    assert (got.models, got.source, got.strict) == (expected, SelectionSource.AGENT, strict)
    assert "SEL-2" in got.rules
    assert plan(w, agent="y").models == [A, B], "other agents keep the defaults"


@pytest.mark.rule("SEL-3")
@pytest.mark.parametrize(("own", "expected"), [((C,), [A, C]), ((), [A]), (None, [A, B])])
def test_an_agent_may_change_the_chain_and_inherit_the_primary(
    own: tuple[str, ...] | None, expected: list[str]
) -> None:
    w = agents(x=AgentModels(model=models("", own)))
    got = plan(w, agent="x")
    assert (got.models, got.source, got.strict) == (expected, SelectionSource.DEFAULT, own == ())
    assert ("SEL-3" in got.rules) == (own is not None)
    # The primary is not pinned by that: it follows the shared one.
    w.adopt(Policy(models=models(D, (B,)), agents={"x": AgentModels(model=models("", own))}))
    assert plan(w, agent="x").models == [D, *expected[1:]]


@pytest.mark.rule("SEL-4")
@pytest.mark.parametrize(("own", "expected"), [(None, [A, B]), ((D,), [A, D]), ((), [A])])
def test_the_primary_of_an_acp_agent_is_for_its_harness_only(
    own: tuple[str, ...] | None, expected: list[str]
) -> None:
    w = agents(x=AgentModels(model=models(C, own), acp=True), native=AgentModels(model=models(C, own)))
    got = plan(w, agent="x")
    assert got.models == expected
    assert "SEL-4" in got.rules
    assert plan(w, agent="native").models[0] == C


@pytest.mark.rule("SEL-4")
def test_a_command_that_runs_its_selected_model_only_gains_no_fallback() -> None:
    w = agents(x=AgentModels(model=models(C, (D,)), acp=True))
    got = plan(w, agent="x", selected_only=True)
    assert (got.models, got.strict) == ([A], True)
    assert "SEL-4" in got.rules
    assert plan(w, agent="x").models == [A, D]


@pytest.mark.rule("SEL-5")
def test_another_model_of_the_users_choice_is_never_answered_by_an_unrelated_one() -> None:
    w = World(chain(A, B))
    w.service.select_model("s", C)
    turn = w.turn()
    got = plan_of(turn)
    assert (got.models, got.source, got.strict) == ([C], SelectionSource.USER, True)
    assert "SEL-5" in got.rules
    step = w.give_up(turn, "auth")
    assert isinstance(step, Settled)
    assert (step.answered, step.end, w.tried(turn)) == (False, TurnEnd.EXHAUSTED, [(C, "google:one")])
    assert plan(w, "another").models == [A, B]
    w.proved()


@pytest.mark.rule("SEL-5")
def test_a_one_off_model_is_a_choice_of_the_user_too() -> None:
    w = World(chain(A, B))
    got = plan(w, model=C)
    assert (got.models, got.source, got.strict) == ([C], SelectionSource.CALLER, True)
    assert plan(w).models == [A, B], "it held for that run"


@pytest.mark.rule("SEL-6")
def test_a_choice_that_equals_the_primary_keeps_the_chain() -> None:
    w = World(chain(A, B))
    w.service.select_model("s", A)
    got = plan(w)
    assert (got.models, got.source, got.strict) == ([A, B], SelectionSource.USER, False)
    assert "SEL-6" in got.rules
    assert plan(w, "t", model=A).models == [A, B]


@pytest.mark.rule("SEL-6")
def test_an_override_from_before_that_equals_todays_primary_keeps_the_chain_without_being_rewritten() -> None:
    w = World(chain(A, B))
    w.service.select_model("s", C)
    assert plan(w).models == [C]
    before = w.view.position
    w.adopt(chain(C, B))
    assert w.view.position == before + 1, "nothing but the policy was written"
    got = plan(w)
    assert (got.models, got.strict) == ([C, B], False)


@pytest.mark.rule("SEL-6")
def test_a_choice_of_an_agents_own_primary_keeps_the_agents_chain() -> None:
    w = agents(x=AgentModels(model=models(C, (D,))))
    w.service.select_model("s", C, agent="x")
    assert plan(w, agent="x").models == [C, D]


@pytest.mark.rule("SEL-7")
@pytest.mark.parametrize(
    "source", [SelectionSource.CRON, SelectionSource.AUTO, SelectionSource.CHILD, SelectionSource.HOOK]
)
def test_an_explicit_empty_list_switches_fallback_off_whatever_the_source(source: SelectionSource) -> None:
    empty = World(Policy(models=models(A, ())))
    got = plan(empty, model=C, source=source)
    assert (got.models, got.strict) == ([C], True)
    assert "SEL-7" in got.rules
    unset = World(Policy(models=models(A, None)))
    assert plan(unset, model=C, source=source).models == [C, A]


@pytest.mark.rule("SEL-7")
def test_a_lock_or_an_empty_list_of_the_run_switches_fallback_off() -> None:
    w = World(chain(A, B))
    for fields in ({"locked": True}, {"fallbacks": ()}):
        got = plan(w, **fields)
        assert (got.models, got.strict) == ([A], True)
        assert "SEL-7" in got.rules
    turn = w.turn("u", locked=True)
    assert isinstance(w.give_up(turn, "auth"), Settled)
    assert plan(w, "v", fallbacks=(C,)).models == [A, C]


@pytest.mark.rule("SEL-8")
def test_a_child_takes_over_its_parents_pin_unless_it_chose_the_default() -> None:
    w = World(chain(A, B))
    w.service.select_model("parent", C)
    w.service.create_session("child", parent="parent")
    inherited = w.decisions(d.SelectionInherited)
    assert [(one.model, "SEL-8" in one.rules) for one in inherited] == [(C, True)]
    assert plan(w, "child").models == [C]

    w.service.select_model("own", None)
    w.service.create_session("own", parent="parent")
    got = plan(w, "own")
    assert (got.models, got.source, got.strict) == ([A, B], SelectionSource.DEFAULT, False)
    assert "SEL-8" in got.rules
    assert len(w.decisions(d.SelectionInherited)) == 1
    w.proved()


@pytest.mark.rule("SEL-8")
def test_the_default_chosen_in_a_child_ends_what_it_had_taken_over() -> None:
    w = World(chain(A, B))
    w.service.select_model("parent", C)
    w.service.create_session("child", parent="parent")
    w.service.select_model("child", None)
    got = plan(w, "child")
    assert (got.models, got.source) == ([A, B], SelectionSource.DEFAULT)
    assert plan(w, "parent").models == [C]


@pytest.mark.rule("SEL-12")
@pytest.mark.parametrize(
    ("fallbacks", "expected", "strict"),
    [(None, [C, B, A], False), ((D,), [C, D], False), ((), [C], True)],
)
def test_a_cron_payloads_model_is_the_jobs_primary(
    fallbacks: tuple[str, ...] | None, expected: list[str], strict: bool
) -> None:
    w = World(chain(A, B))
    got = plan(w, model=C, source=SelectionSource.CRON, kind=TurnKind.CRON, fallbacks=fallbacks)
    assert (got.models, got.source, got.strict) == (expected, SelectionSource.CRON, strict)
    assert "SEL-12" in got.rules
    assert plan(w, model=C, kind=TurnKind.CRON).models == [C], "a user's one-off model is another thing"


@pytest.mark.rule("SEL-13")
def test_a_session_created_with_the_primary_stores_no_override() -> None:
    w = World(chain(A, B))
    w.service.create_session("same", model=A)
    assert w.decisions(d.SelectionInherited) == []
    w.service.create_session("other", model=C)
    assert [(one.model, "SEL-13" in one.rules) for one in w.decisions(d.SelectionInherited)] == [(C, True)]
    w.adopt(chain(D, B))
    assert plan(w, "same").models == [D, B], "it follows the configuration"
    got = plan(w, "other")
    assert (got.models, got.source, got.strict) == ([C], SelectionSource.USER, True)


@pytest.mark.rule("SEL-13")
def test_a_remembered_default_is_the_primary_in_effect() -> None:
    w = agents(x=AgentModels(remembered=C))
    w.service.create_session("same", model=C, agent="x")
    assert w.decisions(d.SelectionInherited) == []
    assert plan(w, "same", agent="x").models == [C, B]
    w.service.create_session("configured", model=A, agent="x")
    assert plan(w, "configured", agent="x").models == [A]


@pytest.mark.rule("SEL-14")
def test_a_hook_may_replace_the_fallbacks_of_one_run() -> None:
    w = World(chain(A, B))
    final = w.turn(fallbacks=(), source=SelectionSource.HOOK)
    assert (plan_of(final).models, plan_of(final).strict) == ([A], True)
    assert "SEL-14" in plan_of(final).rules
    step = w.give_up(final, "billing")
    assert isinstance(step, Settled)
    assert w.tried(final) == [(A, "openai:one")]
    rerouted = plan(w, "t", model=C, source=SelectionSource.HOOK, fallbacks=(D,), rerouted=True)
    assert rerouted.models == [C, D]
    assert "SEL-14" in rerouted.rules
    assert plan(w, "t").models == [A, B], "it held for that run"


@pytest.mark.rule("SEL-16")
def test_explicit_selections_keep_their_strictness_under_an_acp_agent() -> None:
    w = agents(x=AgentModels(model=models(C), acp=True))
    w.service.select_model("s", C, agent="x")
    got = plan(w, agent="x")
    # The harness's own model is no primary of native calls, so choosing it is choosing another model.
    assert (got.models, got.strict) == ([C], True)
    assert "SEL-16" in got.rules
    child = plan(w, "c", agent="x", model=D, source=SelectionSource.USER, kind=TurnKind.SUBAGENT)
    assert (child.models, child.strict) == ([D], True)
    w.service.select_model("p", A, agent="x")
    assert plan(w, "p", agent="x").models == [A, B], "the inherited primary keeps the inherited chain"
    assert "SEL-16" not in plan(w, "q", agent="x").rules


@pytest.mark.rule("SEL-17")
def test_the_starts_that_may_walk_the_configured_chain() -> None:
    w = agents(x=AgentModels(model=models(C, (D,))), y=AgentModels(model=models(C)))
    walking = {
        "configured default": plan(w),
        "cron primary": plan(w, model=C, source=SelectionSource.CRON),
        "agent primary with fallbacks of its own": plan(w, agent="x"),
        "automatic fallback override": plan(w, model=B, source=SelectionSource.AUTO),
    }
    assert {name: got.models for name, got in walking.items()} == {
        "configured default": [A, B],
        "cron primary": [C, B, A],
        "agent primary with fallbacks of its own": [C, D],
        "automatic fallback override": [B, A],
    }
    assert all("SEL-17" in got.rules for got in walking.values())
    for fields in ({"agent": "y"}, {"model": C}):
        got = plan(w, **fields)
        assert (got.models, got.strict) == ([C], True)
        assert "SEL-17" not in got.rules


@pytest.mark.rule("SEL-18")
def test_null_clears_an_override_and_storing_the_shown_default_does_not() -> None:
    w = World(chain(A, B))
    for session in ("cleared", "stored"):
        w.service.select_model(session, C)
    w.service.clear_model("cleared")
    w.service.select_model("stored", A)
    assert plan(w, "cleared").models == plan(w, "stored").models == [A, B]
    w.adopt(chain(D, B))
    assert plan(w, "cleared").models == [D, B]
    assert plan(w, "stored").models == [A], "it was a model, and now it is a strict one"


@pytest.mark.rule("SEL-18", "SEL-8")
def test_null_leaves_a_child_to_its_parent_again_and_default_does_not() -> None:
    w = World(chain(A, B))
    w.service.select_model("parent", C)
    for child in ("null", "default"):
        w.service.create_session(child, parent="parent")
        w.service.select_model(child, D)
    w.service.clear_model("null")
    assert "SEL-18" in w.decisions(d.SelectionInherited)[-1].rules
    w.service.select_model("default", None)
    assert plan(w, "null").models == [C]
    assert plan(w, "default").models == [A, B]
    w.proved()


@pytest.mark.rule("SEL-19")
def test_editing_fallbacks_keeps_inheritance_and_the_last_one_leaves_an_empty_list() -> None:
    inherited = AgentModels()
    one = edit_fallbacks(inherited, [C, C])
    assert one == AgentModels(model=models("", (C,)))
    none = edit_fallbacks(one, [])
    assert none == AgentModels(model=models("", ()))
    assert edit_fallbacks(AgentModels(model=models(C), acp=True), [D]) == AgentModels(
        model=models(C, (D,)), acp=True
    )
    w = agents(one=one, none=none, inherited=inherited)
    assert plan(w, agent="one").models == [A, C]
    assert (plan(w, agent="none").models, plan(w, agent="none").strict) == ([A], True)
    assert plan(w, agent="inherited").models == [A, B]

"""SEL, closer: what is said of each source, and short ways to name a model."""

import pytest

from standby.events import decisions as d
from standby.events.errors import BadReport
from standby.events.vocabulary import SelectionSource
from tests.harness import A, B, C, World, chain, of


@pytest.mark.rule("SEL-17")
@pytest.mark.parametrize(
    ("source", "model", "rules"),
    [
        (SelectionSource.DEFAULT, "", ["SEL-1", "SEL-17"]),
        (SelectionSource.CRON, B, ["SEL-12", "SEL-17"]),
        (SelectionSource.AUTO, B, ["SEL-17"]),
        (SelectionSource.USER, A, ["SEL-6"]),
        (SelectionSource.CALLER, A, ["SEL-6"]),
        (SelectionSource.CHILD, B, ["SEL-11"]),
        (SelectionSource.HOOK, B, []),
    ],
)
def test_each_source_is_explained_by_its_own_rule(
    source: SelectionSource, model: str, rules: list[str]
) -> None:
    (planned,) = of(World(chain(A, B)).turn(model=model, source=source), d.ChainPlanned)
    assert [rule for rule in planned.rules if rule.startswith("SEL-")] == rules
    assert planned.source is source


def test_a_bare_name_is_a_model_of_the_primarys_provider() -> None:
    turn = World(chain(A, "alpha-mini")).turn(model="alpha-two", source=SelectionSource.CRON)
    models = [candidate.model for candidate in turn.state.candidates]
    assert models == ["openai/alpha-two", "openai/alpha-mini", A]


@pytest.mark.parametrize("name", ["/alpha", "openai/", " "])
def test_a_name_that_can_stand_for_no_model_is_an_error_before_anything_is_written(name: str) -> None:
    w = World(chain(A, B))
    before = len(w.commits())
    with pytest.raises(BadReport, match="write it as provider/model"):
        w.turn(model=name)
    assert len(w.commits()) == before


def child_of_a_pinned_parent() -> World:
    """The parent's user chose B; the child was created after that and took it over."""
    w = World(chain(A, C))
    w.service.select_model("parent", B)
    w.service.create_session("child", parent="parent")
    assert w.turn("child").state.selected == B
    return w


@pytest.mark.rule("SEL-8", "LIVE-1")
def test_what_the_user_chooses_in_a_child_is_not_replaced_by_its_parents_model() -> None:
    w = child_of_a_pinned_parent()
    w.service.select_model("child", C)
    assert w.turn("child").state.selected == C


@pytest.mark.rule("SEL-8", "SEL-18")
def test_a_child_takes_over_nothing_that_the_parents_user_did_not_choose() -> None:
    w = World(chain(A, C))
    w.service.select_model("parent", B)
    w.service.clear_model("parent")
    w.service.create_session("child", parent="parent")
    assert w.decisions(d.SelectionInherited) == []
    assert w.turn("child").state.selected == A


@pytest.mark.rule("SEL-18", "PIN-13")
def test_pins_are_measured_by_the_model_that_a_cleared_child_takes_over_again() -> None:
    w = child_of_a_pinned_parent()
    w.service.pin("child", "anthropic", "anthropic:one")
    w.service.pin("child", "openai", "openai:one")
    w.service.clear_model("child")
    (cleared,) = w.decisions(d.PinCleared)
    assert (cleared.provider, cleared.rules) == ("openai", ("PIN-13",))

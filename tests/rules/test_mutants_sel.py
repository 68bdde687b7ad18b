"""SEL, closer: what is said of each source, and short ways to name a model."""

import pytest

from standby.events import decisions as d
from standby.events.errors import BadReport
from standby.events.vocabulary import SelectionSource
from tests.harness import A, B, World, chain, of


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

"""LIVE, closer."""

import pytest

from standby.engine.steps import CallModel
from standby.engine.texts.status import SessionStatus
from standby.events.policy import ModelChain, Policy
from standby.events.vocabulary import SelectionSource
from standby.hosts.reports import Switched
from tests.harness import A, B, World, chain


@pytest.mark.rule("LIVE-5")
def test_the_status_of_a_session_for_which_nothing_is_selected_says_so() -> None:
    w = World(Policy(models=ModelChain()))
    nothing = SessionStatus(selected="", source=SelectionSource.DEFAULT, strict=False)
    assert w.service.status("s") == nothing


@pytest.mark.rule("SEL-18", "LIVE-1")
def test_a_session_whose_override_was_cleared_is_back_at_the_default_in_every_respect() -> None:
    w = World(chain(A, B))
    w.service.select_model("s", B)
    w.service.clear_model("s")
    alias = w.service.core.known_alias("session", "main/s")
    session = w.view.sessions.get(alias or "")
    assert session is not None
    assert (session.model, session.source) == ("", SelectionSource.DEFAULT)


@pytest.mark.rule("LIVE-7", "ADV-15")
def test_a_bare_name_in_a_live_switch_is_a_model_of_the_selected_provider() -> None:
    w = World(chain(A, B, "openai/alpha-two"))
    step = w.turn().report(Switched(model="alpha-two"))
    assert isinstance(step, CallModel)
    assert step.model == "openai/alpha-two"

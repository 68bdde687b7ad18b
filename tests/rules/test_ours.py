"""OURS: what goes beyond both documents, as far as chains, health and summaries are concerned."""

import re
from pathlib import Path

import pytest

from standby.engine.steps import CallModel, Settled, Wait
from standby.events import decisions as d
from standby.events.policy import Consent, Policy, Probes, Recovery, Stickiness
from standby.events.vocabulary import Effects, Failure, KeptBecause, SkipBecause, TurnEnd
from standby.hosts.reports import Succeeded, Switched
from tests.harness import START_MS, A, B, C, World, chain, of

AT_ONCE = Recovery(max_retries=0)
SIBLING = "openai/sibling"
MINUTE = 60_000


@pytest.mark.rule("OURS-1")
def test_a_second_models_limit_never_widens_the_firsts() -> None:
    w = World(chain(A, SIBLING, recovery=AT_ONCE))
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=300)
    assert w.tried(turn)[-1] == (SIBLING, "openai:one"), "the block is that model's alone"
    w.fail(turn, "rate_limit", retry_after=600)
    cooldowns = {entry.model: entry.until_ms for entry in w.view.profiles[w.alias("openai:one")].cooldowns}
    assert cooldowns == {A: START_MS + 300_000, SIBLING: START_MS + 600_000}
    third = w.turn("t", model="openai/third")
    assert w.tried(third) == [("openai/third", "openai:one")]
    w.sleep(300_000)
    assert w.tried(w.turn("u")) == [(A, "openai:one")], "its own time, not the sibling's"


@pytest.mark.rule("OURS-1")
def test_a_missing_model_blocks_no_other_model_of_the_profile() -> None:
    w = World(chain(A, SIBLING))
    turn = w.turn()
    w.fail(turn, "model_not_found")
    assert [one.model for one in of(turn, d.BlockSet)] == [A]
    assert w.tried(turn)[-1] == (SIBLING, "openai:one")


@pytest.mark.rule("OURS-1", "COOL-7")
def test_usage_stats_are_a_view_of_the_cells() -> None:
    w = World(chain(A, SIBLING, recovery=AT_ONCE))
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=300)
    one = w.service.usage_stats()["openai:one"]
    assert (one["cooldownUntil"], one["cooldownModel"]) == (START_MS + 300_000, "alpha")
    w.fail(turn, "rate_limit", retry_after=600)
    both = w.service.usage_stats()["openai:one"]
    assert both["cooldownUntil"] == START_MS + 600_000
    assert "cooldownModel" not in both


def consenting(*consent: Consent, fallbacks: tuple[str, ...] = (B, C)) -> World:
    return World(chain(A, *fallbacks, recovery=AT_ONCE, consent=consent))


@pytest.mark.rule("OURS-7")
def test_consent_says_for_which_reason_and_where_to() -> None:
    w = consenting(Consent(reason=Failure.RATE_LIMIT, models=(C,)), Consent(reason=Failure.BILLING, models=()))
    limited = w.turn("limited")
    w.fail(limited, "rate_limit")
    assert [model for model, _ in w.tried(limited)] == [A, C]
    (skip,) = of(limited, d.CandidateSkipped)
    assert (skip.model, skip.because, skip.reason) == (B, SkipBecause.CONSENT, Failure.RATE_LIMIT)
    assert "OURS-7" in skip.rules
    other = w.turn("other")
    w.fail(other, "overloaded")
    assert [model for model, _ in w.tried(other)] == [A, B], "nothing was said of that reason"
    broke = w.turn("broke")
    step = w.fail(broke, "billing")
    assert isinstance(step, Settled)
    assert (step.end, [s.because for s in step.skips]) == (TurnEnd.EXHAUSTED, [SkipBecause.CONSENT] * 2)
    assert "OURS-7" in of(broke, d.TurnFailed)[0].rules
    w.proved()


@pytest.mark.rule("OURS-7")
def test_consent_is_asked_for_as_well_when_a_candidate_is_passed_over() -> None:
    w = consenting(Consent(reason=Failure.RATE_LIMIT, models=()), fallbacks=(B,))
    w.fail(w.turn("first"), "rate_limit", retry_after=3600)
    turn = w.turn("second")
    assert isinstance(turn.step, Settled)
    assert [(s.model, s.because) for s in turn.step.skips] == [
        (A, SkipBecause.COOLDOWN),
        (B, SkipBecause.CONSENT),
    ]
    free = World(chain(A, B, recovery=AT_ONCE))
    free.fail(free.turn("first"), "rate_limit", retry_after=3600)
    assert free.tried(free.turn("second")) == [(B, "anthropic:one")]


@pytest.mark.rule("OURS-7")
def test_the_selected_model_and_the_users_switch_need_no_consent() -> None:
    w = consenting(Consent(reason=Failure.RATE_LIMIT, models=(B,)), Consent(reason=Failure.AUTH, models=()))
    first = w.turn()
    w.fail(first, "rate_limit")
    w.answer(first)
    sticky = w.turn()
    assert w.tried(sticky) == [(B, "anthropic:one")]
    w.fail(sticky, "auth")
    assert w.tried(sticky)[-1][0] == A
    switched = w.turn("t")
    switched.report(Switched(model=C))
    assert w.tried(switched)[-1][0] == C


@pytest.mark.rule("OURS-8")
def test_our_own_cooldown_is_off_by_default_and_marked_as_ours() -> None:
    plain = World(chain(A, B, recovery=AT_ONCE))
    turn = plain.turn()
    plain.fail(turn, "rate_limit")
    assert of(turn, d.BlockSet) == []

    w = World(chain(A, B, recovery=AT_ONCE, local_cooldown_ms=20_000))
    turn = w.turn()
    w.fail(turn, "rate_limit")
    (block,) = of(turn, d.BlockSet)
    assert (block.ours, block.until_ms, block.model) == (True, START_MS + 20_000, A)
    assert "OURS-8" in block.rules
    stated = w.turn("t", model=C)
    w.fail(stated, "rate_limit", retry_after=90)
    (block,) = of(stated, d.BlockSet)
    assert (block.ours, block.until_ms) == (False, START_MS + 90_000), "the provider's word goes before ours"


@pytest.mark.rule("OURS-9")
def test_the_first_failure_stays_whatever_fails_afterwards() -> None:
    w = World(chain(A, B, C, recovery=AT_ONCE))
    turn = w.turn()
    w.fail(turn, "billing")
    w.fail(turn, "overloaded")
    step = w.fail(turn, "unclassified")
    assert isinstance(step, Settled)
    failed = of(turn, d.TurnFailed)[0]
    assert (failed.first, failed.reason) == (1, Failure.UNCLASSIFIED)
    assert "OURS-9" in failed.rules
    assert [a.reason for a in step.attempts] == [Failure.BILLING, Failure.OVERLOADED, Failure.UNCLASSIFIED]
    assert w.service.core.text_of(step.attempts[0].text).find("Insufficient credits") >= 0


@pytest.mark.rule("OURS-9")
def test_a_report_that_comes_too_late_is_kept() -> None:
    w = World(chain(A, B))
    turn = w.turn()
    w.fail(turn, "auth")
    turn.report(Succeeded(), attempt=1)
    (kept,) = of(turn, d.ReportKept)
    assert (kept.attempt, kept.because) == (1, KeptBecause.DOUBLED)


@pytest.mark.rule("OURS-10")
def test_all_cooling_is_a_time_and_a_model() -> None:
    w = World(chain(A, B, C, recovery=AT_ONCE))
    turn = w.turn()
    for seconds in (900, 300, 600):
        step = w.fail(turn, "rate_limit", retry_after=seconds)
    assert isinstance(step, Settled)
    assert (step.soonest_ms, step.soonest_model) == (START_MS + 300_000, B)
    w.sleep(MINUTE)
    again = w.turn("t")
    assert isinstance(again.step, Settled)
    assert (again.step.soonest_ms, again.step.soonest_model) == (START_MS + 300_000, B)
    assert "OURS-10" in of(again, d.TurnFailed)[0].rules
    # A model of no candidate's says nothing.
    assert w.turn("u", model=C).state.soonest_model == C


@pytest.mark.rule("OURS-10", "OURS-7")
def test_a_candidate_that_may_not_be_gone_to_is_not_the_soonest() -> None:
    w = consenting(Consent(reason=Failure.RATE_LIMIT, models=(C,)))
    first = w.turn("first", model=B)
    w.fail(first, "rate_limit", retry_after=100)
    turn = w.turn()
    w.fail(turn, "rate_limit", retry_after=900)
    step = w.fail(turn, "rate_limit", retry_after=600)
    assert isinstance(step, Settled)
    assert (step.soonest_ms, step.soonest_model) == (START_MS + 600_000, C)


@pytest.mark.rule("OURS-11")
def test_what_is_used_up_in_a_turn_is_not_tried_again_in_it() -> None:
    w = World(chain(A, B, recovery=AT_ONCE), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "overloaded")
    # Stale switches to what was left lead onwards, never back.
    turn.report(Switched(model=A))
    assert isinstance(turn.step, Settled)
    assert w.tried(turn) == [(A, "o1"), (A, "o2"), (B, "a1")]
    assert len(set(w.tried(turn))) == 3


@pytest.mark.rule("OURS-11")
def test_a_profile_that_was_left_is_not_gone_back_to_when_the_present_one_is_lost() -> None:
    once = Recovery(rate_limit_retries=1, transient_retries=0)
    w = World(chain(A, B, recovery=once), {"openai": ["o1", "o2"], "anthropic": ["a1"]})
    turn = w.turn()
    w.fail(turn, "overloaded")
    assert isinstance(w.fail(turn, "rate_limit"), Wait)
    # While it waits for o2 another session finds o2's account empty; o1 is free and was used up here.
    w.service.pin("other", "openai", "o2")
    w.fail(w.turn("other"), "billing")
    w.wait(turn)
    assert w.tried(turn) == [(A, "o1"), (A, "o2"), (B, "a1")]
    w.proved()


@pytest.mark.rule("OURS-11")
def test_no_candidate_is_called_twice_however_the_chain_names_it() -> None:
    w = World(chain(A, A, "short", A, aliases={"short": A}), {"openai": ["o1"]})
    turn = w.turn()
    step = w.fail(turn, "auth")
    assert isinstance(step, Settled)
    assert w.tried(turn) == [(A, "o1")]


def _all_sorts() -> World:
    """A log with most kinds of decisions in it."""
    policy = chain(A, SIBLING, B, C, recovery=AT_ONCE, skip_ttl_ms=MINUTE, windows={A: 8000, C: 90_000})
    w = World(policy, {"openai": ["o1", "o2"], "anthropic": ["a1"], "google": ["g1"]})
    w.run("a", "rate_limit", "rate_limit", "auth")
    w.run("a")
    w.run("b", "context_overflow")
    w.run("c", "billing", "billing", "auth", "unclassified")
    w.run("d")
    w.service.select_model("a", B, profile="a1")
    w.service.select_model("a", None)
    w.service.create_session("child", model=C)
    w.service.reset("b")
    w.sleep(24 * 60 * MINUTE)
    w.turn("e").cancel()
    gone = w.turn("f")
    gone.effects_begun(Effects.COMMITTED)
    w.fail(gone, "server_error")
    w.proved()
    return w


@pytest.mark.rule("OURS-12")
@pytest.mark.checkout
def test_every_decision_names_rules_that_exist() -> None:
    page = (Path(__file__).resolve().parents[2] / "specs" / "rules.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| ([A-Z]+-\d+) \|", page, re.MULTILINE))
    every = _all_sorts().decisions()
    assert len({type(one) for one in every}) >= 14
    assert [one for one in every if not one.rules or not known.issuperset(one.rules)] == []


@pytest.mark.rule("OURS-12")
def test_every_skipped_candidate_says_why_and_until_when() -> None:
    w = World(chain(A, B, C, recovery=AT_ONCE), {"openai": ["o1"], "anthropic": ["a1"], "google": []})
    w.service.observe({"openai": ["o1"], "anthropic": ["a1"]}, {"google": ["gone"]})
    turn = w.turn()
    w.fail(turn, "billing")
    w.fail(turn, "rate_limit", retry_after=900)
    skipped = w.turn("t")
    assert isinstance(skipped.step, Settled)
    assert [(s.model, s.because, s.reason, s.until_ms) for s in skipped.step.skips] == [
        (A, SkipBecause.COOLDOWN, Failure.BILLING, START_MS + 10 * MINUTE),
        (B, SkipBecause.COOLDOWN, Failure.RATE_LIMIT, START_MS + 900_000),
        (C, SkipBecause.NO_CREDENTIAL, Failure.AUTH, None),
    ]
    assert all("OURS-12" in one.rules for one in of(skipped, d.CandidateSkipped))


def _sticky_minutes(policy: Policy) -> int:
    """For how many minutes a session stays on its fallback after one turn there."""
    w = World(policy)
    w.run("s", "rate_limit")
    minutes = 0
    while minutes < 60 and w.tried(w.turn("s"))[0][0] == B:
        w.sleep(MINUTE)
        minutes += 1
    return minutes


def _retries(policy: Policy, kind: str) -> int:
    w = World(policy)
    turn = w.turn()
    w.give_up(turn, kind)
    return sum(1 for model, _ in w.tried(turn) if model == A) - 1


@pytest.mark.rule("OURS-13")
def test_windows_and_budgets_are_settings_with_the_documents_values_as_defaults() -> None:
    at_once = chain(A, B, recovery=AT_ONCE)
    assert _sticky_minutes(at_once) == 10
    assert _sticky_minutes(chain(A, B, recovery=AT_ONCE, stickiness=Stickiness(idle_ms=3 * MINUTE))) == 3
    assert _sticky_minutes(chain(A, B, recovery=AT_ONCE, stickiness=Stickiness(cap_ms=2 * MINUTE))) == 2
    assert _retries(chain(A, B), "rate_limit") == 15
    assert _retries(chain(A, B, recovery=Recovery(rate_limit_retries=4)), "rate_limit") == 4
    assert _retries(chain(A, B), "server_error") <= 8
    assert _retries(chain(A, B, recovery=Recovery(transient_retries=2)), "server_error") == 2


def _wait_ms(policy: Policy, kind: str, retry: int) -> int:
    """How long the given retry waits with a draw that jitters nothing."""
    w = World(policy)
    turn = w.turn()
    for _ in range(retry):
        step = w.fail(turn, kind)
        assert isinstance(step, Wait)
        wait = step.until_ms - w.now_ms
        w.wait(turn)
    return wait


@pytest.mark.rule("OURS-13")
def test_delays_and_caps_are_settings_too() -> None:
    assert (_wait_ms(chain(A, B), "rate_limit", 1), _wait_ms(chain(A, B), "rate_limit", 9)) == (1000, 60_000)
    assert _wait_ms(chain(A, B, recovery=Recovery(base_ms=200)), "rate_limit", 1) == 200
    assert _wait_ms(chain(A, B, recovery=Recovery(rate_limit_cap_ms=3000)), "rate_limit", 9) == 3000
    assert _wait_ms(chain(A, B), "server_error", 3) == 4000
    assert _wait_ms(chain(A, B, recovery=Recovery(transient_cap_ms=2500)), "server_error", 3) == 2500
    short = World(chain(A, B, recovery=Recovery(transient_window_ms=1500)))
    turn = short.turn()
    short.fail(turn, "server_error")
    short.wait(turn)
    short.fail(turn, "server_error")
    assert short.tried(turn)[-1][0] == B
    capped = World(chain(A, B, recovery=Recovery(max_retry_delay_ms=5000)))
    turn = capped.turn()
    capped.fail(turn, "rate_limit", retry_after=6)
    assert capped.tried(turn)[-1][0] == B


def _checked(policy: Policy, left_ms: int, gap_ms: int = 0) -> bool:
    """Whether a limited primary is checked this long before its block ends, and once more after the gap."""
    w = World(policy)
    w.fail(w.turn("first"), "rate_limit", retry_after=900)
    w.sleep(900_000 - left_ms)
    step = w.turn("second").step
    if gap_ms:
        w.sleep(gap_ms)
        step = w.turn("third").step
    return isinstance(step, CallModel) and step.model == A


@pytest.mark.rule("OURS-13")
def test_margin_and_interval_of_checks_are_settings_too() -> None:
    plain = chain(A, B, recovery=AT_ONCE)
    assert (_checked(plain, 120_000), _checked(plain, 120_001)) == (True, False)
    wide = chain(A, B, recovery=AT_ONCE, probes=Probes(margin_ms=300_000))
    assert _checked(wide, 300_000)
    assert (_checked(plain, 120_000, 30_000), _checked(plain, 120_000, 29_999)) == (True, False)
    often = chain(A, B, recovery=AT_ONCE, probes=Probes(interval_ms=5_000))
    assert _checked(often, 120_000, 5_000)


@pytest.mark.rule("OURS-14")
@pytest.mark.parametrize("shared", [False, True])
def test_skip_markers_are_of_one_process_unless_they_are_shared(shared: bool) -> None:
    w = World(chain(A, B, C, recovery=AT_ONCE, skip_ttl_ms=5 * MINUTE, shared_markers=shared))
    turn = w.turn()
    w.fail(turn, "overloaded")
    w.fail(turn, "auth")
    w.answer(turn)
    w.sleep(2 * MINUTE)  # the profile's own cooldown is over, the marker is not

    def passes_over(open_turn: object) -> bool:
        state = open_turn.state  # type: ignore[attr-defined]  # a handle of either process
        return any(skip.because is SkipBecause.SKIP_MARKER for skip in state.skips)

    mine = w.turn()
    w.fail(mine, "overloaded")
    assert passes_over(mine)
    there = w.other()
    theirs = there.start_turn(session="s")
    w.fail(theirs, "overloaded")
    assert passes_over(theirs) == shared
    restarted = w.restart().turn()
    w.fail(restarted, "overloaded")
    assert passes_over(restarted) == shared, "the memory of a process ends with it, the log's does not"
    w.proved()


@pytest.mark.rule("OURS-14")
@pytest.mark.parametrize("shared", [False, True])
def test_the_throttle_of_checks_is_of_one_process_unless_it_is_shared(shared: bool) -> None:
    w = World(chain(A, B, recovery=AT_ONCE, shared_markers=shared))
    w.fail(w.turn("first"), "rate_limit", retry_after=900)
    w.sleep(880_000)
    assert w.tried(w.turn("mine"))[0][0] == A
    theirs = w.other().start_turn(session="theirs")
    assert isinstance(theirs.step, CallModel)
    assert theirs.step.model == (B if shared else A)

"""How the player plays: order in time, runtimes on one log, restarts, take-overs, deadlines, outcomes."""

import itertools

import pytest

from standby.events.codec import decode
from standby.events.facts import CallFailed, CallSucceeded, CallUnknown, PolicyAdopted, TurnTakenOver
from standby.events.vocabulary import Effects, TurnEnd
from standby.hosts.scripted.replies import Kind
from standby.hosts.simulate import Played, PlayedTurn, parse_scenario, play

HEAD = """
[policy.agents.defaults.model]
primary = "openai/alpha"
fallbacks = ["anthropic/beta"]
[[profiles]]
name = "openai:one"
[[profiles]]
name = "openai:two"
"""


def played(text: str, head: str = HEAD) -> Played:
    """A scenario played; its log always verifies."""
    found = play(parse_scenario(head + text))
    assert found.report.holds, found.report.problem
    return found


def turn(found: Played, key: str) -> PlayedTurn:
    return next(one for one in found.turns if one.id == key)


def ended(found: Played, key: str) -> int | None:
    ms = turn(found, key).ended_ms
    return None if ms is None else ms - found.loaded.scenario.start_ms


def test_after_waits_for_what_is_under_way_and_during_does_not() -> None:
    found = played("""
        [[outcomes]]
        took = "10s"
        [[steps]]
        turn = { session = "a", id = "long" }
        [[steps]]
        during = "1s"
        turn = { session = "b", id = "meanwhile" }
        [[steps]]
        during = "2s"
        turn = { session = "c", id = "later" }
        [[steps]]
        after = "5s"
        turn = { session = "d", id = "last" }
        [[steps]]
        at = "20s"
        turn = { session = "e", id = "fixed" }
    """)
    timestamps = {key: ended(found, key) for key in ("long", "meanwhile", "later", "last", "fixed")}
    assert timestamps == {"long": 10_000, "meanwhile": 1200, "later": 3200, "last": 15_200, "fixed": 20_200}
    assert found.problems == []


def test_what_comes_at_one_moment_comes_in_the_order_of_the_file() -> None:
    steps = "".join(f'[[steps]]\nat = "1s"\nturn = {{ session = "s{n}", id = "{n}" }}\n' for n in range(5))
    found = played(steps)
    assert [one.id for one in found.turns] == ["0", "1", "2", "3", "4"]
    assert {ended(found, one.id) for one in found.turns} == {1200}


def test_a_call_longer_than_its_attempt_is_cut_off_and_may_have_had_effects() -> None:
    found = played("""
        [[outcomes]]
        took = "1h"
        effects = "possible"
        switch_to = "anthropic/beta"
        [[steps]]
        turn = { session = "a", id = "slow", timeout = "10s" }
    """)
    failed = [c.fact for c in turn(found, "slow").commits if isinstance(c.fact, CallFailed)]
    assert [(f.evidence.code, f.effects) for f in failed] == [("ETIMEDOUT", Effects.POSSIBLE)]
    assert (turn(found, "slow").state.end, ended(found, "slow")) == (TurnEnd.UNSAFE, 10_000)


def test_a_deadline_in_the_middle_of_a_call_ends_the_turn_and_blames_nobody() -> None:
    found = played("""
        [[outcomes]]
        took = "1h"
        [[steps]]
        turn = { session = "a", id = "late", deadline = "20s", timeout = "1m" }
        [[steps]]
        health = { profile = "openai:one", free = true, errors = 0 }
    """)
    late = turn(found, "late")
    assert (late.state.end, ended(found, "late"), len(late.state.attempts)) == (TurnEnd.DEADLINE, 20_000, 1)
    assert not any(isinstance(c.fact, CallFailed) for c in late.commits)


@pytest.mark.parametrize(
    ("step", "end"),
    [("cancel", TurnEnd.CANCELLED), ("deadline", TurnEnd.DEADLINE), ("no_progress", TurnEnd.STOPPED)],
)
def test_what_ends_a_turn_from_outside_ends_it_then(step: str, end: TurnEnd) -> None:
    found = played(f"""
        [[outcomes]]
        took = "5m"
        [[steps]]
        turn = {{ session = "a", id = "a", timeout = "10m", allowance = "1m" }}
        [[steps]]
        during = "2m"
        {step} = "a"
        [[steps]]
        after = "1s"
        turn = {{ session = "b", id = "b" }}
    """)
    assert (turn(found, "a").state.end, ended(found, "a")) == (end, 120_000)
    assert ended(found, "b") == 121_200, "what the stopped call had due does not hold up the clock"


def test_a_restart_loses_the_call_and_another_runtime_finishes_the_turn() -> None:
    found = played("""
        [[outcomes]]
        turn = "a"
        took = "1m"
        [[steps]]
        turn = { session = "a", id = "a" }
        expect = { answered = "openai/alpha", attempts = 2 }
        [[steps]]
        during = "10s"
        restart = true
        [[steps]]
        during = "5s"
        runtime = "other"
        take_over = "a"
    """)
    assert found.problems == []
    kinds = [type(c.fact) for c in turn(found, "a").commits]
    assert TurnTakenOver in kinds
    assert CallUnknown in kinds
    assert {c.runtime for c in turn(found, "a").commits} == {"main", "other"}
    assert (ended(found, "a") or 0) < 20_000


def test_a_turn_whose_runtime_went_away_is_not_over() -> None:
    text = """
        [[outcomes]]
        took = "1m"
        [[steps]]
        turn = { session = "a", id = "a" }
        expect = { over = false, attempts = 1 }
        [[steps]]
        during = "10s"
        restart = true
    """
    found = played(text)
    assert found.problems == []
    assert turn(found, "a").state.state == "calling"
    assert played(text.replace("over = false, ", "")).problems == ["turn a: it never ended (calling)"]


def test_a_former_owner_reports_late_and_the_report_is_kept() -> None:
    found = played("""
        [[outcomes]]
        turn = "a"
        took = "1m"
        [[steps]]
        turn = { session = "a", id = "a" }
        [[steps]]
        during = "10s"
        runtime = "other"
        take_over = "a"
    """)
    late = [c for c in turn(found, "a").commits if isinstance(c.fact, CallSucceeded) and c.runtime == "main"]
    assert [type(d).__name__ for c in late for d in c.decisions] == ["ReportKept"]
    assert turn(found, "a").state.answered == "openai/alpha"
    assert (ended(found, "a") or 0) < 15_000


def test_reports_about_a_turn_go_through_the_runtime_that_has_it() -> None:
    found = played("""
        [[outcomes]]
        took = "1m"
        [[steps]]
        runtime = "other"
        turn = { session = "a", id = "a" }
        [[steps]]
        during = "1s"
        effects = "a"
        [[steps]]
        during = "1s"
        response = "a"
        [[steps]]
        during = "1s"
        recovering = { turn = "a", kind = "bad_key" }
        [[steps]]
        during = "1s"
        cancel = "a"
    """)
    facts = [(type(c.fact).__name__, c.runtime) for c in turn(found, "a").commits]
    assert facts == [
        ("TurnRequested", "other"),
        ("EffectsBegun", "other"),
        ("ResponseCompleted", "other"),
        ("RuntimeRecovering", "other"),
        ("TurnCancelled", "other"),
    ]


def test_outcomes_are_taken_in_order_in_their_time_and_so_often() -> None:
    found = played("""
        [[outcomes]]
        profile = "openai:one"
        kind = "bad_key"
        [[outcomes]]
        since = "1m"
        until = "2m"
        kind = "refused"
        [[outcomes]]
        turn = "never"
        times = 4
        kind = "bad_key"
        [[outcomes]]
        model = "openai/gamma"
        until = "1h"
        kind = "bad_key"
        [[steps]]
        turn = { session = "a", id = "a" }
        [[steps]]
        at = "59.999s"
        turn = { session = "a", id = "before" }
        [[steps]]
        at = "1m"
        turn = { session = "a", id = "within" }
        [[steps]]
        at = "2m"
        turn = { session = "a", id = "never" }
    """)
    assert turn(found, "a").profiles == ["openai:one", "openai:two"]
    ends = [turn(found, key).state.end for key in ("before", "within", "never")]
    assert ends == [None, TurnEnd.SURFACED, TurnEnd.EXHAUSTED]
    assert found.problems == ["outcomes[2]: 3 of 4 calls came to it", "outcomes[3]: no call came to it"]


def test_a_policy_that_a_step_adopts_keeps_its_exact_prices() -> None:
    found = played("""
        [[steps]]
        [steps.policy.agents.defaults.model]
        primary = "mistral/large"
        [[steps.policy.models.providers.mistral.models]]
        id = "large"
        cost = { input = 0.000001, output = 1.1 }
        [[steps]]
        turn = { session = "a" }
        expect = { answered = "mistral/large", cost = "0.000022000100" }
    """)
    assert found.problems == []


def test_credentials_change() -> None:
    found = played("""
        [[steps]]
        remove = "openai:one"
        [[steps]]
        turn = { session = "a", id = "a" }
        [[steps]]
        profiles = [{ name = "openai:one" }, { name = "openai:two", usable = false }]
        [[steps]]
        turn = { session = "b", id = "b" }
        [[steps]]
        profiles = [{ name = "openai:one" }, { name = "openai:two" }]
        order = { openai = ["openai:two", "openai:one"] }
        [[steps]]
        turn = { session = "c", id = "c" }
        [[steps]]
        order = { openai = ["openai:one"] }
        [[steps]]
        turn = { session = "d", id = "d" }
    """)
    assert [one.profiles for one in found.turns] == [
        ["openai:two"],
        ["openai:one"],
        ["openai:two"],
        ["openai:one"],
    ]


def test_a_removed_credential_stays_away_when_the_order_changes() -> None:
    found = played("""
        [[steps]]
        remove = "openai:one"
        [[steps]]
        order = { openai = ["openai:one", "openai:two"] }
        [[steps]]
        turn = { session = "a" }
    """)
    assert found.turns[0].profiles == ["openai:two"]


def test_sessions_are_told_apart_and_selections_cleared() -> None:
    found = played("""
        [[steps]]
        select = { session = "parent", model = "mistral/large" }
        [[steps]]
        create = { session = "child", parent = "parent" }
        [[steps]]
        status = { session = "child", selected = "mistral/large", strict = true }
        [[steps]]
        clear = { session = "parent" }
        [[steps]]
        status = { session = "parent", selected = "openai/alpha" }
        [[steps]]
        compaction = { session = "parent", count = 2 }
        [[steps]]
        reset = { session = "parent", kind = "rollover" }
    """)
    assert found.problems == []


def test_every_kind_of_scripted_failure_can_be_played() -> None:
    for kind, model in itertools.product(
        Kind, ("openai/a", "anthropic/a", "openrouter/a", "groq/a", "mistral/a")
    ):
        found = played(
            f'[[outcomes]]\nkind = "{kind.value}"\nuntil = "1h"\n'
            f'[[steps]]\nturn = {{ session = "a", model = "{model}", max_retries = 0 }}'
        )
        assert bool(found.turns[0].state.answered) is (kind is Kind.ANSWER), (kind, model)
        assert found.problems == []


def rows(text: str) -> list[tuple[int, bytes, bytes]]:
    return [(row.position, row.body, row.hash) for row in played(text).store.read()]


def test_the_seed_is_all_that_chance_there_is() -> None:
    text = """
        [[outcomes]]
        kind = "server_error"
        times = 3
        [[steps]]
        turn = { session = "a" }
    """
    assert rows(text) == rows(text)
    one, two = (play(parse_scenario(f"seed = {seed}\n" + HEAD + text)) for seed in (1, 2))
    assert [turn.ended_ms for turn in one.turns] != [turn.ended_ms for turn in two.turns]


def test_a_policy_is_shown_by_the_log_once() -> None:
    found = played("")
    facts = [decode(row.body, row.position).fact for row in found.store.read()]
    assert sum(isinstance(fact, PolicyAdopted) for fact in facts) == 1
    assert found.turns == []

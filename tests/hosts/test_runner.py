"""The course of a turn through either runner: retries, rotation, fallback, what is shown, how it ends."""

import time
from typing import Any

import msgspec
import pytest

from standby.engine.steps import Settled
from standby.events import decisions as d
from standby.events import facts as f
from standby.events.errors import AttemptFailed, BadInput, TurnFailed
from standby.events.vocabulary import Effects, Failure, SkipBecause, StopKind, Surface, TurnEnd
from standby.hosts.credential_values import api_key
from standby.hosts.credentials import CredentialStore
from standby.hosts.providers import CallFailed, Prompt
from standby.hosts.providers.client import ProviderClient
from standby.hosts.runner import Runner, Status, StatusKind
from standby.hosts.scripted import (
    Counts,
    Lane,
    Reply,
    answer,
    bad_key,
    closed,
    context_overflow,
    cut_stream,
    failing_stream,
    hanging,
    no_credit,
    overloaded,
    rate_limited,
    server_error,
)
from tests.hosts.runners import KEYS, POLICY, Replies, house

LIMITED = Reply(
    status=429,
    headers={"retry-after-ms": "900"},
    body={"error": {"message": "Too many requests", "code": "rate_limit_exceeded"}},
)

# Waits that are long enough to be shown on a busy machine, too.
PATIENT = POLICY.replace("baseMs = 10", "baseMs = 600")

BOTH = pytest.mark.parametrize("kind", ["sync", "async"])


@BOTH
def test_an_answer_comes_back_with_its_record(kind: str) -> None:
    with house(kind, {"alpha": [answer("Good day.", usage=Counts(input=7, output=3, cached=2))]}) as at:
        result = at.run()
    assert result.text == "Good day."
    assert result.stop is StopKind.STOP
    assert isinstance(result.settled, Settled)
    assert result.settled.model == "openai/alpha"
    assert [a.profile for a in result.settled.attempts] == ["inline-api-key:openai"]
    assert (result.usage.input, result.usage.output, result.usage.cached) == (7, 3, 2)
    assert result.notices == ()
    assert [request.attempt for request in at.server.requests] == [f"{result.turn}/1"]


@BOTH
@pytest.mark.rule("REC-7", "NOTE-5", "TIME-4")
def test_a_stated_wait_is_waited_for_and_shown(kind: str) -> None:
    seen: list[Status] = []
    with house(kind, {"alpha": [LIMITED, "Now."]}) as at:
        result = at.run(on_status=seen.append)
    first, second = at.server.requests
    assert second.received_ms - first.received_ms >= 890
    assert [a.reason for a in result.settled.attempts] == [Failure.RATE_LIMIT, None]
    assert [str(status) for status in seen] == ["Retrying… 2/16 (in 1 s)", ""]
    retry, last = seen
    assert (retry.kind, retry.attempt, retry.of) == (StatusKind.RETRY, 2, 16)
    assert retry.until_ms is not None
    assert last.kind is StatusKind.NONE
    assert result.notices == ()


@BOTH
@pytest.mark.rule("NOTE-5")
def test_the_countdown_moves_once_a_second(kind: str) -> None:
    seen: list[str] = []
    slow = msgspec.structs.replace(LIMITED, headers={"retry-after-ms": "1900"})
    with house(kind, {"alpha": [slow, "Now."]}) as at:
        at.run(on_status=lambda status: seen.append(status.text))
    assert seen == ["Retrying… 2/16 (in 2 s)", "Retrying… 2/16 (in 1 s)", ""]


@BOTH
@pytest.mark.rule("NOTE-1", "NOTE-2", "NOTE-5", "NOTE-6", "NOTE-9")
def test_a_fallback_is_announced_once_and_its_end_too(kind: str) -> None:
    script: dict[str, Replies] = {"alpha": [*[server_error()] * 4, "Back."]}
    shown: list[Status] = []
    told: list[str] = []
    with house(kind, {**script, "beta": [answer("Here.", repeat=True)]}, policy=PATIENT) as at:
        first = at.run(on_status=shown.append, on_notice=told.append)
        second = at.run(on_notice=told.append)
        third = at.run(on_notice=told.append)
        delivered = at.facts(f.NoticeDelivered)
    assert [first.text, second.text, third.text] == ["Here.", "Here.", "Back."]
    assert len(told) == 2
    assert told[0].startswith("↪️ Model Fallback: anthropic/beta (selected openai/alpha; ")
    assert told[1] == "↪️ Model Fallback cleared: openai/alpha (was anthropic/beta)"
    assert (first.notices, second.notices, third.notices) == ((told[0],), (), (told[1],))
    assert [fact.turn for fact in delivered] == [first.turn, third.turn]
    assert [status.kind for status in shown] == [StatusKind.RETRY, StatusKind.FALLBACK, StatusKind.NONE]
    assert shown[0].text == "Retrying… (in 1 s)"
    assert shown[1].text == "Trying fallback model…"
    assert (shown[1].previous, shown[1].model) == ("openai/alpha", "anthropic/beta")
    assert shown[1].reason is Failure.SERVER_ERROR


@BOTH
@pytest.mark.rule("NOTE-10")
@pytest.mark.parametrize("surface", [Surface.GROUP, Surface.CHANNEL])
def test_groups_and_channels_are_told_nothing(kind: str, surface: Surface) -> None:
    told: list[str] = []
    with house(kind, {"alpha": [no_credit(repeat=True)], "beta": ["Here."]}) as at:
        result = at.run(surface=surface, on_notice=told.append)
        due = at.decisions(d.NoticeDue)
        delivered = at.facts(f.NoticeDelivered)
    assert result.text == "Here."
    assert told == []
    assert result.notices == ()
    assert [notice.quiet for notice in due] == [True]
    assert delivered == []


@BOTH
@pytest.mark.rule("OURS-9", "OURS-10", "FLOW-14", "OBS-4")
def test_a_failed_turn_raises_its_first_failure_and_the_soonest_time(kind: str) -> None:
    script = {"alpha": [rate_limited(90)], "beta": [rate_limited(120)]}
    with house(kind, script) as at, pytest.raises(TurnFailed) as caught:
        at.run()
    error = caught.value
    assert isinstance(error.__cause__, AttemptFailed)
    assert error.__cause__.attempt.attempt == 1
    assert str(error.__cause__) == "attempt 1 at openai/alpha failed: rate_limit, HTTP 429"
    assert [a.model for a in error.settled.attempts] == ["openai/alpha", "anthropic/beta"]
    assert error.soonest_model == "openai/alpha"
    assert error.soonest_ms is not None
    assert 80_000 < error.soonest_ms - error.settled.attempts[0].started_ms < 100_000
    assert str(error).startswith("⚠️ Rate-limited — ready in ~2 min.")


@BOTH
@pytest.mark.rule("REC-11")
def test_each_attempt_has_a_budget_of_its_own(kind: str) -> None:
    script = {"alpha": [hanging(), hanging()], "beta": [answer("Here.", delay_ms=100)]}
    with house(kind, script) as at:
        result = at.run(timeout_ms=1500, max_retries=0)
    assert result.text == "Here."
    assert [a.reason for a in result.settled.attempts] == [Failure.TIMEOUT, None]
    assert at.models == ["alpha", "beta"]


@BOTH
def test_the_settings_limit_each_request(kind: str) -> None:
    policy = POLICY + "[retry.provider]\ntimeoutMs = 1000\n"
    with house(kind, {"alpha": [hanging()], "beta": ["Here."]}, policy=policy) as at:
        started = time.monotonic()
        result = at.run(timeout_ms=60_000, max_retries=0)
    assert time.monotonic() - started < 30
    assert result.settled.attempts[0].reason is Failure.TIMEOUT


@BOTH
@pytest.mark.parametrize("reply", [hanging(), rate_limited(30)], ids=["calling", "waiting"])
def test_the_deadline_of_the_run_ends_calls_and_waits(kind: str, reply: Reply) -> None:
    with house(kind, {"alpha": [reply], "beta": [hanging(repeat=True)]}) as at:
        deadline = at.service.core.clock() + 300
        with pytest.raises(TurnFailed, match="deadline") as caught:
            at.run(deadline_ms=deadline)
        now = at.service.core.clock()
        calls = len(at.server.requests)
    assert deadline <= now < deadline + 10_000
    assert caught.value.settled.end is TurnEnd.DEADLINE
    assert calls <= 2


@BOTH
def test_a_deadline_that_passes_between_two_calls_allows_no_other(kind: str) -> None:
    with house(kind, {"alpha": [LIMITED, "Never."], "beta": ["Never."]}) as at:
        wall, jump = at.service.core.clock, 0

        def leap(status: Status) -> None:
            nonlocal jump
            jump = 60_000

        at.service.core.clock = lambda: wall() + jump
        with pytest.raises(TurnFailed, match="deadline") as caught:
            at.run(deadline_ms=wall() + 30_000, on_status=leap)
    assert caught.value.settled.end is TurnEnd.DEADLINE
    assert at.models == ["alpha"]


@BOTH
def test_a_deadline_that_has_passed_allows_no_call(kind: str) -> None:
    with house(kind, {"alpha": ["Too late."]}) as at:
        with pytest.raises(TurnFailed, match="deadline"):
            at.run(deadline_ms=at.service.core.clock() - 1)
        assert at.models == []


@BOTH
@pytest.mark.rule("REC-8")
@pytest.mark.invariant(6)
def test_output_that_reached_the_caller_is_not_replayed(kind: str) -> None:
    got: list[str] = []
    with house(kind, {"alpha": [cut_stream("One two three", after=2)], "beta": ["Never."]}) as at:
        with pytest.raises(TurnFailed, match="broke off") as caught:
            at.run(on_text=got.append)
        (failed,) = at.facts(f.CallFailed)
    assert "".join(got).startswith("One")
    assert caught.value.settled.end is TurnEnd.UNSAFE
    assert failed.delivered
    assert at.models == ["alpha"]


@BOTH
@pytest.mark.rule("REC-6")
@pytest.mark.invariant(6)
def test_a_caller_with_a_transcript_continues_it(kind: str) -> None:
    got: list[str] = []

    def go_on(prompt: Prompt) -> Prompt:
        said = {"role": "assistant", "content": "".join(got)}
        return Prompt(messages=(*prompt.messages, said, {"role": "user", "content": "Go on."}))

    broken = failing_stream("One two three", after=2)
    with house(kind, {"alpha": [broken, " three"], "beta": ["Never."]}) as at:
        result = at.run(on_text=got.append, continue_with=go_on)
        started = at.decisions(d.AttemptStarted)
    assert "".join(got).split() == ["One", "two", "three"]
    assert result.settled.answered
    assert [one.continuation for one in started] == [False, True]
    assert [len(request.body["messages"]) for request in at.server.requests] == [1, 3]


@BOTH
def test_a_stream_that_nobody_saw_is_replayed(kind: str) -> None:
    with house(kind, {"alpha": [cut_stream("One two", after=1), "One two"]}) as at:
        result = at.run(stream=True, fallbacks=[])
    assert result.text == "One two"
    assert [request.stream for request in at.server.requests] == [True, True]


@BOTH
def test_text_comes_as_it_is_streamed(kind: str) -> None:
    got: list[str] = []
    with house(kind, {"alpha": [answer("One two three")]}) as at:
        result = at.run(on_text=got.append)
    assert len(got) > 1
    assert "".join(got) == result.text == "One two three"


@BOTH
def test_tool_calls_are_the_callers(kind: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    prompt = Prompt(messages=({"role": "user", "content": "Add."},), tools=(tool,))
    with house(kind, {"alpha": [Reply(tool_calls=(call,))]}) as at:
        result = at.run(prompt=prompt)
        (reported,) = at.facts(f.CallSucceeded)
    assert result.stop is StopKind.TOOL_CALLS
    assert [one["function"]["name"] for one in result.tool_calls] == ["add"]
    assert reported.effects is Effects.NONE


@BOTH
@pytest.mark.rule("REC-8")
def test_a_provider_that_runs_tools_may_have_had_effects(kind: str) -> None:
    searching = Prompt(
        messages=({"role": "user", "content": "Search."},), tools=({"type": "web_search", "name": "search"},)
    )
    with house(kind, {"alpha": [closed()], "beta": ["Never."]}) as at:
        with pytest.raises(TurnFailed) as caught:
            at.run(prompt=searching)
        (failed,) = at.facts(f.CallFailed)
    assert failed.effects is Effects.POSSIBLE
    assert caught.value.settled.end is TurnEnd.UNSAFE
    assert at.models == ["alpha"]


@BOTH
def test_a_refused_request_had_no_effects_whatever_its_tools(kind: str) -> None:
    searching = Prompt(messages=({"role": "user", "content": "Search."},), tools=({"type": "web_search"},))
    with house(kind, {"alpha": [no_credit()], "beta": ["Here."]}) as at:
        assert at.run(prompt=searching).text == "Here."


@BOTH
@pytest.mark.rule("ADV-4")
def test_a_request_that_does_not_fit_is_repaired_by_the_caller(kind: str) -> None:
    asked: list[Failure | None] = []

    def shorter(prompt: Prompt, reason: Failure | None) -> Prompt:
        asked.append(reason)
        return Prompt(messages=prompt.messages[-1:])

    long = Prompt(messages=({"role": "user", "content": "Much."}, {"role": "user", "content": "Little."}))
    with house(kind, {"alpha": [context_overflow(), "It fits."]}) as at:
        result = at.run(prompt=long, repair=shorter)
    assert result.text == "It fits."
    assert asked == [Failure.CONTEXT_OVERFLOW]
    assert [len(request.body["messages"]) for request in at.server.requests] == [2, 1]


@BOTH
def test_what_the_caller_cannot_repair_goes_to_the_next_model(kind: str) -> None:
    with house(kind, {"alpha": [context_overflow()], "beta": ["It fits."]}) as at:
        result = at.run(repair=lambda prompt, reason: None)
    assert result.text == "It fits."
    assert at.models == ["alpha", "beta"]


@BOTH
@pytest.mark.rule("BILL-5")
def test_an_empty_wallet_rotates_to_the_next_profile(kind: str, tmp_path: Any) -> None:
    lanes = [
        Lane(model="alpha", key="one", replies=(no_credit(repeat=True),)),
        Lane(model="alpha", key="two", replies=(answer("Paid.", repeat=True),)),
    ]
    policy = POLICY.replace('apiKeyEnv = "FIRST_KEY"', "")
    with CredentialStore(tmp_path / "keys.sqlite") as keys:
        keys.add(api_key("openai", "sk-test-PLACEHOLDER-aaaa"), name="one")
        keys.add(api_key("openai", "sk-test-PLACEHOLDER-bbbb"), name="two")
        keys.set_order("openai", ["openai:one", "openai:two"])
        with house(
            kind, lanes, policy=policy, keys={"one": "aaaa", "two": "bbbb"}, credentials=keys, environ={}
        ) as at:
            first, second = at.run(), at.run()
            used = [request.key_name for request in at.server.requests]
    assert [a.profile for a in first.settled.attempts] == ["openai:one", "openai:two"]
    assert [a.profile for a in second.settled.attempts] == ["openai:two"]
    assert used == ["one", "two", "two"]


@BOTH
def test_an_unknown_provider_is_a_failed_attempt_and_no_call(kind: str) -> None:
    policy = POLICY.replace('primary = "openai/alpha"', 'primary = "nowhere/gamma"')
    with house(kind, {"beta": ["Here."]}, policy=policy) as at:
        result = at.run()
    assert [a.reason for a in result.settled.attempts] == [Failure.MODEL_NOT_FOUND, None]
    assert at.models == ["beta"]


@BOTH
def test_a_turn_that_makes_no_sense_is_not_begun(kind: str) -> None:
    with house(kind, {}, policy="") as at:
        with pytest.raises(BadInput):
            at.run()
        assert at.facts(f.TurnRequested) == []


@BOTH
def test_a_missing_key_passes_the_candidate_over(kind: str) -> None:
    with house(kind, {"beta": ["Here."]}, environ={"SECOND_KEY": KEYS["SECOND_KEY"]}) as at:
        result = at.run()
    assert [(s.model, s.because) for s in result.settled.skips] == [("openai/alpha", SkipBecause.NO_CREDENTIAL)]
    assert at.models == ["beta"]


@BOTH
@pytest.mark.rule("COOL-23")
def test_a_key_that_vanished_after_it_was_seen_blames_nobody(kind: str) -> None:
    with house(kind, {"alpha": ["Never."], "beta": ["Here."]}) as at:

        class Vanishing(dict[str, str]):
            """The key is there when profiles are observed, and gone when the call needs it."""

            left = 1

            def get(self, key: str, default: Any = None) -> Any:
                if key == "FIRST_KEY":
                    self.left -= 1
                    return KEYS[key] if self.left >= 0 else default
                return KEYS.get(key, default)

        at.environ = Vanishing()
        result = at.run()
        blocks = at.decisions(d.BlockSet)
        seen = at.facts(f.ProfilesObserved)
    assert [a.model for a in result.settled.attempts] == ["openai/alpha", "anthropic/beta"]
    assert result.settled.attempts[0].reason is Failure.AUTH
    assert blocks == []
    assert [[p.usable for p in fact.profiles] for fact in seen] == [[True, True], [False, True]]
    assert at.models == ["beta"]


@BOTH
@pytest.mark.invariant(12)
def test_neither_secret_nor_prompt_enters_log_or_error(kind: str) -> None:
    key = KEYS["FIRST_KEY"]
    echo = Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {key}."}})
    again = Reply(status=401, body={"error": {"message": f"Bad key {KEYS['SECOND_KEY']}"}})
    with house(kind, {"alpha": [echo], "beta": [again]}) as at:
        with pytest.raises(TurnFailed) as caught:
            at.run(prompt="My secret wish is PURPLE")
        stored = b"".join(row.body for row in at.store.read())
        side_entry = "".join(one.text for one in at.store.side_entries())
    said = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.settled}"
    assert "Incorrect API key" in side_entry
    for secret in (*KEYS.values(), "PURPLE"):
        assert secret.encode() not in stored
        assert secret not in side_entry
        assert secret not in said


@pytest.mark.invariant(12)
def test_a_client_that_masks_nothing_leaks_nothing() -> None:
    class Careless(ProviderClient):
        """Gives the reply as it came, the key and all."""

        def call(self, where: Any, model: str, prompt: Any, secret: Any = None, **options: Any) -> Any:
            said = f'{{"error": {{"message": "no such key: {secret.reveal()}", "code": "{secret.reveal()}"}}}}'
            return CallFailed(provider="openai", model=model, wire=where.wire, status=401, body=said)

    odd = "Zy9-PLACEHOLDER-unlike-any-known-key"
    with house("sync", {}, environ={"FIRST_KEY": odd, "SECOND_KEY": odd}) as at:
        with Runner(at.service, client=Careless(), **at.options) as runner, pytest.raises(TurnFailed):
            runner.run(session="s", prompt="Hello?")
        stored = b"".join(row.body for row in at.store.read())
        side_entry = "".join(one.text for one in at.store.side_entries())
    assert "no such key" in side_entry
    assert odd not in side_entry
    assert odd.encode() not in stored


@pytest.mark.invariant(15)
def test_both_runners_take_the_same_way() -> None:
    script: dict[str, Replies] = {
        "alpha": [rate_limited(0.9), overloaded(), server_error(), "Never."],
        "beta": [server_error(), answer("Here.")],
    }

    def way(kind: str) -> list[tuple[str, Any]]:
        with house(kind, script) as at:
            at.run()
            return [
                (type(one).__name__, getattr(one, "model", ""))
                for commit in at.commits()
                for one in (commit.fact, *commit.decisions)
            ]

    assert way("sync") == way("async")


@BOTH
def test_a_bad_key_is_not_tried_again(kind: str) -> None:
    with house(kind, {"alpha": [bad_key()], "beta": ["Here.", "Here."]}) as at:
        at.run()
        at.run()
    assert at.models == ["alpha", "beta", "beta"]

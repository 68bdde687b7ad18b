"""Both wire formats without sockets: requests from values, outcomes from bytes."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standby.events.errors import BadInput
from standby.events.vocabulary import CredentialKind, Origin, Stage, StopKind
from standby.hosts.providers import (
    PROVIDERS,
    CallFailed,
    CallSucceeded,
    Code,
    Outcome,
    Prompt,
    Secret,
    Usage,
    Wire,
    endpoint,
    fingerprint,
)
from standby.hosts.providers.reading import FORMATS, Reading
from standby.hosts.providers.values import BODY_BYTES_MAX
from standby.hosts.providers.wire import BadRequest
from standby.hosts.scripted import Counts, Kind, Reply
from standby.hosts.scripted.bodies import stream, whole

KEY = "sk-test-PLACEHOLDER-0123456789"
SECRET = Secret(KEY)
OPENAI = endpoint("openai")
ANTHROPIC = endpoint("anthropic")
ENDPOINTS = {Wire.OPENAI_CHAT: OPENAI, Wire.ANTHROPIC_MESSAGES: ANTHROPIC}
BOTH = pytest.mark.parametrize("wire", list(Wire))

TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look it up.", "parameters": {"type": "object"}},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":[1,2]}'}}
HISTORY = (
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    },
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
    {"role": "tool", "tool_call_id": "call_2", "content": "a dog"},
    {"role": "user", "content": "Which?"},
)


def built(wire: Wire, prompt: Prompt, **options: Any) -> tuple[Any, dict[str, Any]]:
    where = options.pop("endpoint", ENDPOINTS[wire])
    secret = options.pop("secret", SECRET)
    settings = {"stream": False, "attempt_id": None, **options}
    request = FORMATS[wire].build(where, "model-a", prompt, secret, **settings)
    return request, json.loads(request.content)


def read(
    wire: Wire,
    chunks: Iterable[bytes],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    sse: bool = False,
    secret: Secret | None = SECRET,
) -> tuple[Outcome, str]:
    """The outcome of a reply, and the text that would have gone to the caller."""
    reading = Reading(ENDPOINTS[wire], "model-a", secret)
    kind = "text/event-stream; charset=utf-8" if sse else "application/json"
    reading.begin(status, [("Content-Type", kind), *(headers or {}).items()])
    said = ""
    for chunk in chunks:
        if reading.finished:
            break
        said += reading.feed(chunk)
    said += reading.end()
    return reading.outcome(), said


def failed(outcome: Outcome) -> CallFailed:
    assert isinstance(outcome, CallFailed)
    return outcome


def answered(outcome: Outcome) -> CallSucceeded:
    assert isinstance(outcome, CallSucceeded)
    return outcome


def streamed(wire: Wire, reply: Reply, usage: bool = True) -> bytes:
    asked = {"model": "model-a", "stream_options": {"include_usage": usage}}
    return b"".join(piece.data for piece in stream(reply, wire, asked, 1))


# Requests


def test_an_openai_request_says_what_was_asked() -> None:
    prompt = Prompt(
        messages=HISTORY, system="Be kind.", max_tokens=9, temperature=0.5, tools=(TOOL,), extra={"seed": 4}
    )
    request, body = built(Wire.OPENAI_CHAT, prompt, stream=True, attempt_id="at-1")
    assert request.url == "https://api.openai.com/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-standby-attempt"] == "at-1"
    assert body == {
        "model": "model-a",
        "messages": [{"role": "system", "content": "Be kind."}, *HISTORY],
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "tools": [TOOL],
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 4,
    }


def test_servers_that_imitate_openai_get_the_names_that_they_know() -> None:
    prompt = Prompt(messages=({"role": "user", "content": "Hi"},), max_tokens=9)
    _, body = built(Wire.OPENAI_CHAT, prompt, endpoint=endpoint("mistral"), stream=True)
    assert body["max_tokens"] == 9
    assert "stream_options" not in body


def test_an_anthropic_request_is_translated() -> None:
    prompt = Prompt(messages=HISTORY, system="Be kind.", tools=(TOOL, {"type": "web_search_1", "name": "web"}))
    request, body = built(Wire.ANTHROPIC_MESSAGES, prompt, attempt_id="at-1")
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["x-standby-attempt"] == "at-1"
    assert body["system"] == "Be kind.\n\nBe brief."
    assert body["max_tokens"] == 4096
    asked, said, results, last = body["messages"]
    image = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert asked["content"][1] == {"type": "image", "source": image}
    use = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": [1, 2]}}
    assert said["content"] == [{"type": "text", "text": "I look."}, use, {**use, "id": "call_2"}]
    assert [block["tool_use_id"] for block in results["content"]] == ["call_1", "call_2"]
    assert results["role"] == "user"
    assert last == {"role": "user", "content": "Which?"}
    tool = {"name": "look", "description": "Look it up.", "input_schema": {"type": "object"}}
    assert body["tools"] == [tool, {"type": "web_search_1", "name": "web"}]


@pytest.mark.parametrize(
    ("kind", "header", "value"),
    [
        (CredentialKind.API_KEY, "x-api-key", KEY),
        (CredentialKind.OAUTH, "authorization", f"Bearer {KEY}"),
        (CredentialKind.TOKEN, "authorization", f"Bearer {KEY}"),
    ],
)
@pytest.mark.rule("ORD-7", "ORD-11")
def test_anthropic_takes_each_kind_of_credential_its_own_way(
    kind: CredentialKind, header: str, value: str
) -> None:
    prompt = Prompt(messages=({"role": "user", "content": "Hi"},))
    request, _ = built(Wire.ANTHROPIC_MESSAGES, prompt, secret=Secret(KEY, kind))
    assert request.headers[header] == value
    assert len({"x-api-key", "authorization"} & set(request.headers)) == 1
    assert ("anthropic-beta" in request.headers) == (kind is CredentialKind.OAUTH)


@BOTH
def test_a_version_in_the_base_url_is_not_doubled(wire: Wire) -> None:
    where = endpoint("own", base_url="http://localhost:9/v1/", wire=wire)
    request, _ = built(wire, Prompt(messages=({"role": "user", "content": "Hi"},)), endpoint=where)
    path = "chat/completions" if wire is Wire.OPENAI_CHAT else "messages"
    assert request.url == f"http://localhost:9/v1/{path}"


@BOTH
def test_headers_of_the_endpoint_are_sent_and_no_key_is_sent_without_one(wire: Wire) -> None:
    where = endpoint("own", base_url="http://localhost:9", wire=wire, headers={"x-title": "tests"})
    prompt = Prompt(messages=(MappingProxyType({"role": "user", "content": "Hi"}),))
    request, body = built(wire, prompt, endpoint=where, secret=None)
    assert request.headers["x-title"] == "tests"
    assert not {"authorization", "x-api-key", "x-standby-attempt"} & set(request.headers)
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


@BOTH
@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(messages=()),
        Prompt(messages=({"role": "user", "content": object()},)),
        Prompt(messages=({"role": "user", "content": "Hi"},), extra={"raw": {1, object()}}),
    ],
)
def test_a_prompt_that_cannot_be_said_is_refused_here(wire: Wire, prompt: Prompt) -> None:
    with pytest.raises(BadRequest):
        built(wire, prompt)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "narrator", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]},
    ],
)
def test_what_anthropic_cannot_be_told_is_refused_here(message: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        built(Wire.ANTHROPIC_MESSAGES, Prompt(messages=(message,)))


@BOTH
@pytest.mark.parametrize("key", ["", f" {KEY}", f"{KEY}\n", f"{KEY}\r\nx-evil: 1", f"{KEY}é"])
@pytest.mark.invariant(12)
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(wire: Wire, key: str) -> None:
    with pytest.raises(BadRequest) as caught:
        built(wire, Prompt(messages=({"role": "user", "content": "Hi"},)), secret=Secret(key))
    assert "PLACEHOLDER" not in str(caught.value)


# Answers


@BOTH
@pytest.mark.parametrize("sse", [False, True])
def test_an_answer_is_read_with_all_that_the_provider_says_about_it(wire: Wire, sse: bool) -> None:
    counts = Counts(input=100, output=20, cached=60, reasoning=5 if wire is Wire.OPENAI_CHAT else 0)
    reply = Reply(answer="Hello wide world", usage=counts, model="model-a-2026")
    raw = streamed(wire, reply) if sse else json.dumps(whole(reply, wire, {}, 1)).encode()
    outcome, said = read(wire, [raw], sse=sse, headers={"request-id": "req_7"})
    answer = answered(outcome).answer
    assert (answer.text, said) == ("Hello wide world", "Hello wide world")
    assert answer.stop is StopKind.STOP
    assert answer.usage == Usage(
        input_tokens=100, output_tokens=20, cached_tokens=60, reasoning_tokens=counts.reasoning
    )
    assert answer.model == "model-a-2026"
    assert answer.request_id == "req_7"
    assert answer.response_id.startswith("chatcmpl-" if wire is Wire.OPENAI_CHAT else "msg_")


@BOTH
@pytest.mark.parametrize("sse", [False, True])
def test_tool_calls_come_back_in_one_form(wire: Wire, sse: bool) -> None:
    reply = Reply(answer="I look.", tool_calls=(CALL, {**CALL, "id": "call_2"}))
    raw = streamed(wire, reply) if sse else json.dumps(whole(reply, wire, {}, 1)).encode()
    answer = answered(read(wire, [raw], sse=sse)[0]).answer
    assert answer.stop is StopKind.TOOL_CALLS
    assert answer.tool_calls == (CALL, {**CALL, "id": "call_2"})


@BOTH
@pytest.mark.parametrize("sse", [False, True])
@pytest.mark.parametrize("text", ["Half of", ""])
def test_an_output_limit_is_an_answer_even_without_text(wire: Wire, sse: bool, text: str) -> None:
    reply = Reply(answer=text, finish="length" if wire is Wire.OPENAI_CHAT else "max_tokens")
    raw = streamed(wire, reply) if sse else json.dumps(whole(reply, wire, {}, 1)).encode()
    answer = answered(read(wire, [raw], sse=sse)[0]).answer
    assert (answer.text, answer.stop) == (text, StopKind.LENGTH)


@BOTH
@pytest.mark.parametrize("reply", [Reply(answer="Grüße, 世界 ok"), Reply(tool_calls=(CALL,)), Reply(answer="")])
@given(data=st.data())
def test_the_cut_of_a_stream_does_not_matter(wire: Wire, reply: Reply, data: st.DataObject) -> None:
    raw = streamed(wire, reply)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert read(wire, chunks, sse=True) == read(wire, [raw], sse=True)


@BOTH
@given(data=st.data())
def test_a_stream_that_stops_anywhere_before_its_end_is_no_answer(wire: Wire, data: st.DataObject) -> None:
    raw = streamed(wire, Reply(answer="one two three four"))
    ending = b'"finish_reason":"stop"' if wire is Wire.OPENAI_CHAT else b'"stop_reason":"end_turn"'
    cut = data.draw(st.integers(0, raw.index(ending)))
    outcome, said = read(wire, [raw[:cut]], sse=True)
    failure = failed(outcome)
    assert failure.code == Code.STREAM_ENDED
    assert (failure.stage, failure.origin) == (Stage.STREAM, Origin.TRANSPORT)
    assert failure.partial_text == said
    assert "one two three four".startswith(said)


@BOTH
def test_after_its_stop_reason_an_answer_is_safe_from_the_transport(wire: Wire) -> None:
    raw = streamed(wire, Reply(answer="one two"))
    ending = b"data: [DONE]" if wire is Wire.OPENAI_CHAT else b"event: message_stop"
    reading = Reading(ENDPOINTS[wire], "model-a", SECRET)
    reading.begin(200, [("content-type", "text/event-stream")])
    reading.feed(raw[: raw.index(ending)])
    reading.fail(code=Code.RESET, message="peer closed connection")
    assert answered(reading.outcome()).answer.text == "one two"


# Failures


@BOTH
def test_an_error_reply_is_handed_over_unread(wire: Wire) -> None:
    raw = '{"error": {"message": "slow down", "type": "rate_limit_error"}}'
    outcome, _ = read(wire, [raw[:9].encode(), raw[9:].encode()], status=429, headers={"Retry-After": "7"})
    failure = failed(outcome)
    assert (failure.status, failure.body, failure.size) == (429, raw, len(raw))
    assert failure.headers["retry-after"] == "7"
    assert (failure.stage, failure.origin, failure.code) == (Stage.PROMPT, Origin.PROVIDER, "")
    assert (failure.provider, failure.model, failure.wire) == (wire.split("-")[0], "model-a", wire)


@BOTH
def test_a_huge_error_reply_is_cut(wire: Wire) -> None:
    failure = failed(read(wire, [b"x" * 700_000] * 4, status=500)[0])
    assert len(failure.body) == BODY_BYTES_MAX
    assert failure.size == 1_400_000, "reading goes on after the limit"


@BOTH
def test_an_error_reply_whose_body_breaks_off_is_still_that_reply(wire: Wire) -> None:
    reading = Reading(ENDPOINTS[wire], "model-a", SECRET)
    reading.begin(503, [])
    reading.feed(b'{"error": {"mess')
    reading.fail(code=Code.RESET, message="peer closed connection")
    failure = failed(reading.outcome())
    assert (failure.status, failure.body, failure.origin) == (503, '{"error": {"mess', Origin.PROVIDER)


@pytest.mark.parametrize(
    "raw",
    ['{"error":{"message":"Provider returned error","code":502}}', '{"choices":[{"error":{"code":502}}]}'],
)
@pytest.mark.parametrize("sse", [False, True])
def test_openai_errors_count_wherever_they_stand(raw: str, sse: bool) -> None:
    chunks = [b'data: {"choices":[{"delta":{"content":"so"}}]}\n\ndata: ' + raw.encode() + b"\n\n"]
    failure = failed(read(Wire.OPENAI_CHAT, chunks if sse else [raw.encode()], sse=sse)[0])
    assert (failure.body, failure.code) == (raw, "")
    assert (failure.status, failure.stage, failure.origin) == (None, Stage.STREAM, Origin.PROVIDER)
    assert failure.partial_text == ("so" if sse else "")


@pytest.mark.rule("CLS-20")
def test_anthropic_errors_inside_a_stream_keep_their_body() -> None:
    raw = '{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}'
    start = streamed(Wire.ANTHROPIC_MESSAGES, Reply(answer="one two three")).split(
        b"event: content_block_stop"
    )[0]
    chunks = [start + b"event: error\ndata: " + raw.encode() + b"\n\n", b"event: message_stop\ndata: {}\n\n"]
    failure = failed(read(Wire.ANTHROPIC_MESSAGES, chunks, sse=True)[0])
    assert (failure.body, failure.status) == (raw, None)
    assert failure.partial_text == "one two three"
    assert failure.usage is not None
    assert failure.usage.input_tokens > 0


@BOTH
@pytest.mark.parametrize("sse", [False, True])
def test_a_refusal_is_named_and_its_words_are_no_evidence(wire: Wire, sse: bool) -> None:
    reply = Reply(answer="rate limit exceeded", kind=Kind.REFUSED)
    raw = streamed(wire, reply) if sse else json.dumps(whole(reply, wire, {}, 1)).encode()
    failure = failed(read(wire, [raw], sse=sse)[0])
    assert failure.code == ("content_filter" if wire is Wire.OPENAI_CHAT else "refusal")
    assert (failure.body, failure.partial_text) == ("", "rate limit exceeded")
    assert failure.usage is not None


@pytest.mark.parametrize("reason", ["error", "abort", "network_error", "malformed_response"])
@pytest.mark.rule("CLS-6", "CLS-32")
def test_a_failing_finish_reason_is_handed_on_by_name(reason: str) -> None:
    failure = failed(
        read(Wire.OPENAI_CHAT, [streamed(Wire.OPENAI_CHAT, Reply(answer="so", finish=reason))], sse=True)[0]
    )
    assert (failure.code, failure.message) == (reason, f"Provider finish_reason: {reason}")


@BOTH
@pytest.mark.parametrize("sse", [False, True])
@pytest.mark.rule("CLS-16")
def test_a_reply_that_holds_nothing_is_a_failure(wire: Wire, sse: bool) -> None:
    raw = streamed(wire, Reply()) if sse else json.dumps(whole(Reply(), wire, {}, 1)).encode()
    assert failed(read(wire, [raw], sse=sse)[0]).code == Code.EMPTY


@BOTH
@pytest.mark.parametrize("raw", ["", "<html>Bad gateway</html>", "[1]", "null", "{}", '{"id": 1', "\xff\xfe"])
def test_what_is_not_of_the_wire_is_malformed(wire: Wire, raw: str) -> None:
    failure = failed(read(wire, [raw.encode("latin-1")])[0])
    assert failure.code == Code.MALFORMED
    assert failure.origin is Origin.PROVIDER
    assert failure.status is None
    assert failure.body == raw.encode("latin-1").decode("utf-8", "replace")


@BOTH
def test_an_event_that_is_not_json_ends_the_stream(wire: Wire) -> None:
    failure = failed(read(wire, [b"data: {oops\n\n", streamed(wire, Reply(answer="late"))], sse=True)[0])
    assert (failure.code, failure.body, failure.partial_text) == (Code.MALFORMED, "{oops", "")


FIELDS = [
    *("type", "error", "choices", "delta", "message", "content", "index", "text", "tool_calls", "function"),
    *("usage", "finish_reason", "content_block", "stop_reason", "input", "id", "model", "name", "arguments"),
    "partial_json",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
EVENTS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "error", "x"]
)


@BOTH
@given(bodies=st.lists(st.tuples(EVENTS, JSON), max_size=5), sse=st.booleans())
def test_no_reply_of_any_shape_raises(wire: Wire, bodies: list[tuple[str, Any]], sse: bool) -> None:
    raws = [json.dumps(body | {"type": name} if isinstance(body, dict) else body) for name, body in bodies]
    chunks = [f"event: {bodies[0][0]}\ndata: {raw}\n\n".encode() if sse else raw.encode() for raw in raws]
    outcome, _ = read(wire, chunks, sse=sse)
    assert isinstance(outcome, CallFailed | CallSucceeded)


# Secrets


@BOTH
@pytest.mark.invariant(12)
def test_a_key_that_the_provider_sends_back_is_masked(wire: Wire) -> None:
    body = f'{{"error": "Incorrect API key provided: {KEY}"}}'.encode()
    failure = failed(read(wire, [body], status=401, headers={"x-echo": KEY, "set-cookie": "session=1"})[0])
    assert KEY not in failure.body + str(failure.headers)
    assert "[secret]" in failure.body
    assert failure.headers["x-echo"] == "[secret]"
    assert "set-cookie" not in failure.headers


@BOTH
@pytest.mark.invariant(12)
@pytest.mark.parametrize("spelt", [KEY, KEY.upper(), KEY.replace("-", "%2d")], ids=["same", "upper", "percent"])
def test_a_key_in_the_head_of_a_reply_is_masked(wire: Wire, spelt: str) -> None:
    headers = {"x-request-id": spelt, f"x-ratelimit-reset-{spelt}": "3s"}
    failure = failed(read(wire, [b"{}"], status=429, headers=headers)[0])
    assert failure.request_id == "[secret]"
    assert failure.headers["x-ratelimit-reset-[secret]"] == "3s"

    said = {"id": spelt, "model": spelt, "stop_reason": "end_turn", "content": [{"type": "text", "text": "hi"}]}
    said["choices"] = [{"message": {"content": "hi"}, "finish_reason": "stop"}]
    outcome, _ = read(wire, [json.dumps(said).encode()], headers=headers)
    assert isinstance(outcome, CallSucceeded)
    answer = outcome.answer
    assert (answer.model, answer.response_id, answer.request_id) == ("[secret]",) * 3


@BOTH
@pytest.mark.invariant(12)
def test_no_repr_shows_a_key_or_a_prompt(wire: Wire) -> None:
    prompt = Prompt(messages=({"role": "user", "content": "private words"},), system="private words")
    request, _ = built(wire, prompt)
    reading = Reading(ENDPOINTS[wire], "model-a", SECRET)
    reading.begin(400, [("x-note", "private words")])
    reading.feed(b"private words")
    where = replace(ENDPOINTS[wire], headers=(("x-key", KEY),))
    shown = "".join(map(repr, (SECRET, prompt, request, reading.outcome(), where)))
    shown += f"{SECRET} {SECRET!s:>30} {[SECRET]}"
    assert KEY not in shown
    assert "private words" not in shown
    assert "api_key" in repr(SECRET)


def test_secrets_compare_by_value_and_are_not_pickled() -> None:
    assert Secret(KEY) == SECRET
    assert hash(Secret(KEY)) == hash(SECRET)
    assert Secret(KEY) != Secret(KEY, CredentialKind.TOKEN)
    assert Secret(KEY) != Secret(KEY + "x")
    assert SECRET.fingerprint == fingerprint(KEY)
    assert KEY not in SECRET.fingerprint
    assert fingerprint("") == ""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(SECRET)


def test_a_placeholder_key_tears_no_words() -> None:
    assert Secret("none").mask("there are none") == "there are none"
    assert Secret("longer-key").mask("my longer-key!") == "my [secret]!"


# The table


def test_the_values_load_no_http_client() -> None:
    code = "import sys, standby.hosts.providers, standby.hosts.scripted.replies; print(*sys.modules)"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert {"httpx", "sqlite_utils"}.isdisjoint(done.stdout.split())


def test_known_providers_need_nothing_else() -> None:
    for name, row in PROVIDERS.items():
        where = endpoint(name)
        assert (where.provider, where.wire, where.base_url) == (name, row.wire, row.base_url)
    assert endpoint("openai", base_url="http://localhost:1/v1").wire is Wire.OPENAI_CHAT


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "base URL and its wire"),
        ({"base_url": "http://localhost:1"}, "base URL and its wire"),
        ({"base_url": "http://localhost:1", "wire": "smtp"}, "'smtp' is not a wire format"),
        ({"base_url": "localhost:1", "wire": "openai-chat"}, "must begin with http"),
        ({"base_url": f"https://user:{KEY}@host", "wire": "openai-chat"}, "no user, query or fragment"),
        ({"base_url": f"https://host/v1?key={KEY}", "wire": "openai-chat"}, "no user, query or fragment"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        endpoint("elsewhere", **options)  # type: ignore[arg-type]  # texts stand for the wire too
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("given", [2**53 + 1, 10**30, -1, True, "7", None, 1.5])
def test_a_count_that_nobody_can_have_counted_is_none(given: object) -> None:
    from standby.hosts.providers.wire import count

    assert count(given) == 0
    assert count(2**53) == 2**53

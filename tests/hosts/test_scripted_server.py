"""The scripted provider as a server, seen by a plain HTTP client that shares no code with standby's own."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from standby.events.errors import BadScript
from standby.hosts.providers import Wire, fingerprint
from standby.hosts.scripted import (
    Counts,
    Dialect,
    Lane,
    Reply,
    Script,
    ScriptedProvider,
    answer,
    bad_key,
    bad_request,
    closed,
    content_refused,
    context_overflow,
    cut_stream,
    empty_answer,
    failing_stream,
    gateway_timeout,
    hanging,
    no_credit,
    no_such_model,
    overloaded,
    rate_limited,
    revoked_key,
    server_error,
)

KEY = "sk-test-PLACEHOLDER-aaaa"
OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"


def posted(
    server: ScriptedProvider, path: str = OPENAI, model: str = "m", *, key: str = KEY, **fields: Any
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own: status, headers and body of the reply."""
    connection = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=5)
    headers = {"authorization": f"Bearer {key}"} if path == OPENAI else {"x-api-key": key}
    headers |= {"content-type": "application/json", "x-standby-attempt": fields.pop("attempt", "")}
    body = {"model": model, "messages": [{"role": "user", "content": "private words"}], **fields}
    try:
        connection.request("POST", path, json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    finally:
        connection.close()


def got(server: ScriptedProvider, path: str) -> Any:
    connection = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_answers_look_like_those_of_the_providers() -> None:
    counts = Counts(input=10, output=4, cached=3)
    with ScriptedProvider({}, default=Reply(answer="Hi there", usage=counts)) as server:
        _, headers, openai = posted(server)
        _, _, anthropic = posted(server, ANTHROPIC)
    body = json.loads(openai)
    assert headers["content-type"] == "application/json"
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == "m"
    assert body["choices"][0]["message"]["content"] == "Hi there"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["prompt_tokens"] == 10
    assert body["usage"]["total_tokens"] == 14
    body = json.loads(anthropic)
    assert (body["type"], body["role"], body["stop_reason"]) == ("message", "assistant", "end_turn")
    assert body["content"] == [{"type": "text", "text": "Hi there"}]
    assert (body["usage"]["input_tokens"], body["usage"]["cache_read_input_tokens"]) == (7, 3)


def test_streams_look_like_those_of_the_providers() -> None:
    with ScriptedProvider({}, default="Hi there") as server:
        _, headers, openai = posted(server, stream=True)
        _, _, counted = posted(server, stream=True, stream_options={"include_usage": True})
        _, _, anthropic = posted(server, ANTHROPIC, stream=True)
    assert headers["content-type"].startswith("text/event-stream")
    *events, done = openai.decode().strip().split("\n\n")
    assert done == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert deltas == ["", "Hi", " there", None]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert b'"usage":' not in openai
    assert b'"choices":[],"usage":' in counted
    names = re.findall(r"^event: (.*)$", anthropic.decode(), re.MULTILINE)
    deltas = ["content_block_delta"] * 2
    ends = ["content_block_stop", "message_delta", "message_stop"]
    assert names == ["message_start", "ping", "content_block_start", *deltas, *ends]


@pytest.mark.parametrize(
    ("reply", "path", "status", "words"),
    [
        (rate_limited(2), OPENAI, 429, "Please try again in 2s."),
        (rate_limited(90.5), OPENAI, 429, "Please try again in 1m30.5s."),
        (rate_limited(0.25), OPENAI, 429, "Please try again in 250ms."),
        (rate_limited(), OPENAI, 429, '"code":"rate_limit_exceeded"'),
        (rate_limited(2), ANTHROPIC, 429, '"type":"rate_limit_error"'),
        (rate_limited(2, dialect=Dialect.OPENROUTER), OPENAI, 429, '"code":429'),
        (no_credit(), OPENAI, 429, '"code":"insufficient_quota"'),
        (no_credit(), ANTHROPIC, 400, "Your credit balance is too low"),
        (no_credit(dialect=Dialect.OPENROUTER), OPENAI, 402, "Insufficient credits"),
        (overloaded(), OPENAI, 503, "overloaded"),
        (overloaded(), ANTHROPIC, 529, '"type":"overloaded_error"'),
        (overloaded(dialect=Dialect.GROQ), OPENAI, 503, "over capacity"),
        (bad_key(), OPENAI, 401, '"code":"invalid_api_key"'),
        (bad_key(), ANTHROPIC, 401, '"type":"authentication_error"'),
        (revoked_key(), OPENAI, 401, "has been deactivated"),
        (revoked_key(), ANTHROPIC, 403, "organization has been disabled"),
        (no_such_model(), OPENAI, 404, "The model `m` does not exist"),
        (no_such_model(), ANTHROPIC, 404, '"message":"model: m"'),
        (server_error(), OPENAI, 500, '"type":"server_error"'),
        (server_error(), ANTHROPIC, 500, '"type":"api_error"'),
        (context_overflow(), OPENAI, 400, '"code":"context_length_exceeded"'),
        (context_overflow(), ANTHROPIC, 400, "prompt is too long"),
        (context_overflow(dialect=Dialect.GROQ), OPENAI, 413, "Request too large"),
        (bad_request(), OPENAI, 400, '"code":"unknown_parameter"'),
        (bad_request(), ANTHROPIC, 400, "Extra inputs are not permitted"),
        (gateway_timeout(), OPENAI, 504, "<h1>504 Gateway Time-out</h1>"),
        (content_refused("No."), OPENAI, 200, '"finish_reason":"content_filter"'),
        (content_refused("No."), ANTHROPIC, 200, '"stop_reason":"refusal"'),
        (empty_answer(), ANTHROPIC, 200, '"content":[]'),
        (failing_stream("a b", after=1), ANTHROPIC, 529, "overloaded_error"),
    ],
)
def test_failures_are_those_of_the_providers(reply: Reply, path: str, status: int, words: str) -> None:
    with ScriptedProvider({"m": [reply]}) as server:
        found, _, body = posted(server, path)
        assert server.requests[0].status == status
    assert found == status
    assert words in body.decode()
    assert "{" + "model" + "}" not in body.decode()
    assert "{wait}" not in body.decode()


@pytest.mark.parametrize(
    ("wait", "header", "value"), [(2, "retry-after", "2"), (0.25, "retry-after-ms", "250"), (None, "", "")]
)
def test_a_stated_wait_stands_in_one_header(wait: float | None, header: str, value: str) -> None:
    with ScriptedProvider({}, default=rate_limited(wait)) as server:
        _, headers, _ = posted(server)
    assert {n: v for n, v in headers.items() if "retry" in n} == ({header: value} if header else {})


def test_every_failure_of_every_dialect_can_be_told() -> None:
    makers = (
        *(rate_limited, no_credit, overloaded, bad_key, revoked_key),
        *(no_such_model, server_error, context_overflow, bad_request),
    )
    for dialect in Dialect:
        replies = [make(dialect=dialect) for make in makers]
        with ScriptedProvider({"m": replies}) as server:
            for reply in replies:
                status, _, body = posted(server)
                assert (status >= 400, "error" in json.loads(body)) == (True, True), (dialect, reply)


def test_anything_can_be_said_word_for_word() -> None:
    reply = Reply(status=418, headers={"X-Tea": "yes", "content-type": "text/plain"}, body="short and stout")
    with ScriptedProvider({"m": [reply, Reply(body={"choices": 3})]}) as server:
        status, headers, body = posted(server, stream=True)
        assert (status, headers["x-tea"], headers["content-type"]) == (418, "yes", "text/plain")
        assert body == b"short and stout"
        assert json.loads(posted(server)[2]) == {"choices": 3}


def test_replies_are_chosen_by_model_and_key() -> None:
    lanes = [
        Lane(model="m", key="first", replies=(answer("for the key"),)),
        Lane(model="m", replies=(answer("for the model"), answer("again"))),
    ]
    with ScriptedProvider(Script.of(lanes, keys={"first": "aaaa"})) as server:
        said = [posted(server, key=key)[2] for key in ("sk-bbbb", KEY, "sk-bbbb")]
        for words, body in zip([b"for the model", b"for the key", b"again"], said, strict=True):
            assert words in body
        assert posted(server, key=KEY)[0] == 501, "a lane that is used up does not borrow from another"
        assert posted(server, model="other")[0] == 404
        names = [request.key_name for request in server.requests]
    assert names == ["", "first", "", "first", "first"]


def test_a_default_follows_a_lane_that_is_used_up_and_serves_unknown_models() -> None:
    with ScriptedProvider({"m": ["first"]}, default="afterwards") as server:
        assert [b"afterwards" in posted(server)[2] for _ in range(2)] == [False, True]
        assert b"afterwards" in posted(server, model="other")[2]


def test_a_cut_body_breaks_and_a_cut_stream_breaks() -> None:
    with ScriptedProvider({"m": [cut_stream("a b c", after=2)] * 2}) as server:
        for stream in (True, False):
            with pytest.raises(http.client.IncompleteRead) as caught:
                posted(server, stream=stream)
            assert (caught.value.partial.count(b'"content":"') == 3) == stream  # the empty first one counts
        assert [request.ended for request in server.requests] == ["cut", "cut"]


def test_a_connection_may_be_closed_in_place_of_a_reply() -> None:
    with ScriptedProvider({}, default=closed()) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            posted(server)
        assert (server.requests[0].status, server.requests[0].ended) == (0, "cut")


def test_waits_are_kept() -> None:
    slow = Reply(answer="a b c", delay_ms=120, chunk_delay_ms=40)
    with ScriptedProvider({}, default=slow) as server:
        began = time.monotonic()
        posted(server, stream=True)
        assert 0.24 <= time.monotonic() - began < 2


def test_the_log_says_what_came_and_what_it_got() -> None:
    with ScriptedProvider({"m": [rate_limited(2), "ok"]}) as server:
        before = time.monotonic() * 1000
        posted(server, attempt="at-1")
        posted(server, ANTHROPIC, stream=True, attempt="at-2")
        first, second = server.requests
        listed = got(server, "/_requests")
        models = got(server, "/v1/models")
    assert (first.position, first.wire, first.model, first.attempt) == (0, Wire.OPENAI_CHAT, "m", "at-1")
    assert (first.stream, first.status, first.answered, first.ended) == (False, 429, "rate_limited", "sent")
    assert (second.position, second.wire, second.attempt) == (1, Wire.ANTHROPIC_MESSAGES, "at-2")
    assert (second.stream, second.status, second.answered) == (True, 200, "answer")
    assert before <= first.received_ms <= second.received_ms <= time.monotonic() * 1000
    assert abs(first.at_ms - time.time() * 1000) < 60_000
    assert first.key == second.key == fingerprint(KEY)
    assert first.body["messages"][0]["content"] == "private words"
    assert [entry["attempt"] for entry in listed] == ["at-1", "at-2"]
    assert models["data"][0]["id"] == "m"
    shown = json.dumps(listed) + repr(server.requests)
    assert KEY not in shown
    assert "private words" not in shown


def test_a_line_is_in_the_file_before_the_reply_leaves(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with ScriptedProvider({}, default=hanging(), log_path=path) as server:
        with socket.create_connection(("127.0.0.1", int(server.root_url.rsplit(":", 1)[1]))) as client:
            body = json.dumps({"model": "m", "messages": []}).encode()
            head = f"POST {OPENAI} HTTP/1.1\r\nx-standby-attempt: at-9\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert server.wait_for_requests(1)
            (line,) = path.read_text().splitlines()
            assert json.loads(line)["attempt"] == "at-9"
            assert json.loads(line)["answered"] == "answer, hang"
            assert "body" not in json.loads(line)
        assert server.wait_for_requests(1, ended=True)
        assert server.requests[0].ended == "client_left"


def test_nothing_that_is_sent_stops_the_server(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedProvider({}, default="ok") as server:
        port = int(server.root_url.rsplit(":", 1)[1])
        for raw in (
            b"\x16\x03\x01\x00",
            b"GET\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n[]",
            b"POST /v1/messages HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
            b"A" * 200_000,
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(raw)
                client.shutdown(socket.SHUT_WR)
                client.settimeout(5)
                # A reset is an answer too: part of what was sent may not have been read.
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(65536):
                        pass
        assert posted(server)[0] == 200
    assert caplog.text == "", "an exception reached the event loop"


def test_a_chunked_request_is_understood() -> None:
    with ScriptedProvider({}, default="ok") as server:
        connection = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=5)
        pieces = iter([b'{"model": "m", ', b'"messages": []}'])
        connection.request(
            "POST", OPENAI, pieces, encode_chunked=True, headers={"transfer-encoding": "chunked"}
        )
        assert connection.getresponse().status == 200
        connection.close()
        assert server.requests[0].model == "m"


def test_stopping_ends_what_is_still_going_on() -> None:
    server = ScriptedProvider({}, default=hanging()).start()
    with socket.create_connection(("127.0.0.1", int(server.root_url.rsplit(":", 1)[1])), timeout=5) as client:
        client.sendall(f"POST {OPENAI} HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        assert server.wait_for_requests(1)
        server.stop()
        assert client.recv(1) == b""
    server.stop()
    assert len(server.requests) == 1
    with server:
        assert not server.requests, "a new start has a new log"


def test_a_script_is_given_whole_or_in_parts() -> None:
    with pytest.raises(BadScript, match="belong into the script itself"):
        ScriptedProvider(Script.of({}), default="ok")
    with pytest.raises(BadScript, match="cannot be read"):
        ScriptedProvider("nowhere.toml")


SCRIPT = '[keys]\nfirst = "aaaa"\n\n[[lane]]\nmodel = "m"\nreplies = [{ answer = "from a file" }]\n'


def command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "standby.hosts.scripted", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_a_file_until_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    script, log = tmp_path / "s.toml", tmp_path / "log.jsonl"
    script.write_text(SCRIPT, encoding="utf-8")
    process = command(str(script), "--log", str(log))
    assert process.stdout is not None
    name, url = process.stdout.readline().split()
    assert name == "base_url"
    assert process.stdout.readline() == f"requests {url.removesuffix('/v1')}/_requests\n"
    connection = http.client.HTTPConnection(url.removeprefix("http://").removesuffix("/v1"), timeout=5)
    connection.request("POST", OPENAI, json.dumps({"model": "m", "messages": []}))
    assert b"from a file" in connection.getresponse().read()
    connection.close()
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(log.read_text())["model"] == "m"


def test_the_command_names_what_is_wrong(tmp_path: Path) -> None:
    script = tmp_path / "s.toml"
    script.write_text("[default]\nanswr = 1\n", encoding="utf-8")
    process = command(str(script))
    output, errors = process.communicate(timeout=10)
    assert (process.returncode, output) == (2, "")
    assert f"{script}: default.answr: unknown key; did you mean 'answer'" in errors
    assert "Traceback" not in errors

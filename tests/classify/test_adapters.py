"""Evidence from httpx and from look-alikes of the exceptions of client libraries."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from standby.engine.reading.extract import read
from standby.events.vocabulary import Failure, Origin, Stage
from standby.hosts.adapters import reply_from_exception, reply_from_response

F = Failure

REQUEST = httpx.Request("POST", "https://provider.example/v1/chat")
WALLET = {
    "error": {
        "message": "You exceeded your current quota",
        "type": "insufficient_quota",
        "code": "insufficient_quota",
    }
}


def response(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers, request=REQUEST)


# --- look-alikes: the attributes of the real exceptions, as their releases of November 2026 have them ---


class APIError(Exception):
    """openai and anthropic: the base of everything."""

    def __init__(self, message: str, body: object = None, **fields: Any) -> None:
        super().__init__(message)
        self.message, self.body, self.request = message, body, REQUEST
        self.code = self.param = self.type = None
        for name, value in fields.items():
            setattr(self, name, value)


class APIConnectionError(APIError):
    """openai and anthropic: no reply came; LiteLLM gives it the status 500 nevertheless."""


class RateLimitError(APIError):
    """openai, anthropic, LiteLLM: a reply with a status."""


class ModelHTTPError(RuntimeError):
    """pydantic-ai: status, model name and parsed body, no response."""

    def __init__(self, status_code: int, model_name: str, body: object = None) -> None:
        super().__init__(f"status_code: {status_code}, model_name: {model_name}, body: {body}")
        self.status_code, self.model_name, self.body = status_code, model_name, body
        self.retry_after: float | None = None


def test_an_httpx_response() -> None:
    reply = reply_from_response(
        response(429, WALLET, {"Retry-After": "9"}),
        provider="openai",
        model="m",
        received_ms=5,
        stage=Stage.STREAM,
    )
    assert (reply.provider, reply.model, reply.status, reply.received_ms) == ("openai", "m", 429, 5)
    found = read(reply)
    assert (found.reason, found.retry_after_ms) == (F.BILLING, 9_000)


def test_a_stream_that_was_not_read() -> None:
    async def never() -> Any:
        yield b""

    unread = httpx.Response(503, content=never(), request=REQUEST)
    assert reply_from_response(unread).body is None
    assert (
        read(reply_from_response(unread, body=b'{"error":{"code":"insufficient_quota"}}')).reason is F.BILLING
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx.ReadTimeout("The read operation timed out"), F.TIMEOUT),
        (httpx.ConnectError("All connection attempts failed"), F.TIMEOUT),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), F.TLS_CERTIFICATE),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), F.TIMEOUT),
        (httpx.PoolTimeout(""), F.TIMEOUT),
        (ConnectionResetError(104, "Connection reset by peer"), F.TIMEOUT),
        (TimeoutError(), F.TIMEOUT),
    ],
)
def test_transport_exceptions(error: Exception, expected: F) -> None:
    reply = reply_from_exception(error, provider="openai")
    assert (reply.origin, reply.status) == (Origin.TRANSPORT, None)
    assert read(reply).reason is expected


def test_an_httpx_status_error_brings_its_response() -> None:
    error = httpx.HTTPStatusError("429", request=REQUEST, response=response(429, WALLET, {"retry-after": "3"}))
    found = read(reply_from_exception(error))
    assert (found.reason, found.retry_after_ms, found.status) == (F.BILLING, 3_000, 429)


def test_openai_status_errors() -> None:
    inner = WALLET["error"]
    error = RateLimitError(
        "Error code: 429 - " + inner["message"],
        body=inner,
        response=response(429, WALLET, {"retry-after-ms": "1500"}),
        status_code=429,
        code="insufficient_quota",
        type="insufficient_quota",
    )
    reply = reply_from_exception(error, provider="openai")
    assert (reply.status, reply.code, reply.error_type, reply.origin) == (
        429, "insufficient_quota", "insufficient_quota", Origin.PROVIDER,
    )  # fmt: skip
    found = read(reply)
    assert (found.reason, found.retry_after_ms) == (F.BILLING, 1_500)


def test_openai_streamed_errors_have_no_response() -> None:
    error = APIError("An error occurred", body={"message": "m", "type": "server_error"}, type="server_error")
    assert read(reply_from_exception(error)).reason is F.SERVER_ERROR


def test_anthropic_status_errors() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = APIError(
        f"Error code: 529 - {body}",
        body=body,
        response=response(529, body),
        status_code=529,
        type="overloaded_error",
    )
    found = read(reply_from_exception(error, provider="anthropic"))
    assert (found.reason, found.status) == (F.OVERLOADED, 529)


def test_connection_errors_with_their_cause() -> None:
    error = APIConnectionError("Connection error.")
    error.__cause__ = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: expired")
    reply = reply_from_exception(error)
    assert reply.origin is Origin.TRANSPORT
    assert read(reply).reason is F.TLS_CERTIFICATE


def test_litellm_errors_name_provider_and_model() -> None:
    error = RateLimitError(
        "litellm.RateLimitError: AnthropicException - You have insufficient credits",
        status_code=429, llm_provider="anthropic", model="claude", code="429", type="throttling_error",
        response=httpx.Response(429, request=REQUEST),
    )  # fmt: skip
    reply = reply_from_exception(error)
    assert (reply.provider, reply.model, reply.code) == ("anthropic", "claude", None)
    assert read(reply).reason is F.BILLING


def test_litellm_mid_stream_errors_wrap_the_original() -> None:
    original = RateLimitError("slow down", body=WALLET["error"], status_code=429, code="insufficient_quota")
    error = APIError("litellm.MidStreamFallbackError: m", original_exception=original)
    reply = reply_from_exception(error)
    assert (reply.status, reply.code) == (429, "insufficient_quota")


def test_pydantic_ai_errors() -> None:
    error = ModelHTTPError(402, "m-1", {"error": {"message": "Insufficient credits"}})
    error.retry_after = 2.5
    reply = reply_from_exception(error)
    assert (reply.status, reply.model) == (402, "m-1")
    found = read(reply)
    assert (found.reason, found.retry_after_ms) == (F.BILLING, 2_500)


def test_groups_are_looked_into() -> None:
    group = ExceptionGroup(
        "All models from FallbackModel failed", [ModelHTTPError(429, "m-1", WALLET), ValueError("x")]
    )
    assert read(reply_from_exception(group)).reason is F.BILLING


@pytest.mark.rule("ADV-2")
def test_a_cancelled_call_is_an_abort() -> None:
    reply = reply_from_exception(asyncio.CancelledError())
    assert reply.origin is Origin.ABORT
    assert read(reply).aborted


def test_rings_of_causes_end() -> None:
    one, two = APIError("one"), APIError("two: rate limit exceeded")
    one.__cause__, two.__cause__ = two, one
    vars(one)["error"], vars(two)["error"] = one, {"error": two}
    assert read(reply_from_exception(one)).reason is F.RATE_LIMIT


def test_deep_chains_are_cut() -> None:
    error = APIError("bottom: insufficient credits")
    for number in range(200):
        outer = APIError(f"layer {number}")
        outer.__cause__ = error
        error = outer
    assert len(reply_from_exception(error).message or "") < 2_000


class Hostile(Exception):
    """An exception whose attributes and text raise."""

    @property
    def status_code(self) -> int:
        raise RuntimeError("no")

    @property
    def body(self) -> object:
        raise KeyError("no")

    def __str__(self) -> str:
        raise ValueError("no")


def test_hostile_exceptions_do_not_raise() -> None:
    assert reply_from_exception(Hostile()).message == "Hostile"


def test_the_client_libraries_are_not_imported() -> None:
    import sys

    assert not {"openai", "anthropic", "litellm", "pydantic_ai"} & set(sys.modules)

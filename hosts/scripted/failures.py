"""The errors of real providers, word for word where they are publicly documented or reported.

One row per (kind, dialect): status, and the body as that provider shapes it. `{model}` and `{wait}`
are filled in; ids and numbers are placeholders. A kind that a dialect has no row for takes that of the
owner of the wire format.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from standby.hosts.providers.values import Wire
from standby.hosts.scripted.replies import Dialect, Kind, Reply


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as it goes over the wire; `body` is an object, or text for pages of gateways."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class _Row:
    status: int
    error_type: str
    message: str
    code: str | int | None = None
    param: str | None = None
    waiting: str = ""
    """Added to the message when a wait is stated."""


_OPENAI: Final[Mapping[Kind, _Row]] = {
    Kind.RATE_LIMITED: _Row(
        429,
        "tokens",
        "Rate limit reached for {model} in organization org-PLACEHOLDER on tokens per min (TPM): Limit 30000, "
        "Used 29200, Requested 1600.{wait} Visit https://platform.openai.com/account/rate-limits to learn "
        "more.",
        "rate_limit_exceeded",
        waiting=" Please try again in {s}.",
    ),
    Kind.NO_CREDIT: _Row(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details. For more information on "
        "this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
        "insufficient_quota",
    ),
    Kind.OVERLOADED: _Row(
        503,
        "server_error",
        "The engine is currently overloaded, please try again later.",
    ),
    Kind.BAD_KEY: _Row(
        401,
        "invalid_request_error",
        "Incorrect API key provided: sk-test-****. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
        "invalid_api_key",
    ),
    Kind.REVOKED_KEY: _Row(
        401,
        "invalid_request_error",
        "The OpenAI account associated with this API key has been deactivated. If you are the account owner, "
        "check your email for more information.",
        "account_deactivated",
    ),
    Kind.NO_SUCH_MODEL: _Row(
        404,
        "invalid_request_error",
        "The model `{model}` does not exist or you do not have access to it.",
        "model_not_found",
    ),
    Kind.SERVER_ERROR: _Row(
        500, "server_error", "The server had an error while processing your request. Sorry about that!"
    ),
    Kind.CONTEXT_OVERFLOW: _Row(
        400,
        "invalid_request_error",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131402 "
        "tokens. Please reduce the length of the messages.",
        "context_length_exceeded",
        "messages",
    ),
    Kind.BAD_REQUEST: _Row(
        400,
        "invalid_request_error",
        "Unknown parameter: 'shape'.",
        "unknown_parameter",
        "shape",
    ),
}

_ANTHROPIC: Final[Mapping[Kind, _Row]] = {
    Kind.RATE_LIMITED: _Row(
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute. For "
        "details, refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    Kind.NO_CREDIT: _Row(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade "
        "or purchase credits.",
    ),
    Kind.OVERLOADED: _Row(529, "overloaded_error", "Overloaded"),
    Kind.BAD_KEY: _Row(401, "authentication_error", "invalid x-api-key"),
    Kind.REVOKED_KEY: _Row(403, "permission_error", "This organization has been disabled."),
    Kind.NO_SUCH_MODEL: _Row(404, "not_found_error", "model: {model}"),
    Kind.SERVER_ERROR: _Row(500, "api_error", "Internal server error"),
    Kind.CONTEXT_OVERFLOW: _Row(
        400, "invalid_request_error", "prompt is too long: 204871 tokens > 200000 maximum"
    ),
    Kind.BAD_REQUEST: _Row(400, "invalid_request_error", "shape: Extra inputs are not permitted"),
}

_OPENROUTER: Final[Mapping[Kind, _Row]] = {
    Kind.RATE_LIMITED: _Row(429, "", "Rate limit exceeded: limit_rpm/{model}", 429),
    Kind.NO_CREDIT: _Row(
        402,
        "",
        "Insufficient credits. This account never purchased credits. Make sure your key is on the correct "
        "account or org, and if so, purchase more at https://openrouter.ai/settings/credits",
        402,
    ),
    Kind.OVERLOADED: _Row(503, "", "No instances available. Provider returned error", 503),
    Kind.BAD_KEY: _Row(401, "", "No auth credentials found", 401),
    Kind.NO_SUCH_MODEL: _Row(404, "", "No endpoints found for {model}.", 404),
    Kind.SERVER_ERROR: _Row(502, "", "Provider returned error", 502),
}

_GROQ: Final[Mapping[Kind, _Row]] = {
    Kind.RATE_LIMITED: _Row(
        429,
        "tokens",
        "Rate limit reached for model `{model}` in organization `org_PLACEHOLDER` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 8000, Used 7120, Requested 1490.{wait} Need more tokens? Upgrade to "
        "Dev Tier today at https://console.groq.com/settings/billing",
        "rate_limit_exceeded",
        waiting=" Please try again in {s}.",
    ),
    Kind.OVERLOADED: _Row(
        503,
        "internal_server_error",
        "{model} is currently over capacity. Please try again and back off exponentially. Visit "
        "https://groqstatus.com to see if there is an active incident.",
    ),
    Kind.CONTEXT_OVERFLOW: _Row(
        413,
        "tokens",
        "Request too large for model `{model}` in organization `org_PLACEHOLDER` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 8000, Requested 8098, please reduce your message size and try again.",
        "rate_limit_exceeded",
    ),
}

_ROWS: Final[Mapping[Dialect, Mapping[Kind, _Row]]] = {
    Dialect.OPENAI: _OPENAI,
    Dialect.ANTHROPIC: _ANTHROPIC,
    Dialect.OPENROUTER: {**_OPENAI, **_OPENROUTER},
    Dialect.GROQ: {**_OPENAI, **_GROQ},
}

_OWNERS: Final = {
    Wire.OPENAI_CHAT: Dialect.OPENAI,
    Wire.ANTHROPIC_MESSAGES: Dialect.ANTHROPIC,
}

_GATEWAY_PAGE: Final = (
    "<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n"
    "<center><h1>504 Gateway Time-out</h1></center>\r\n</body>\r\n</html>\r\n"
)


def failure_of(reply: Reply, wire: Wire, model: str, request_id: str) -> Failure:
    """The failure `reply.kind` as its dialect says it."""
    if reply.kind is Kind.GATEWAY_TIMEOUT:
        return Failure(504, {"content-type": "text/html"}, _GATEWAY_PAGE)
    dialect = reply.dialect or _OWNERS[wire]
    row = _ROWS[dialect][reply.kind]
    wait = ""
    if reply.retry_after is not None:
        wait = row.waiting.replace("{s}", _seconds_text(reply.retry_after))
    message = row.message.replace("{model}", model).replace("{wait}", wait)
    headers = _wait_headers(reply.retry_after)
    return Failure(row.status, headers, _body(dialect, row, message, request_id))


def _body(dialect: Dialect, row: _Row, message: str, request_id: str) -> dict[str, Any]:
    match dialect:
        case Dialect.ANTHROPIC:
            error: dict[str, Any] = {"type": row.error_type, "message": message}
            return {"type": "error", "error": error, "request_id": request_id}
        case Dialect.OPENROUTER:
            return {"error": {"message": message, "code": row.code or row.status}}
        case Dialect.OPENAI:
            error = {"message": message, "type": row.error_type, "param": row.param, "code": row.code}
            return {"error": error}
        case Dialect.GROQ:
            error = {"message": message, "type": row.error_type}
            return {"error": error if row.code is None else error | {"code": row.code}}


def _wait_headers(retry_after: float | None) -> dict[str, str]:
    if retry_after is None:
        return {}
    if retry_after == int(retry_after):
        return {"retry-after": str(int(retry_after))}
    # The standard header holds whole seconds only; this one is what both owners send for less.
    return {"retry-after-ms": str(math.ceil(retry_after * 1000))}


def _seconds_text(seconds: float) -> str:
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return (f"{int(minutes)}m" if minutes else "") + f"{rest:g}s"

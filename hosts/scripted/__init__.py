"""A provider that replies by script, for tests of anything that calls models.

It listens on a real socket, speaks the OpenAI chat-completions and the Anthropic messages wire formats,
streamed or not, and fails exactly as told: statuses, headers, delays, cut streams, silence. It keeps a
log of what it was asked. See `replies` for what it can say and `script` for the file format.

    python -m standby.hosts.scripted SCRIPT.toml
"""

from standby.hosts.scripted.records import Request
from standby.hosts.scripted.replies import (
    Counts,
    Dialect,
    Kind,
    Reply,
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
    stalled_stream,
)
from standby.hosts.scripted.script import Lane, Script, load, parse
from standby.hosts.scripted.server import ScriptedProvider

__all__ = [
    "Counts",
    "Dialect",
    "Kind",
    "Lane",
    "Reply",
    "Request",
    "Script",
    "ScriptedProvider",
    "answer",
    "bad_key",
    "bad_request",
    "closed",
    "content_refused",
    "context_overflow",
    "cut_stream",
    "empty_answer",
    "failing_stream",
    "gateway_timeout",
    "hanging",
    "load",
    "no_credit",
    "no_such_model",
    "overloaded",
    "parse",
    "rate_limited",
    "revoked_key",
    "server_error",
    "stalled_stream",
]

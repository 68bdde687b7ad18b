"""Calling providers: pure builders and readers per wire format, and two thin shells that move the
bytes.

    values, table, secret      what goes in and out, which providers are known
    openai, anthropic, sse     the wire formats, without any I/O
    reading                    one call as a value: bytes in, outcome out
    client                     AsyncProviderClient and ProviderClient over httpx (import it from
    there)

This package itself loads no HTTP client; `standby.hosts.providers.client` does.
"""

from standby.hosts.providers.secret import Secret, fingerprint
from standby.hosts.providers.table import PROVIDERS, Provider, endpoint
from standby.hosts.providers.values import (
    Answer,
    CallFailed,
    CallSucceeded,
    Code,
    Endpoint,
    Outcome,
    Prompt,
    Usage,
    Wire,
)

__all__ = [
    "PROVIDERS",
    "Answer",
    "CallFailed",
    "CallSucceeded",
    "Code",
    "Endpoint",
    "Outcome",
    "Prompt",
    "Provider",
    "Secret",
    "Usage",
    "Wire",
    "endpoint",
    "fingerprint",
]

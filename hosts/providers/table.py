"""The providers that are known by name: where they live, what they speak, where their key usually
lies.

A row is a convenience, not a limit: any server that speaks one of the wire formats is reached with
an explicit base URL. Variable names are the ones that the providers' own documentation uses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from standby.events.errors import BadInput
from standby.hosts.providers.values import Endpoint, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What is known about a provider."""

    name: str
    base_url: str
    wire: Wire = Wire.OPENAI_CHAT
    key_variable: str | None = None
    """Environment variable that conventionally holds the API key; None when no key is needed."""
    max_tokens_key: str = "max_tokens"
    stream_usage: bool = True


# OpenAI's newer models refuse `max_tokens`; the servers that imitate its API mostly know only that
# name. Mistral validates strictly and refuses `stream_options`; it counts in the last chunk without
# being asked.
_ROWS: Final = (
    Provider(
        name="openai",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        max_tokens_key="max_completion_tokens",
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com",
        wire=Wire.ANTHROPIC_MESSAGES,
        key_variable="ANTHROPIC_API_KEY",
    ),
    Provider(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
    ),
    Provider(name="groq", base_url="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    Provider(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        stream_usage=False,
    ),
    Provider(name="deepseek", base_url="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    Provider(name="xai", base_url="https://api.x.ai/v1", key_variable="XAI_API_KEY"),
    Provider(name="together", base_url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    Provider(
        name="fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
    ),
    Provider(name="ollama", base_url="http://localhost:11434/v1"),
    Provider(name="vllm", base_url="http://localhost:8000/v1"),
)

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({row.name: row for row in _ROWS})


def endpoint(
    provider: str,
    *,
    base_url: str | None = None,
    wire: Wire | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Endpoint:
    """The endpoint of a provider, known or not.

    What is given wins over the table. Raises BadInput for an unknown provider without base URL or
    wire, and for a base URL that is not plain http(s) without user, query and fragment (secrets do
    not belong there: URLs are logged).
    """
    row = PROVIDERS.get(provider)
    url = base_url or (row.base_url if row else None)
    spoken = _wire(provider, wire) or (row.wire if row else None)
    if url is None or spoken is None:
        raise BadInput(
            f"Provider {provider!r} is not one of {', '.join(PROVIDERS)}: "
            f"give its base URL and its wire ({', '.join(Wire)})."
        )
    return Endpoint(
        provider=provider,
        base_url=_checked_url(provider, url),
        wire=spoken,
        headers=tuple((headers or {}).items()),
        max_tokens_key=row.max_tokens_key if row else "max_tokens",
        stream_usage=row.stream_usage if row else True,
    )


def _wire(provider: str, wire: Wire | str | None) -> Wire | None:
    try:
        return Wire(wire) if wire is not None else None
    except ValueError:
        raise BadInput(
            f"Provider {provider!r}: {wire!r} is not a wire format; use {' or '.join(Wire)}."
        ) from None


def _checked_url(provider: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"Provider {provider!r}: the base URL must begin with http:// or https://.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadInput(
            f"Provider {provider!r}: the base URL may hold no user, query or fragment; "
            "keys go into the credential store or an environment variable."
        )
    return url.rstrip("/")

"""Kinds of credentials as values (ORD-7, ORD-11): what they hold is wrapped or a reference, never text."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from standby.events.errors import BadInput
from standby.events.vocabulary import CredentialKind
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.table import PROVIDERS

_ENV_PREFIX: Final = "env:"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class EnvRef:
    """A reference to an environment variable that holds the secret."""

    variable: str

    def __str__(self) -> str:
        return _ENV_PREFIX + self.variable


Value: TypeAlias = Secret | EnvRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key that does not expire."""

    provider: str
    key: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """A login whose access token is renewed with the refresh token."""

    provider: str
    access: Value
    refresh: Value
    expires_ms: int | None = None
    """Wall clock; None when the provider said nothing."""
    email: str | None = None
    project_id: str | None = None
    enterprise_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A static bearer token, which may expire and is never refreshed (ORD-11)."""

    provider: str
    token: Value
    expires_ms: int | None = None


Credential: TypeAlias = ApiKey | OAuth | Token


def api_key(provider: str, key: str) -> ApiKey:
    """An API key from its text or its reference. Raises BadInput, like all of these."""
    return ApiKey(provider=provider, key=_value(key, CredentialKind.API_KEY))


def token(provider: str, text: str, expires_ms: int | None = None) -> Token:
    """A static token from its text or its reference."""
    value = _value(text, CredentialKind.TOKEN)
    return Token(provider=provider, token=value, expires_ms=expires_ms)


def oauth(
    provider: str,
    access: str,
    refresh: str,
    *,
    expires_ms: int | None = None,
    email: str | None = None,
    project_id: str | None = None,
    enterprise_url: str | None = None,
) -> OAuth:
    """An OAuth login from the texts of its tokens or their references."""
    return OAuth(
        provider=provider,
        access=_value(access, CredentialKind.OAUTH),
        refresh=_value(refresh, CredentialKind.OAUTH),
        expires_ms=expires_ms,
        email=email,
        project_id=project_id,
        enterprise_url=enterprise_url,
    )


def from_environment(provider: str, environ: Mapping[str, str] | None = None) -> ApiKey | None:
    """The API key that a known provider's conventional variable holds, as a reference; None without one."""
    row = PROVIDERS.get(provider)
    variable = row.key_variable if row is not None else None
    environ = os.environ if environ is None else environ
    if variable is None or not environ.get(variable, "").strip():
        return None
    return ApiKey(provider=provider, key=EnvRef(variable))


def _value(text: str, kind: CredentialKind) -> Value:
    """A secret or a reference; the end of the line that pasting brings along is dropped."""
    text = text.strip()
    if not text.startswith(_ENV_PREFIX):
        if not text:
            raise BadInput("The secret is empty; give its text, or env:NAME for an environment variable.")
        return Secret(text, kind)
    variable = text.removeprefix(_ENV_PREFIX)
    if not _VARIABLE.fullmatch(variable):
        # Not quoted: what follows a wrong "env:" may be a key that was pasted there.
        raise BadInput("After env: the name of an environment variable must stand (letters, digits, _).")
    return EnvRef(variable)

"""Credentials: one SQLite file per agent, readable by its owner only (STORE-1, STORE-2).

A credential has a kind (ORD-7, ORD-11) and an id: `provider:default`, `provider:<email>`, or a name of
one's own, so that several accounts of a provider live side by side (ORD-6). What it holds is the secret
itself or a reference to an environment variable (`env:OPENAI_API_KEY`); a reference is stored as such and
looked up when a call needs it.

Secrets leave the store by `get` and `resolve` only, wrapped. Usage statistics are not here: they are a
projection of the log.
"""

import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import platformdirs

from standby.events.errors import BadInput
from standby.events.vocabulary import CredentialKind
from standby.hosts.credential_file import open_private, writing
from standby.hosts.credential_values import (
    ApiKey,
    Credential,
    EnvRef,
    OAuth,
    Token,
    Value,
    api_key,
    oauth,
    token,
)
from standby.hosts.providers.secret import Secret

_PROVIDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_NAME: Final = re.compile(r"[^\s:/][^\s:/]*")
_AGENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialInfo:
    """What may be shown of a credential."""

    id: str
    provider: str
    kind: CredentialKind
    email: str | None = None
    expires_ms: int | None = None
    source: str = "stored"
    """`stored`, or the reference (`env:NAME`)."""
    usable: bool = True
    """False when its environment variable is not set now. Expiry is a question with a clock in it."""
    generation: int = 1
    """Grows whenever what the id stands for is replaced."""


def agent_path(agent: str = "main", root: str | Path | None = None) -> Path:
    """Where an agent's credentials lie; `root` replaces the user's data directory. Raises BadInput."""
    if not _AGENT.fullmatch(agent):
        raise BadInput(f"Agent {agent!r}: use letters, digits, '.', '_' and '-' only.")
    base = Path(root) if root is not None else Path(platformdirs.user_data_dir("standby", appauthor=False))
    return base / "agents" / agent / "agent" / "standby-agent.sqlite"


class CredentialStore:
    """The credentials of one agent. Safe to share between threads; processes share the file.

    Opening creates the file with mode 0600. A file that others may read is refused with BadInput, unless
    `repair` is set: then its mode is corrected. Raises BadInput also for a file that is not such a store or
    was written by a newer version.
    """

    def __init__(self, path: str | Path, *, repair: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection = open_private(self.path, repair=repair)

    @classmethod
    def for_agent(
        cls, agent: str = "main", *, root: str | Path | None = None, repair: bool = False
    ) -> "CredentialStore":
        """The store of an agent at its usual place (see `agent_path`)."""
        return cls(agent_path(agent, root), repair=repair)

    def add(self, credential: Credential, *, name: str | None = None, replace: bool = False) -> str:
        """Keep a credential and return its id.

        The id is `provider:<name>`, else `provider:<email>`, else `provider:default`. One that exists is
        replaced only if asked (a new login, a renewed token): BadInput otherwise.
        """
        profile = _profile_id(credential, name)
        with self._lock, writing(self._connection):
            if self._find(profile) is not None and not replace:
                raise BadInput(
                    f"Credential {profile!r} exists already: replace it, remove it first, or use another name."
                )
            self._rows(
                "insert into generations (id, last) values (?, 1) "
                "on conflict (id) do update set last = last + 1",
                profile,
            )
            (counter,) = self._rows("select last from generations where id = ?", profile)
            row = {"id": profile, **_row(credential), "generation": counter["last"]}
            columns, marks = ", ".join(row), ", ".join("?" for _ in row)
            self._rows(f"insert or replace into credentials ({columns}) values ({marks})", *row.values())
        return profile

    def list(
        self, provider: str | None = None, *, environ: Mapping[str, str] | None = None
    ) -> tuple[CredentialInfo, ...]:
        """What there is, by id, without any secret."""
        with self._lock:
            rows = self._rows(
                "select * from credentials where ? is null or provider = ? order by id", provider, provider
            )
        return tuple(_info(row, os.environ if environ is None else environ) for row in rows)

    def get(self, profile: str) -> Credential:
        """A credential with its (wrapped) secrets or references. Raises BadInput if there is none."""
        with self._lock:
            row = self._find(profile)
        if row is None:
            raise self._missing(profile)
        return _credential(row)

    def resolve(self, profile: str, *, environ: Mapping[str, str] | None = None) -> Secret:
        """The secret that a call needs now: key, access token or static token.

        A reference is looked up in the environment. Raises BadInput when there is no such credential or its
        variable is not set.
        """
        match self.get(profile):
            case ApiKey(key=value):
                kind = CredentialKind.API_KEY
            case OAuth(access=value):
                kind = CredentialKind.OAUTH
            case Token(token=value):
                kind = CredentialKind.TOKEN
        if isinstance(value, Secret):
            return value
        text = (os.environ if environ is None else environ).get(value.variable, "").strip()
        if not text:
            raise BadInput(
                f"Credential {profile!r} refers to the environment variable {value.variable}, which is not set."
            )
        return Secret(text, kind)

    def remove(self, profile: str) -> None:
        """Erase a credential, also from the stored order. Raises BadInput if there is none."""
        with self._lock, writing(self._connection):
            row = self._find(profile)
            if row is None:
                raise self._missing(profile)
            self._rows("delete from credentials where id = ?", profile)
            order = self.order(row["provider"])
            if order is not None and profile in order:
                self._store_order(row["provider"], [item for item in order if item != profile])

    def set_order(self, provider: str, profiles: Sequence[str]) -> None:
        """Store an explicit order for a provider (ORD-9). Raises BadInput for ids that are not its own."""
        with self._lock, writing(self._connection):
            self._check_order(provider, profiles)
            self._store_order(provider, profiles)

    def clear_order(self, provider: str) -> None:
        """Forget the stored order of a provider; nothing happens if there is none."""
        with self._lock, writing(self._connection):
            self._store_order(provider, ())

    def order(self, provider: str) -> tuple[str, ...] | None:
        """The stored order of a provider (ORD-9), None if none is stored."""
        with self._lock:
            rows = self._rows("select ids from orders where provider = ?", provider)
        return msgspec.json.decode(rows[0]["ids"], type=tuple[str, ...]) if rows else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _check_order(self, provider: str, profiles: Sequence[str]) -> None:
        own = {info.id for info in self.list(provider)}
        unknown = [profile for profile in profiles if profile not in own]
        if unknown or not profiles or len(set(profiles)) != len(profiles):
            known = ", ".join(sorted(own)) or "none"
            wrong = f"unknown: {', '.join(unknown)}; " if unknown else ""
            raise BadInput(
                f"The order of {provider!r} must name each of some stored credentials once "
                f"({wrong}stored: {known})."
            )

    def _store_order(self, provider: str, profiles: Sequence[str]) -> None:
        self._rows("delete from orders where provider = ?", provider)
        if profiles:
            ids = msgspec.json.encode(list(profiles)).decode()
            self._rows("insert into orders (provider, ids) values (?, ?)", provider, ids)

    def _find(self, profile: str) -> dict[str, Any] | None:
        rows = self._rows("select * from credentials where id = ?", profile)
        return rows[0] if rows else None

    def _rows(self, sql: str, *values: object) -> tuple[dict[str, Any], ...]:
        cursor = self._connection.execute(sql, values)
        names = [column[0] for column in cursor.description or ()]
        return tuple(dict(zip(names, row, strict=True)) for row in cursor)

    def _missing(self, profile: str) -> BadInput:
        known = ", ".join(info.id for info in self.list()) or "none"
        return BadInput(f"There is no credential {profile!r} in {self.path} (stored: {known}).")

    def __repr__(self) -> str:
        return f"CredentialStore({str(self.path)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _profile_id(credential: Credential, name: str | None) -> str:
    provider = credential.provider
    if not _PROVIDER.fullmatch(provider):
        raise BadInput(f"Provider {provider!r}: use lower-case letters, digits, '.', '_' and '-' only.")
    email = credential.email if isinstance(credential, OAuth) else None
    chosen = name if name is not None else email or "default"
    if not _NAME.fullmatch(chosen):
        raise BadInput(f"Credential name {chosen!r}: it must not be empty nor hold spaces, ':' or '/'.")
    return f"{provider}:{chosen}"


def _text(value: Value) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _row(credential: Credential) -> dict[str, object]:
    match credential:
        case ApiKey():
            kind, secret = CredentialKind.API_KEY, credential.key
            more: dict[str, object] = {}
        case Token():
            kind, secret = CredentialKind.TOKEN, credential.token
            more = {"expires_ms": credential.expires_ms}
        case OAuth():
            kind, secret = CredentialKind.OAUTH, credential.access
            more = {
                "refresh": _text(credential.refresh),
                "expires_ms": credential.expires_ms,
                "email": credential.email,
                "project_id": credential.project_id,
                "enterprise_url": credential.enterprise_url,
            }
    return {"provider": credential.provider, "kind": kind.value, "secret": _text(secret), **more}


def _credential(row: Mapping[str, Any]) -> Credential:
    provider, secret, expires_ms = row["provider"], row["secret"], row["expires_ms"]
    match CredentialKind(row["kind"]):
        case CredentialKind.API_KEY:
            return api_key(provider, secret)
        case CredentialKind.TOKEN:
            return token(provider, secret, expires_ms)
        case CredentialKind.OAUTH:
            return oauth(
                provider,
                secret,
                row["refresh"],
                expires_ms=expires_ms,
                email=row["email"],
                project_id=row["project_id"],
                enterprise_url=row["enterprise_url"],
            )


def _info(row: Mapping[str, Any], environ: Mapping[str, str]) -> CredentialInfo:
    credential = _credential(row)
    match credential:
        case ApiKey(key=value) | OAuth(access=value) | Token(token=value):
            reference = value if isinstance(value, EnvRef) else None
    return CredentialInfo(
        id=row["id"],
        provider=row["provider"],
        kind=CredentialKind(row["kind"]),
        email=row["email"],
        expires_ms=row["expires_ms"],
        source="stored" if reference is None else str(reference),
        usable=reference is None or bool(environ.get(reference.variable, "").strip()),
        generation=row["generation"],
    )

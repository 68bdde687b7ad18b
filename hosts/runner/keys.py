"""Which credentials there are, and the secret that a call needs now.

Two places hold credentials: the agent's store, and environment variables that the settings name
(`models.providers.<id>.apiKeyEnv`) or that a known provider's users conventionally set. A key from the
environment is an inline profile, named `inline-api-key:<provider>`. Secrets are looked up for each call and
kept nowhere; the log learns of profiles, never of what they hold.

A provider's usual variable counts only at the provider's own address: its key is not for anybody else's server.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from standby.events.errors import BadInput
from standby.events.vocabulary import CredentialKind
from standby.hosts.credentials import CredentialInfo
from standby.hosts.providers.secret import Secret
from standby.hosts.providers.table import PROVIDERS
from standby.hosts.reports import Profile
from standby.hosts.service import Standby
from standby.hosts.settings import ProviderSettings, Settings

INLINE: Final = "inline-api-key:"
"""Prefix of the profile of a key that lies in the environment."""


class Credentials(Protocol):
    """Where credentials are kept; a `CredentialStore` is one."""

    def list(
        self, provider: str | None = None, *, environ: Mapping[str, str] | None = None
    ) -> Sequence[CredentialInfo]:
        """What there is, without any secret."""

    def order(self, provider: str) -> tuple[str, ...] | None:
        """The order stored for a provider (ORD-9)."""

    def resolve(self, profile: str, *, environ: Mapping[str, str] | None = None) -> Secret:
        """The secret behind a profile. Raises BadInput when it cannot be had."""


class Keys:
    """Credentials of a runner, from the store and the environment."""

    def __init__(
        self,
        settings: Settings | None,
        store: Credentials | None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._store = store
        self._environ = os.environ if environ is None else environ
        self._told: tuple[object, object] | None = None
        self._met: dict[str, None] = {}
        """Providers of models that turns named besides the configured ones; they stay known."""

    def meet(self, models: Iterable[str]) -> None:
        """A turn names these models: their providers' usual keys count from now on."""
        self._met.update(dict.fromkeys(model.partition("/")[0] for model in models if "/" in model))

    def observe(self, service: Standby) -> None:
        """Report to the log which credentials there are, when that is not what was reported before."""
        if service.settings is None:
            self._settings = Settings(policy=service.core.view.policy())
        profiles, order = self.profiles()
        if (profiles, order) != self._told:
            service.observe(profiles, order)
            self._told = profiles, order

    def profiles(self) -> tuple[tuple[Profile, ...], dict[str, tuple[str, ...]]]:
        """All profiles, stored ones first, and the orders that are stored."""
        stored = () if self._store is None else tuple(self._store.list(environ=self._environ))
        profiles = [
            Profile(
                name=info.id,
                provider=info.provider,
                kind=info.kind,
                expires_ms=info.expires_ms,
                usable=info.usable,
            )
            for info in stored
        ]
        order: dict[str, tuple[str, ...]] = {}
        for provider in dict.fromkeys(info.provider for info in stored):
            names = self._store.order(provider) if self._store is not None else None
            if names:
                order[provider] = names
        have = set(order) | {info.provider for info in stored}
        profiles += [
            Profile(name=INLINE + provider, provider=provider, usable=bool(self._inline(provider)), inline=True)
            for provider in self._inline_providers(have)
        ]
        return tuple(profiles), order

    def secret(self, profile: str) -> Secret | None:
        """The secret of a profile; None for "", a provider that needs none.

        Raises:
            BadInput: it is not there (any more).
        """
        if not profile:
            return None
        if profile.startswith(INLINE):
            provider = profile.removeprefix(INLINE)
            text = self._inline(provider)
            if not text:
                wanted = " or ".join(self.variables(provider)) or "an environment variable"
                raise BadInput(f"No API key for provider {provider!r}: {wanted} is not set.")
            return Secret(text, CredentialKind.API_KEY)
        if self._store is None:
            raise BadInput(f"No API key for profile {profile!r}: this runner was given no credential store.")
        return self._store.resolve(profile, environ=self._environ)

    def _inline_providers(self, have: set[str]) -> Iterator[str]:
        """Providers with a key of their own in the settings, and known ones of the chain without any other."""
        policy = self._settings.policy
        chains = [policy.models, policy.images, *(agent.model for agent in policy.agents.values())]
        models = [model for chain in chains for model in (chain.primary, *(chain.fallbacks or ()))]
        configured = (model.partition("/")[0] for model in models if model)
        named = dict.fromkeys([*self._settings.providers, *configured, *self._met])
        for provider in named:
            own = self._own(provider)
            if own.api_key_env or (provider not in have and self.variables(provider)):
                yield provider

    def _own(self, provider: str) -> ProviderSettings:
        return self._settings.providers.get(provider, ProviderSettings())

    def variables(self, provider: str) -> tuple[str, ...]:
        """Environment variables that may hold the key of a provider, first that is set; () for none."""
        own, known = self._own(provider), PROVIDERS.get(provider)
        if own.api_key_env:
            return own.api_key_env
        usual = known.key_variable if known is not None and own.base_url is None else None
        return () if usual is None else (usual,)

    def _inline(self, provider: str) -> str:
        texts = (self._environ.get(name, "").strip() for name in self.variables(provider))
        return next((text for text in texts if text), "")

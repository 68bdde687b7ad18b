"""What `standby run` says about credentials, where settings and what is there can be held together.

Neither the settings nor the log know which keys there are, so these are not among the settings' own warnings.
"""

from collections.abc import Iterable, Iterator, Mapping

from standby.engine.decide.selection import configured
from standby.engine.steps import Settled
from standby.events.vocabulary import Failure, SkipBecause
from standby.hosts.providers.table import PROVIDERS
from standby.hosts.runner.keys import Keys
from standby.hosts.settings import ProviderSettings, Settings


def credential_warnings(
    settings: Settings, keys: Keys, agent: str, model: str, environ: Mapping[str, str]
) -> Iterator[str]:
    """Profiles that an order names and nobody has (ORD-1), and usual keys that do not go to another address.

    `model` is one that the turns name themselves; "" for the agent's configured chain alone.
    """
    profiles, _ = keys.profiles()
    there = {profile.name for profile in profiles}
    for provider, names in settings.policy.order.items():
        for name in names:
            if name not in there:
                yield f"auth.order.{provider} names {name}, which is not there; see `standby auth list`"
    chain = configured(settings.policy, agent).chain
    stored = {profile.provider for profile in profiles if not profile.inline}
    for provider in _providers((model, chain.primary, *(chain.fallbacks or ()))):
        own = settings.providers.get(provider, ProviderSettings())
        known = PROVIDERS.get(provider)
        usual = known.key_variable if known is not None else None
        if own.base_url is None or own.api_key_env or provider in stored or usual is None:
            continue
        if environ.get(usual, "").strip():
            yield f"{usual} is not sent to {own.base_url}; name it with models.providers.{provider}.apiKeyEnv"


def what_would_help(settled: Settled, keys: Keys) -> Iterator[str]:
    """For each provider that a failed turn had no credential for: what to set, or what to add."""
    skipped = [skip.model for skip in settled.skips if skip.because is SkipBecause.NO_CREDENTIAL]
    # A provider that needs no key is called without one; that it wanted one, it says itself.
    refused = [
        attempt.model
        for attempt in settled.attempts
        if not attempt.profile and attempt.reason in (Failure.AUTH, Failure.AUTH_PERMANENT)
    ]
    for provider in _providers((*skipped, *refused)):
        names = " or ".join(keys.variables(provider)) or f"models.providers.{provider}.apiKeyEnv"
        yield f"{provider} has no usable credential: set {names}, or run `standby auth add {provider}`."


def _providers(models: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(model.partition("/")[0] for model in models if "/" in model))

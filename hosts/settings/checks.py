"""What must hold between settings, beyond what each of them says alone."""

from collections.abc import Iterator

import msgspec

from standby.engine.classify.tables import check_rows
from standby.engine.decide.chain import CHAIN_LIMIT
from standby.engine.rulesets import ruleset_of
from standby.events.codec import COMMIT_LIMIT
from standby.events.errors import BadInput, BadPolicy
from standby.events.policy import ModelChain, Policy
from standby.hosts.providers.table import PROVIDERS
from standby.hosts.settings.lines import Path
from standby.hosts.settings.validators import Cell, Source, suggestion
from standby.hosts.settings.values import Settings

_ENVELOPE_BYTES = 1024
"""What a commit needs beside the policy."""

Cells = dict[Path, Cell]
"""The cell behind each path of `Settings` that the file set."""


def check_together(settings: Settings, cells: Cells, source: Source) -> Settings:
    """The settings with their warnings, and with what the ruleset bounds brought into its bounds.

    Raises:
        BadPolicy: settings contradict each other, or what they ask for cannot be.
    """
    policy = settings.policy
    _lengths(policy, cells)
    _profiles(policy, cells)
    _endpoints(settings, source)
    _rows(policy, source)
    warnings = [*settings.warnings, *_unknown_providers(settings, cells)]
    ttl = skip_ttl(policy, policy.skip_ttl_ms)
    if ttl != policy.skip_ttl_ms:
        cell = cells["policy", "skip_ttl_ms"]
        warnings.append(source.note(cell.path, f"is brought to {ttl}: it lies between 1 s and 10 min (SKIP-1)"))
        policy = msgspec.structs.replace(policy, skip_ttl_ms=ttl)
    if (size := len(msgspec.json.encode(policy))) > COMMIT_LIMIT - _ENVELOPE_BYTES:
        raise BadPolicy(
            f"{source.name}: the policy has {size} bytes, at most {COMMIT_LIMIT - _ENVELOPE_BYTES} fit into "
            "the log; shorten standby.rows or models.providers"
        )
    return msgspec.structs.replace(settings, policy=policy, warnings=tuple(warnings))


def skip_ttl(policy: Policy, wanted_ms: int) -> int:
    """A time for skip markers within the bounds of the ruleset; 0 is off and stays off (SKIP-1)."""
    shortest, longest = ruleset_of(policy).skip_ttl_ms
    return min(max(wanted_ms, shortest), longest) if wanted_ms > 0 else 0


def _chains(policy: Policy) -> Iterator[tuple[Path, ModelChain, str]]:
    """Every chain that the file can set: where it lies, what it says, and the primary that is in effect."""
    shared = policy.models.primary
    yield ("policy", "models"), policy.models, shared
    yield ("policy", "images"), policy.images, policy.images.primary
    for agent, entry in policy.agents.items():
        own = "" if entry.acp else entry.model.primary
        yield ("policy", "agents", agent, "model"), entry.model, entry.remembered or own or shared


def _lengths(policy: Policy, cells: Cells) -> None:
    for into, chain, primary in _chains(policy):
        length = 1 + len(set(chain.fallbacks or ()) - {primary})
        if length > CHAIN_LIMIT:
            raise cells[(*into, "fallbacks")].error(
                f"makes a chain of {length} models, the selected one included; at most {CHAIN_LIMIT} are tried"
            )


def _profiles(policy: Policy, cells: Cells) -> None:
    """A profile serves its own provider only, and its name begins with it (ORD-6)."""
    for profile, rule in policy.profiles.items():
        before, colon, _ = profile.partition(":")
        if colon and before != rule.provider:
            raise cells["policy", "profiles", profile, "provider"].error(
                f'the profile is called "{profile}", so it belongs to "{before}", not to "{rule.provider}"'
            )
    for provider, profiles in policy.order.items():
        for entry, profile in zip(cells["policy", "order", provider].entries(), profiles, strict=True):
            before, colon, _ = profile.partition(":")
            owner = policy.profiles[profile].provider if profile in policy.profiles else before
            if owner != provider and (colon or profile in policy.profiles):
                raise entry.error(f'the profile "{profile}" belongs to "{owner}", not to "{provider}"')


def _endpoints(settings: Settings, source: Source) -> None:
    for provider, own in settings.providers.items():
        path: Path = ("models", "providers", provider)
        if provider not in PROVIDERS and not (own.base_url and own.wire):
            raise source.error(
                path,
                "the provider is not known by name: give its baseUrl and its api, such as openai-completions",
            )
        lowered = [header.lower() for header in own.headers]
        for header, plain in zip(own.headers, lowered, strict=True):
            if lowered.count(plain) > 1:
                raise source.error((*path, "headers", header), "the header is given twice")
        try:
            settings.endpoint(provider)
        except BadInput as fault:
            raise source.error((*path, "baseUrl"), str(fault).rstrip(".")) from fault


def _rows(policy: Policy, source: Source) -> None:
    # One at a time first, so that the message can say where the row stands.
    for at, row in enumerate(policy.rows):
        try:
            check_rows((row,))
        except BadPolicy as fault:
            what = str(fault).removeprefix(f"classification rows cannot be used: row 1 ({row.id!r}): ")
            raise source.error(("standby", "rows", at), what) from fault
    try:
        check_rows(policy.rows)
    except BadPolicy as fault:
        raise source.error(("standby", "rows"), str(fault)) from fault


def _unknown_providers(settings: Settings, cells: Cells) -> Iterator[str]:
    """Warnings about providers that this host could not call: misspelt, or the embedding service's own."""
    policy = settings.policy
    described = (*policy.windows, *policy.context_tokens, *policy.prices)
    known = {*PROVIDERS, *settings.providers, *map(_provider_of, described)}
    for provider, cell in _named(policy, cells):
        if provider not in known:
            known.add(provider)
            better = suggestion(provider, sorted(known - {provider}))
            yield cell.source.note(
                cell.path,
                f'the provider "{provider}" is neither known by name nor in models.providers'
                + (better or "; only a host that makes the calls itself can use it"),
            )


def _named(policy: Policy, cells: Cells) -> Iterator[tuple[str, Cell]]:
    """Each provider that the file names outside models.providers, and where."""
    for into, chain, _ in _chains(policy):
        if chain.primary:
            yield _provider_of(chain.primary), cells[(*into, "primary")]
        if chain.fallbacks:
            entries = cells[(*into, "fallbacks")].entries()
            yield from zip(map(_provider_of, chain.fallbacks), entries, strict=True)
    for agent, entry in policy.agents.items():
        if entry.remembered:
            yield _provider_of(entry.remembered), cells["policy", "agents", agent, "remembered"]
    for provider in policy.order:
        yield provider, cells["policy", "order", provider]
    for profile, rule in policy.profiles.items():
        yield rule.provider, cells["policy", "profiles", profile, "provider"]
    if policy.self_managed:
        yield from zip(policy.self_managed, cells["policy", "self_managed"].entries(), strict=True)


def _provider_of(model: str) -> str:
    return model.partition("/")[0]

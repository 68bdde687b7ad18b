"""Settings as values: what a file came to."""

from collections.abc import Callable
from typing import Literal

import msgspec

from standby.events.policy import Policy
from standby.hosts.providers.table import endpoint
from standby.hosts.providers.values import Endpoint, Wire

EVIDENCE_BYTES_MOST = 2048
"""Most text of a failure that is ever kept, in bytes."""


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`models.providers.<id>`: how a provider is reached; the rest comes from the table of providers."""

    base_url: str | None = None
    wire: Wire | None = None
    api_key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, first that is set; () for the provider's usual one."""
    headers: dict[str, str] = {}
    """Sent with every request; never a credential."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a settings file says.

    `policy` still has profile *names* in `order` and `profiles`; `policy_with` gives the one for the log.
    """

    policy: Policy = Policy()
    providers: dict[str, ProviderSettings] = {}
    agents: tuple[str, ...] = ()
    """Ids of the agents that have an entry of their own."""
    emails: dict[str, str] = {}
    """Account behind a profile, by the profile's name. For people only: it never enters the log."""
    request_timeout_ms: int | None = None
    """`retry.provider.timeoutMs`: most time for one request of this host, beside the budget of the attempt."""
    evidence_bytes: int = EVIDENCE_BYTES_MOST
    """How much text of a failure is kept in the side table; 0 keeps none."""
    synchronous: Literal["full", "normal"] = "full"
    """Whether an acknowledged event survives a power cut (`full`) or only a crash of the process."""
    warnings: tuple[str, ...] = ()
    """What works but probably not as its author thinks; each names file, line and key."""

    def policy_with(self, alias: Callable[[str], str]) -> Policy:
        """The policy as it enters the log: every profile under the alias that `alias` gives for its name."""
        return msgspec.structs.replace(
            self.policy,
            order={
                provider: tuple(alias(name) for name in names) for provider, names in self.policy.order.items()
            },
            profiles={alias(name): rule for name, rule in self.policy.profiles.items()},
        )

    def endpoint(self, provider: str) -> Endpoint:
        """Where calls of a provider go, by these settings and the table of known providers.

        Raises:
            BadInput: the provider is not known by name and the settings do not say where it is.
        """
        own = self.providers.get(provider, ProviderSettings())
        return endpoint(provider, base_url=own.base_url, wire=own.wire, headers=own.headers)

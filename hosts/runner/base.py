"""What both runners share: everything that is not I/O."""

from collections.abc import Mapping

from standby.hosts.providers.table import endpoint
from standby.hosts.providers.values import Endpoint
from standby.hosts.runner.ask import Ask
from standby.hosts.runner.driver import Driver
from standby.hosts.runner.keys import Credentials, Keys
from standby.hosts.service import Standby


class Base:
    """A log, credentials, and where providers are."""

    def __init__(
        self,
        service: Standby,
        credentials: Credentials | None,
        endpoints: Mapping[str, Endpoint] | None,
        environ: Mapping[str, str] | None,
    ) -> None:
        self.service = service
        self.keys = Keys(service.settings, credentials, environ)
        self._endpoints = dict(endpoints or {})
        self._running: set[str] = set()

    def _endpoint(self, provider: str) -> Endpoint:
        given = self._endpoints.get(provider)
        if given is not None:
            return given
        settings = self.service.settings
        return endpoint(provider) if settings is None else settings.endpoint(provider)

    def _driver(self, ask: Ask) -> Driver:
        settings = self.service.settings
        longest = None if settings is None else settings.request_timeout_ms
        return Driver(self.service, self.keys, self._endpoint, ask, longest, self._running)

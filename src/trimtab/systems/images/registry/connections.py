"""What all clients of registries share: connections, and a budget for each host.

A host that answers 429 or 503 with Retry-After is left alone by every client of it, also by those that trust another
authority; other hosts go on. Made once in a process.

The budget is wide, for a registry is only asked to read: what bounds it is how many requests run at once. All of them may
be refused at once, so there are retries for all; and a request may take as long as a registry may ask it to wait.
"""

from __future__ import annotations

import random
from types import TracebackType
from typing import Self

from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.credentials.types import DockerConfig, RegistryLogin
from trimtab.runtime.outbound import Budget, HostPin, Limits, Outbound, Tls
from trimtab.runtime.outbound.budget import Scopes
from trimtab.systems.images.registry.auth import logins_of
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.references import Endpoint

BUDGET = Budget(concurrent=48, rate=4000.0, burst=4000, retry_reserve=96.0)
VERIFIED = Tls()
LIMITS = Limits(total=BUDGET.longest_wish + 60.0, connections=256, connections_per_host=48)


class Connections:
    """`async with Connections() as connections: client = connections.client(endpoint("docker.io"), login=config)`."""

    def __init__(
        self,
        budget: Budget = BUDGET,
        *,
        limits: Limits = LIMITS,
        host_pin: HostPin = HostPin(),  # noqa: B008 - frozen
        proxy_from_environment: bool = False,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._budget, self._limits, self._pin = budget, limits, host_pin
        self._proxy_from_environment = proxy_from_environment
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._scopes = Scopes(budget, self._clock, self._chance)
        self._outbounds: list[tuple[Tls, Outbound]] = []

    def client(
        self, registry: Endpoint, *, tls: Tls = VERIFIED, login: DockerConfig | RegistryLogin | None = None
    ) -> RegistryClient:
        """A client of one registry. It needs no closing, and ends with this."""
        return RegistryClient(registry, self._outbound(tls), logins_of(login, registry), clock=self._clock)

    def _outbound(self, tls: Tls) -> Outbound:
        for known, outbound in self._outbounds:
            if known == tls:
                return outbound
        made = _Sharing(
            self._budget,
            tls,
            self._pin,
            limits=self._limits,
            clock=self._clock,
            chance=self._chance,
            proxy_from_environment=self._proxy_from_environment,
        )
        made.share(self._scopes)
        self._outbounds.append((tls, made))
        return made

    async def close(self) -> None:
        while self._outbounds:
            await self._outbounds.pop()[1].close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Sharing(Outbound):
    """One whose scopes are also those of others."""

    def share(self, scopes: Scopes) -> None:
        self._scopes = scopes

"""One `Service` for each API and credential, kept while it is used.

Flow: a reconcile asks for the caller of its RestService in its namespace → the Secret is resolved, which costs nothing
while it is watched → the Service that was made for this generation and these values, or a new one; the old one is closed
when its last request is over.

Guarantees: a Secret that changed is in use with the next request. Budgets outlive the Service: a new password gives no
new allowance.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import random
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import msgspec
from msgspec import UNSET

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials import CredentialError, SecretRef
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.calling.endpoint import EndpointError
from trimtab.systems.rest.calling.login import login_of
from trimtab.systems.rest.calling.throttling import Throttle
from trimtab.systems.rest.kinds.service import RestService

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from trimtab.systems.rest.calling.measures import Measures
    from trimtab.systems.rest.calling.service import Service

IDLE = 600.0  # seconds
MOST_THROTTLES = 4096


class Secrets(Protocol):
    """Where Secrets are resolved: `runtime.credentials.Credentials`."""

    async def resolve_all(self, ref: SecretRef) -> Mapping[str, Redacted]: ...


class Connections:
    """The services that are in use."""

    def __init__(
        self,
        secrets: Secrets,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        idle: float = IDLE,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        self._secrets = secrets
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._idle = idle
        self._open: dict[_Place, _Connection] = {}
        self._throttles: dict[_Place, tuple[msgspec.Struct, Throttle]] = {}
        self._making = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._measures: Measures | None = None
        if metrics is not None:
            from trimtab.systems.rest.calling.measures import Measures

            self._measures = Measures(metrics)

    async def caller(self, service: RestService, namespace: str) -> Service:
        """The service with the credential that counts in a namespace. CallError (AUTH) without one."""
        ref = _reference(service, namespace)
        values = await self._resolved(service, ref)
        generation = service.metadata.generation or 0
        place = (service.metadata.name or "", ref.namespace if ref else "", ref.name if ref else "")
        async with self._making:
            await self._close_idle()
            known = self._open.get(place)
            current = known is not None and known.generation == generation and known.uid == service.metadata.uid
            if known is None or not current or known.values != values:
                made = self._made(service, ref, values, place)
                if known is not None:
                    await known.service.retire()
                known = self._open[place] = _Connection(made, generation, service.metadata.uid, values)
            known.used = self._clock.monotonic()
            return known.service

    @property
    def open(self) -> int:
        return len(self._open)

    async def close(self) -> None:
        for connection in self._open.values():
            await connection.service.retire()
        self._open.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _resolved(self, service: RestService, ref: SecretRef | None) -> Mapping[str, Redacted]:
        if ref is None:
            if service.spec.credentials.type in ("none", "azure"):
                return {}
            raise CallError(
                ErrorClass.AUTH,
                f"RestService {service.metadata.name}: credentials of type {service.spec.credentials.type} need a secretRef",
                code="NoSecret",
            )
        try:
            return await self._secrets.resolve_all(ref)
        except CredentialError as error:
            raise CallError(
                ErrorClass.AUTH, f"RestService {service.metadata.name}: {error}", code=type(error).__name__
            ) from None
        except (StatusError, OSError) as error:
            raise CallError(
                ErrorClass.TRANSIENT, f"RestService {service.metadata.name}: {ref} cannot be read: {error}"
            ) from None

    def _made(
        self, service: RestService, ref: SecretRef | None, values: Mapping[str, Redacted], place: _Place
    ) -> Service:
        from trimtab.systems.rest.calling.service import Service  # late: whoever only names us carries no HTTP client

        spec = service.spec
        named = ref or SecretRef("(none)", "")
        try:
            login = login_of(spec.credentials, values, named, clock=self._clock, skip_tls_verify=spec.skip_tls_verify)
            return Service(
                spec.endpoint,
                login,
                headers=spec.headers,
                poll_hosts=spec.poll_hosts,
                throttle=self._throttle(service, place),
                concurrent=spec.limits.concurrent,
                timeout=spec.limits.timeout.seconds,
                clock=self._clock,
                chance=self._chance,
                connection=f"{'/'.join(place)}#{next(self._numbers)}",  # new with each generation and each Secret's values
                ended=functools.partial(self._measures.ended, place[0]) if self._measures is not None else None,
            )
        except CredentialError as error:
            raise CallError(
                ErrorClass.AUTH, f"RestService {service.metadata.name}: {error}", code=type(error).__name__
            ) from None
        except EndpointError as error:
            raise CallError(
                ErrorClass.TERMINAL, f"RestService {service.metadata.name}: {error}", code="Endpoint"
            ) from None

    def _throttle(self, service: RestService, place: _Place) -> Throttle:
        limits = service.spec.limits
        known = self._throttles.get(place)
        if known is None or known[0] != limits:
            made = Throttle(
                reads_per_second=limits.reads_per_second,
                writes_per_second=limits.writes_per_second,
                clock=self._clock,
                chance=self._chance,
            )
            if len(self._throttles) >= MOST_THROTTLES:
                self._throttles = {there: kept for there, kept in self._throttles.items() if there in self._open}
            known = self._throttles[place] = (limits, made)
        return known[1]

    async def _close_idle(self) -> None:
        last = self._clock.monotonic() - self._idle
        for place in [place for place, one in self._open.items() if one.used < last and not one.service.in_flight]:
            await self._open.pop(place).service.retire()


_Place = tuple[str, str, str]  # the RestService, the namespace and the name of the Secret


class _Connection:
    def __init__(self, service: Service, generation: int, uid: object, values: Mapping[str, Redacted]) -> None:
        self.service, self.generation, self.uid, self.values = service, generation, uid, values
        self.used = 0.0


def _reference(service: RestService, namespace: str) -> SecretRef | None:
    given = service.spec.credentials.secret_ref
    if given is UNSET:
        return None
    return SecretRef(given.name, namespace if given.namespace is UNSET else given.namespace)

"""Which source has the metrics of a CanaryDeployment; each is made once and shared by all who mean the same.

In order: the Prometheus of its spec; the one that the controllers were started with; the data plane of this machine,
whose address is in the ConfigMap `data-plane`. A login that was renewed makes a new source.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol, Self

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.credentials.types import CredentialError, SecretRef
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.delivery.kinds.analysis import Prometheus
from trimtab.systems.delivery.measuring.contract import Source, SourceError
from trimtab.systems.delivery.measuring.login import Login, login_of

DATA_PLANE, METRICS = "data-plane", "metrics"
UNUSED = 900.0
"""Seconds until a Prometheus that nobody asks for is let go."""
NONE = "there are no metrics: set analysis.prometheus.address or --prometheus"


class _Closing(Source, Protocol):
    async def close(self) -> None: ...


class _Held(msgspec.Struct):
    source: _Closing
    login: Login
    used_at: float
    lasting: bool = False  # what it has seen is only in its memory


class Sources:
    """Gives sources until it is closed. `default` is the URL of the Prometheus for those who name none."""

    def __init__(
        self,
        client: Client,
        *,
        default: str = "",
        credentials: Credentials | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client, self._default = client, default
        self._credentials = credentials or Credentials(client, cached=True)
        self._own_credentials = credentials is None
        self._clock = clock or SystemClock()
        self._held: dict[tuple[str, str, str], _Held] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def source(
        self, namespace: str, prometheus: Prometheus | UnsetType = UNSET, *, window: float = 0.0
    ) -> Source:
        """SourceError when there is none. Ask for it before the first window begins, and say how long windows will be
        (seconds): a data plane that is scraped by ourselves has no past."""
        spec = prometheus if prometheus is not UNSET else Prometheus()
        address = spec.address if spec.address is not UNSET else self._default
        if address:
            return await self._prometheus(namespace, address, spec)
        return await self._scraped(window)

    async def close(self) -> None:
        held = tuple(self._held.values())
        self._held.clear()
        for one in held:
            await one.source.close()
        leaving = tuple(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        if self._own_credentials:
            await self._credentials.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _prometheus(self, namespace: str, address: str, spec: Prometheus) -> Source:
        from trimtab.systems.delivery.measuring.prometheus import PrometheusSource  # carries aiohttp

        login = Login()
        key = (address, "", "")
        if spec.secret_ref is not UNSET:
            ref = SecretRef(spec.secret_ref.name, namespace)
            login = await self._login(ref)
            key = (address, namespace, ref.name)
        held = self._found(key)
        if held is not None and held.login == login:
            return held.source
        source = PrometheusSource(address, login)
        if held is not None:
            self._leave(held)
        self._held[key] = _Held(source, login, self._clock.monotonic())
        return source

    async def _scraped(self, window: float) -> Source:
        from trimtab.systems.delivery.measuring.scraping import ScrapeSource  # carries aiohttp

        url = await self._data_plane()
        key = (url, "", DATA_PLANE)
        held = self._found(key)
        if held is None:
            for other, old in list(self._held.items()):
                if old.lasting:  # a data plane that has moved
                    del self._held[other]
                    self._leave(old)
            held = self._held[key] = _Held(
                ScrapeSource(url, clock=self._clock), Login(), self._clock.monotonic(), lasting=True
            )
        if isinstance(held.source, ScrapeSource):
            held.source.begin(window)
        return held.source

    async def _data_plane(self) -> str:
        try:
            found = await self._client.get(ConfigMap, DATA_PLANE, NAMESPACE)
        except StatusError as error:
            if error.code == 404:
                raise SourceError(NONE) from None
            raise SourceError(f"the ConfigMap {NAMESPACE}/{DATA_PLANE} cannot be read: {error}") from None
        except OSError as error:
            raise SourceError(f"the ConfigMap {NAMESPACE}/{DATA_PLANE} cannot be read: {error}") from None
        url = (found.data if found.data is not UNSET else {}).get(METRICS, "")
        if not url:
            raise SourceError(NONE)
        return url

    async def _login(self, ref: SecretRef) -> Login:
        try:
            return login_of(await self._credentials.resolve_all(ref), ref)
        except CredentialError as error:
            raise SourceError(str(error)) from None
        except (StatusError, OSError) as error:
            raise SourceError(f"{ref} cannot be read: {error}") from None

    def _found(self, key: tuple[str, str, str]) -> _Held | None:
        now = self._clock.monotonic()
        found = self._held.get(key)
        if found is not None:
            found.used_at = now
        for other, held in list(self._held.items()):
            if not held.lasting and now - held.used_at > UNUSED:
                del self._held[other]
                self._leave(held)
        return found

    def _leave(self, held: _Held) -> None:
        """Who still asks it has as long as a question may take."""

        async def later() -> None:
            try:
                await self._clock.sleep(10.0)
            finally:
                await held.source.close()

        task = asyncio.create_task(later())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

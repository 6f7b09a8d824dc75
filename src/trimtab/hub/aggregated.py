"""The hub behind a cluster's own API server: an aggregated API server.

Flow: the cluster's API server finds an APIService for our group, calls us by TLS with its front-proxy certificate, and tells in
headers who asks. We ask it back whether that user may. Kinds are mounted on the `Server` by whoever calls; garbage
collection, namespaces and roles are the cluster's.

Guarantees: both the certificate that we serve with and the authority that signs front proxies may change while we run; no
connection is dropped for it. Nobody is believed whom neither the front proxy names nor the cluster's TokenReview knows.

Assumptions: our account may read the ConfigMap kube-system/extension-apiserver-authentication, read namespaces, and make
SubjectAccessReviews and TokenReviews.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.tls import load_pair
from trimtab.client.transport import FAILURES, Call, document_of
from trimtab.hub.delegated import ClusterNamespaces, DelegatedAuthorizer, Identities
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.server.auth.limits import Limits
from trimtab.server.auth.request_header import FrontProxy, RequestHeader, front_proxy
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.wire import Listener
from trimtab.store.memory import MemoryStore

INTERVAL = 60.0
CONFIG = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, as PEM, and the authorities that others trust it by, where we know them. Its repr shows no
    key."""

    certificate: bytes
    key: bytes
    trusted: bytes = b""

    def __repr__(self) -> str:
        return "Pair(…)"


Serving = Callable[[], Awaitable[Pair]]
"""The certificate to serve with now; asked again and again."""


def from_files(certificate: Path, key: Path) -> Serving:
    """As somebody else renews them."""

    async def read() -> Pair:
        return Pair(await asyncio.to_thread(certificate.read_bytes), await asyncio.to_thread(key.read_bytes))

    return read


def self_made(client: ApiClient, *, namespace: str, name: str, services: tuple[str, ...]) -> Serving:
    """Made by ourselves, shared by all replicas in a Secret, told to the cluster in the APIServices, renewed in time."""
    from trimtab.runtime.certificates import Certificates, Targets

    hosts = (f"{name}.{namespace}.svc", "127.0.0.1", "localhost")
    kept = Certificates(client, namespace=namespace, name=name, hosts=hosts, targets=Targets(services=services))

    async def refreshed() -> Pair:
        bundle = await kept.refresh()
        return Pair(bundle.serving.certificate.encode(), bundle.serving.key.encode(), bundle.trusted)

    return refreshed


def proxy_file(authority: Path, names: tuple[str, ...]) -> Callable[[], Awaitable[FrontProxy]]:
    """Whom to believe where the cluster does not say: an authority in a file, which may be renewed, and names."""

    async def read() -> FrontProxy:
        return FrontProxy(ca=await asyncio.to_thread(authority.read_bytes), names=names)

    return read


async def cluster_proxy(client: ApiClient) -> FrontProxy:
    """Whom the cluster says to believe. ValueError when it says nothing."""
    reply = await client.transport.call(Call(method="GET", path=CONFIG))
    return front_proxy(document_of(reply.body).get("data") or {})


class Tls:
    """Our side of TLS: whoever connects gets the newest certificate, and is asked for one that the newest authority signed."""

    def __init__(self) -> None:
        self.context = self._made(b"")
        self.context.sni_callback = self._choose
        self._current: ssl.SSLContext | None = None
        self._used: tuple[Pair, bytes] | None = None

    def use(self, pair: Pair, authority: bytes) -> None:
        """SSLError when either cannot be used; then nothing changes."""
        if (pair, authority) == self._used:
            return
        fresh = self._made(authority)
        load_pair(fresh, pair.certificate, pair.key)
        self._current, self._used = fresh, (pair, authority)

    def _made(self, authority: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["http/1.1"])
        context.verify_mode = ssl.CERT_OPTIONAL
        if authority:
            context.load_verify_locations(cadata=authority.decode("ascii"))
        return context

    def _choose(self, connection: Any, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """In each handshake, with or without a server name."""
        if self._current is None:
            return int(ssl.AlertDescription.ALERT_DESCRIPTION_INTERNAL_ERROR)
        connection.context = self._current
        return None


class Aggregated:
    """A hub that serves. `refresh` takes over what changed in the cluster; `run` does so again and again."""

    def __init__(
        self,
        server: Server,
        client: ApiClient,
        serving: Serving,
        *,
        proxy: Callable[[], Awaitable[FrontProxy]] | None = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.server = server
        self.port = 0
        self._client = client
        self._serving = serving
        self._proxy = proxy or (lambda: cluster_proxy(client))
        self._clock = clock or SystemClock()
        self._limits = limits
        self.tls = Tls()
        self.pair = Pair(b"", b"")
        self.heard: Callable[[Pair], None] = lambda pair: None  # of another certificate
        self._believed: RequestHeader | None = None
        self._listener: Listener | None = None

    async def refresh(self) -> None:
        """Raises when something cannot be had or used; then nothing changes."""
        proxy, pair = await self._proxy(), await self._serving()
        self.tls.use(pair, proxy.ca)
        if self._believed is None:
            self._believed = RequestHeader(proxy)
        elif proxy != self._believed.proxy:
            self._believed.use(proxy)
            log.info("the hub believes another front proxy from now on")
        if self._listener is not None:
            self._listener.proxied = proxy.headers
        if pair != self.pair:
            self.pair = pair
            self.heard(pair)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises what the cluster's API raises when it does not say whom to believe."""
        if self._believed is None:
            await self.refresh()
        assert self._believed is not None  # noqa: S101 - `refresh` made it
        identities = Identities(self._client, self._believed, clock=self._clock)
        door = Door(self.server, None, limits=self._limits, identify=identities)
        self._listener = Listener(door, proxied=self._believed.proxy.headers)
        self.port = await self._listener.listen(host, port, self.tls.context)
        return self.port

    async def run(self) -> None:
        """Until cancelled. What cannot be had now is used as it was."""
        while True:
            await self._clock.sleep(INTERVAL)
            try:
                await self.refresh()
            except (*FAILURES, ValueError) as error:
                log.warning("the hub goes on with the certificates that it has", error=str(error))

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.close()


def hub_server(client: ApiClient, *, clock: Clock | None = None, **settings: Any) -> Server:
    """A server without kinds of its own, that asks the cluster what is allowed, and which namespaces there are."""
    clock = clock or SystemClock()
    authorizer = DelegatedAuthorizer(client, clock=clock)
    beside = ClusterNamespaces(client, clock=clock)
    return Server(MemoryStore(), clock=clock, authorizer=authorizer, beside=beside, **settings)


@contextlib.asynccontextmanager
async def serving(aggregated: Aggregated, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Aggregated]:
    """Serve what is mounted on its server until the block is left."""
    await aggregated.server.start()
    await aggregated.start(host, port)
    renewing = asyncio.create_task(aggregated.run(), name="hub certificates")
    try:
        yield aggregated
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        await aggregated.stop()
        await aggregated.server.stop()

"""Calls to API servers behind this one: TLS with the name of their Service, our front-proxy certificate, and who asks.

`aiohttp` is imported at the first call: most servers have none behind them. Redirects are not followed, proxies not used.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from trimtab.model.errors import StatusError
from trimtab.server import resolving
from trimtab.server.aggregation.services import ApiService
from trimtab.server.auth.identity import MASTERS, User
from trimtab.store.contract import Store

if TYPE_CHECKING:
    import aiohttp

MAX_CONTEXTS = 256
MAX_DOCUMENT = 16 * 1024 * 1024
CONNECT = 10.0  # seconds
OURSELVES = User("system:kube-aggregator", groups=(MASTERS,))
READER = User("system:aggregator")
"""Who asks for schemas: no more than anybody who is known may see."""

_TOKEN = frozenset("!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

Headers = list[tuple[str, str]]


class FrontProxyPair(msgspec.Struct, frozen=True):
    """How others know us: the certificate with its key (one PEM file), and the authority (PEM) that signed it."""

    pair: Path
    ca: str


class Remote:
    """Keeps connections open between calls. `close` ends them."""

    def __init__(self, store: Store, identity: FrontProxyPair | None) -> None:
        self._store = store
        self._identity = identity
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[tuple[bytes, bool, str], ssl.SSLContext] = {}

    async def address(self, service: ApiService) -> resolving.Address:
        """One of those that serve it. LookupError."""
        return random.choice(await self.addresses(service))  # noqa: S311 - to spread load

    async def addresses(self, service: ApiService) -> list[resolving.Address]:
        return await resolving.addresses(self._store, service.namespace, service.service, service.port)

    async def send(
        self,
        service: ApiService,
        address: resolving.Address,
        method: str,
        target: str,
        headers: Headers,
        *,
        verified: bool = True,
        **settings: Any,
    ) -> aiohttp.ClientResponse:
        """The answer as soon as it begins. `target` is path and query as they go over the wire; ValueError when the
        authority to trust is none."""
        import aiohttp
        from multidict import CIMultiDict
        from yarl import URL

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=10)
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=65_536,
                max_field_size=65_536,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
            )
        return await self._session.request(
            method,
            URL(shown(address, target), encoded=True),
            headers=CIMultiDict(headers),
            ssl=self._tls(service, verified),
            server_hostname=service.server_name if verified and not service.insecure else None,
            allow_redirects=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            **settings,
        )

    async def fetch(
        self,
        service: ApiService,
        path: str,
        accept: str = "application/json",
        *,
        method: str = "GET",
        user: User = READER,
        within: float = 5.0,
    ) -> bytes:
        """An answer of its, whole. Raises LookupError, OSError, ValueError, TimeoutError or aiohttp.ClientError."""
        headers = [("Accept", accept), *told(user)]
        async with asyncio.timeout(within):
            response = await self.send(service, await self.address(service), method, path, headers)
            async with response:
                if response.status != 200:
                    raise LookupError(f"{path}: {response.status}")
                return await bounded(response, MAX_DOCUMENT)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _tls(self, service: ApiService, verified: bool) -> ssl.SSLContext:
        insecure = service.insecure or not verified
        key = (b"" if insecure else service.ca, insecure, service.server_name)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=key[0].decode("ascii") or None)
            except (ssl.SSLError, ValueError):
                raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from None
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self._identity is not None:
                context.load_cert_chain(self._identity.pair)
            if len(self._contexts) >= MAX_CONTEXTS:
                self._contexts.clear()
            self._contexts[key] = context
        return context


async def bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """All of a body; ValueError when it is longer."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_chunked(65_536):
        size += len(piece)
        if size > most:
            raise ValueError(f"the answer is over {most} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def told(user: User) -> Headers:
    """The headers that tell another server who asks. A name that could not be one value of a header is refused."""
    headers = [("X-Remote-User", user.name), *(("X-Remote-Group", group) for group in user.groups)]
    for key, values in user.extra.items():
        name = "X-Remote-Extra-" + "".join(char if char in _TOKEN else quote(char, safe="") for char in key)
        headers += [(name, value) for value in values]
    if any(not _is_clean(value) for _, value in headers):
        raise StatusError(500, "InternalError", "the name of this user cannot be told to another server", {})
    return headers


def shown(address: resolving.Address, target: str) -> str:
    host, port = address
    return f"https://[{host}]:{port}{target}" if ":" in host else f"https://{host}:{port}{target}"


def why(error: BaseException) -> str:
    """What went wrong, in Go's words where it has such."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        if isinstance(cause, ssl.SSLCertVerificationError):
            unknown = cause.verify_code in (18, 19, 20, 21)  # self-signed, or an issuer that is not to be found
            said = "certificate signed by unknown authority" if unknown else cause.verify_message
            return f"tls: failed to verify certificate: x509: {said}"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        said = "connect: connection refused" if refused else error.os_error.strerror or str(error.os_error)
        return f"dial tcp {error.host}:{error.port}: {said}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    return str(error) or type(error).__name__


def _is_clean(value: str) -> bool:
    """Whether it arrives as it is: who reads a header drops spaces around it, and `system:masters ` would be another group."""
    return value == value.strip() and not any(char < " " or char == "\x7f" for char in value)


def failures() -> tuple[type[Exception], ...]:
    """What a call may raise because of the other side."""
    import aiohttp

    return (aiohttp.ClientError, OSError, TimeoutError)


def without(headers: Iterable[tuple[str, str]], dropped: frozenset[str]) -> Headers:
    return [(name, value) for name, value in headers if name not in dropped]

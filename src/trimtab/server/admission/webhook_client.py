"""Calls to webhooks: HTTPS only, verified by the configuration's CA or the system's, bounded in time and size.

`aiohttp` is imported at the first call: most servers have no webhooks. Redirects are not followed, proxies not used.
"""

from __future__ import annotations

import asyncio
import io
import posixpath
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec

from trimtab.server.admission.webhook_match import Hook, Service
from trimtab.server.admission.webhook_review import CallFailedError
from trimtab.server.auth.wording import quoted

if TYPE_CHECKING:
    import aiohttp

MAX_RESPONSE = 8 * 1024 * 1024
MAX_CONTEXTS = 256

Resolver = Callable[[str, str, int], Awaitable[tuple[str, int]]]
"""Namespace, name and port of a Service to an address that serves it; raises LookupError when there is none."""


class WebhookClient:
    """Keeps connections to webhooks open between calls. `close` ends them."""

    def __init__(self, resolve: Resolver | None = None) -> None:
        self._resolve = resolve
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def call(self, hook: Hook, body: object) -> bytes:
        """POST `body` as JSON; the answer's bytes. Raises CallFailedError, with Go's words where it has such."""
        import aiohttp

        shown, target, server_name = await self._target(hook)
        tls = self._tls(hook)
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)  # calls to one that is slow must not keep others waiting
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=False)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, */*",
            "Accept-Encoding": "identity",
            "User-Agent": "trimtab-admission",
        }
        if server_name is not None:
            headers["Host"] = urlsplit(shown).netloc
        try:
            async with (
                asyncio.timeout(hook.timeout),
                self._session.post(
                    target,
                    data=io.BytesIO(msgspec.json.encode(body)),  # as bytes it would complain of large ones
                    headers=headers,
                    ssl=tls,
                    server_hostname=server_name,
                    allow_redirects=False,
                ) as response,
            ):
                answer = await _bounded(response)
                status = response.status
        except TimeoutError:
            raise _failed(hook, f"Post {quoted(shown)}: context deadline exceeded") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _failed(hook, f"Post {quoted(shown)}: {_why(error)}") from None
        except ValueError as error:  # after the others: some of them are ValueErrors too
            raise _failed(hook, f"Post {quoted(shown)}: {error}") from None
        if status != 200:
            raise _failed(hook, _http_problem(status, answer))
        return answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _target(self, hook: Hook) -> tuple[str, str, str | None]:
        """The URL as messages show it, the URL to connect to, and the name that its certificate must have."""
        if hook.service is not None:
            return await self._service_target(hook, hook.service)
        parts = urlsplit(hook.url)
        if parts.scheme != "https" or not parts.hostname:
            raise CallFailedError(hook, "webhook configuration must have an https URL", "could not get REST client: ")
        path = posixpath.normpath(f"/{parts.path.strip('/')}")  # as Go joins it: envtest makes URLs with // in them
        shown = urlunsplit((parts.scheme, parts.netloc, path, f"timeout={hook.timeout}s", ""))
        return shown, shown, None

    async def _service_target(self, hook: Hook, service: Service) -> tuple[str, str, str]:
        name = f"{service.name}.{service.namespace}.svc"
        path = service.path if service.path.startswith("/") else f"/{service.path}"
        rest = f"{path}?timeout={hook.timeout}s"
        shown = f"https://{name}:{service.port}{rest}"
        if self._resolve is None:
            raise _failed(hook, f"Post {quoted(shown)}: this server cannot reach Services: give the webhook a url")
        try:
            host, port = await self._resolve(service.namespace, service.name, service.port)
        except LookupError as error:
            raise _failed(hook, f"Post {quoted(shown)}: {error.args[0] if error.args else error}") from None
        address = f"[{host}]" if ":" in host else host
        return shown, f"https://{address}:{port}{rest}", name

    def _tls(self, hook: Hook) -> ssl.SSLContext:
        key = hook.ca_digest
        context = self._contexts.get(key)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=hook.ca_bundle.decode("ascii") if hook.ca_bundle else None)
            except (ssl.SSLError, ValueError):
                why = "unable to load root certificates: unable to parse bytes as PEM block"
                raise CallFailedError(hook, why, "could not get REST client: ") from None
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            # As Go verifies: a bundle may hold the server's certificate itself, and extensions may be missing.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if len(self._contexts) >= MAX_CONTEXTS:
                self._contexts.clear()
            self._contexts[key] = context
        return context


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(65_536):
        size += len(chunk)
        if size > MAX_RESPONSE:
            raise ValueError(f"the answer is over {MAX_RESPONSE} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _failed(hook: Hook, why: str) -> CallFailedError:
    return CallFailedError(hook, why, "failed to call webhook: ")


def _why(error: Exception) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {_x509(cause)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        return f"dial tcp {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _x509(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (18, 19, 20, 21):  # self-signed, or an issuer that is not to be found
        return "certificate signed by unknown authority"
    return error.verify_message


def _http_problem(status: int, body: bytes) -> str:
    if status == 404:
        return "the server could not find the requested resource"
    text = body[:2048].decode("utf-8", "replace").strip()
    if status >= 500:
        return f"an error on the server ({quoted(text)}) has prevented the request from succeeding"
    return text or f"the server answered {status}"

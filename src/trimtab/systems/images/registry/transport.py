"""Requests to one registry with the login that it wants: the ground under the client.

An answer is given whatever its status; a 401 is answered by `auth` and comes back only when there is nothing better to
send. All requests of all clients of a host count against one budget.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from multidict import CIMultiDictProxy

from trimtab.model.clock import Clock
from trimtab.model.redacted import Redacted
from trimtab.runtime.outbound import Outbound, Response
from trimtab.systems.images.registry.auth import Access, Authorizer, Logins
from trimtab.systems.images.registry.errors import BadAnswer, Forbidden, error_code, refusal, told
from trimtab.systems.images.registry.references import Endpoint

LARGEST_PAGE = 16 * 1024 * 1024
MOST_TRIES = 4
"""Of one request, for the sake of logins: without, with a token, with a wider one, with a renewed one."""
AS_IT_IS: Mapping[str, str] = {"Accept-Encoding": "identity"}
"""A blob is what its digest says, also when a server adds Content-Encoding to it."""


class Unsupported(BadAnswer):
    """The registry does not have this part of the protocol."""


class Transport:
    """`path` is that of the API, and safe already; `what` is what an error calls it."""

    def __init__(self, registry: Endpoint, outbound: Outbound, logins: Logins, clock: Clock) -> None:
        self.registry = registry
        self._outbound = outbound
        self._auth = Authorizer(registry, logins, outbound, clock)

    async def fetch(
        self,
        method: str,
        path: str,
        access: Access,
        what: str,
        headers: Mapping[str, str] = {},
        largest: int = LARGEST_PAGE,
    ) -> Response:
        """An answer, whatever it says, read to its end."""

        async def send(authorization: Redacted | None) -> Response:
            return await self._outbound.fetch(
                method,
                self.registry.url + path,
                scope=self.registry.host,
                headers=_with(headers, authorization),
                max_bytes=largest,
            )

        with told(what):
            return await self._authorized(send, access, what)

    @asynccontextmanager
    async def open(
        self, method: str, path: str, access: Access, what: str, headers: Mapping[str, str], seconds: float
    ) -> AsyncIterator[Response]:
        """An answer whose body is still to be read."""
        async with AsyncExitStack() as stack:

            async def send(authorization: Redacted | None) -> Response:
                request = self._outbound.request(
                    method,
                    self.registry.url + path,
                    scope=self.registry.host,
                    headers=_with(headers, authorization),
                    timeout=seconds,
                )
                response = await stack.enter_async_context(request)
                if response.status == 401:
                    await stack.aclose()  # its place in the budget may be what the token waits for
                return response

            yield await self._authorized(send, access, what)

    async def _authorized(self, send: _Send, access: Access, what: str) -> Response:
        for _ in range(MOST_TRIES):
            authorization = await self._auth.authorization(access, what)
            response = await send(authorization)
            if response.status != 401:
                if authorization is not None and response.status < 500 and response.status != 429:
                    self._auth.accepted(access, authorization)
                return response
            await self._auth.challenged(all_of(response, "WWW-Authenticate"), access, what, authorization)
        raise Forbidden(what, f"{self.registry.name} keeps asking for another login")


_Send = Callable[[Redacted | None], Awaitable[Response]]


async def checked(response: Response, what: str) -> bytes:
    """The body of a success."""
    body = await response.read()
    if response.ok:
        return body
    if response.status in (405, 501) or error_code(body) == "UNSUPPORTED":
        raise Unsupported(what, f"the registry does not know this request ({response.status})")
    raise refusal(what, response, body)


def all_of(response: Response, name: str) -> list[str]:
    headers = response.headers
    if isinstance(headers, CIMultiDictProxy):
        return list(headers.getall(name, ()))
    found = headers.get(name)
    return [] if found is None else [found]


def media_type_of(response: Response) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()[:255]


def length_of(response: Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def etag_of(response: Response) -> str:
    etag = response.headers.get("ETag", "")
    return etag if len(etag) <= 512 and etag.isascii() and etag.isprintable() else ""


def _with(headers: Mapping[str, str], authorization: Redacted | None) -> Mapping[str, str | Redacted]:
    return {**headers, "Authorization": authorization} if authorization is not None else headers

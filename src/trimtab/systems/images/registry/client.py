"""A client of one registry: the OCI distribution protocol, as far as reading goes.

Guarantees: every manifest, config and blob is what its digest says, or DigestMismatch; nothing is taken in beyond a bound;
credentials stay with the registry and its token server, whatever is redirected where; what fails is a RegistryError whose
text may be shown.

Assumption: `blob` gives its pieces before it has verified them all: whoever uses them must wait for its end before the
result counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import msgspec
from multidict import CIMultiDictProxy

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.redacted import Redacted
from trimtab.runtime.outbound import Outbound, Response
from trimtab.runtime.outbound import errors as outbound
from trimtab.systems.images.registry import paging
from trimtab.systems.images.registry.auth import CATALOG, PING, Access, Authorizer, Logins, pull
from trimtab.systems.images.registry.errors import (
    BadAnswer,
    DigestMismatch,
    Forbidden,
    NoCatalog,
    NotFound,
    TooLarge,
    Unavailable,
    error_code,
    refusal,
    told,
)
from trimtab.systems.images.registry.manifests import ACCEPT
from trimtab.systems.images.registry.references import Endpoint, digest_of, is_digest, is_repository, is_tag, matches

LARGEST_MANIFEST = 4 * 1024 * 1024
LARGEST_CONFIG = 8 * 1024 * 1024
LARGEST_PAGE = 16 * 1024 * 1024
LARGEST_BLOB = 16 * 1024 * 1024 * 1024
SLOWEST = 64 * 1024
"""Bytes a second that a blob must come with, over all."""
MOST_RESUMES = 3
MOST_TRIES = 4
"""Of one request, for the sake of logins: without, with a token, with a wider one, with a renewed one."""


class Head(msgspec.Struct, frozen=True):
    """What a tag points to now."""

    digest: str
    media_type: str
    size: int
    etag: str = ""


class NotModified(msgspec.Struct, frozen=True):
    """It is what it was when the ETag was given."""

    etag: str


class Manifest(msgspec.Struct, frozen=True):
    """A manifest as the registry keeps it, byte for byte."""

    content: bytes
    media_type: str
    digest: str


class RegistryClient:
    """Made by `Connections.client`. Many requests may run at once."""

    def __init__(self, registry: Endpoint, outbound: Outbound, logins: Logins, *, clock: Clock | None = None) -> None:
        self.registry = registry
        self._outbound = outbound
        self._auth = Authorizer(registry, logins, outbound, clock or SystemClock())

    async def ping(self) -> None:
        """That it is a registry, and the login is good."""
        what = f"registry {self.registry.name}"
        response = await self._fetch("GET", "/v2/", PING, what)
        if response.status == 404:
            raise BadAnswer(what, "it answers 404 to /v2/, so it is no registry of the OCI distribution protocol")
        await self._checked(response, what)

    async def repositories(self) -> AsyncGenerator[str, None]:
        """All that the catalogue names, each once. NoCatalog when there is none, or not for us."""
        what = f"catalogue of {self.registry.name}"
        first = True
        try:
            async for name in self._pages("/v2/_catalog", "repositories", CATALOG, what):
                first = False
                yield name
        except (Forbidden, NotFound, _Unsupported) as error:
            if not first:
                raise
            raise NoCatalog(what, f"{error.why}; name the repositories in spec.repositories") from None

    async def tags(self, repository: str) -> AsyncGenerator[str, None]:
        """All tags of a repository, each once. NotFound when there is no such repository."""
        what = f"tags of {self._named(repository)}"
        async for tag in self._pages(f"/v2/{repository}/tags/list", "tags", pull(repository), what):
            yield tag

    async def head(self, repository: str, reference: str, etag: str = "") -> Head | NotModified:
        """What a tag or digest refers to, without its content where the registry allows that."""
        what = f"{self._named(repository)}{_colon(reference)}"
        headers = {"Accept": ACCEPT, "If-None-Match": etag} if etag else {"Accept": ACCEPT}
        path = f"/v2/{repository}/manifests/{_referred(reference, what)}"
        response = await self._fetch("HEAD", path, pull(repository), what, headers)
        if response.status == 304 and etag:
            return NotModified(etag)
        digest = response.headers.get("Docker-Content-Digest", "")
        if response.status == 405 or (response.ok and not is_digest(digest)):
            manifest = await self.manifest(repository, reference)
            return Head(manifest.digest, manifest.media_type, len(manifest.content))
        await self._checked(response, what)
        return Head(digest, _media_type(response), _length(response) or 0, _etag(response))

    async def manifest(self, repository: str, reference: str) -> Manifest:
        """A manifest by digest or tag, verified."""
        what = f"manifest of {self._named(repository)}{_colon(reference)}"
        path = f"/v2/{repository}/manifests/{_referred(reference, what)}"
        response = await self._fetch("GET", path, pull(repository), what, {"Accept": ACCEPT}, LARGEST_MANIFEST)
        content = await self._checked(response, what)
        said = response.headers.get("Docker-Content-Digest", "")
        digest = reference if is_digest(reference) else said if is_digest(said) else digest_of(content)
        if not matches(digest, content):
            raise DigestMismatch(what, f"its content is not what {digest} stands for")
        return Manifest(content, _media_type(response), digest)

    async def config(self, repository: str, digest: str, size: int | None = None) -> bytes:
        """The config of an image, verified."""
        what = f"config {digest} of {self._named(repository)}"
        if size is not None and size > LARGEST_CONFIG:
            raise TooLarge(what, f"it says to have {size} bytes, over {LARGEST_CONFIG}")
        path = f"/v2/{repository}/blobs/{_referred(digest, what)}"
        response = await self._fetch("GET", path, pull(repository), what, _AS_IT_IS, LARGEST_CONFIG)
        content = await self._checked(response, what)
        if not matches(digest, content):
            raise DigestMismatch(what, f"its {len(content)} bytes are not what the digest stands for")
        return content

    async def blob(
        self, repository: str, digest: str, size: int, *, largest: int = LARGEST_BLOB
    ) -> AsyncGenerator[bytes, None]:
        """A blob in pieces, verified at its end; where the connection breaks, it goes on from there."""
        what = f"blob {digest} of {self._named(repository)}"
        _referred(digest, what)
        if not 0 <= size <= largest:
            raise TooLarge(what, f"it says to have {size} bytes, over {largest}")
        hashed, taken, resumes = hashlib.new(digest.partition(":")[0]), 0, 0
        while True:
            broken: Unavailable | None = None
            try:
                async with aclosing(self._pieces(repository, digest, size, taken, what)) as pieces:
                    async for piece in pieces:
                        hashed.update(piece)
                        taken += len(piece)
                        yield piece
            except _BrokenOff as error:
                broken = error
            if taken == size and broken is None:
                break
            if resumes == MOST_RESUMES:
                raise broken or Unavailable(what, f"it broke off after {taken} of {size} bytes")
            resumes += 1
        if f"{digest.partition(':')[0]}:{hashed.hexdigest()}" != digest:
            raise DigestMismatch(what, f"its {size} bytes are not what the digest stands for")

    async def _pieces(
        self, repository: str, digest: str, size: int, start: int, what: str
    ) -> AsyncGenerator[bytes, None]:
        headers = {**_AS_IT_IS, "Range": f"bytes={start}-"} if start else _AS_IT_IS
        path = f"/v2/{repository}/blobs/{digest}"
        with told(what):
            async with self._open("GET", path, pull(repository), what, headers, 60 + size / SLOWEST) as response:
                skip, left = _expected(response, start, size, what)
                if skip is None:
                    raise refusal(what, response, await response.read(LARGEST_PAGE))
                try:
                    async for piece in response.stream(max_bytes=left + skip):
                        kept = piece[skip:] if skip else piece
                        skip = max(0, skip - len(piece))
                        if kept:
                            yield kept
                except (outbound.Unreachable, outbound.TimedOut) as error:
                    if isinstance(error, outbound.TimedOut) and error.final:
                        raise
                    raise _BrokenOff(
                        what, f"it broke off, and again when asked for the rest of its {size} bytes"
                    ) from None

    async def _pages(self, path: str, member: str, access: Access, what: str) -> AsyncGenerator[str, None]:
        """The items of all pages."""
        seen: set[str] = set()
        for size in paging.SIZES:
            query = paging.first_query(size)
            asked = {query}
            for number in range(paging.MOST_PAGES):
                response = await self._fetch("GET", path + (f"?{query}" if query else ""), access, what)
                if response.status == 400 and number == 0 and size is not None:
                    break  # perhaps too many were asked for
                items = _items(await self._checked(response, what), member, what)
                links = _all(response, "Link")
                try:
                    following = paging.next_query(links, items, size)
                except ValueError as error:
                    raise BadAnswer(what, str(error)) from None
                new = [item for item in dict.fromkeys(items) if item not in seen]
                seen.update(new)
                for item in new:
                    yield item
                if following is None or (not links and not new):
                    return
                if following in asked:
                    raise BadAnswer(what, "its pages go round in a circle")
                asked.add(following)
                query = following
            else:
                raise BadAnswer(what, f"it has more than {paging.MOST_PAGES} pages")

    async def _fetch(
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
    async def _open(
        self, method: str, path: str, access: Access, what: str, headers: Mapping[str, str], seconds: float
    ) -> AsyncIterator[Response]:
        """An answer whose body is still to be read."""
        async with AsyncExitStack() as stack:

            async def send(authorization: Redacted | None) -> Response:
                await stack.aclose()
                request = self._outbound.request(
                    method,
                    self.registry.url + path,
                    scope=self.registry.host,
                    headers=_with(headers, authorization),
                    timeout=seconds,
                )
                return await stack.enter_async_context(request)

            yield await self._authorized(send, access, what)

    async def _authorized(self, send: _Send, access: Access, what: str) -> Response:
        for _ in range(MOST_TRIES):
            authorization = await self._auth.authorization(access, what)
            response = await send(authorization)
            if response.status != 401:
                if authorization is not None and response.status < 500 and response.status != 429:
                    self._auth.accepted(access, authorization)
                return response
            await self._auth.challenged(_all(response, "WWW-Authenticate"), access, what, authorization)
        raise Forbidden(what, f"{self.registry.name} keeps asking for another login")

    async def _checked(self, response: Response, what: str) -> bytes:
        """The body of a success."""
        body = await response.read()
        if response.ok:
            return body
        if response.status in (405, 501) or error_code(body) == "UNSUPPORTED":
            raise _Unsupported(what, f"the registry does not know this request ({response.status})")
        raise refusal(what, response, body)

    def _named(self, repository: str) -> str:
        if not is_repository(repository):
            raise BadAnswer(f"{repository[:128]!r} of {self.registry.name}", "it is no name of a repository")
        return f"{self.registry.name}/{repository}"


_Send = Callable[[Redacted | None], Awaitable[Response]]


class _BrokenOff(Unavailable):
    """The answer was good and did not come to its end."""


class _Unsupported(BadAnswer):
    """The registry does not have this part of the protocol."""


def _items(body: bytes, member: str, what: str) -> list[str]:
    """The list in a page; `null` is an empty one."""
    try:
        page = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(page.get(member, b"null"), type=list[str] | None) or []
    except (msgspec.DecodeError, RecursionError):
        raise BadAnswer(what, f"the answer is no list of {member}") from None


def _referred(reference: str, what: str) -> str:
    """A tag or digest that is safe in a path."""
    if not is_digest(reference) and not is_tag(reference):
        raise BadAnswer(what, "it is neither a tag nor a digest that can be verified")
    return reference


def _colon(reference: str) -> str:
    return f"{'@' if is_digest(reference) else ':'}{reference[:160]}"


def _expected(response: Response, start: int, size: int, what: str) -> tuple[int | None, int]:
    """How many bytes to skip and how many then follow; no skip: it is refused."""
    if response.status == 206 and start:
        place = _RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        if place is None or int(place.group(1)) != start:
            raise BadAnswer(what, "it was asked to go on from one place and went on from another")
        return 0, size - start
    if response.status != 200:
        return None, 0
    length = _length(response)
    if length is not None and length != size and "Content-Encoding" not in response.headers:
        raise (TooLarge if length > size else BadAnswer)(what, f"it has {length} bytes where {size} were said")
    return start, size - start


def _with(headers: Mapping[str, str], authorization: Redacted | None) -> Mapping[str, str | Redacted]:
    return {**headers, "Authorization": authorization} if authorization is not None else headers


def _all(response: Response, name: str) -> list[str]:
    headers = response.headers
    if isinstance(headers, CIMultiDictProxy):
        return list(headers.getall(name, ()))
    found = headers.get(name)
    return [] if found is None else [found]


def _media_type(response: Response) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()[:255]


def _length(response: Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _etag(response: Response) -> str:
    etag = response.headers.get("ETag", "")
    return etag if len(etag) <= 512 and etag.isascii() and etag.isprintable() else ""


_AS_IT_IS: Mapping[str, str] = {"Accept-Encoding": "identity"}
"""A blob is what its digest says, also when a server adds Content-Encoding to it."""
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:\d{1,18}|\*)")

"""A client of one registry: the OCI distribution protocol, as far as reading goes.

Guarantees: every manifest, config and blob is what its digest says, or DigestMismatch; nothing is taken in beyond a bound;
credentials stay with the registry and its token server, whatever is redirected where; what fails is a RegistryError whose
text may be shown.

Assumption: `blob` gives its pieces before it has verified them all: whoever uses them must wait for its end before the
result counts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.outbound import Outbound
from trimtab.systems.images.registry import paging
from trimtab.systems.images.registry.auth import CATALOG, PING, Access, Logins, pull
from trimtab.systems.images.registry.blobs import LARGEST_BLOB, read_blob
from trimtab.systems.images.registry.errors import BadAnswer, DigestMismatch, Forbidden, NoCatalog, NotFound, TooLarge
from trimtab.systems.images.registry.manifests import ACCEPT
from trimtab.systems.images.registry.references import Endpoint, digest_of, is_digest, is_repository, is_tag, matches
from trimtab.systems.images.registry.transport import (
    AS_IT_IS,
    Transport,
    Unsupported,
    all_of,
    checked,
    etag_of,
    length_of,
    media_type_of,
)

LARGEST_MANIFEST = 4 * 1024 * 1024
LARGEST_CONFIG = 8 * 1024 * 1024


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
        self._transport = Transport(registry, outbound, logins, clock or SystemClock())

    async def ping(self) -> None:
        """That it is a registry, and the login is good. What may be read with it shows only when it is read."""
        what = f"registry {self.registry.name}"
        try:
            response = await self._transport.fetch("GET", "/v2/", PING, what)
        except Forbidden:
            return  # it wants a token for something, and its token server did not refuse us
        if response.status == 404:
            raise BadAnswer(what, "it answers 404 to /v2/, so it is no registry of the OCI distribution protocol")
        await checked(response, what)

    async def repositories(self) -> AsyncGenerator[str, None]:
        """All that the catalogue names, each once. NoCatalog when there is none, or not for us."""
        what = f"catalogue of {self.registry.name}"
        first = True
        try:
            async for name in self._pages("/v2/_catalog", "repositories", CATALOG, what):
                first = False
                yield name
        except (Forbidden, NotFound, Unsupported) as error:
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
        response = await self._transport.fetch("HEAD", path, pull(repository), what, headers)
        if response.status == 304 and etag:
            return NotModified(etag)
        digest = response.headers.get("Docker-Content-Digest", "")
        if response.status == 405 or (response.ok and not is_digest(digest)):
            manifest = await self.manifest(repository, reference)
            return Head(manifest.digest, manifest.media_type, len(manifest.content))
        await checked(response, what)
        return Head(digest, media_type_of(response), length_of(response) or 0, etag_of(response))

    async def manifest(self, repository: str, reference: str) -> Manifest:
        """A manifest by digest or tag, verified."""
        what = f"manifest of {self._named(repository)}{_colon(reference)}"
        path = f"/v2/{repository}/manifests/{_referred(reference, what)}"
        response = await self._transport.fetch(
            "GET", path, pull(repository), what, {"Accept": ACCEPT}, LARGEST_MANIFEST
        )
        content = await checked(response, what)
        said = response.headers.get("Docker-Content-Digest", "")
        digest = reference if is_digest(reference) else said if is_digest(said) else digest_of(content)
        if not matches(digest, content):
            raise DigestMismatch(what, f"its content is not what {digest} stands for")
        return Manifest(content, media_type_of(response), digest)

    async def config(self, repository: str, digest: str, size: int | None = None) -> bytes:
        """The config of an image, verified."""
        what = f"config {digest} of {self._named(repository)}"
        if size is not None and size > LARGEST_CONFIG:
            raise TooLarge(what, f"it says to have {size} bytes, over {LARGEST_CONFIG}")
        path = f"/v2/{repository}/blobs/{_referred(digest, what)}"
        response = await self._transport.fetch("GET", path, pull(repository), what, AS_IT_IS, LARGEST_CONFIG)
        content = await checked(response, what)
        if not matches(digest, content):
            raise DigestMismatch(what, f"its {len(content)} bytes are not what the digest stands for")
        return content

    async def blob(
        self, repository: str, digest: str, size: int, *, largest: int = LARGEST_BLOB
    ) -> AsyncGenerator[bytes, None]:
        """A blob in pieces, verified at its end; where the connection breaks, it goes on from there.

        It holds a place in the budget until it is closed: use `contextlib.aclosing` where it may be left early.
        """
        what = f"blob {digest[:160]} of {self._named(repository)}"
        _referred(digest, what)
        async with aclosing(read_blob(self._transport, repository, digest, size, what, largest)) as pieces:
            async for piece in pieces:
                yield piece

    async def _pages(self, path: str, member: str, access: Access, what: str) -> AsyncGenerator[str, None]:
        """The items of all pages."""
        seen: set[str] = set()
        for size in paging.SIZES:
            query = paging.first_query(size)
            asked = {query}
            for number in range(paging.MOST_PAGES):
                response = await self._transport.fetch("GET", path + (f"?{query}" if query else ""), access, what)
                if response.status == 400 and number == 0 and size is not None:
                    break  # perhaps too many were asked for
                items = _items(await checked(response, what), member, what)
                links = all_of(response, "Link")
                try:
                    following = paging.next_query(links, items, size)
                except ValueError as error:
                    raise BadAnswer(what, str(error)) from None
                new = [item for item in dict.fromkeys(items) if item not in seen]
                seen.update(new)
                if len(seen) > paging.MOST_ITEMS:
                    raise TooLarge(what, f"it has more than {paging.MOST_ITEMS} entries")
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

    def _named(self, repository: str) -> str:
        if not is_repository(repository):
            raise BadAnswer(f"{repository[:128]!r} of {self.registry.name}", "it is no name of a repository")
        return f"{self.registry.name}/{repository}"


def _items(body: bytes, member: str, what: str) -> list[str]:
    """The list in a page; `null` is an empty one, and none at all is the answer of somebody else."""
    try:
        page = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(page[member], type=list[str] | None) or []
    except (msgspec.DecodeError, KeyError, RecursionError):
        raise BadAnswer(what, f"the answer is no list of {member}") from None


def _referred(reference: str, what: str) -> str:
    """A tag or digest that is safe in a path."""
    if not is_digest(reference) and not is_tag(reference):
        raise BadAnswer(what, "it is neither a tag nor a digest that can be verified")
    return reference


def _colon(reference: str) -> str:
    return f"{'@' if is_digest(reference) else ':'}{reference[:160]}"

"""Blobs: immutable bytes named by their digest, for what is too large for a resource (SBOMs, ledgers, run records).

Flow: `put` the bytes, `pin` the digest for an owner, write the digest into the owner's resource. When the owner lets go,
`unpin`. `collect` removes what nobody pins. There is no delete: bytes may belong to several owners.

Guarantees: a blob is there whole or not at all, also after a crash in the midst of `put`. Whoever reads to the end has the
bytes that the digest names. A blob that was put or pinned within the grace time is never collected, so the step from `put`
to `pin` is safe. Every call may be repeated: the second one changes nothing. A `put` mends a damaged blob of its digest.

Assumptions: the grace time is longer than the time from `put` to `pin`.

Caveats: `open` yields bytes before the end has been verified; act on them only when the iteration has ended without an
error, or use `read`. A media type is a note: the last one given for the same bytes stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from typing import NewType, Protocol

import msgspec

Digest = NewType("Digest", str)
"""`sha256:` and 64 hexadecimal digits, lower case."""

Data = bytes | AsyncIterator[bytes]

CHUNK = 1 << 20
"""Bytes move in pieces of at most this size: it bounds the memory of any transfer."""

MAX_BYTES = 1 << 30
"""A larger blob is refused unless whoever made the `Blobs` said otherwise."""


class BlobInfo(msgspec.Struct, frozen=True):
    """What is known of a blob without reading it."""

    digest: Digest
    size: int
    media_type: str = ""


class Collected(msgspec.Struct, frozen=True):
    """What a collection removed."""

    count: int
    bytes: int


class Blobs(Protocol):
    """A place for blobs. The module's docstring states the contract."""

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        """Stores the bytes and renews their age. BlobTooLarge; BlobDamaged when they are not what was `expected`."""
        ...

    def open(self, digest: Digest) -> AsyncIterator[bytes]:
        """The bytes in pieces. BlobMissing; BlobDamaged at the end when they are not what the digest names."""
        ...

    async def stat(self, digest: Digest) -> BlobInfo:
        """Size and media type. BlobMissing."""
        ...

    async def pin(self, digest: Digest, owner: str) -> None:
        """Keeps the blob until the owner unpins it; renews its age. BlobMissing."""
        ...

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        """The owner lets go of one blob, or of all that it pinned."""
        ...

    async def collect(self, *, grace: float) -> Collected:
        """Removes blobs that nobody pins and nobody has put or pinned for `grace` seconds."""
        ...

    async def ready(self) -> None:
        """Makes what must be there (folders, tables). BlobsUnavailable when the place cannot be used."""
        ...

    async def close(self) -> None: ...


class BlobError(Exception):
    """Something is wrong with a blob, or with the place that it is in."""


class BlobMissing(BlobError):  # noqa: N818 - it reads as what happened
    """No blob has this digest."""

    def __init__(self, digest: Digest) -> None:
        super().__init__(f"there is no blob {digest}: it was never put, or nobody pinned it and it was collected")
        self.digest = digest


class BlobDamaged(BlobError):  # noqa: N818
    """The bytes are not what the digest names."""

    def __init__(self, digest: Digest, why: str) -> None:
        super().__init__(f"the blob {digest} is damaged: {why}; put the same bytes again to mend it")
        self.digest = digest


class BlobTooLarge(BlobError):  # noqa: N818
    """More bytes than the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the blob has more than {limit} bytes, which is the limit")
        self.limit = limit


class BlobsUnavailable(BlobError):  # noqa: N818
    """The place cannot be reached or used now; the message says why, without credentials."""


async def read(blobs: Blobs, digest: Digest, *, max_bytes: int) -> bytes:
    """The whole blob, verified, in memory. BlobTooLarge when it has more than `max_bytes`."""
    whole = bytearray()
    async for chunk in blobs.open(digest):
        whole += chunk
        if len(whole) > max_bytes:
            raise BlobTooLarge(max_bytes)
    return bytes(whole)


def digest_of(data: bytes) -> Digest:
    """The name of these bytes."""
    return Digest(f"sha256:{hashlib.sha256(data).hexdigest()}")


def parse_digest(text: str) -> Digest:
    """ValueError when it is no digest; everything that comes from outside goes through here."""
    if not _DIGEST.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no digest: it must be sha256: and 64 hexadecimal digits in lower case")
    return Digest(text)


def check_owner(owner: str) -> str:
    """An owner is a path such as `images/SBOM/<namespace>/<name>/<uid>`. ValueError."""
    if not _OWNER.fullmatch(owner):
        raise ValueError(f"{owner[:80]!r} is no owner of blobs: 1 to 512 printable ASCII characters without spaces")
    return owner


def check_media_type(media_type: str) -> str:
    """Nothing, or printable ASCII that fits a header. ValueError."""
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise ValueError(f"{media_type[:80]!r} is no media type: at most 255 printable ASCII characters")
    return media_type


async def verified(digest: Digest, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same chunks; BlobDamaged at the end when they are not what the digest names."""
    found = hashlib.sha256()
    async for chunk in chunks:
        found.update(chunk)
        yield chunk
    if f"sha256:{found.hexdigest()}" != digest:
        raise BlobDamaged(digest, "its bytes have another digest")


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OWNER = re.compile(r"[!-~]{1,512}")
_MEDIA_TYPE = re.compile(r"[ -~]{0,255}")

"""A blob in pieces, of any size: verified at its end, and gone on with where the connection broke.

What a descriptor says of its size bounds everything: how much is taken, and how long it may take.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from trimtab.runtime.outbound import Response
from trimtab.runtime.outbound import errors as outbound
from trimtab.systems.images.registry.auth import pull
from trimtab.systems.images.registry.errors import BadAnswer, DigestMismatch, TooLarge, Unavailable, refusal, told
from trimtab.systems.images.registry.transport import AS_IT_IS, LARGEST_PAGE, Transport, length_of

LARGEST_BLOB = 16 * 1024 * 1024 * 1024
SLOWEST = 64 * 1024
"""Bytes a second that a blob must come with, over all."""
MOST_RESUMES = 3


async def read_blob(
    transport: Transport, repository: str, digest: str, size: int, what: str, largest: int
) -> AsyncGenerator[bytes, None]:
    """A blob in pieces, verified at its end; where the connection breaks, it goes on from there."""
    if not 0 <= size <= largest:
        raise TooLarge(what, f"it says to have {size} bytes, over {largest}")
    hashed, taken, resumes = hashlib.new(digest.partition(":")[0]), 0, 0
    while True:
        broken: Unavailable | None = None
        try:
            async with aclosing(_pieces(transport, repository, digest, size, taken, what)) as pieces:
                async for piece in pieces:
                    hashed.update(piece)
                    taken += len(piece)
                    yield piece
        except _BrokenOff as error:
            broken = error
        if taken == size:
            break
        if resumes == MOST_RESUMES:
            raise broken or Unavailable(what, f"it broke off after {taken} of {size} bytes")
        resumes += 1
    if f"{digest.partition(':')[0]}:{hashed.hexdigest()}" != digest:
        raise DigestMismatch(what, f"its {size} bytes are not what the digest stands for")


async def _pieces(
    transport: Transport, repository: str, digest: str, size: int, start: int, what: str
) -> AsyncGenerator[bytes, None]:
    headers = {**AS_IT_IS, "Range": f"bytes={start}-"} if start else AS_IT_IS
    path = f"/v2/{repository}/blobs/{digest}"
    with told(what):
        async with transport.open("GET", path, pull(repository), what, headers, 60 + size / SLOWEST) as response:
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
                raise _BrokenOff(what, f"it broke off, and again when asked for the rest of its {size} bytes") from None


class _BrokenOff(Unavailable):
    """The answer was good and did not come to its end."""


def _expected(response: Response, start: int, size: int, what: str) -> tuple[int | None, int]:
    """How many bytes to skip and how many then follow; no skip: it is refused."""
    if response.status == 206 and start:
        place = _RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        if place is None or int(place.group(1)) != start:
            raise BadAnswer(what, "it was asked to go on from one place and went on from another")
        return 0, size - start
    if response.status != 200:
        return None, 0
    length = length_of(response)
    if length is not None and length != size and "Content-Encoding" not in response.headers:
        raise (TooLarge if length > size else BadAnswer)(what, f"it has {length} bytes where {size} were said")
    return start, size - start


_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:\d{1,18}|\*)")

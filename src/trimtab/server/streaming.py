"""Bodies that are larger than memory: handed over piece by piece, while they come in.

Which requests have one is told by method and path alone, as soon as their head is read: a PUT of an artifact. All others
are read whole, and are small; `gathered` reads the larger of them, once it is known who sends them.

Guarantees: at most `HIGH_WATER` bytes and one read of the socket wait here; a reader that is slow makes the sender wait. A
body that the peer cut off, or does not go on with, raises in the reader: it is never taken for a whole one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from trimtab.model.errors import StatusError, bad_request, too_large

HIGH_WATER = 1 << 20
PATIENCE = 60.0  # seconds without a byte
LONGEST = 3600.0  # seconds for all of it
GATHERING = 30.0  # seconds for one that is read whole


class Cut(ConnectionError):  # noqa: N818 - it reads as what happened
    """The peer went away in the midst of a body."""


class BodyStream:
    """One body. The wire calls `feed`, `end` and `fail`; whoever answers iterates, once."""

    def __init__(
        self,
        *,
        length: int | None,
        begin: Callable[[], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
        patience: float = PATIENCE,
    ) -> None:
        """`length` is what the head says, None when it says nothing. `begin` is called before the first byte is waited for:
        a peer may want to hear that somebody wants its bytes."""
        self.length = length
        self.whole = False  # the last byte has come in
        self.given_up = False
        self._begin = begin
        self._pause = pause
        self._resume = resume
        self._patience = patience
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._paused = False
        self._failure: Exception | None = None
        self._news: asyncio.Future[None] | None = None

    def feed(self, piece: bytes) -> None:
        if self.given_up:
            return
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def end(self) -> None:
        self.whole = True
        self._wake()

    def fail(self, error: Exception) -> None:
        if not self.whole:
            self._failure = self._failure or error
        self._wake()

    def give_up(self) -> None:
        """Nobody will read the rest: it is dropped as it comes."""
        self.given_up = True
        self._pieces.clear()
        self._waiting = 0
        self._go_on()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._begin()
        until = asyncio.get_running_loop().time() + LONGEST
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._waiting -= len(piece)
                yield piece
            self._go_on()
            if self._pieces:
                continue
            if self.whole:
                return
            if self._failure is not None:
                raise self._failure
            loop = asyncio.get_running_loop()
            self._news = loop.create_future()
            try:
                async with asyncio.timeout_at(min(until, loop.time() + self._patience)):
                    await self._news
            except TimeoutError:
                slow = loop.time() >= until
                why = f"the body took {LONGEST:g} s" if slow else f"the body stopped coming for {self._patience:g} s"
                raise StatusError(408, "Timeout", why, {}) from None
            finally:
                self._news = None

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._resume()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class GivenBody(BodyStream):
    """One that is in this process already, for a caller that comes without a wire."""

    def __init__(self, pieces: AsyncIterator[bytes], length: int | None) -> None:
        super().__init__(length=length, begin=_nothing, pause=_nothing, resume=_nothing)
        self._given = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._given:
            yield piece
        self.whole = True


async def gathered(stream: BodyStream, limit: int) -> bytes:
    """A body that is read whole after all. StatusError 413 when it is over the limit, 408 when it takes too long."""
    pieces, size = [], 0
    try:
        async with asyncio.timeout(GATHERING):
            async for piece in stream:
                size += len(piece)
                if size > limit:
                    raise too_large(f"Request entity too large: limit is {limit}")
                pieces.append(piece)
    except TimeoutError:
        raise StatusError(408, "Timeout", f"the body took {GATHERING:g} s", {}) from None
    except Cut:
        raise bad_request("the body ended too early") from None
    return b"".join(pieces)


def _nothing() -> None:
    pass


def is_streamed(method: bytes, url: bytes) -> bool:
    """Whether a request's body is handed over as it comes. Asked of every request with a body, so it must be quick.

    A namespace, a kind or an object may be called `artifacts`, too."""
    if method != b"PUT" or b"/artifacts/" not in url or not url.startswith(b"/apis/"):
        return False
    parts = url.partition(b"?")[0].split(b"/", 9)  # "", apis, group, version, …
    at = 8 if parts[4:5] == [b"namespaces"] else 6
    return len(parts) > at + 1 and parts[at] == b"artifacts"

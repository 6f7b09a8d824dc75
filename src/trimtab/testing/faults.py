"""A transport on which things go wrong, by chance or by plan.

    client = ApiClient(FaultyTransport(transport, Script({3: Fault.LOST_ANSWER}), clock))

It stands before any transport, ours in process or HTTP, and shows a client what networks and servers do to it. Each call
and each watch has a number, from 1; the plan says which of them a fault strikes. All of it may happen to any client of
Kubernetes, so code that fails under it has a bug. `REPEATED` is the one exception: servers promise not to do it.
"""

from __future__ import annotations

import enum
import random
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import NoReturn, Protocol

import msgspec
import orjson

from trimtab.client.transport import Call, Reply, Silent, Transport, Unreachable
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError, expired, internal, too_many_requests

REMEMBERED = 8  # events of a watch that may come again
BREATH = 5.0
INITIAL_END = b"k8s.io/initial-events-end"


class Crashed(BaseException):
    """The process is dead. No Exception, so that nobody handles it: the dead handle nothing."""


class Fault(enum.Enum):
    """What can go wrong. `seconds` is of the Strike, and so is `after`."""

    # With a call.
    UNREACHABLE = "no connection; the server heard nothing"
    LOST_REQUEST = "no answer for `seconds`; the server heard nothing"
    LOST_ANSWER = "no answer for `seconds`, but the server did what it was asked"
    CONFLICT = "409, to a write"
    THROTTLED = "429 with Retry-After, `seconds`"
    INTERNAL = "500"
    UNAVAILABLE = "503"
    SLOW = "the answer takes `seconds`"
    CRASH = "the process dies before the call reaches the server, or when `after` events of the watch have come"
    CRASH_AFTER = "the process dies when the server has done what it was asked"
    # With a watch, when `after` events have come.
    ENDED = "it ends without a word"
    BROKEN = "the connection breaks"
    HANGING = "nothing comes any more, until the client's inactivity time-out"
    GONE = "410 as an event: the revision is too old"
    NO_BOOKMARKS = "bookmarks are kept back"
    LATE = "the next event, and so all others, comes `seconds` late"
    REPEATED = "when it resumes another watch, the last events of that come again first, `after` of them"


OF_WATCHES = frozenset(
    {Fault.ENDED, Fault.BROKEN, Fault.HANGING, Fault.GONE, Fault.NO_BOOKMARKS, Fault.LATE, Fault.REPEATED}
)
OF_BOTH = frozenset({Fault.UNREACHABLE, Fault.THROTTLED, Fault.INTERNAL, Fault.UNAVAILABLE, Fault.SLOW, Fault.CRASH})
OF_WRITES = frozenset({Fault.CONFLICT, Fault.LOST_ANSWER, Fault.CRASH_AFTER})


class Strike(msgspec.Struct, frozen=True):
    """One fault, and when and how long it strikes."""

    fault: Fault
    after: int = 0
    seconds: float = 1.0


def fits(fault: Fault, call: Call, *, watch: bool) -> bool:
    """Whether the fault makes sense for it."""
    if watch:
        return fault in OF_WATCHES or fault in OF_BOTH
    if fault is Fault.CONFLICT:
        return call.method in ("PUT", "PATCH")
    return fault not in OF_WATCHES and (fault not in OF_WRITES or not call.safe)


class Plan(Protocol):
    """Says which call or watch a fault strikes."""

    def strike(self, number: int, call: Call, watch: bool) -> Strike | None:
        """What happens to call `number`."""
        ...


class Script:
    """Faults for the calls with these numbers, and no other."""

    def __init__(self, strikes: Mapping[int, Fault | Strike]) -> None:
        self._strikes = {n: s if isinstance(s, Strike) else Strike(s) for n, s in strikes.items()}

    def strike(self, number: int, call: Call, watch: bool) -> Strike | None:
        return self._strikes.get(number)


USUAL: Mapping[Fault, float] = MappingProxyType(
    {
        Fault.UNREACHABLE: 0.02,
        Fault.LOST_REQUEST: 0.01,
        Fault.LOST_ANSWER: 0.03,
        Fault.CONFLICT: 0.03,
        Fault.THROTTLED: 0.01,
        Fault.INTERNAL: 0.01,
        Fault.UNAVAILABLE: 0.01,
        Fault.SLOW: 0.05,
        Fault.ENDED: 0.15,
        Fault.BROKEN: 0.15,
        Fault.HANGING: 0.05,
        Fault.GONE: 0.1,
        Fault.NO_BOOKMARKS: 0.05,
        Fault.LATE: 0.1,
    }
)
"""How often each happens in a bad hour. A watch is long, so its chances are higher. Crashes are the simulation's."""


class Chance:
    """Faults by chance. The generator is the plan's own, so that one seed means one plan."""

    def __init__(
        self,
        chance: random.Random,
        rates: Mapping[Fault, float] = USUAL,
        *,
        longest_after: int = 6,
        longest_seconds: float = 5.0,
    ) -> None:
        self._chance = chance
        self._rates = rates
        self._after = longest_after
        self._seconds = longest_seconds

    def strike(self, number: int, call: Call, watch: bool) -> Strike | None:
        drawn = self._chance.random()
        after, seconds = self._chance.randint(0, self._after), self._chance.uniform(0, self._seconds)
        for fault, rate in self._rates.items():
            if not fits(fault, call, watch=watch):
                continue
            if drawn < rate:
                return Strike(fault, after, seconds)
            drawn -= rate
        return None


class FaultyTransport:
    """Fulfils `Transport`. `calm` ends all faults, those too that wait on a watch that is already open."""

    def __init__(
        self, inner: Transport, plan: Plan, clock: Clock, *, dies: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`dies` is told when the plan crashes the process; if it returns, the call raises `Crashed`."""
        self._inner = inner
        self._plan = plan
        self._clock = clock
        self._dies = dies
        self._calm = False
        self._seen: dict[tuple[str, str, str], _Seen] = {}
        self.crashed = False
        self.number = 0
        self.struck: list[tuple[int, Call, Strike]] = []

    def calm(self) -> None:
        self._calm = True

    async def call(self, call: Call) -> Reply:
        strike = await self._next(call, watch=False)
        if strike is None:
            return await self._inner.call(call)
        await self._before(strike)
        reply = await self._inner.call(call)
        if strike.fault is Fault.LOST_ANSWER:
            await self._clock.sleep(strike.seconds)
            raise Silent("the answer was lost (a fault of the test)")
        if strike.fault is Fault.CRASH_AFTER:
            await self._crash()
        return reply

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        strike = await self._next(call, watch=True)
        if strike is not None and strike.fault not in OF_WATCHES and strike.fault is not Fault.CRASH:
            await self._before(strike)
            strike = None
        seen, again = self._resumed(call)
        if strike is not None and strike.fault is Fault.REPEATED:
            for line in again[-max(1, strike.after) :]:
                yield line
        count, last = 0, self._clock.monotonic()
        async with aclosing(self._inner.stream(call, inactivity)) as lines:
            while True:
                if strike is not None and strike.fault in INTERRUPTING and count >= strike.after and not self._calm:
                    end = await self._interrupt(strike, inactivity)
                    if end is not None:
                        yield end
                    return
                try:
                    line = await anext(lines)
                except StopAsyncIteration:
                    return
                if self.crashed:
                    raise Crashed
                if strike is not None and not self._calm:
                    if strike.fault is Fault.NO_BOOKMARKS and _is_bookmark(line):
                        if self._clock.monotonic() - last >= inactivity:
                            raise Silent(f"the server was silent for {inactivity:g} s")
                        continue
                    if strike.fault is Fault.LATE and count == strike.after:
                        await self._clock.sleep(strike.seconds)
                count, last = count + 1, self._clock.monotonic()
                seen.note(line)
                yield line

    async def close(self) -> None:
        await self._inner.close()

    async def _next(self, call: Call, *, watch: bool) -> Strike | None:
        if self.crashed:
            raise Crashed
        self.number += 1
        if self._calm:
            return None
        strike = self._plan.strike(self.number, call, watch)
        if strike is not None:
            self.struck.append((self.number, call, strike))
        return strike

    def _resumed(self, call: Call) -> tuple[_Seen, list[bytes]]:
        """The notes about this watch, and the last events of the one that it resumes. A new list begins anew."""
        watched = (call.path, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
        since, seen = call.query.get("resourceVersion", ""), self._seen.get(watched)
        if seen is None or seen.revision != since:
            seen = self._seen[watched] = _Seen(since)
        return seen, list(seen.lines)

    async def _before(self, strike: Strike) -> None:
        """What happens before the server hears of the call."""
        match strike.fault:
            case Fault.UNREACHABLE:
                raise Unreachable("the server does not answer (a fault of the test)")
            case Fault.LOST_REQUEST:
                await self._clock.sleep(strike.seconds)
                raise Silent("the request was lost (a fault of the test)")
            case Fault.CONFLICT:
                raise StatusError(409, "Conflict", "the object has been modified (a fault of the test)")
            case Fault.THROTTLED:
                raise too_many_requests("too many requests (a fault of the test)", max(1, round(strike.seconds)))
            case Fault.INTERNAL:
                raise internal("a fault of the test")
            case Fault.UNAVAILABLE:
                raise StatusError(503, "ServiceUnavailable", "the server is going down (a fault of the test)")
            case Fault.SLOW:
                await self._clock.sleep(strike.seconds)
            case Fault.CRASH:
                await self._crash()
            case _:
                pass

    async def _interrupt(self, strike: Strike, inactivity: float) -> bytes | None:
        """How the stream goes on: with a last event, with none, or with an error."""
        match strike.fault:
            case Fault.BROKEN:
                raise Unreachable("the connection broke (a fault of the test)")
            case Fault.HANGING:
                await self._hang(inactivity)
                raise Silent(f"the server was silent for {inactivity:g} s (a fault of the test)")
            case Fault.GONE:
                gone = expired("too old resource version (a fault of the test)")
                return orjson.dumps({"type": "ERROR", "object": gone.status()})
            case Fault.CRASH:
                await self._crash()
            case _:
                pass
        return None

    async def _hang(self, seconds: float) -> None:
        """Until the time is over; less, if calm comes first, since nothing may go wrong after it."""
        end = self._clock.monotonic() + seconds
        while not self._calm and (left := end - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, BREATH))

    async def _crash(self) -> NoReturn:
        self.crashed = True
        if self._dies is not None:
            await self._dies()
        raise Crashed


INTERRUPTING = frozenset({Fault.ENDED, Fault.BROKEN, Fault.HANGING, Fault.GONE, Fault.CRASH})


class _Seen:
    """The last events of a watch, and the revision that its client has by them."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.lines: deque[bytes] = deque(maxlen=REMEMBERED)

    def note(self, line: bytes) -> None:
        document = orjson.loads(line)
        if document.get("type") == "ERROR":
            return
        self.revision = document["object"]["metadata"]["resourceVersion"]
        if document["type"] != "BOOKMARK":
            self.lines.append(line)


def _is_bookmark(line: bytes) -> bool:
    """The bookmark that ends a streamed list is part of the list, and always comes."""
    return line.startswith(b'{"type":"BOOKMARK"') and INITIAL_END not in line

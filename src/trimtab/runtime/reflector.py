"""List, then watch, for ever: one kind's whole state and every change to it, as bytes, across all that goes wrong.

Life: STREAMING (the state comes through the watch itself) → WATCHING → … A server that streams no lists is asked for
pages instead: LISTING → WATCHING. A watch that ends goes on from its last revision; when that is gone (410), all over.

Guarantees: a `Snapshot` comes first, and then every change since it, in order. A new `Snapshot` means that changes may
have been missed: what is not in it is gone; the reader compares. No change is lost; around a resume one may be told twice.

Assumptions: revisions grow (KEP-5504), bookmarks come about once a minute: a longer silence is a dead connection.

Caveats: it never gives up. A kind that is not served, or that we may not read, is asked for again at growing pauses; all
that is waited out is told to `failed`.
"""

from __future__ import annotations

import enum
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.config import ConfigError
from trimtab.client.entries import Delta, Entry, Snapshot, deltas, snapshot
from trimtab.client.protocol import AnyKind, EventType, Query
from trimtab.model import backoff
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
ALIVE = 1.0  # seconds; a watch that lasted as long was a good one, also when nothing happened


class Phase(enum.Enum):
    STREAMING = "streaming"
    LISTING = "listing"
    WATCHING = "watching"


class Outcome(enum.Enum):
    """How a phase ended."""

    SYNCED = "synced"
    ENDED = "ended"  # the server closed the watch, as it does after a while
    EXPIRED = "expired"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class State(msgspec.Struct, frozen=True):
    """Where the reflector is. `streams` is False once the server refused to stream a list."""

    phase: Phase = Phase.STREAMING
    revision: str = ""
    streams: bool = True


def after(state: State, outcome: Outcome, revision: str) -> State:
    """The next state; `revision` is the last one seen. Pure."""
    match state.phase, outcome:
        case Phase.STREAMING, Outcome.UNSUPPORTED:
            return State(Phase.LISTING, "", False)
        case ((Phase.STREAMING | Phase.LISTING), Outcome.SYNCED):
            return State(Phase.WATCHING, revision, state.streams)
        case Phase.WATCHING, Outcome.EXPIRED:
            return State(Phase.STREAMING if state.streams else Phase.LISTING, "", state.streams)
        case Phase.WATCHING, _:
            return State(Phase.WATCHING, revision, state.streams)
    return state


Told = Snapshot | Delta


class Reflector:
    """One kind within one scope. `told` is what its reader iterates."""

    def __init__(
        self,
        client: ApiClient,
        kind: AnyKind,
        query: Query,
        *,
        clock: Clock,
        chance: random.Random,
        failed: Callable[[Exception, float], None],
        streams: bool = True,
    ) -> None:
        self._client = client
        self._kind = kind
        self._query = query
        self._clock = clock
        self._chance = chance
        self._failed = failed
        self.state = State(Phase.STREAMING if streams else Phase.LISTING, "", streams)

    async def told(self) -> AsyncGenerator[Told, None]:
        """A Snapshot, then Deltas, bookmarks among them; a new Snapshot whenever the past was lost."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            outcome, heard = Outcome.ENDED, False
            problem: Exception | None = None
            try:
                if self.state.phase is Phase.LISTING:
                    found = await snapshot(self._client, self._kind, self._query)
                    self.state = after(self.state, Outcome.SYNCED, found.revision)
                    yield found
                    continue
                async with aclosing(self._streamed()) as stream:
                    async for told in stream:
                        if isinstance(told, Delta):  # a list alone proves nothing
                            failures, heard = 0, True
                        yield told
                        if isinstance(told, Snapshot):
                            began = self._clock.monotonic()  # the watch begins where the list ends
            except StatusError as error:
                outcome, problem = _judged(self.state, error), error
            except (OSError, TimeoutError, ConfigError) as error:
                outcome, problem = Outcome.FAILED, error
            lasted = self.state.phase is Phase.WATCHING and self._clock.monotonic() - began >= ALIVE
            lived = lasted and (heard or problem is None)  # a server that does not answer takes its time, too
            self.state = after(self.state, outcome, self.state.revision)
            if outcome is Outcome.UNSUPPORTED:
                continue
            pause = 0.0 if lived else backoff.pause(failures, FIRST_PAUSE, LONGEST_PAUSE, self._chance)
            if problem is not None:
                self._failed(problem, pause)
            failures = 0 if lived else failures + 1
            await self._clock.sleep(pause)

    async def _streamed(self) -> AsyncGenerator[Told, None]:
        """One watch to its end. A streamed list is gathered and told whole; the same watch then goes on."""
        gathered: dict[tuple[str, str], Entry] | None = {} if self.state.phase is Phase.STREAMING else None
        stream = deltas(
            self._client,
            self._kind,
            self._query,
            self.state.revision,
            initial=gathered is not None,
            chance=self._chance,
        )
        async with aclosing(stream):
            async for delta in stream:
                if gathered is None:
                    self.state = after(self.state, Outcome.ENDED, delta.revision)
                    yield delta
                elif delta.initial_end:
                    self.state = after(self.state, Outcome.SYNCED, delta.revision)
                    yield Snapshot(list(gathered.values()), delta.revision)
                    gathered = None
                else:
                    _gather(gathered, delta)


def _gather(entries: dict[tuple[str, str], Entry], delta: Delta) -> None:
    if delta.entry is None:
        return
    key = (delta.entry.namespace, delta.entry.name)
    if delta.type is EventType.DELETED:
        entries.pop(key, None)
    else:
        entries[key] = delta.entry


def _judged(state: State, error: StatusError) -> Outcome:
    if error.code == 410:
        return Outcome.EXPIRED
    if state.phase is Phase.STREAMING and error.code in (400, 422):
        return Outcome.UNSUPPORTED
    return Outcome.FAILED

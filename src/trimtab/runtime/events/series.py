"""Which events are worth writing: repetitions become a series, look-alikes are combined, a flood is cut off.

No I/O, no clock: what is heard goes in with its moment, and a verdict comes out. The rules and figures are those of
client-go's recorders:
- the same event again within six minutes is one more in its series;
- events that differ only in the numbers of their note are combined after ten within ten minutes;
- about one object, 25 different events at once, then one in five minutes.

What is remembered is bounded: the objects and series that were quiet longest are forgotten first.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from trimtab.client.protocol import Object
from trimtab.model.kubernetes import Event, ObjectReference
from trimtab.model.resource import Resource, definition_of

QUIET = 360.0  # seconds after which a series is over
WINDOW, SIMILAR = 600.0, 10
BURST, REFILL = 25, 300.0
MOST = 4096
COMBINED = "(combined from similar events): "
K = TypeVar("K")
V = TypeVar("V")


class Said(msgspec.Struct, frozen=True):
    """What someone wants to tell. Two that are equal are the same event."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None


class Series:
    """An event and its repetitions. `count` may be ahead of what was written."""

    def __init__(self, said: Said, at: datetime, moment: float) -> None:
        self.said = said
        self.first = self.last = at
        self.heard = moment
        self.count = 1
        self.event: Event | None = None  # as the API has it
        self.due = moment  # when the count may be written next

    def end(self) -> None:
        """The next one begins anew."""
        self.heard = float("-inf")


class Correlator:
    """Remembers what was heard lately."""

    def __init__(self, *, burst: int = BURST, refill: float = REFILL) -> None:
        self._burst, self._refill = burst, refill
        self._series: _Recent[Said, Series] = _Recent()
        self._similar: _Recent[Said, tuple[float, frozenset[str]]] = _Recent()
        self._tokens: _Recent[tuple[str, ...], tuple[float, float]] = _Recent()

    def heard(self, said: Said, at: datetime, moment: float) -> tuple[Series | None, bool]:
        """The series that this belongs to, and whether it has just begun. None: too much was said of the object."""
        key, said = self._combined(said, moment)
        series = self._series.get(key)
        if series is not None and moment - series.heard <= QUIET:
            series.count += 1
            series.last, series.heard = at, moment
            self._series.put(key, series)
            return series, False
        if not self._may_speak(said.regarding, moment):
            return None, False
        series = Series(said, at, moment)
        self._series.put(key, series)
        return series, True

    def _combined(self, said: Said, moment: float) -> tuple[Said, Said]:
        """The key of the series, and what its event says."""
        if not _NUMBER.search(said.note):
            return said, said
        key = msgspec.structs.replace(said, note=_NUMBER.sub("#", said.note))
        last, notes = self._similar.get(key) or (moment, frozenset())
        if moment - last > WINDOW:
            notes = frozenset()
        if len(notes) <= SIMILAR:
            notes |= {said.note}
        self._similar.put(key, (moment, notes))
        if len(notes) <= SIMILAR:
            return said, said
        return key, msgspec.structs.replace(said, note=COMBINED + said.note)

    def _may_speak(self, regarding: ObjectReference, moment: float) -> bool:
        """A token bucket for each object."""
        about = (str(regarding.uid), str(regarding.kind), str(regarding.namespace), str(regarding.name))
        tokens, since = self._tokens.get(about) or (float(self._burst), moment)
        tokens = min(self._burst, tokens + (moment - since) / self._refill)
        may = tokens >= 1
        self._tokens.put(about, (tokens - 1 if may else tokens, moment))
        return may


class _Recent(Generic[K, V]):
    """A mapping that forgets what was not put for longest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        return self._kept.get(key)

    def put(self, key: K, value: V) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)


def reference_to(obj: Object | ObjectReference) -> ObjectReference:
    """How events name an object: without its revision, or no event would be the same twice."""
    if isinstance(obj, ObjectReference):
        return obj
    kind = obj.kind or (definition_of(type(obj)).kind if isinstance(obj, Resource) else "")
    return ObjectReference(
        api_version=obj.api_version or msgspec.UNSET,
        kind=kind or msgspec.UNSET,
        namespace=obj.namespace or msgspec.UNSET,
        name=obj.name,
        uid=obj.metadata.uid,
    )


def cut(text: str, most: int) -> str:
    """No more than so many bytes of UTF-8, whole characters only."""
    data = text.encode("utf-8", "replace")
    return data[:most].decode("utf-8", "ignore")


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")

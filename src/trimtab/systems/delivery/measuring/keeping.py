"""The samples of counters that were scraped, in memory: all of the last while, bounded in number.

Assumption: a series is written the same in each scrape, so that its text is its key and its labels are read once. One
that is written otherwise from then on counts as another.
"""

from __future__ import annotations

import array
import bisect
import math
from collections.abc import Iterable, Iterator, Mapping

from trimtab.systems.delivery.measuring import exposition
from trimtab.systems.delivery.measuring.contract import Series, SourceError

MOST_SERIES = 50_000
MOST_SAMPLES = 4_000_000
BUSIEST = "destination_workload"
"""The label by which one asks."""


class Kept:
    """Samples by series, as it is written."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._counters: dict[str, _Counter] = {}
        self._index: dict[tuple[str, str], dict[str, _Counter]] = {}
        self._samples = 0

    def take(self, moment: float, text: str, names: frozenset[str]) -> None:
        """One scrape, wholly or not at all."""
        found: list[tuple[_Counter, float]] = []
        fresh: dict[str, _Counter] = {}
        for line in text.split("\n"):
            end = line.rfind(" ")
            counter = self._counters.get(line[:end])
            if counter is not None:  # nearly always, so that nothing more is looked at
                try:
                    found.append((counter, float(line[end:])))
                    continue
                except ValueError:
                    pass  # said below what is wrong with it
            sample = exposition.sample(line)
            if sample is None or exposition.named(sample[0]) not in names:
                continue
            written, value = sample
            counter = self._counters.get(written) or fresh.get(written)
            if counter is None:
                if len(self._counters) + len(fresh) >= MOST_SERIES:
                    raise SourceError(f"there are more than {MOST_SERIES} series")
                counter = fresh[written] = _Counter(written)
            found.append((counter, value))
        if self.times and moment <= self.times[-1]:
            return  # the clock was set back: until it has caught up there is nothing new
        self._counters.update(fresh)
        for written, counter in fresh.items():
            self._index.setdefault(counter.place, {})[written] = counter
        for counter, value in found:
            if value >= 0 and value != math.inf:  # nothing else is a count; NaN is not >= 0 either
                counter.times.append(moment)
                counter.values.append(value)
                self._samples += 1
        self.times.append(moment)

    def covers(self, start: float, patience: float) -> bool:
        """Whether it was being scraped when a window began."""
        place = bisect.bisect_left(self.times, start)
        if place == 0 or start - self.times[place - 1] > patience:
            return False
        return place == len(self.times) or self.times[place] - start <= patience

    def series(self, name: str, labels: Mapping[str, str], start: float, end: float) -> tuple[Series, ...]:
        """Within the window; and the sample before it of those that were in the last scrape then."""
        place = bisect.bisect_left(self.times, start)
        since = self.times[place - 1] if place else start
        found = []
        for counter in self._about(name, labels):
            first, last = bisect.bisect_left(counter.times, since), bisect.bisect_right(counter.times, end)
            if first < last:
                samples = tuple(zip(counter.times[first:last], counter.values[first:last], strict=True))
                found.append(Series(counter.labels, samples))
        return tuple(found)

    def _about(self, name: str, labels: Mapping[str, str]) -> Iterator[_Counter]:
        candidates: Iterable[_Counter] = self._counters.values()
        if BUSIEST in labels:
            candidates = self._index.get((name, labels[BUSIEST]), {}).values()
        for counter in candidates:
            if counter.name == name and all(counter.labels.get(label, "") == labels[label] for label in labels):
                yield counter

    def forget(self, before: float) -> None:
        """What is older, a good deal at a time; and the older half when there is too much."""
        if self._samples > MOST_SAMPLES:
            before = max(before, self.times[len(self.times) // 2])
        place = bisect.bisect_left(self.times, before)
        if place < 60 and self._samples <= MOST_SAMPLES:
            return
        del self.times[:place]
        for written, counter in list(self._counters.items()):
            gone = bisect.bisect_left(counter.times, before)
            del counter.times[:gone], counter.values[:gone]
            self._samples -= gone
            if not counter.times:
                del self._counters[written], self._index[counter.place][written]
                if not self._index[counter.place]:
                    del self._index[counter.place]


class _Counter:
    """The samples of one series. Its labels are read once, for it is written the same each time."""

    __slots__ = ("labels", "name", "times", "values")

    def __init__(self, written: str) -> None:
        self.name, self.labels = exposition.parsed(written)
        self.times, self.values = array.array("d"), array.array("d")

    @property
    def place(self) -> tuple[str, str]:
        return self.name, self.labels.get(BUSIEST, "")

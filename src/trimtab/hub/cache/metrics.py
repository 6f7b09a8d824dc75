"""What a cache group counts, under names in the manner of groupcache. Plain integers; shaped when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

COUNTERS = {
    "gets": "Reads that asked the group.",
    "hits": "Reads that were answered from memory.",
    "negative_hits": "Hits that said: there is no such thing.",
    "loads": "Reads of the service below.",
    "deduplicated": "Reads that waited for the load of another.",
    "bypassed": "Reads that went past the cache: no lease, a write under way, or a page that is not kept.",
    "peer_loads": "Answers that came from the replica that owns the key.",
    "peer_errors": "Times the owner could not be asked, or could not answer.",
    "peer_served": "Answers to other replicas.",
    "evictions": "Entries that went for want of room.",
    "invalidations": "Changes that the group was told of.",
    "dropped_fills": "Loads that were not kept, since something changed meanwhile.",
}


class GroupMetrics:
    """The numbers of one group."""

    __slots__ = ("bytes", "entries", *COUNTERS)

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    if TYPE_CHECKING:
        gets: int
        hits: int
        negative_hits: int
        loads: int
        deduplicated: int
        bypassed: int
        peer_loads: int
        peer_errors: int
        peer_served: int
        evictions: int
        invalidations: int
        dropped_fills: int
        bytes: int
        entries: int


def families(groups: Iterable[tuple[str, GroupMetrics]]) -> Iterator[Metric]:
    """For a Prometheus collector."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    groups = list(groups)
    for name, text in COUNTERS.items():
        counter = CounterMetricFamily(f"trimtab_hub_cache_{name}_total", text, labels=("group",))
        for group, metrics in groups:
            counter.add_metric((group,), getattr(metrics, name))
        yield counter
    for name, text in (("bytes", "Bytes that the group holds."), ("entries", "Entries that the group holds.")):
        gauge = GaugeMetricFamily(f"trimtab_hub_cache_{name}", text, labels=("group",))
        for group, metrics in groups:
            gauge.add_metric((group,), getattr(metrics, name))
        yield gauge

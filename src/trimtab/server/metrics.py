"""Prometheus metrics of the server, under the names that dashboards of Kubernetes know.

Counting is on the hot path, so it is done in plain dictionaries and written out when asked.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from trimtab.server.core import Server

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.25, 2.0, 5.0, 10.0, 30.0, 60.0)


class Collected(Protocol):
    """What others count."""

    def collect(self) -> Iterable[Metric]: ...


class Metrics:
    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self.collectors: list[Collected] = []

    def observe(self, method: str, code: int, seconds: float) -> None:
        key = (method, code)
        self._requests[key] = self._requests.get(key, 0) + 1
        buckets = self._buckets.get(method)
        if buckets is None:
            buckets = self._buckets[method] = [0] * (len(BUCKETS) + 1)
        buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
        self._sums[method] = self._sums.get(method, 0.0) + seconds

    def lines(self) -> list[str]:
        name = "apiserver_request_total"
        lines = [f"# HELP {name} Requests by method and code.", f"# TYPE {name} counter"]
        lines += [f'{name}{{verb="{m}",code="{c}"}} {n}' for (m, c), n in sorted(self._requests.items())]
        name = "apiserver_request_duration_seconds"
        lines += [f"# HELP {name} Time from request to answer.", f"# TYPE {name} histogram"]
        for method, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                lines.append(f'{name}_bucket{{verb="{method}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{verb="{method}"}} {self._sums[method]:.6f}')
            lines.append(f'{name}_count{{verb="{method}"}} {total}')
        return lines


def exposition(server: Server) -> bytes:
    """Ours, and what the Prometheus client knows of the process."""
    from prometheus_client import CollectorRegistry, generate_latest

    lines = server.metrics.lines()
    name = "trimtab_store_revision"
    lines += [f"# HELP {name} The newest revision.", f"# TYPE {name} gauge", f"{name} {server.store.revision}"]
    name = "trimtab_store_healthy"
    lines += [f"# HELP {name} Whether the disk takes writes.", f"# TYPE {name} gauge"]
    lines.append(f"{name} {0 if server.store.trouble else 1}")
    lines += _by_resource("apiserver_registered_watchers", "gauge", "Watches.", server.broadcasts.watchers())
    cut, why = server.broadcasts.terminated, "Watches that were cut off because they did not keep up."
    lines += _by_resource("apiserver_terminated_watchers_total", "counter", why, cut)
    more = CollectorRegistry()
    for collector in server.metrics.collectors:
        more.register(collector)
    return "\n".join(lines).encode() + b"\n" + generate_latest() + generate_latest(more)


def _by_resource(name: str, kind: str, about: str, counted: Mapping[str, int]) -> list[str]:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return lines + [f'{name}{{resource="{resource}"}} {count}' for resource, count in sorted(counted.items())]

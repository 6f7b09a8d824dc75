"""What the runtime counts, under the names of controller-runtime and client-go, so that their dashboards and alerts work.

Counting is on the hot path and is plain arithmetic on integers; Prometheus' client is loaded, and shapes are made of the
numbers, only when somebody asks (`render`). Whoever counts holds a `ControllerMetrics` or `QueueMetrics` of its own and never
looks a label up. Native histograms of Go have no counterpart here; the classic buckets are the same.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

ReconcileResult = Literal["success", "error", "requeue", "requeue_after"]
RESULTS: tuple[ReconcileResult, ...] = ("error", "requeue", "requeue_after", "success")

# fmt: off
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75,
    2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)
# fmt: on
QUEUE_BUCKETS = tuple(itertools.accumulate(range(11), lambda bound, _: bound * 10, initial=10e-9))
"""Multiplied step by step as Go does it, rounding included: `le="9.999999999999999e-06"` is on the dashboards."""

MAX_PRIORITIES = 25
OTHER_PRIORITIES = "exceeded_cardinality_limit"


class Metrics:
    """All numbers of one manager. `registry` takes metrics of a controller's own."""

    def __init__(self) -> None:
        self._controllers: dict[str, ControllerMetrics] = {}
        self.queues: dict[str, QueueMetrics] = {}
        self._leading: dict[str, bool] = {}
        self._registry: CollectorRegistry | None = None

    def controller(self, name: str, max_concurrent: int = 1) -> ControllerMetrics:
        """The numbers of this controller, made at the first call."""
        metrics = self._controllers.setdefault(name, ControllerMetrics())
        metrics.max_concurrent = max_concurrent
        return metrics

    def queue(self, name: str) -> QueueMetrics:
        """The numbers of this queue, made at the first call. A queue has the name of its controller."""
        return self.queues.setdefault(name, QueueMetrics())

    def leader(self, name: str, leading: bool) -> None:
        """Whether this process holds the lease of that name."""
        self._leading[name] = leading

    @property
    def registry(self) -> CollectorRegistry:
        """Loads Prometheus' client, which takes some 50 ms: touch it at start where a pause later would hurt."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry
            from prometheus_client.process_collector import ProcessCollector

            self._registry = CollectorRegistry()
            self._registry.register(self)
            ProcessCollector(registry=self._registry)
        return self._registry

    def render(self) -> bytes:
        """Everything in Prometheus' text format, as `CONTENT_TYPE` says."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """What Prometheus' client calls when it is asked."""
        yield from _controller_families(self._controllers)
        yield from _queue_families(self.queues)
        yield _gauge(
            "leader_election_master_status",
            "Whether this process holds the lease: 1 leads, 0 stands by.",
            ("name",),
            [((name,), float(leading)) for name, leading in self._leading.items()],
        )


class ControllerMetrics:
    """The numbers of one controller. Each `started` is followed by exactly one `reconciled`."""

    __slots__ = ("active", "errors", "max_concurrent", "panics", "results", "terminal_errors", "time", "timeouts")

    def __init__(self) -> None:
        self.max_concurrent = 1
        self.active = 0
        self.results: dict[ReconcileResult, int] = dict.fromkeys(RESULTS, 0)
        self.time = Histogram(RECONCILE_BUCKETS)
        self.errors = 0
        self.terminal_errors = 0
        self.timeouts = 0
        self.panics = 0

    def started(self) -> None:
        """A worker began to reconcile."""
        self.active += 1

    def reconciled(self, result: ReconcileResult, seconds: float) -> None:
        """It ended, this way and after this time."""
        self.active -= 1
        self.results[result] += 1
        self.time.observe(seconds)

    def error(self) -> None:
        """A reconcile failed; terminal failures, time-outs and panics count here too."""
        self.errors += 1

    def terminal(self) -> None:
        """It failed in a way that is not tried again."""
        self.terminal_errors += 1

    def timeout(self) -> None:
        """It was ended by the controller's own time-out."""
        self.timeouts += 1

    def panic(self) -> None:
        """It raised what no reconciler should raise: a mistake in the code."""
        self.panics += 1


class QueueState(msgspec.Struct, frozen=True):
    """What a queue holds at a moment: due keys by priority, and how long each key in work has been there."""

    depth: dict[int, int]
    working: list[float]


class QueueMetrics:
    """The numbers of one work queue. It counts what flows; what stands is asked of the queue when it is needed."""

    __slots__ = ("adds", "observe", "priorities", "retries", "waited", "worked")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        self.waited = Histogram(QUEUE_BUCKETS)
        self.worked = Histogram(QUEUE_BUCKETS)
        self.observe: Callable[[], QueueState] = lambda: QueueState({}, [])
        self.priorities: set[int] = {0}  # once seen, shown for ever: a series must not vanish when it falls to zero

    def depth(self, state: QueueState) -> dict[str, int]:
        """Due keys by the label of their priority; the labels are bounded."""
        for priority in sorted(state.depth):
            if len(self.priorities) < MAX_PRIORITIES:
                self.priorities.add(priority)
        depth = {str(priority): state.depth.get(priority, 0) for priority in sorted(self.priorities)}
        other = sum(count for priority, count in state.depth.items() if priority not in self.priorities)
        return depth | {OTHER_PRIORITIES: other} if other else depth


class Histogram:
    """Counts in buckets. One observation costs a bisection and two additions."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """As Prometheus has it: each bucket counts all below it, and bounds are written as Go writes them."""
        labels = [*(repr(bound).removesuffix(".0") for bound in self.bounds), "+Inf"]
        return list(zip(labels, itertools.accumulate(self.counts), strict=True))


Labelled = list[tuple[tuple[str, ...], float]]


def _controller_families(controllers: dict[str, ControllerMetrics]) -> Iterator[Metric]:
    def of(read: Callable[[ControllerMetrics], float]) -> Labelled:
        return [((name,), read(metrics)) for name, metrics in controllers.items()]

    runs: Labelled = [
        ((name, result), float(m.results[result])) for name, m in controllers.items() for result in RESULTS
    ]
    times = [((name,), metrics.time) for name, metrics in controllers.items()]
    label = ("controller",)
    prefix = "controller_runtime_"
    yield _counter(f"{prefix}reconcile_total", "Reconciles by result.", ("controller", "result"), runs)
    yield _counter(f"{prefix}reconcile_errors_total", "Reconciles that failed.", label, of(lambda m: m.errors))
    yield _counter(
        f"{prefix}terminal_reconcile_errors_total",
        "Reconciles that failed and are not tried again.",
        label,
        of(lambda m: m.terminal_errors),
    )
    yield _counter(f"{prefix}reconcile_panics_total", "Reconciles that broke.", label, of(lambda m: m.panics))
    yield _counter(
        f"{prefix}reconcile_timeouts_total", "Reconciles that took too long.", label, of(lambda m: m.timeouts)
    )
    yield _histogram(f"{prefix}reconcile_time_seconds", "How long a reconcile takes.", label, times)
    yield _gauge(
        f"{prefix}max_concurrent_reconciles", "Reconciles at a time, at most.", label, of(lambda m: m.max_concurrent)
    )
    yield _gauge(f"{prefix}active_workers", "Reconciles at this moment.", label, of(lambda m: m.active))


def _queue_families(queues: dict[str, QueueMetrics]) -> Iterator[Metric]:
    states = {name: metrics.observe() for name, metrics in queues.items()}
    depths: Labelled = [
        ((name, name, priority), count)
        for name, metrics in queues.items()
        for priority, count in metrics.depth(states[name]).items()
    ]
    label = ("name", "controller")
    yield _gauge("workqueue_depth", "Keys that are due.", (*label, "priority"), depths)
    yield _counter(
        "workqueue_adds_total", "Keys that became due.", label, [((n, n), m.adds) for n, m in queues.items()]
    )
    yield _counter(
        "workqueue_retries_total", "Adds with a delay.", label, [((n, n), m.retries) for n, m in queues.items()]
    )
    yield _histogram(
        "workqueue_queue_duration_seconds",
        "How long a due key waits for a worker.",
        label,
        [((n, n), m.waited) for n, m in queues.items()],
    )
    yield _histogram(
        "workqueue_work_duration_seconds",
        "How long a worker keeps a key.",
        label,
        [((n, n), m.worked) for n, m in queues.items()],
    )
    yield _gauge(
        "workqueue_unfinished_work_seconds",
        "The time spent so far on keys that are in work. It grows without end when a worker hangs.",
        label,
        [((n, n), sum(s.working)) for n, s in states.items()],
    )
    yield _gauge(
        "workqueue_longest_running_processor_seconds",
        "How long the key that is longest in work has been there.",
        label,
        [((n, n), max(s.working, default=0.0)) for n, s in states.items()],
    )


def _counter(name: str, text: str, labels: Sequence[str], samples: Labelled) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _gauge(name: str, text: str, labels: Sequence[str], samples: Labelled) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[str], samples: Sequence[tuple[tuple[str, ...], Histogram]]
) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in samples:
        family.add_metric(values, histogram.cumulative(), histogram.total)
    return family

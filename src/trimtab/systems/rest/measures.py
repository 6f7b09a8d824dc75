"""The numbers of the generic reconciler, for Prometheus. Kinds are told apart by service and kind, objects never."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

KIND = ("service", "kind")


class Measures:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._writes = Counter(
            "rest_writes_total",
            "Writes to services, by what made them: set, changed, removed, drifted; created, deleted.",
            (*KIND, "verb", "reason"),
            registry=registry,
        )
        self._spared = Counter(
            "rest_known_differences_total",
            "Fields that a service answers otherwise than they were written, and that were not called drift.",
            KIND,
            registry=registry,
        )
        self._failures = Counter(
            "rest_failures_total", "Turns that ended with an error of the service.", (*KIND, "class"), registry=registry
        )
        self._operations = Histogram(
            "rest_operation_seconds",
            "How long operations of services took.",
            (*KIND, "verb"),
            buckets=(1, 5, 15, 60, 300, 900, 1800, 3600),
            registry=registry,
        )

    def wrote(self, service: str, kind: str, verb: str, reasons: Iterable[str]) -> None:
        """Once for each reason of a write."""
        for reason in set(reasons):
            self._writes.labels(service, kind, verb, reason).inc()

    def spared(self, service: str, kind: str, fields: int) -> None:
        if fields:
            self._spared.labels(service, kind).inc(fields)

    def failed(self, service: str, kind: str, error: str) -> None:
        self._failures.labels(service, kind, error).inc()

    def operated(self, service: str, kind: str, verb: str, seconds: float) -> None:
        self._operations.labels(service, kind, verb).observe(seconds)

    def forget(self, service: str, kind: str) -> None:
        """The kind is gone."""
        for metric in (self._writes, self._spared, self._failures, self._operations):
            for labels in list(metric._metrics):
                if labels[:2] == (service, kind):
                    metric.remove(*labels)

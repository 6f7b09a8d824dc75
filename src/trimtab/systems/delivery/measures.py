"""The numbers of canary delivery, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram


class Measures:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._checks = Counter("canary_checks_total", "Checks of canaries.", ("verdict",), registry=registry)
        self._late = Histogram(
            "canary_check_lateness_seconds",
            "How long after its time a check was begun.",
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30),
            registry=registry,
        )
        self._runs = Counter("canary_runs_total", "Runs that have ended.", ("result", "reason"), registry=registry)
        self._drifts = Counter(
            "canary_drift_total", "Changes of others that were put back.", ("kind",), registry=registry
        )

    def checked(self, verdict: str, late: float) -> None:
        self._checks.labels(verdict).inc()
        self._late.observe(max(0.0, late))

    def ended(self, result: str, reason: str) -> None:
        self._runs.labels(result, reason).inc()

    def drifted(self, kind: str) -> None:
        self._drifts.labels(kind).inc()

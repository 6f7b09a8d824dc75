"""The numbers of requests to services, for Prometheus. Services are told apart by name, resources never."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram


class Measures:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._requests = Counter(
            "rest_requests_total",
            "Requests to services by what they were for and how they ended: ok, or the class of the error.",
            ("service", "verb", "result"),
            registry=registry,
        )
        self._seconds = Histogram(
            "rest_request_seconds",
            "How long requests to services took, with their wait for a turn.",
            ("service", "verb"),
            buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60),
            registry=registry,
        )

    def ended(self, service: str, verb: str, result: str, seconds: float) -> None:
        self._requests.labels(service, verb, result).inc()
        self._seconds.labels(service, verb).observe(seconds)

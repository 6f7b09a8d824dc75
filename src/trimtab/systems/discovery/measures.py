"""The numbers of discovery, for Prometheus. Rules are told apart by namespace and name, addresses never."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

RULE = ("namespace", "rule")


class Measures:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._sweeps = Counter("discovery_sweeps_total", "Sweeps that ended.", (*RULE, "result"), registry=registry)
        self._seconds = Histogram(
            "discovery_sweep_seconds",
            "How long sweeps took.",
            RULE,
            buckets=(1, 2, 5, 10, 30, 60, 300, 900, 3600),
            registry=registry,
        )
        self._packets = Counter("discovery_packets_total", "Probes sent.", RULE, registry=registry)
        self._lag = Gauge(
            "discovery_sweep_lag_seconds", "The longest that the last sweep did not listen.", RULE, registry=registry
        )
        self._addresses = Gauge(
            "discovery_addresses", "Addresses by their last outcome.", (*RULE, "outcome"), registry=registry
        )
        self._targets = Gauge("discovery_targets", "Targets by phase.", (*RULE, "phase"), registry=registry)

    def swept(self, namespace: str, rule: str, *, seconds: float, packets: int, lag: float) -> None:
        self._seconds.labels(namespace, rule).observe(seconds)
        self._packets.labels(namespace, rule).inc(packets)
        self._lag.labels(namespace, rule).set(lag)

    def ended(self, namespace: str, rule: str, result: str) -> None:
        self._sweeps.labels(namespace, rule, result).inc()

    def counted(self, namespace: str, rule: str, outcomes: Mapping[str, int], phases: Mapping[str, int]) -> None:
        """The state after a sweep. What is not named is none."""
        for gauge, values in ((self._addresses, outcomes), (self._targets, phases)):
            for label, value in values.items():
                gauge.labels(namespace, rule, label).set(value)

    def forget(self, namespace: str, rule: str) -> None:
        """The rule is gone."""
        for metric in (self._sweeps, self._seconds, self._packets, self._lag, self._addresses, self._targets):
            for labels in list(metric._metrics):
                if labels[:2] == (namespace, rule):
                    metric.remove(*labels)

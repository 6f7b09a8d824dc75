"""The numbers of image discovery, for Prometheus. Registries are told apart by namespace and name, images never."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = ("namespace", "registry")


class Measures:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._runs = Counter(
            "images_discoveries_total", "Discoveries that ended.", (*REGISTRY, "type", "result"), registry=registry
        )
        self._seconds = Histogram(
            "images_discovery_seconds",
            "How long discoveries took.",
            REGISTRY,
            buckets=(1, 5, 15, 60, 300, 900, 1800, 3600),
            registry=registry,
        )
        self._images = Gauge(
            "images_images", "Images, and those whose tags are gone.", (*REGISTRY, "state"), registry=registry
        )

    def ended(self, namespace: str, registry: str, kind: str, result: str, seconds: float) -> None:
        self._runs.labels(namespace, registry, kind, result).inc()
        self._seconds.labels(namespace, registry).observe(seconds)

    def counted(self, namespace: str, registry: str, images: int, missing: int) -> None:
        self._images.labels(namespace, registry, "present").set(images - missing)
        self._images.labels(namespace, registry, "missing").set(missing)

    def forget(self, namespace: str, registry: str) -> None:
        """The registry is gone."""
        for metric in (self._runs, self._seconds, self._images):
            for labels in list(metric._metrics):
                if labels[:2] == (namespace, registry):
                    metric.remove(*labels)

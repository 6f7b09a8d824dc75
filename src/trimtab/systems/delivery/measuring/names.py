"""Istio's standard metrics, which the data plane of a laptop has too."""

REQUESTS = "istio_requests_total"
DURATION_BUCKETS = "istio_request_duration_milliseconds_bucket"


def workload(namespace: str, name: str) -> dict[str, str]:
    """The labels of what was sent to a workload."""
    return {"destination_workload_namespace": namespace, "destination_workload": name}

"""Envoy's counters as Prometheus text in Istio's names. Pure.

What is counted: the answers that clients got, charged to the workload that gave the last one. A request that Envoy tried
again counts once, with the code of the last try: the tries before are in another counter of Envoy's, which is left out. A
mirrored request counts for the workload that it was mirrored to. An answer of Envoy's own (503 when a workload has no
endpoints, 504 when it is too slow) counts for the workload that it stands in for. So the view of the caller and that of the
workload are one, and both reporters get the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STATS = r"^cluster\.[^.@]+@.*\.upstream_rq_([0-9]{3}|time)$"
"""Which of Envoy's statistics are asked for."""
TYPE = "text/plain; version=0.0.4; charset=utf-8"
REPORTERS = ("destination", "source")

_LINE = re.compile(rb"^envoy_cluster_(?:[a-z]+_)?(upstream_rq|upstream_rq_time_(?:bucket|sum|count))\{([^}]*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_NAMES = {
    "upstream_rq": "istio_requests_total",
    "upstream_rq_time_bucket": "istio_request_duration_milliseconds_bucket",
    "upstream_rq_time_sum": "istio_request_duration_milliseconds_sum",
    "upstream_rq_time_count": "istio_request_duration_milliseconds_count",
}


def istio_text(envoy: bytes) -> bytes:
    """The whole text."""
    counters: list[str] = []
    histograms: list[str] = []
    for name, labels, value in _samples(envoy):
        into = counters if name == "istio_requests_total" else histograms
        into += [f'{name}{{reporter="{reporter}",{labels}}} {value}' for reporter in REPORTERS]
    lines = ["# TYPE istio_requests_total counter", *counters]
    lines += ["# TYPE istio_request_duration_milliseconds histogram", *histograms]
    return ("\n".join(lines) + "\n").encode()


def _samples(envoy: bytes) -> Iterator[tuple[str, str, str]]:
    for line in envoy.splitlines():
        match = _LINE.match(line)
        if match is None or not line.startswith(b"envoy_cluster_upstream_rq"):
            continue
        found = dict(_LABEL.findall(match[2].decode()))
        workload, space = found.get("destination_workload"), found.get("destination_workload_namespace")
        service = found.get("destination_service_name", "")
        if not workload or not space:
            continue
        labels = {
            "destination_workload": workload,
            "destination_workload_namespace": space,
            "destination_app": workload,
            "destination_service": f"{service}.{space}.svc.cluster.local",
            "destination_service_name": service,
            "destination_service_namespace": space,
            "request_protocol": "http",
        }
        if code := found.get("envoy_response_code"):
            labels["response_code"] = code
        if bound := found.get("le"):
            labels["le"] = bound
        yield _NAMES[match[1].decode()], ",".join(f'{k}="{v}"' for k, v in labels.items()), match[3].decode()

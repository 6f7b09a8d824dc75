"""What is allowed and hardly meant: said to whoever writes it, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import UnsetType

from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, MetricTemplate
from trimtab.systems.delivery.problems import known
from trimtab.systems.delivery.problems.addresses import in_clear
from trimtab.systems.delivery.problems.findings import mapping
from trimtab.systems.delivery.problems.metrics import BUILT_IN, shortest_window
from trimtab.systems.delivery.problems.ports import named_targets, port_numbers, speaks_http
from trimtab.systems.delivery.problems.shapes import unknown
from trimtab.systems.delivery.problems.workload import containers

MOST = 20
TWO_SCRAPES = 30.0
"""Twice the interval that most Prometheus servers scrape with, in seconds."""


def warnings(canary: CanaryDeployment) -> tuple[str, ...]:
    """For a spec without problems."""
    return tuple(islice(_all(canary), MOST))


def template_warnings(template: MetricTemplate) -> tuple[str, ...]:
    server = template.spec.prometheus
    if isinstance(server, UnsetType) or isinstance(server.secret_ref, UnsetType):
        return ()
    if isinstance(server.address, UnsetType) or not in_clear(server.address):
        return ()
    return ("spec.prometheus.secretRef: it is sent without TLS, readable on the network",)


def _all(canary: CanaryDeployment) -> Iterator[str]:
    spec = canary.spec
    for path in unknown(spec.deployment, known.DEPLOYMENT, "spec.deployment"):
        yield f"{path} is no field that Kubernetes has"
    for path in unknown(spec.service, known.SERVICE, "spec.service"):
        yield f"{path} is no field that Kubernetes has"
    yield from _workload(spec.deployment)
    yield from _service(spec.service, spec.deployment)
    if not isinstance(spec.autoscaler_ref, UnsetType) and spec.deployment.get("replicas") is not None:
        yield "spec.deployment.replicas is not used: spec.autoscalerRef sets the replicas"
    if isinstance(spec.analysis, UnsetType):
        return
    yield from _analysis(spec.analysis)
    if not speaks_http(spec.service) and any(one.name in BUILT_IN for one in spec.analysis.metrics):
        yield "spec.analysis.metrics: requests are counted for HTTP only, and no port of the Service speaks it"


def _workload(deployment: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.deployment"
    strategy = mapping(deployment.get("strategy"))
    if strategy.get("type") == "Recreate":
        yield f"{path}.strategy: Recreate is not used: stable always rolls, and no pod goes before another is ready"
    if mapping(strategy.get("rollingUpdate")).get("maxUnavailable") not in (None, 0, "0%"):
        yield f"{path}.strategy.rollingUpdate.maxUnavailable is not used: it is always 0"
    for i, container in enumerate(containers(deployment)):
        place = f"{path}.template.spec.containers[{i}]"
        if not container.get("image"):
            yield f"{place} has no image: it runs only where workloads are processes of this machine"
        if container.get("readinessProbe") is None:
            yield f"{place} has no readinessProbe: it gets requests as soon as it has started"


def _service(service: Mapping[str, Any], deployment: Mapping[str, Any]) -> Iterator[str]:
    if service.get("clusterIP") == "None":
        yield "spec.service.clusterIP: a headless Service hands out pods; only requests routed by Istio follow weights"
    numbers = port_numbers(deployment)
    for path, target in named_targets(service):
        if isinstance(target, int) and target not in numbers:
            yield f"{path}: no container declares the port {target}"


def _analysis(analysis: Analysis) -> Iterator[str]:
    path = "spec.analysis"
    step, most = analysis.step_weight, analysis.max_weight
    if not isinstance(step, UnsetType) and most % step:
        yield f"{path}.stepWeight: {step} does not divide maxWeight evenly: the last step is {most}"
    if analysis.mirror:
        yield f"{path}.mirror: the canary gets copies of requests that write, too"
    if not isinstance(analysis.session_affinity, UnsetType):
        if not isinstance(analysis.iterations, UnsetType):
            yield f"{path}.sessionAffinity has no effect with iterations: no share of requests is drawn by lot"
        elif not analysis.session_affinity.secure:
            yield f"{path}.sessionAffinity.secure is not set: the cookie is sent without TLS, too"
    if not analysis.metrics and not analysis.webhooks:
        yield f"{path} has neither metrics nor webhooks: only that pods are ready is looked at"
    for i, one in enumerate(analysis.metrics):
        place = f"{path}.metrics[{i}]"
        if one.name in BUILT_IN and one.compare.judge == "Threshold" and one.min_samples <= 1:
            yield f"{place}.minSamples: one bad request out of one fails a check; 50 or so is usual"
    server = analysis.prometheus
    if not isinstance(server, UnsetType) and not isinstance(server.address, UnsetType):
        if analysis.metrics and shortest_window(analysis).seconds < TWO_SCRAPES:
            yield f"{path}.interval: a window of less than two scrapes of Prometheus has no data"
        if not isinstance(server.secret_ref, UnsetType) and in_clear(server.address):
            yield f"{path}.prometheus.secretRef: it is sent without TLS, readable on the network"
    for i, hook in enumerate(analysis.webhooks):
        if not isinstance(hook.secret_ref, UnsetType) and in_clear(hook.url):
            yield f"{path}.webhooks[{i}].secretRef: the token is sent without TLS, readable on the network"
    if analysis.match and analysis.max_weight != 50:
        yield f"{path}.maxWeight has no effect with match"

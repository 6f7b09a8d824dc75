"""The two Services. Both exist always; the canary's has no endpoints between runs.

What reaches in from outside (node ports, load balancers, external addresses) belongs to stable alone: the canary's
Service is for routes inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import CANARY, ROLE, STABLE
from trimtab.systems.delivery.objects.names import document

HEADLESS = "None"
_STABLE_ALONE = frozenset(
    {
        "allocateLoadBalancerNodePorts",
        "clusterIP",
        "clusterIPs",
        "externalIPs",
        "externalName",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "loadBalancerClass",
        "loadBalancerIP",
        "loadBalancerSourceRanges",
    }
)


def stable_service(canary: CanaryDeployment) -> dict[str, Any]:
    return document(canary, "v1", "Service", STABLE, {**_given(canary), "selector": _selector(canary, STABLE)})


def canary_service(canary: CanaryDeployment) -> dict[str, Any]:
    given = _given(canary)
    spec = {name: value for name, value in given.items() if name not in _STABLE_ALONE}
    spec |= {"type": "ClusterIP", "selector": _selector(canary, CANARY)}
    if given.get("clusterIP") == HEADLESS:
        spec["clusterIP"] = HEADLESS
    if "ports" in spec:
        spec["ports"] = [_without_node_port(port) for port in spec["ports"]]
    return document(canary, "v1", "Service", CANARY, spec)


def _given(canary: CanaryDeployment) -> dict[str, Any]:
    return {name: value for name, value in canary.spec.service.items() if value is not None}


def _selector(canary: CanaryDeployment, role: str) -> dict[str, Any]:
    """The Service's own, or what the Deployment selects by."""
    given: Mapping[str, Any] = canary.spec.service.get("selector") or {}
    if not given:
        given = (canary.spec.deployment.get("selector") or {}).get("matchLabels") or {}
    return {**given, ROLE: role}


def _without_node_port(port: Any) -> Any:
    return {name: value for name, value in port.items() if name != "nodePort"} if isinstance(port, dict) else port

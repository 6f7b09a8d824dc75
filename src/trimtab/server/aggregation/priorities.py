"""Which group, and which version of it, clients prefer: the numbers that the real server gives its own."""

from __future__ import annotations

from typing import NamedTuple


class Priority(NamedTuple):
    """As in an APIService: more comes first."""

    group: int
    version: int


CUSTOM = Priority(1000, 100)
"""Of kinds that definitions make."""

OURS = "apiregistration.k8s.io"
"""Comes first, and has no APIService of its own."""

_GROUPS = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
}
_VERSIONS = {
    "/v1": 1,
    "autoscaling/v2": 30,
    "autoscaling/v1": 15,
    "admissionregistration.k8s.io/v1beta1": 12,
    "flowcontrol.apiserver.k8s.io/v1": 21,
}
_STAGES = {"v1": 15, "v1beta1": 9, "v1alpha1": 1}


def builtin(group: str, version: str) -> Priority | None:
    """None where the real server has no such group."""
    if group not in _GROUPS:
        return None
    return Priority(_GROUPS[group], _VERSIONS.get(f"{group}/{version}") or _STAGES.get(version, 9))

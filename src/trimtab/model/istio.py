"""Istio's kinds, as far as controllers touch them. Their bodies stay plain mappings: whatever Istio has in them survives.

They are someone else's: on a cluster Istio defines them; only a home without Istio defines them itself.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.model.kind import Column
from trimtab.model.resource import Resource


class VirtualService(
    Resource,
    group="networking.istio.io",
    version="v1",
    plural="virtualservices",
    short=("vs",),
    categories=("istio-io", "networking-istio-io"),
    columns=(Column("Gateways", ".spec.gateways"), Column("Hosts", ".spec.hosts")),
):
    """How requests for hosts are routed. `status.observedGeneration` and the condition Reconciled say what is live."""

    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class DestinationRule(
    Resource,
    group="networking.istio.io",
    version="v1",
    plural="destinationrules",
    categories=("istio-io", "networking-istio-io"),
    columns=(Column("Host", ".spec.host"),),
):
    """What holds for requests to a host once they are routed: load balancing, connection pools, outlier detection."""

    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


KINDS: tuple[type[Resource], ...] = (VirtualService, DestinationRule)

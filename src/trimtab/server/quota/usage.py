"""What an object uses: one of its kind, and for pods and services more than that. Pure.

Names are those of a ResourceQuota's `hard`: `configmaps`, `count/deployments.apps`, `requests.cpu`, `services.nodeports`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from trimtab.model.clock import parse_time
from trimtab.model.errors import qualified
from trimtab.model.kind import Kind
from trimtab.model.quantity import Quantity
from trimtab.server.quota.amounts import added, amounts_of, largest

Document = Mapping[str, Any]

ONE, ZERO = Quantity(1), Quantity(0)
ALIASES = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Kinds of the core group that are counted under their plain names, too."""
SERVICE = ("services", "services.loadbalancers", "services.nodeports")
COMPUTE = ("cpu", "memory", "ephemeral-storage")
POD = ("pods", *COMPUTE, *(f"{what}.{name}" for what in ("requests", "limits") for name in COMPUTE))
STANDARD = frozenset({*ALIASES, *SERVICE, *POD, "persistentvolumeclaims", "requests.storage"})
"""Names without a slash that a quota may have; those of kinds that are not served are never used."""
MUST_SAY = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""Where a quota has these, every container must say how much it wants."""
_IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})


def is_counted(kind: Kind) -> bool:
    return kind.namespaced and (kind.group, kind.plural) not in _IGNORED


def is_pod(kind: Kind) -> bool:
    return not kind.group and kind.plural == "pods"


def is_service(kind: Kind) -> bool:
    return not kind.group and kind.plural == "services"


def names_used(kind: Kind, names: Iterable[str]) -> frozenset[str]:
    """Which of these names objects of a kind may use."""
    counted = f"count/{qualified(kind.plural, kind.group)}"
    if is_pod(kind):
        return frozenset(n for n in names if n == counted or n in POD or _is_requested(n))
    own = SERVICE if is_service(kind) else (kind.plural,) if not kind.group and kind.plural in ALIASES else ()
    return frozenset(n for n in names if n == counted or n in own)


def used_by(kind: Kind, document: Document, now: datetime) -> dict[str, Quantity]:
    """What one object uses."""
    counted = {f"count/{qualified(kind.plural, kind.group)}": ONE}
    if is_pod(kind):
        if not _runs(document, now):
            return counted
        requests, limits = (pod_amounts(document.get("spec") or {}, field) for field in ("requests", "limits"))
        return {**counted, **_computed(requests, limits)}
    if is_service(kind):
        return {**counted, **_service(document.get("spec") or {})}
    if not kind.group and kind.plural in ALIASES:
        counted[kind.plural] = ONE
    return counted


def unsaid(document: Document, required: frozenset[str]) -> str:
    """What containers of a pod do not say and must; empty when nothing is missing."""
    spec = document.get("spec") or {}
    missing: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        said = _computed(amounts_of(resources.get("requests")), amounts_of(resources.get("limits")))
        for name in (required & MUST_SAY) - said.keys():
            missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def pod_amounts(spec: Document, field: str) -> dict[str, Quantity]:
    """The requests or the limits of a whole pod: containers together, or the greatest of what comes before them.

    Init containers run one after the other, beside those before them that go on (restartPolicy Always)."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        total = added(total, amounts_of((container.get("resources") or {}).get(field)))
    beside: dict[str, Quantity] = {}
    most: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = amounts_of((container.get("resources") or {}).get(field))
        if container.get("restartPolicy") == "Always":
            total = added(total, own)
            beside = own = added(beside, own)
        else:
            own = added(own, beside)
        most = largest(most, own)
    total = largest(total, most)
    overhead = amounts_of(spec.get("overhead"))
    if field == "limits":  # what is not limited stays so
        overhead = {name: amount for name, amount in overhead.items() if total.get(name)}
    return added(total, overhead)


def _computed(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> dict[str, Quantity]:
    used = {"pods": ONE}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith("hugepages-"):
            used[name] = amount
        if name in COMPUTE or name.startswith("hugepages-") or "/" in name:
            used[f"requests.{name}"] = amount
    used |= {f"limits.{name}": amount for name, amount in limits.items() if name in COMPUTE}
    return used


def _is_requested(name: str) -> bool:
    """Huge pages, and what devices of a node offer."""
    return name.startswith(("hugepages-", "requests.hugepages-")) or (name.startswith("requests.") and "/" in name)


def _runs(pod: Document, now: datetime) -> bool:
    """A pod that is done uses nothing but its place; nor does one that should be gone."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    metadata = pod["metadata"]
    since, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not since or grace is None:
        return True
    return now <= parse_time(since) + timedelta(seconds=grace)


def _service(spec: Document) -> dict[str, Quantity]:
    ports = spec.get("ports") or ()
    balanced = spec.get("type") == "LoadBalancer"
    opened = 0
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        opened = sum(1 for port in ports if port.get("nodePort"))
    elif balanced or spec.get("type") == "NodePort":
        opened = len(ports)
    return {
        "services": ONE,
        "services.loadbalancers": ONE if balanced else ZERO,
        "services.nodeports": Quantity(opened),
    }

"""Fields of Kubernetes' own kinds that never change once they are set. No schema tells of them; their servers refuse.

A replacement takes an object away, so one is planned only for what is surely another value: one that was there and is
not the same, a collection with other items, or what is not known yet. A single value that comes or goes may be the one
that the server had filled in: that is sent, and a server that disagrees says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.values import UNKNOWN, whole
from trimtab.terraform.kinds.definition import KEYED, LIST, MAP, OBJECT, SET, Definition, Shape
from trimtab.terraform.kinds.equality import means_the_same

Wires = tuple[str, ...]
"""Names in documents; `*` is every item of a list or value of a map."""

FROZEN: Final = {
    ("", "PersistentVolumeClaim"): (
        "spec.accessModes spec.dataSource spec.dataSourceRef spec.selector spec.storageClassName spec.volumeMode"
    ),
    ("", "Pod"): "spec",
    ("", "ResourceQuota"): "spec.scopes",
    ("", "Secret"): "type",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "spec.group spec.names.kind spec.names.plural spec.scope",
    ("apps", "ControllerRevision"): "data",
    ("apps", "DaemonSet"): "spec.selector",
    ("apps", "Deployment"): "spec.selector",
    ("apps", "ReplicaSet"): "spec.selector",
    ("apps", "StatefulSet"): "spec.podManagementPolicy spec.selector spec.serviceName spec.volumeClaimTemplates",
    ("batch", "Job"): (
        "spec.backoffLimitPerIndex spec.completionMode spec.completions spec.managedBy spec.podFailurePolicy "
        "spec.selector spec.successPolicy spec.template"
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): "spec",
    ("discovery.k8s.io", "EndpointSlice"): "addressType",
    ("networking.k8s.io", "IngressClass"): "spec.controller",
    ("node.k8s.io", "RuntimeClass"): "handler",
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): "roleRef",
    ("rbac.authorization.k8s.io", "RoleBinding"): "roleRef",
    ("scheduling.k8s.io", "PriorityClass"): "preemptionPolicy value",
    ("storage.k8s.io", "StorageClass"): "parameters provisioner reclaimPolicy volumeBindingMode",
}
"""By group and kind."""
FREE: Final = {
    ("", "Pod"): (
        "spec.activeDeadlineSeconds spec.containers.*.image spec.initContainers.*.image spec.schedulingGates "
        "spec.terminationGracePeriodSeconds spec.tolerations"
    ),
}
"""What of the above changes all the same."""
SEALABLE: Final = {("", "ConfigMap"): "binaryData data immutable", ("", "Secret"): "data immutable"}
"""Kinds whose objects may be declared immutable, and what then is."""


def frozen(definition: Definition, prior: dict[str, Any], planned: dict[str, Any]) -> Iterator[Path]:
    """Where the plan changes what never changes."""
    kind = (definition.group, definition.kind)
    free = frozenset(tuple(words.split(".")) for words in FREE.get(kind, "").split())
    for words in FROZEN.get(kind, "").split():
        wires = tuple(words.split("."))
        if not _is_loose(kind, wires, prior):
            yield from _at(definition.root, prior, planned, ROOT, (), wires, free)
    if is_sealed(definition, prior):
        for field in definition.root.fields:
            was, will = prior.get(field.name), planned.get(field.name)
            if field.wire in SEALABLE[kind].split() and was != will:
                yield ROOT.name(field.name)


def is_sealed(definition: Definition, prior: dict[str, Any]) -> bool:
    """Whether the object was declared immutable as a whole."""
    return (definition.group, definition.kind) in SEALABLE and prior.get("immutable") is True


def _is_loose(kind: tuple[str, str], wires: Wires, prior: dict[str, Any]) -> bool:
    """A Job's template may change in part as long as it is suspended, the number of an indexed one always."""
    spec = prior.get("spec")
    if kind != ("batch", "Job") or not isinstance(spec, dict):
        return False
    if wires[-1] == "template":
        return spec.get("suspend") is True
    return wires[-1] == "completions" and spec.get("completion_mode") == "Indexed"


def _at(
    shape: Shape, prior: Any, planned: Any, path: Path, passed: Wires, wires: Wires, free: frozenset[Wires]
) -> Iterator[Path]:
    """Down to a place, and the changes there."""
    if planned is UNKNOWN or not wires:
        yield from _changes(shape, prior, planned, path, passed, free)
    elif field := shape.field(wires[0]):
        below = path.name(field.name), (*passed, field.wire), wires[1:]
        yield from _at(field.shape, _of(prior, field.name), _of(planned, field.name), *below, free)


def _changes(
    shape: Shape, prior: Any, planned: Any, path: Path, passed: Wires, free: frozenset[Wires]
) -> Iterator[Path]:
    if passed in free or planned is prior:
        return
    items = shape.items
    if shape.form == OBJECT and planned is not UNKNOWN:
        for field in shape.fields:
            was, will, here = _of(prior, field.name), _of(planned, field.name), (*passed, field.wire)
            if not field.computed and not field.write_only:
                yield from _changes(field.shape, was, will, path.name(field.name), here, free)
    elif planned is UNKNOWN:  # a plan must say beforehand what may turn out to be another value
        if prior is not None or shape.form in (OBJECT, MAP, KEYED, LIST, SET):
            yield path
    elif items is None:
        if prior is not None and planned is not None and not means_the_same(shape, prior, planned):
            yield path
    elif shape.form in (MAP, KEYED):
        was, will = _given(prior), _given(planned)
        if was.keys() != will.keys():
            yield path
        for key in was.keys() & will.keys():
            yield from _changes(items, was[key], will[key], path.key(key), (*passed, "*"), free)
    elif shape.form == LIST and len(prior or ()) == len(planned or ()):
        for at, (was, will) in enumerate(zip(prior or (), planned or (), strict=True)):
            yield from _changes(items, was, will, path.index(at), (*passed, "*"), free)
    elif shape.form == LIST or not _is_same_set(items, prior or [], planned or []):
        yield path


def _is_same_set(items: Shape, prior: list[Any], planned: list[Any]) -> bool:
    if not whole(planned) or len(prior) != len(planned):
        return False
    return all(any(means_the_same(items, one, other) for other in prior) for one in planned)


def _given(value: Any) -> dict[str, Any]:
    return {key: item for key, item in (value or {}).items() if item is not None}


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None

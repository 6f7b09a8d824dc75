"""StatefulSet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError, StatusError
from trimtab.model.kind import Column, Scale
from trimtab.model.metadata import dns_label_name
from trimtab.model.selectors import LabelSelector
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.pod import complete_template
from trimtab.server.builtin.problems import (
    at,
    forbidden,
    invalid,
    invalid_go,
    items,
    label_map,
    label_selector,
    not_negative,
    required,
    unsupported,
)
from trimtab.server.builtin.quantities import canonical_resources
from trimtab.server.builtin.workloads import CONTAINERS, containers_of
from trimtab.server.strategy import Document

MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
           "collisionCount")  # fmt: skip


class StatefulSet(Native):
    has_generation = True
    name_check = staticmethod(dns_label_name)
    shown = (
        NAME,
        Column("Ready", "", description="Number of the pod with ready state"),
        AGE,
        *CONTAINERS,
    )

    def complete(self, obj: Document) -> None:
        complete_template(at(obj, "spec", "template"))
        strategy = at(obj, "spec", "updateStrategy")
        if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
            given = strategy.get("rollingUpdate")
            if given is None or isinstance(given, dict):
                strategy["rollingUpdate"] = {"partition": 0, **(given or {})}
        for claim in items(obj, "spec", "volumeClaimTemplates"):
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            canonical_resources(at(claim, "spec", "resources"))
            status = claim.get("status")
            claim["status"] = {"phase": "Pending", **(status if isinstance(status, dict) else {})}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return _status(new.get("status") or {})
        spec = new.get("spec") or {}
        errors = _policies(spec)
        errors += not_negative("spec.replicas", spec.get("replicas"))
        errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        errors += not_negative("spec.ordinals.start", at(spec, "ordinals", "start"))
        errors += _selector_and_template(spec)
        if old is not None:
            before = old.get("spec") or {}
            fields = (spec.keys() | before.keys()) - set(MUTABLE)
            if any(spec.get(field) != before.get(field) for field in fields):
                errors.append(forbidden("spec", FIXED))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        return (f"{at(obj, 'status', 'readyReplicas') or 0}/{at(obj, 'spec', 'replicas') or 0}",)

    def wide(self, obj: Document) -> Sequence[Any]:
        return containers_of(at(obj, "spec", "template"))


def _policies(spec: Document) -> list[FieldError]:
    errors = []
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete":
        if rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(
                invalid_go("spec.updateStrategy.rollingUpdate", "apps.RollingUpdateStatefulSetStrategy{…}", why)
            )
    elif strategy.get("type") == "RollingUpdate":
        errors += not_negative("spec.updateStrategy.rollingUpdate.partition", (rolling or {}).get("partition"))
    else:
        why = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(invalid_go("spec.updateStrategy", "apps.StatefulSetUpdateStrategy{…}", why))
    kept = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if kept and kept.get(field) not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(unsupported(path, kept.get(field), ["Retain", "Delete"]))
    return errors


def _selector_and_template(spec: Document) -> list[FieldError]:
    """The pods of the template are not looked into: their mounts may name claims that come with them."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            why = "empty selector is invalid for statefulset"
            errors.append(invalid_go("spec.selector", gosource.label_selector(selector), why))
    labels = at(template, "metadata", "labels")
    try:
        chosen = LabelSelector.from_document(selector)
    except StatusError:
        errors.append(invalid_go("spec.selector", gosource.label_selector(selector), ""))
    else:
        if not chosen.empty and not chosen.matches(labels or {}):
            why = "`selector` does not match template `labels`"
            errors.append(invalid_go("spec.template.metadata.labels", gosource.string_map(labels), why))
        errors += label_map(labels, "spec.template.labels")
    inner = template.get("spec") or {}
    if inner.get("restartPolicy") != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", inner.get("restartPolicy"), ["Always"]))
    if inner.get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in StatefulSet is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return errors


def _status(status: Document) -> list[FieldError]:
    errors = []
    for field in _COUNTS:
        errors += not_negative(f"status.{field}", status.get(field))
    replicas = status.get("replicas") or 0
    for field in ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"):
        if (status.get(field) or 0) > replicas:
            errors.append(invalid(f"status.{field}", status[field], "cannot be greater than status.replicas"))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", available, "cannot be greater than status.readyReplicas"))
    return errors


STRATEGIES = (
    StatefulSet(
        kind(
            "io.k8s.api.apps.v1.StatefulSet",
            "statefulsets",
            group="apps",
            short=("sts",),
            categories=("all",),
            status=True,
            scale=Scale(".spec.replicas", ".status.replicas", ".spec.selector"),
        )
    ),
)

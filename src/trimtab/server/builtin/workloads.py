"""What kinds with a template of pods share: columns, the status of replicas, a warning about names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError, StatusError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems
from trimtab.model.selectors import LabelSelector
from trimtab.server.builtin.problems import at, invalid, not_negative
from trimtab.server.strategy import Document

CONTAINERS = (
    Column("Containers", "", priority=1, description="Names of each container in the template."),
    Column("Images", "", priority=1, description="Images referenced by each container in the template."),
)
WIDE = (*CONTAINERS, Column("Selector", ".spec.selector", priority=1))
_COUNTS = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
           "unavailableReplicas", "fullyLabeledReplicas", "collisionCount")  # fmt: skip


def containers_of(template: Any) -> tuple[str, str]:
    """The names of a template's containers, and their images."""
    containers = at(template, "spec", "containers") or []
    return (
        ",".join(container.get("name", "") for container in containers),
        ",".join(container.get("image", "") for container in containers),
    )


def selector_text(selector: Document | None) -> str:
    """A label selector as a table shows it."""
    try:
        return str(LabelSelector.from_document(selector)) or "<none>"
    except StatusError:
        return "<error>"


def labels_text(labels: Document | None) -> str:
    """Labels as a table shows them."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def selected(selector: Document | None, labels: Document | None) -> bool:
    """Whether a selector chooses labels. One that cannot be read is complained of elsewhere."""
    try:
        chosen = LabelSelector.from_document(selector)
    except StatusError:
        return True
    return not chosen.nothing and chosen.matches(labels or {})


def inherit_labels(obj: Document) -> None:
    """An object without labels has those of its template."""
    labels = at(obj, "spec", "template", "metadata", "labels")
    if isinstance(labels, dict) and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)


def replicas_problems(status: Document) -> list[FieldError]:
    """What the status of a kind with replicas must fulfil: no count is negative, no part is more than the whole."""
    errors = []
    for field in _COUNTS:
        errors += not_negative(f"status.{field}", status.get(field))
    replicas = status.get("replicas") or 0
    for field in ("updatedReplicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        if (status.get(field) or 0) > replicas:
            errors.append(invalid(f"status.{field}", status[field], "cannot be greater than status.replicas"))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return errors


def name_warnings(new: Document, old: Document | None) -> Sequence[str]:
    """Names of pods are made of the name; they should be those of hosts."""
    problems = dns_label_problems(new["metadata"].get("name", "")) if old is None else []
    if not problems:
        return ()
    why = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
    return (f"metadata.name: {why}: [{' '.join(problems)}]",)

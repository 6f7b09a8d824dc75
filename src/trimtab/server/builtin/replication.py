"""ReplicationController, the elder of ReplicaSet: its selector is a plain map of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column, Scale
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.pod import complete_template, template_problems
from trimtab.server.builtin.problems import at, forbidden, invalid_go, not_negative, required, unsupported
from trimtab.server.builtin.workloads import (
    WIDE,
    containers_of,
    inherit_labels,
    labels_text,
    name_warnings,
    replicas_problems,
)
from trimtab.server.strategy import Document


class ReplicationController(Native):
    has_generation = True
    orphans = True
    selectable: Mapping[str, str] = {"status.replicas": "status.replicas"}
    shown = (
        NAME,
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        AGE,
        *WIDE,
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        inherit_labels(new)

    def complete(self, obj: Document) -> None:
        """Labels of the template are the selector and the labels of the object, where those are not given."""
        template, spec = at(obj, "spec", "template"), obj.get("spec")
        complete_template(template)
        labels = at(template, "metadata", "labels")
        if isinstance(labels, dict) and isinstance(spec, dict) and not spec.get("selector"):
            spec["selector"] = dict(labels)
        inherit_labels(obj)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return replicas_problems(new.get("status") or {})
        spec = new.get("spec") or {}
        selector, template = spec.get("selector") or {}, spec.get("template")
        errors = not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        if not selector:
            errors.append(required("spec.selector"))
        errors += not_negative("spec.replicas", spec.get("replicas"))
        if template is None:
            return [*errors, required("spec.template")]
        labels = at(template, "metadata", "labels")
        if not selector.items() <= (labels or {}).items():
            why = "`selector` does not match template `labels`"
            errors.append(invalid_go("spec.template.metadata.labels", gosource.string_map(labels), why))
        errors += template_problems(template, "spec.template")
        inner = template.get("spec") or {}
        if inner.get("restartPolicy") != "Always":
            errors.append(unsupported("spec.template.spec.restartPolicy", inner.get("restartPolicy"), ["Always"]))
        if inner.get("activeDeadlineSeconds") is not None:
            why = "activeDeadlineSeconds in ReplicationController is not Supported"
            errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
        return errors

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return name_warnings(new, old)

    def fields(self, obj: Document) -> dict[str, str]:
        return {"status.replicas": str(at(obj, "status", "replicas") or 0)}

    def row(self, obj: Document) -> Sequence[Any]:
        status = obj.get("status") or {}
        return (at(obj, "spec", "replicas") or 0, status.get("replicas") or 0, status.get("readyReplicas") or 0)

    def wide(self, obj: Document) -> Sequence[Any]:
        return (*containers_of(at(obj, "spec", "template")), labels_text(at(obj, "spec", "selector")))


STRATEGIES = (
    ReplicationController(
        kind(
            "io.k8s.api.core.v1.ReplicationController",
            "replicationcontrollers",
            short=("rc",),
            categories=("all",),
            status=True,
            scale=Scale(".spec.replicas", ".status.replicas", ".spec.selector", plain_labels=True),
        )
    ),
)

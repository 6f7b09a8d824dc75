"""Deployment, ReplicaSet, ControllerRevision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError, StatusError
from trimtab.model.kind import Column, Scale
from trimtab.model.selectors import LabelSelector
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.pod import complete_template, template_problems
from trimtab.server.builtin.problems import (
    at,
    at_most_all,
    forbidden,
    int_or_percent,
    invalid,
    invalid_go,
    label_selector,
    not_negative,
    required,
    unsupported,
)
from trimtab.server.builtin.workloads import WIDE, containers_of, name_warnings, replicas_problems, selector_text
from trimtab.server.strategy import Document


class Deployment(Native):
    has_generation = True
    shown = (
        NAME,
        Column("Ready", "", description="Number of the pod with ready state"),
        Column("Up-to-date", ".status.updatedReplicas"),
        Column("Available", ".status.availableReplicas"),
        AGE,
        *WIDE,
    )

    def bumps_generation(self, new: Document, old: Document) -> bool:
        """Annotations count: they are copied to the ReplicaSets."""
        annotations = (at(one, "metadata", "annotations") or {} for one in (new, old))
        return super().bumps_generation(new, old) or next(annotations) != next(annotations)

    def complete(self, obj: Document) -> None:
        complete_template(at(obj, "spec", "template"))
        strategy = at(obj, "spec", "strategy")
        if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
            given = strategy.get("rollingUpdate")
            if given is None or isinstance(given, dict):
                strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **(given or {})}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return replicas_problems(new.get("status") or {})
        spec = new.get("spec") or {}
        errors = not_negative("spec.replicas", spec.get("replicas"))
        errors += _selector_and_template(spec)
        errors += _strategy(spec.get("strategy") or {}, "spec.strategy")
        for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            errors += not_negative(f"spec.{field}", spec.get(field))
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
            why = "must be greater than minReadySeconds"
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, why))
        return errors + _same_selector(spec, old)

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return name_warnings(new, old)

    def row(self, obj: Document) -> Sequence[Any]:
        status = obj.get("status") or {}
        desired = at(obj, "spec", "replicas") or 0
        ready = f"{status.get('readyReplicas') or 0}/{desired}"
        return (ready, status.get("updatedReplicas") or 0, status.get("availableReplicas") or 0)

    def wide(self, obj: Document) -> Sequence[Any]:
        return _wide(obj)


class ReplicaSet(Native):
    has_generation = True
    selectable: Mapping[str, str] = {"status.replicas": "status.replicas"}
    shown = (
        NAME,
        Column("Desired", ".spec.replicas", "integer"),
        Column("Current", ".status.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        AGE,
        *WIDE,
    )

    def complete(self, obj: Document) -> None:
        complete_template(at(obj, "spec", "template"))

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return replicas_problems(new.get("status") or {})
        spec = new.get("spec") or {}
        errors = not_negative("spec.replicas", spec.get("replicas"))
        errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        errors += _selector_and_template(spec)
        return errors + _same_selector(spec, old)

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return name_warnings(new, old)

    def fields(self, obj: Document) -> dict[str, str]:
        return {"status.replicas": str(at(obj, "status", "replicas") or 0)}

    def row(self, obj: Document) -> Sequence[Any]:
        status = obj.get("status") or {}
        return (at(obj, "spec", "replicas") or 0, status.get("replicas") or 0, status.get("readyReplicas") or 0)

    def wide(self, obj: Document) -> Sequence[Any]:
        return _wide(obj)


class ControllerRevision(Native):
    shown = (
        NAME,
        Column("Controller", "", description="Controller of the object"),
        Column("Revision", ".revision"),
        AGE,
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = not_negative("revision", new.get("revision"))
        if old is not None:
            if new.get("data") != old.get("data"):
                errors.append(invalid_go("data", gosource.raw_extension(new.get("data")), "field is immutable"))
            return errors
        if new.get("data") is None:
            errors.append(required("data", "data is mandatory"))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        owner = next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)
        controller = "<none>"
        if owner is not None:
            group = owner.get("apiVersion", "").rpartition("/")[0]
            controller = f"{owner.get('kind', '').lower()}{'.' + group if group else ''}/{owner.get('name', '')}"
        return (controller, obj.get("revision") or 0)


def _selector_and_template(spec: Document) -> list[FieldError]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            why = "empty selector is invalid for deployment"
            errors.append(invalid_go("spec.selector", gosource.label_selector(selector), why))
    try:
        chosen = LabelSelector.from_document(selector)
    except StatusError:
        return [*errors, invalid_go("spec.selector", gosource.label_selector(selector), "invalid label selector")]
    labels = at(template, "metadata", "labels")
    if not chosen.empty and not chosen.matches(labels or {}):
        why = "`selector` does not match template `labels`"
        errors.append(invalid_go("spec.template.metadata.labels", gosource.string_map(labels), why))
    errors += template_problems(template, "spec.template")
    inner = template.get("spec") or {}
    if inner.get("restartPolicy") != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", inner.get("restartPolicy"), ["Always"]))
    if inner.get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return errors


def _same_selector(spec: Document, old: Document | None) -> list[FieldError]:
    if old is None or spec.get("selector") == at(old, "spec", "selector"):
        return []
    return [invalid_go("spec.selector", gosource.label_selector(spec.get("selector")), "field is immutable")]


def _strategy(strategy: Document, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            why = "may not be specified when strategy `type` is 'Recreate'"
            return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", why)]
        case "RollingUpdate":
            here = f"{path}.rollingUpdate"
            down, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
            errors = int_or_percent(f"{here}.maxUnavailable", down) + int_or_percent(f"{here}.maxSurge", surge)
            if down in (0, "0%") and surge in (0, "0%"):
                why = "may not be 0 when `maxSurge` is 0"
                errors.append(invalid_go(f"{here}.maxUnavailable", gosource.int_or_string(down), why))
            return errors + at_most_all(f"{here}.maxUnavailable", down)
    shown = (
        f'apps.DeploymentStrategy{{Type:"{strategy.get("type")}", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}}'
    )
    return [invalid_go(path, shown, 'supported values: "Recreate", "RollingUpdate"')]


def _wide(obj: Document) -> Sequence[Any]:
    return (*containers_of(at(obj, "spec", "template")), selector_text(at(obj, "spec", "selector")))


_SCALE = Scale(".spec.replicas", ".status.replicas", ".spec.selector")
STRATEGIES = (
    ControllerRevision(kind("io.k8s.api.apps.v1.ControllerRevision", "controllerrevisions", group="apps")),
    Deployment(
        kind(
            "io.k8s.api.apps.v1.Deployment",
            "deployments",
            group="apps",
            short=("deploy",),
            categories=("all",),
            status=True,
            scale=_SCALE,
        )
    ),
    ReplicaSet(
        kind(
            "io.k8s.api.apps.v1.ReplicaSet",
            "replicasets",
            group="apps",
            short=("rs",),
            categories=("all",),
            status=True,
            scale=_SCALE,
        )
    ),
)

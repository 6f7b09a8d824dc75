"""HorizontalPodAutoscaler of `autoscaling/v2`. Nothing scales by itself here: it is stored, checked and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column, Kind
from trimtab.server.builtin.autoscaling_rules import SOURCES, behavior_problems, metric_problems, reference_problems
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, forbidden, invalid, items, not_negative
from trimtab.server.builtin.quantities import canonical
from trimtab.server.strategy import Document

_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [_PERCENT]}
ROUND_TRIP = tuple(
    f"autoscaling.alpha.kubernetes.io/{name}" for name in ("metrics", "behavior", "current-metrics", "conditions")
)
"""The annotations in which v1 shows what it has no fields for."""


class HorizontalPodAutoscaler(Native):
    shown = (
        NAME,
        Column("Reference", ".spec.scaleTargetRef"),
        Column("Targets", ".spec.metrics"),
        Column("MinPods", ".spec.minReplicas"),
        Column("MaxPods", ".spec.maxReplicas"),
        Column("Replicas", ".status.currentReplicas"),
        AGE,
    )

    def complete(self, obj: Document) -> None:
        _drop_round_trip(obj.get("metadata") or {})
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        if not spec.get("metrics"):
            spec["metrics"] = [_CPU]
        behavior = spec.get("behavior")
        if isinstance(behavior, dict):
            for field, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
                given = behavior.get(field)
                if given is None or isinstance(given, dict):
                    behavior[field] = {**rules, **(given or {})}
        for metric in items(spec, "metrics"):
            for source in SOURCES.values():
                target = at(metric, source, "target")
                for field in ("value", "averageValue"):
                    if isinstance(target, dict) and field in target:
                        target[field] = canonical(target[field])

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            status = new.get("status") or {}
            errors = not_negative("status.currentReplicas", status.get("currentReplicas"))
            return errors + not_negative("status.desiredReplicas", status.get("desiredReplicas"))
        spec = new.get("spec") or {}
        errors = []
        least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
        bound = 0 if at(old, "spec", "minReplicas") == 0 else 1
        if least is not None and least < bound:
            errors.append(invalid("spec.minReplicas", least, f"must be greater than or equal to {bound}"))
        if most < 1:
            errors.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
        if least is not None and most < least:
            errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        errors += reference_problems(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
        for index, metric in enumerate(spec.get("metrics") or []):
            errors += metric_problems(metric, f"spec.metrics[{index}]")
        if least == 0 and not any(m.get("type") in ("Object", "External") for m in spec.get("metrics") or []):
            why = "must specify at least one Object or External metric to support scaling to zero replicas"
            errors.append(forbidden("spec.metrics", why))
        return errors + behavior_problems(spec.get("behavior") or {}, "spec.behavior")

    def row(self, obj: Document) -> Sequence[Any]:
        spec, ref = obj.get("spec") or {}, at(obj, "spec", "scaleTargetRef") or {}
        least = spec.get("minReplicas")
        return (
            f"{ref.get('kind', '')}/{ref.get('name', '')}",
            _targets(spec.get("metrics") or [], at(obj, "status", "currentMetrics") or []),
            "<unset>" if least is None else str(least),
            spec.get("maxReplicas") or 0,
            at(obj, "status", "currentReplicas") or 0,
        )


def without_round_trip(annotations: dict[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (annotations or {}).items() if name not in ROUND_TRIP}


def _drop_round_trip(metadata: Document) -> None:
    annotations = metadata.get("annotations") or {}
    if not annotations.keys().isdisjoint(ROUND_TRIP):
        kept = without_round_trip(annotations)
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]


def _targets(metrics: list[Document], current: list[Document]) -> str:
    if not metrics:
        return "<none>"
    texts = [_target(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


def _target(metric: Document, status: Document) -> str:
    source = SOURCES.get(metric.get("type", ""))
    if source is None:
        return "<unknown type>"
    target, now = at(metric, source, "target") or {}, at(status, source, "current") or {}
    average = target.get("averageValue")
    if source in ("resource", "containerResource"):
        name = at(metric, source, "name")
        if average is not None:
            return f"{name}: {now.get('averageValue') or '<unknown>'}/{average}"
        used, wanted = now.get("averageUtilization"), target.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}%"
        return f"{name}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if source == "pods":
        return f"{now.get('averageValue') or '<unknown>'}/{average}"
    if average is not None:
        return f"{now.get('averageValue') or '<unknown>'}/{average} (avg)"
    return f"{now.get('value') or '<unknown>'}/{target.get('value')}"


def served_kind(version: str) -> Kind:
    return kind(
        f"io.k8s.api.autoscaling.{version}.HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        group="autoscaling",
        short=("hpa",),
        categories=("all",),
        status=True,
    )


V2 = HorizontalPodAutoscaler(served_kind("v2"))

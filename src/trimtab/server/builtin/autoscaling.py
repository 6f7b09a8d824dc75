"""HorizontalPodAutoscaler. Nothing scales by itself here: it is stored, checked and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin import names
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, forbidden, invalid, items, not_negative, required, unsupported
from trimtab.server.builtin.quantities import canonical
from trimtab.server.strategy import Document

SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [_PERCENT]}


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
        ref = spec.get("scaleTargetRef") or {}
        for field in ("kind", "name"):
            path, value = f"spec.scaleTargetRef.{field}", ref.get(field)
            errors += each(path, value, names.path_segment(value)) if value else [required(path)]
        for index, metric in enumerate(spec.get("metrics") or []):
            errors += _metric(metric, f"spec.metrics[{index}]")
        if least == 0 and not any(m.get("type") in ("Object", "External") for m in spec.get("metrics") or []):
            why = "must specify at least one Object or External metric to support scaling to zero replicas"
            errors.append(forbidden("spec.metrics", why))
        return errors

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


def _metric(metric: Document, path: str) -> list[FieldError]:
    what = metric.get("type") or ""
    errors = [] if what else [required(f"{path}.type", "must specify a metric source type")]
    expected = SOURCES.get(what)
    if expected is None:
        return [*errors, unsupported(f"{path}.type", what, SOURCES)]
    given = [source for source in SOURCES.values() if metric.get(source) is not None]
    if given == ["resource"]:
        errors += _resource(metric["resource"], f"{path}.resource")
    if expected not in given:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(given) != 1:
        why = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{source}", why) for source in given if source != expected]
    return errors


def _resource(source: Document, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    target, here = source.get("target") or {}, f"{path}.target"
    what = target.get("type") or ""
    if not what:
        errors.append(required(f"{here}.type", "must specify a metric target type"))
    if what not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{here}.type", what, "must be either Utilization, Value, or AverageValue"))
    utilization, value = target.get("averageUtilization"), target.get("averageValue")
    if utilization is not None and utilization < 1:
        errors.append(invalid(f"{here}.averageUtilization", utilization, "must be greater than 0"))
    if utilization is None and value is None:
        why = "must set either a target raw value or a target utilization"
        errors.append(required(f"{here}.averageUtilization", why))
    if utilization is not None and value is not None:
        why = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{here}.averageValue", why))
    return errors


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


STRATEGIES = (
    HorizontalPodAutoscaler(
        kind(
            "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            group="autoscaling",
            short=("hpa",),
            categories=("all",),
            status=True,
        )
    ),
)

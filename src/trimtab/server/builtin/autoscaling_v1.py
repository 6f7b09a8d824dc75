"""HorizontalPodAutoscaler of `autoscaling/v1`, which has one CPU target only. It is stored as v2.

What v1 has no fields for travels in annotations, written as the real server writes them; an annotation that cannot be
read counts as absent. A trip through v1 puts the CPU target behind the other metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from trimtab.model.errors import FieldError
from trimtab.server.builtin.autoscaling import ROUND_TRIP, V2, HorizontalPodAutoscaler, served_kind, without_round_trip
from trimtab.server.builtin.autoscaling_v1_metrics import MEASURED, WANTED, Words, deep, flat
from trimtab.server.builtin.defaults import completed, completed_status
from trimtab.server.builtin.problems import at
from trimtab.server.strategy import Document

DEFAULT_UTILIZATION = 80


class HorizontalPodAutoscalerV1(HorizontalPodAutoscaler):
    """Every hook is v2's, asked about the same object in the form of v2."""

    def to_storage(self, obj: Document) -> Document:
        return v2_form(obj)

    def from_storage(self, obj: Document) -> Document:
        shown = v1_form(obj)
        completed(self.definition)(shown)
        return shown

    def complete(self, obj: Document) -> None:
        _become(obj, v2_form(obj))

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        form = v2_form(new)
        V2.prepare(form, None if old is None else v2_form(old), subresource)
        _become(new, form)
        completed_status(self.definition)(new)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        return V2.validate(v2_form(new), None if old is None else v2_form(old), subresource)

    def row(self, obj: Document) -> Sequence[Any]:
        return V2.row(v2_form(obj))


_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS = ROUND_TRIP
_CONDITION = {"type": "", "status": "", "lastTransitionTime": None}


def v1_form(obj: Document) -> Document:
    """An autoscaler of v2, as v1 shows it."""
    spec, status = _fields(obj, "spec"), _fields(obj, "status")
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None) or []
    cpu = [at(metric, "resource", "target", "averageUtilization") for metric in metrics if _is_cpu(metric)]
    if cpu:
        spec["targetCPUUtilizationPercentage"] = cpu[0]
    used = [at(one, "resource", "current", "averageUtilization") for one in current if _measures_cpu(one)]
    if used and used[-1] is not None:
        status["currentCPUUtilizationPercentage"] = used[-1]
    annotations = without_round_trip(at(obj, "metadata", "annotations"))
    for name, value in (
        (_METRICS, [flat(metric, WANTED) for metric in metrics if not _is_cpu(metric)]),
        (_CURRENT, [flat(one, MEASURED) for one in current]),
        (_BEHAVIOR, {_capital(way): _capitals(behavior.get(way)) for way in _WAYS} if behavior is not None else None),
        (_CONDITIONS, [{**_CONDITION, **condition} for condition in conditions]),
    ):
        if value:
            annotations[name] = _go_json(value)
    return _formed(obj, spec, status, annotations)


def v2_form(obj: Document) -> Document:
    """An autoscaler of v1 as v2 shows it, with the metric that is watched when none is named."""
    spec, status = _fields(obj, "spec"), _fields(obj, "status")
    annotations = at(obj, "metadata", "annotations") or {}
    wanted, used = spec.pop("targetCPUUtilizationPercentage", None), status.pop("currentCPUUtilizationPercentage", None)
    metrics = _read_metrics(annotations.get(_METRICS), WANTED, ("spec", "metrics")) or []
    if wanted is not None or not metrics:
        share = DEFAULT_UTILIZATION if wanted is None else wanted
        target = {"type": "Utilization", "averageUtilization": share}
        metrics = [*metrics, {"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec["metrics"] = metrics
    behavior = _read(annotations.get(_BEHAVIOR), ("spec", "behavior"), _small)
    if behavior:
        spec["behavior"] = behavior
    if used is not None:
        cpu = {"name": "cpu", "current": {"averageUtilization": used}}
        status["currentMetrics"] = [{"type": "Resource", "resource": cpu}]
    current = _read_metrics(annotations.get(_CURRENT), MEASURED, ("status", "currentMetrics"))
    if current is not None:
        status["currentMetrics"] = current
    conditions = _read(annotations.get(_CONDITIONS), ("status", "conditions"))
    if conditions:
        status["conditions"] = conditions
    shown = _formed(obj, spec, status, without_round_trip(annotations))
    completed(V2.definition)(shown)
    V2.complete(shown)
    return shown


def _fields(obj: Document, part: str) -> Document:
    found = obj.get(part)
    return dict(found) if isinstance(found, dict) else {}


def _formed(obj: Document, spec: Document, status: Document, annotations: dict[str, str]) -> Document:
    metadata = {field: value for field, value in obj["metadata"].items() if field != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    shown = {**obj, "metadata": metadata, "spec": spec, "status": status}
    if not status and "status" not in obj:
        del shown["status"]
    return shown


def _become(obj: Document, v2: Document) -> None:
    """Make a v1 object, in place, the one that has this form in v2."""
    shown, metadata = v1_form(v2), obj["metadata"]
    metadata.pop("annotations", None)
    metadata |= shown.pop("metadata")
    obj.pop("status", None)
    obj |= shown


def _is_cpu(metric: Document) -> bool:
    """Whether v1 has a field for this metric."""
    return _measures_cpu(metric) and at(metric, "resource", "target", "averageUtilization") is not None


def _measures_cpu(metric: Document) -> bool:
    return metric.get("type") == "Resource" and at(metric, "resource", "name") == "cpu"


def _read_metrics(text: str | None, table: Words, path: tuple[str, str]) -> Any:
    return _read(text, path, lambda metrics: [deep(metric, table) for metric in metrics])


def _read(text: str | None, path: tuple[str, str], convert: Any = None) -> Any:
    """What an annotation says, if it fits the field of v2 that it stands for."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
        if convert is not None and value is not None:
            value = convert(value)
    except (ValueError, TypeError, AttributeError):
        return None
    return None if V2.kind.schema.walk({path[0]: {path[1]: value}}).errors else value


_WAYS = ("scaleUp", "scaleDown")
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies")
_POLICY = ("type", "value", "periodSeconds")
_SMALL = {name.lower(): name for name in (*_WAYS, *_RULES, *_POLICY)}


def _capitals(rules: Document | None) -> Document | None:
    """Scaling rules as Go writes a struct without tags: fields begin with capitals, and none is left out."""
    if rules is None:
        return None
    shown = {_capital(field): rules.get(field) for field in _RULES}
    if rules.get("policies") is not None:
        shown["Policies"] = [{_capital(field): policy.get(field) for field in _POLICY} for policy in rules["policies"]]
    return shown


def _capital(field: str) -> str:
    return field[0].upper() + field[1:]


def _small(value: Any) -> Any:
    """Fields as JSON has them, in whatever case they were written; those that are null are absent."""
    if isinstance(value, list):
        return [_small(one) for one in value]
    if isinstance(value, dict):
        return {_SMALL.get(f.lower(), f): _small(one) for f, one in value.items() if one is not None}
    return value


_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def _go_json(value: Any) -> str:
    """As Go encodes JSON: with what HTML would misread written as escapes."""
    return orjson.dumps(value).decode().translate(_ESCAPED)


V1 = HorizontalPodAutoscalerV1(served_kind("v1"))

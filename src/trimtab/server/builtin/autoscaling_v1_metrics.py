"""The metrics of a HorizontalPodAutoscaler in the words of `autoscaling/v1`, where each source is flat, and back."""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.server.builtin.problems import at
from trimtab.server.builtin.quantities import canonical
from trimtab.server.strategy import Document


class _Field(NamedTuple):
    """One field of a metric in v1, and where v2 has it. `zero` is what it is when nobody set it; None: absent."""

    name: str
    path: tuple[str, str] | tuple[str]
    zero: Any = None


_METRIC, _SELECTOR = _Field("metricName", ("metric", "name"), ""), _Field("selector", ("metric", "selector"))
_EXTERNAL_SELECTOR = _Field("metricSelector", ("metric", "selector"))
_OBJECT = _Field("target", ("describedObject",), {"kind": "", "name": ""})
_NAME, _CONTAINER = _Field("name", ("name",), ""), _Field("container", ("container",), "")

Words = dict[str, tuple[_Field, ...]]
"""By source, in the order in which Go writes them."""

WANTED: Words = {
    "object": (
        _OBJECT,
        _METRIC,
        _Field("targetValue", ("target", "value"), "0"),
        _SELECTOR,
        _Field("averageValue", ("target", "averageValue")),
    ),
    "pods": (_METRIC, _Field("targetAverageValue", ("target", "averageValue"), "0"), _SELECTOR),
    "resource": (
        _NAME,
        _Field("targetAverageUtilization", ("target", "averageUtilization")),
        _Field("targetAverageValue", ("target", "averageValue")),
    ),
    "containerResource": (
        _NAME,
        _Field("targetAverageUtilization", ("target", "averageUtilization")),
        _Field("targetAverageValue", ("target", "averageValue")),
        _CONTAINER,
    ),
    "external": (
        _METRIC,
        _EXTERNAL_SELECTOR,
        _Field("targetValue", ("target", "value")),
        _Field("targetAverageValue", ("target", "averageValue")),
    ),
}
MEASURED: Words = {
    "object": (
        _OBJECT,
        _METRIC,
        _Field("currentValue", ("current", "value"), "0"),
        _SELECTOR,
        _Field("averageValue", ("current", "averageValue")),
    ),
    "pods": (_METRIC, _Field("currentAverageValue", ("current", "averageValue"), "0"), _SELECTOR),
    "resource": (
        _NAME,
        _Field("currentAverageUtilization", ("current", "averageUtilization")),
        _Field("currentAverageValue", ("current", "averageValue"), "0"),
    ),
    "containerResource": (
        _NAME,
        _Field("currentAverageUtilization", ("current", "averageUtilization")),
        _Field("currentAverageValue", ("current", "averageValue"), "0"),
        _CONTAINER,
    ),
    "external": (
        _METRIC,
        _EXTERNAL_SELECTOR,
        _Field("currentValue", ("current", "value"), "0"),
        _Field("currentAverageValue", ("current", "averageValue")),
    ),
}


def flat(metric: Document, table: Words) -> Document:
    """A metric of v2 in the words of v1."""
    shown: Document = {"type": metric.get("type") or ""}
    for source, fields in table.items():
        given = metric.get(source)
        if given is None:
            continue
        values = ((field.name, at(given, *field.path), field.zero) for field in fields)
        shown[source] = {
            name: zero if value is None else value
            for name, value, zero in values
            if value or zero is not None or value is not None
        }
    return shown


def deep(metric: Document, table: Words) -> Document:
    """A metric of v1 in the words of v2."""
    shown: Document = {"type": metric.get("type") or ""}
    for source, fields in table.items():
        given = metric.get(source)
        if given is None:
            continue
        inner: Document = {"target": {"type": ""}} if table is WANTED else {"current": {}}
        for field in fields:
            value = _or(given.get(field.name), field.zero)
            if value is not None:
                *above, last = field.path
                place = inner.setdefault(above[0], {}) if above else inner
                place[last] = canonical(value) if last in ("value", "averageValue") else value
        if table is WANTED:
            inner["target"]["type"] = _target_type(source, inner["target"])
        shown[source] = inner
    return shown


def _or(value: Any, zero: Any) -> Any:
    return zero if value is None else value


def _target_type(source: str, target: Document) -> str:
    match source:
        case "resource" | "containerResource":
            return "Utilization" if "averageUtilization" in target else "AverageValue"
        case "object":
            return "AverageValue" if "averageValue" in target else "Value"
        case "external":
            return "Value" if "value" in target else "AverageValue"
    return "AverageValue"

"""What the metrics and the behavior of a HorizontalPodAutoscaler must be."""

from __future__ import annotations

from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.metadata import dns_label_problems, path_segment_name
from trimtab.model.quantity import Quantity
from trimtab.server.builtin import gosource
from trimtab.server.builtin.problems import at, each, forbidden, invalid, invalid_go, required, unsupported
from trimtab.server.builtin.quantities import resource_name_problems
from trimtab.server.strategy import Document

SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
POLICIES, SELECTIONS = ("Percent", "Pods"), ("Disabled", "Max", "Min")
MAX_WINDOW, MAX_PERIOD = 3600, 1800


def metric_problems(metric: Document, path: str) -> list[FieldError]:
    what = metric.get("type") or ""
    errors = [] if what else [required(f"{path}.type", "must specify a metric source type")]
    expected = SOURCES.get(what)
    if expected is None:
        errors.append(unsupported(f"{path}.type", what, SOURCES))
    given = [source for source in _CHECKED if metric.get(source) is not None]
    if given:  # the real server looks into the first one only
        errors += _source(given[0], metric[given[0]], f"{path}.{given[0]}")
    if expected is not None and expected not in given:
        errors.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(given) != 1:
        why = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{source}", why) for source in given if source != expected]
    return errors


_CHECKED = ("object", "external", "pods", "resource", "containerResource")


def reference_problems(ref: Document, path: str) -> list[FieldError]:
    errors = []
    for field in ("kind", "name"):
        where, value = f"{path}.{field}", ref.get(field)
        errors += each(where, value, path_segment_name(value, False)) if value else [required(where)]
    return errors


def behavior_problems(behavior: Document, path: str) -> list[FieldError]:
    errors = []
    for way in ("scaleUp", "scaleDown"):
        if behavior.get(way) is not None:
            errors += _rules(behavior[way], f"{path}.{way}")
    return errors


def _source(source: str, given: Document, path: str) -> list[FieldError]:
    errors = (
        reference_problems(given.get("describedObject") or {}, f"{path}.describedObject") if source == "object" else []
    )
    if source in ("object", "external", "pods"):
        name, where = at(given, "metric", "name"), f"{path}.metric.name"
        errors += (
            each(where, name, path_segment_name(name, False))
            if name
            else [required(where, "must specify a metric name")]
        )
    else:
        errors += _resource(source, given, path)
    target, here = given.get("target") or {}, f"{path}.target"
    return errors + _target(target, here) + _aim(source, target, here)


def _resource(source: str, given: Document, path: str) -> list[FieldError]:
    name, container = given.get("name") or "", given.get("container") or ""
    errors = [] if name else [required(f"{path}.name", "must specify a resource name")]
    if source == "containerResource":
        errors += resource_name_problems(name, f"{path}.name") if name else []
        where = f"{path}.container"
        found = each(where, container, dns_label_problems(container))
        errors += found if container else [required(where, "must specify a container")]
    return errors


def _target(target: Document, path: str) -> list[FieldError]:
    what = target.get("type") or ""
    errors = [] if what else [required(f"{path}.type", "must specify a metric target type")]
    if what not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid(f"{path}.type", what, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and not Quantity(amount) > Quantity(0):
            errors.append(invalid_go(f"{path}.{field}", gosource.quantity(amount), "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _aim(source: str, target: Document, path: str) -> list[FieldError]:
    """Which of its fields a target must have, and which not together."""
    value, average, share = (target.get(field) is not None for field in ("value", "averageValue", "averageUtilization"))
    match source:
        case "object":
            why = "must set either a target value or averageValue"
            return [] if value or average else [required(f"{path}.averageValue", why)]
        case "external":
            if value and average:
                return [forbidden(f"{path}.value", "may not set both a target value for metric and a per-pod target")]
            why = "must set either a target value for metric or a per-pod target"
            return [] if value or average else [required(f"{path}.averageValue", why)]
        case "pods":
            return [] if average else [required(f"{path}.averageValue", "must specify a positive target averageValue")]
    if share and average:
        return [forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")]
    why = "must set either a target raw value or a target utilization"
    return [] if share or average else [required(f"{path}.averageUtilization", why)]


def _rules(rules: Document, path: str) -> list[FieldError]:
    errors = []
    window: Any = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > MAX_WINDOW:
        why = f"must be less than or equal to {MAX_WINDOW}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    selection = rules.get("selectPolicy")
    if selection is not None and selection not in SELECTIONS:
        errors.append(unsupported(f"{path}.selectPolicy", selection, SELECTIONS))
    if not rules.get("policies"):
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules.get("policies") or []):
        errors += _policy(policy, f"{path}.policies[{index}]")
    return errors


def _policy(policy: Document, path: str) -> list[FieldError]:
    what = policy.get("type") or ""
    errors = [] if what in POLICIES else [unsupported(f"{path}.type", what, POLICIES)]
    numbers = {field: policy.get(field) or 0 for field in ("value", "periodSeconds")}
    errors += [invalid(f"{path}.{f}", n, "must be greater than zero") for f, n in numbers.items() if n <= 0]
    if numbers["periodSeconds"] > MAX_PERIOD:
        errors.append(
            invalid(f"{path}.periodSeconds", numbers["periodSeconds"], f"must be less than or equal to {MAX_PERIOD}")
        )
    return errors

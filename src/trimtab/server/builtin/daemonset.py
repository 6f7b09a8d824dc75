"""DaemonSet. Nothing starts its pods here: there are no nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.pod import complete_template, template_problems
from trimtab.server.builtin.problems import (
    at,
    at_most_all,
    digits,
    forbidden,
    int_or_percent,
    invalid,
    invalid_go,
    label_selector,
    not_negative,
    required,
    unsupported,
    unsupported_go,
)
from trimtab.server.builtin.workloads import WIDE, containers_of, labels_text, selected, selector_text
from trimtab.server.strategy import Document

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""How often the template has changed. Old versions of the API had a field for it; this one keeps it in an annotation."""
STRATEGIES_ALLOWED = ("RollingUpdate", "OnDelete")
_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSet(Native):
    has_generation = True
    shown = (
        NAME,
        Column("Desired", ".status.desiredNumberScheduled", "integer"),
        Column("Current", ".status.currentNumberScheduled", "integer"),
        Column("Ready", ".status.numberReady", "integer"),
        Column("Up-to-date", ".status.updatedNumberScheduled", "integer"),
        Column("Available", ".status.numberAvailable", "integer"),
        Column("Node Selector", ".spec.template.spec.nodeSelector"),
        AGE,
        *WIDE,
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        if old is None:
            count = max(_template_generation(new), 1)
        else:
            changed = at(new, "spec", "template") != at(old, "spec", "template")
            count = _template_generation(old) + changed
        _annotate(new, count)

    def complete(self, obj: Document) -> None:
        complete_template(at(obj, "spec", "template"))
        strategy = at(obj, "spec", "updateStrategy")
        if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
            given = strategy.get("rollingUpdate")
            if given is None or isinstance(given, dict):
                strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(given or {})}
        _annotate(obj, _template_generation(obj))

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return _status(new.get("status") or {}, at(old, "status") or {})
        spec = new.get("spec") or {}
        errors = _selector_and_template(spec)
        errors += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        errors += _strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
        errors += not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
        if old is not None and spec.get("selector") != at(old, "spec", "selector"):
            shown = gosource.label_selector(spec.get("selector"))
            errors.append(invalid_go("spec.selector", shown, "field is immutable"))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        status = obj.get("status") or {}
        counts = (
            status.get(field) or 0
            for field in ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
                          "numberAvailable")
        )  # fmt: skip
        return (*counts, labels_text(at(obj, "spec", "template", "spec", "nodeSelector")))

    def wide(self, obj: Document) -> Sequence[Any]:
        return (*containers_of(at(obj, "spec", "template")), selector_text(at(obj, "spec", "selector")))


def _template_generation(obj: Document) -> int:
    try:
        return int(at(obj, "metadata", "annotations", TEMPLATE_GENERATION) or 0)
    except (TypeError, ValueError):
        return 0


def _annotate(obj: Document, count: int) -> None:
    annotations = obj["metadata"].get("annotations")
    if annotations is None or isinstance(annotations, dict):
        obj["metadata"]["annotations"] = {**(annotations or {}), TEMPLATE_GENERATION: str(count)}


def _selector_and_template(spec: Document) -> list[FieldError]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = label_selector(selector, "spec.selector")
    labels = at(template, "metadata", "labels")
    if not selected(selector, labels):
        why = "`selector` does not match template `labels`"
        errors.append(invalid_go("spec.template.metadata.labels", gosource.string_map(labels), why))
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        why = "empty selector is invalid for daemonset"
        errors.append(invalid_go("spec.selector", gosource.label_selector(selector), why))
    errors += template_problems(template, "spec.template")
    inner = template.get("spec") or {}
    if inner.get("restartPolicy") != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", inner.get("restartPolicy"), ["Always"]))
    if inner.get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in DaemonSet is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return errors


def _strategy(strategy: Document, path: str) -> list[FieldError]:
    match strategy.get("type"):
        case "OnDelete":
            return []
        case "RollingUpdate":
            return _rolling(strategy.get("rollingUpdate") or {}, f"{path}.rollingUpdate")
    rolling = "(nil)" if strategy.get("rollingUpdate") is None else "{…}"
    kind = f'Type:"{strategy.get("type")}", RollingUpdate:(*apps.RollingUpdateDaemonSet){rolling}'
    return [unsupported_go(path, f"apps.DaemonSetUpdateStrategy{{{kind}}}", STRATEGIES_ALLOWED)]


def _rolling(rolling: Document, path: str) -> list[FieldError]:
    """Either fewer pods while they are replaced, or more; not both."""
    down, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = int_or_percent(f"{path}.maxUnavailable", down) + int_or_percent(f"{path}.maxSurge", surge)
    errors += at_most_all(f"{path}.maxUnavailable", down) + at_most_all(f"{path}.maxSurge", surge)
    if _number(down) and _number(surge):
        why = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid_go(f"{path}.maxSurge", gosource.int_or_string(surge), why))
    elif not _number(down) and not _number(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def _number(value: int | str) -> int:
    """The number in a count or a share; 0 where there is none."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    return digits(text) if text.isascii() and text.isdigit() else 0


def _status(status: Document, before: Document) -> list[FieldError]:
    errors = []
    for field in _COUNTS:
        errors += not_negative(f"status.{field}", status.get(field))
    now, last = status.get("collisionCount"), before.get("collisionCount")
    if last is not None and (now is None or now < last):
        errors.append(invalid("status.collisionCount", now or 0, "cannot be decremented"))
    return errors


STRATEGIES = (
    DaemonSet(
        kind(
            "io.k8s.api.apps.v1.DaemonSet",
            "daemonsets",
            group="apps",
            short=("ds",),
            categories=("all",),
            status=True,
        )
    ),
)

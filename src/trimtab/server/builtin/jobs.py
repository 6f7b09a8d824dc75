"""Job. Nothing starts its pods here; whoever does writes its status.

Which pods are a Job's own is decided by its uid: unless `manualSelector` is set, the server writes the labels of the
template and the selector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.clock import parse_time
from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.job_rules import INDEXED, NON_INDEXED, job_spec_problems
from trimtab.server.builtin.job_status import holds, status_problems
from trimtab.server.builtin.native import AGE, NAME, Native, human_duration, kind
from trimtab.server.builtin.pod import complete_template
from trimtab.server.builtin.problems import at, invalid, invalid_go, items, label_selector, required
from trimtab.server.builtin.workloads import WIDE, containers_of, inherit_labels, name_warnings, selected, selector_text
from trimtab.server.strategy import Document

PREFIX = "batch.kubernetes.io/"
CONTROLLER_UID, JOB_NAME = "controller-uid", "job-name"
MAX_INT32 = 2**31 - 1
FREE_WHILE_SUSPENDED = ("nodeSelector", "tolerations", "schedulingGates")
"""What of a template's spec may change before a Job has started: where its pods go."""
MANY = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might "
    "not be able to track completedIndexes when a big number of indexes fail"
)


class Job(Native):
    has_generation = True
    orphans = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    )
    selectable: Mapping[str, str] = {"status.successful": "status.successful"}
    unselectable = 'field label "{}" not supported for Job'
    shown = (
        NAME,
        Column("Status", "", description="Status of the job."),
        Column("Completions", ".status.succeeded"),
        Column("Duration", "", description="Time required to complete the job."),
        AGE,
        *WIDE,
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        if old is None and isinstance(spec := new.get("spec"), dict) and not spec.get("manualSelector"):
            _own_pods(new["metadata"], spec)
        if isinstance(labels := new["metadata"].get("labels"), dict):
            new["metadata"]["labels"] = dict(labels)
        inherit_labels(new)

    def complete(self, obj: Document) -> None:
        spec = obj.get("spec")
        complete_template(at(obj, "spec", "template"))
        if isinstance(spec, dict):
            _complete_spec(spec)
        labels = at(obj, "spec", "template", "metadata", "labels")
        if isinstance(labels, dict) and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = labels  # the very same: what `prepare` adds to the template's is in both

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return status_problems(new, old or {})
        spec = new.get("spec") or {}
        errors = _generated(new, old)
        errors += job_spec_problems(spec, "spec")
        errors += _selector(spec)
        errors += _host_name(new["metadata"].get("name", ""), spec)
        return errors if old is None else errors + _changed(spec, old)

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return (*name_warnings(new, old), *spec_warnings(new.get("spec"), at(old, "spec"), "spec"))

    def fields(self, obj: Document) -> dict[str, str]:
        return {"status.successful": str(at(obj, "status", "succeeded") or 0)}

    def row(self, obj: Document) -> Sequence[Any]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        done, wanted, at_once = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
        if wanted is not None:
            completions = f"{done}/{wanted}"
        else:
            completions = f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"
        return (_word(obj), completions, self._duration(status))

    def _duration(self, status: Document) -> str:
        start, end = status.get("startTime"), status.get("completionTime")
        if not start:
            return ""
        until = parse_time(end) if end else self.clock.now()
        return human_duration((until - parse_time(start)).total_seconds())

    def wide(self, obj: Document) -> Sequence[Any]:
        return (*containers_of(at(obj, "spec", "template")), selector_text(at(obj, "spec", "selector")))


def spec_warnings(spec: Document | None, before: Document | None, path: str) -> Sequence[str]:
    """What is told when the spec of a Job is new or changes."""
    if not spec or spec == before or spec.get("completionMode") != INDEXED:
        return ()
    many = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    return (f"{path}: {MANY}",) if many else ()


def _complete_spec(spec: dict[str, Any]) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {
        "parallelism": 1,
        "backoffLimit": 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32,
        "completionMode": NON_INDEXED,
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
        "manualSelector": False,
    }
    for field, value in defaults.items():
        if spec.get(field) is None:
            spec[field] = value
    for rule in items(spec, "podFailurePolicy", "rules"):
        for pattern in items(rule, "onPodConditions"):
            if not pattern.get("status"):
                pattern["status"] = "True"


def _own_pods(metadata: dict[str, Any], spec: dict[str, Any]) -> None:
    """Write the labels and the selector that make pods this Job's. What was given stays; validation judges it."""
    name, uid = metadata.get("name", ""), metadata.get("uid", "")
    labels = _map_in(spec, "template", "metadata", "labels")
    if labels is not None:
        for label, value in ((JOB_NAME, name), (CONTROLLER_UID, uid)):
            labels.setdefault(label, value)
            labels.setdefault(PREFIX + label, value)
    chosen = _map_in(spec, "selector", "matchLabels")
    if chosen is not None:
        chosen.setdefault(PREFIX + CONTROLLER_UID, uid)


def _map_in(document: Any, *path: str) -> dict[str, Any] | None:
    """The map deep in a document, made where there is none; None where something else stands in the way."""
    for step in path:
        if not isinstance(document, dict):
            return None
        if document.get(step) is None:
            document[step] = {}
        document = document[step]
    return document if isinstance(document, dict) else None


def _generated(job: Document, old: Document | None) -> list[FieldError]:
    """Whether labels and selector are those that the server writes."""
    spec, metadata = job.get("spec") or {}, job["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    wanted = {CONTROLLER_UID: metadata.get("uid", ""), JOB_NAME: metadata.get("name", "")}
    before = at(old, "spec", "template", "metadata", "labels") or {}
    if old is None or all(PREFIX + label in before for label in (JOB_NAME, CONTROLLER_UID)):
        wanted |= {PREFIX + label: value for label, value in wanted.items()}
    labels = at(spec, "template", "metadata", "labels") or {}
    errors = []
    for label, value in wanted.items():
        path = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[label] != value:
            errors.append(invalid_go(path, gosource.string_map(labels), f"must be '{value}'"))
    if not selected(selector, wanted):
        shown = gosource.label_selector(selector)
        errors.append(invalid_go("spec.selector", shown, "`selector` not auto-generated"))
    return errors


def _selector(spec: Document) -> list[FieldError]:
    selector, labels = spec.get("selector"), at(spec, "template", "metadata", "labels")
    errors = [required("spec.selector")] if selector is None else label_selector(selector, "spec.selector")
    if not selected(selector, labels):
        why = "`selector` does not match template `labels`"
        errors.append(invalid_go("spec.template.metadata.labels", gosource.string_map(labels), why))
    return errors


def _host_name(name: str, spec: Document) -> list[FieldError]:
    """The pods of an indexed Job are hosts of its name and their index."""
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != INDEXED or completions <= 0:
        return []
    last = f"{name}-{completions - 1}"
    if not dns_label_problems(last):
        return []
    return [invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {last}")]


def _changed(spec: Document, old: Document) -> list[FieldError]:
    before = old.get("spec") or {}
    errors = _completions(spec, before)
    if spec.get("selector") != before.get("selector"):
        shown = '"null"' if spec.get("selector") is None else gosource.label_selector(spec["selector"])
        errors.append(invalid_go("spec.selector", shown, "field is immutable"))
    waiting = before.get("suspend") and not at(old, "status", "startTime")
    if _fixed(spec, free=bool(waiting)) != _fixed(before, free=bool(waiting)):
        errors.append(invalid_go("spec.template", "core.PodTemplateSpec{…}", "field is immutable"))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        value = spec.get(field)
        if value == before.get(field):
            continue
        if isinstance(value, dict):
            struct = f"batch.{field[0].upper()}{field[1:]}{{…}}"
            errors.append(invalid_go(f"spec.{field}", struct, "field is immutable"))
        else:
            errors.append(invalid(f"spec.{field}", "null" if value is None else value, "field is immutable"))
    return errors


def _completions(spec: Document, before: Document) -> list[FieldError]:
    """An indexed Job may grow and shrink, with as many pods at once as indexes."""
    value = spec.get("completions")
    if value == before.get("completions"):
        return []
    if spec.get("completionMode") != INDEXED:
        shown = "null" if value is None else value
        return [invalid("spec.completions", shown, "field is immutable")]
    if value is None or value == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", value, "can only be modified in tandem with spec.parallelism")]


def _fixed(spec: Document, *, free: bool) -> Document:
    """What of a template may not change."""
    template = spec.get("template") or {}
    if not free:
        return template
    inner = {field: value for field, value in (template.get("spec") or {}).items() if field not in FREE_WHILE_SUSPENDED}
    affinity = {field: value for field, value in (inner.pop("affinity", None) or {}).items() if field != "nodeAffinity"}
    metadata = {f: v for f, v in (template.get("metadata") or {}).items() if f not in ("labels", "annotations")}
    return {"metadata": metadata, "spec": {**inner, "affinity": affinity}}


def _word(job: Document) -> str:
    for condition in ("Complete", "Failed"):
        if holds(job, condition):
            return condition
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((condition for condition in ("Suspended", "FailureTarget") if holds(job, condition)), "Running")


STRATEGIES = (Job(kind("io.k8s.api.batch.v1.Job", "jobs", group="batch", categories=("all",), status=True)),)

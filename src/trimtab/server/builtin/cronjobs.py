"""CronJob. Nothing runs by its schedule here: there are no nodes to run anything on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin import gosource
from trimtab.server.builtin.cron_format import WrongSchedule, check_schedule, known_zone
from trimtab.server.builtin.job_rules import job_spec_problems
from trimtab.server.builtin.jobs import spec_warnings
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.pod import complete_template
from trimtab.server.builtin.problems import at, invalid, invalid_go, not_negative, required, unsupported
from trimtab.server.builtin.workloads import WIDE, containers_of, name_warnings, selector_text
from trimtab.server.strategy import Document

MAX_NAME = 52
"""A Job of it has eleven characters more, and may have 63."""
POLICIES = ("Allow", "Forbid", "Replace")
_ZONE_PART = re.compile(r"(?!-)(?!\.\.?$)[A-Za-z.\-_0-9+]{1,14}")


class CronJob(Native):
    has_generation = True
    shown = (
        NAME,
        Column("Schedule", ".spec.schedule"),
        Column("Timezone", ".spec.timeZone"),
        Column("Suspend", ".spec.suspend", "boolean"),
        Column("Active", ".status.active", "integer"),
        Column("Last Schedule", ".status.lastScheduleTime"),
        AGE,
        *WIDE,
    )

    def complete(self, obj: Document) -> None:
        complete_template(at(obj, "spec", "jobTemplate", "spec", "template"))

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return ()
        spec, before = new.get("spec") or {}, at(old, "spec") or {}
        errors = _schedule(spec.get("schedule") or "")
        errors += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
        if spec.get("timeZone") is not None and (old is None or spec["timeZone"] != before.get("timeZone")):
            errors += _zone(spec["timeZone"])
        if spec.get("concurrencyPolicy") not in POLICIES:
            errors.append(unsupported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), POLICIES))
        errors += _job_template(at(spec, "jobTemplate", "spec") or {}, "spec.jobTemplate.spec")
        for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            errors += not_negative(f"spec.{field}", spec.get(field))
        name = new["metadata"].get("name", "")
        if old is None and len(name) > MAX_NAME:
            errors.append(invalid("metadata.name", name, f"must be no more than {MAX_NAME} characters"))
        return errors

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        template, before = (at(one, "spec", "jobTemplate", "spec") for one in (new, old))
        return (*name_warnings(new, old), *spec_warnings(template, before, "spec.jobTemplate.spec"))

    def row(self, obj: Document) -> Sequence[Any]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        suspended = spec.get("suspend")
        zone, last = spec.get("timeZone"), status.get("lastScheduleTime")
        return (
            spec.get("schedule") or "",
            "<none>" if zone is None else zone,
            "<unset>" if suspended is None else str(bool(suspended)),
            len(status.get("active") or ()),
            self.age(last) if last else "<none>",
        )

    def wide(self, obj: Document) -> Sequence[Any]:
        job = at(obj, "spec", "jobTemplate", "spec")
        return (*containers_of(at(job, "template")), selector_text(at(job, "selector")))


def _schedule(schedule: str) -> list[FieldError]:
    if not schedule:
        return [required("spec.schedule")]
    errors = []
    try:
        check_schedule(schedule)
    except WrongSchedule as error:
        errors.append(invalid("spec.schedule", schedule, str(error)))
    if "TZ" in schedule:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid("spec.schedule", schedule, why))
    return errors


def _zone(name: str) -> list[FieldError]:
    path = "spec.timeZone"
    if not name:
        return [invalid(path, name, "timeZone must be nil or non-empty string")]
    if not all(_ZONE_PART.fullmatch(part) for part in name.split("/")):
        return [invalid(path, name, f"unknown time zone {name}")]
    errors = []
    if name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid(path, name, why))
    if not known_zone(name):
        errors.append(invalid(path, name, f"unknown time zone {name}"))
    return errors


def _job_template(spec: Document, path: str) -> list[FieldError]:
    errors = job_spec_problems(spec, path)
    if spec.get("selector") is not None:
        shown = gosource.label_selector(spec["selector"])
        errors.append(invalid_go(f"{path}.selector", shown, "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errors.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


STRATEGIES = (
    CronJob(
        kind(
            "io.k8s.api.batch.v1.CronJob",
            "cronjobs",
            group="batch",
            short=("cj",),
            categories=("all",),
            status=True,
        )
    ),
)

"""How the status of a Job may change. Others than Kubernetes' own controller may write it (`managedBy`), so the server
sees to it that what readers rely on holds: a Job that has ended stays so, and says when it began and ended.

Most rules are asked only where something that they speak of changes: a status that was wrong before may be mended bit by
bit.
"""

from __future__ import annotations

from typing import Any

from trimtab.model.clock import parse_time
from trimtab.model.errors import FieldError
from trimtab.server.builtin import gosource
from trimtab.server.builtin.job_indexes import WrongIndexes, count_indexes, overlap
from trimtab.server.builtin.job_rules import INDEXED
from trimtab.server.builtin.problems import at, duplicate, invalid, invalid_go, invalid_whole, not_negative, required
from trimtab.server.strategy import Document

_CONDITIONS = "status.conditions"


def holds(job: Document, condition: str, status: str = "True") -> bool:
    """Whether a Job has a condition with this status."""
    found = at(job, "status", "conditions") or ()
    return any(one.get("type") == condition and one.get("status") == status for one in found)


def status_problems(new: Document, old: Document) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    errors = []
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        errors += not_negative(f"status.{field}", status.get(field))
    errors += _uncounted(status.get("uncountedTerminatedPods") or {})
    changed = _Changes(new, old)
    errors += _conditions(new, changed)
    errors += _times(new, status, changed)
    errors += _finished(new, status, changed)
    errors += _indexes(new.get("spec") or {}, status, changed)
    if changed("ready", "active") and (status.get("ready") or 0) > (status.get("active") or 0):
        errors.append(invalid("status.ready", status["ready"], "cannot set more ready pods than active"))
    return errors + _transitions(new, old, status, before)


class _Changes:
    """What differs between two states of a Job: fields of the status by name, conditions by type."""

    def __init__(self, new: Document, old: Document) -> None:
        self._new, self._old = new, old

    def __call__(self, *names: str) -> bool:
        return any(self._differs(name) for name in names)

    def _differs(self, name: str) -> bool:
        if name == "finished":
            return finished(self._new) != finished(self._old)
        if name[0].isupper():
            return holds(self._new, name) != holds(self._old, name)
        new, old = at(self._new, "status", name), at(self._old, "status", name)
        if name == "uncountedTerminatedPods":
            return bool((new or {}) != (old or {}))
        return bool(new != old)


def finished(job: Document) -> bool:
    return holds(job, "Complete") or holds(job, "Failed")


def _uncounted(pods: Document) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _conditions(job: Document, changed: _Changes) -> list[FieldError]:
    """Conditions that exclude or need each other."""
    complete, failed, met, doomed = (
        holds(job, c) for c in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
    )
    rules = (
        (changed("Complete", "Failed") and complete and failed, "cannot set Complete=True and Failed=true conditions"),
        (changed("Complete", "FailureTarget") and complete and doomed,
         "cannot set Complete=True and FailureTarget=true conditions"),
        (changed("Failed", "failedIndexes") and failed and not doomed,
         "cannot set Failed=True condition without the FailureTarget=true condition"),
        (changed("Complete", "SuccessCriteriaMet") and complete and not met,
         "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"),
        (met and failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (met and doomed, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
        (at(job, "spec", "successPolicy") is not None and complete and not met,
         "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"),
    )  # fmt: skip
    return [invalid_whole(_CONDITIONS, why) for broken, why in rules if broken]


def _times(job: Document, status: Document, changed: _Changes) -> list[FieldError]:
    start, end, complete = status.get("startTime"), status.get("completionTime"), holds(job, "Complete")
    errors = []
    if changed("Complete", "completionTime"):
        if end and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            errors.append(invalid_go("status.completionTime", _go_time(end), why))
        if complete and not end:
            errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if changed("startTime", "completionTime") and start and end and parse_time(end) < parse_time(start):
        why = "completionTime cannot be set before startTime"
        errors.append(invalid_go("status.completionTime", _go_time(end), why))
    return errors


def _finished(job: Document, status: Document, changed: _Changes) -> list[FieldError]:
    """What a Job that has ended may not have, and must."""
    if not finished(job):
        return []
    spec = job.get("spec") or {}
    errors = []
    active, terminating = status.get("active"), status.get("terminating")
    pods = status.get("uncountedTerminatedPods") or {}
    if changed("finished", "active") and (active or 0) > 0:
        errors.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    never_ran = spec.get("suspend") is True and spec.get("completions") == 0
    if changed("finished", "startTime") and not never_ran and not status.get("startTime"):
        errors.append(required("status.startTime", "startTime is required for finished job"))
    if changed("finished", "uncountedTerminatedPods") and any(pods.values()):
        shown = ", ".join(f"{f.title()}:{gosource.strings(pods.get(f), 'types.UID')}" for f in ("succeeded", "failed"))
        why = "uncountedTerminatedPods needs to be empty for finished job"
        errors.append(invalid_go("status.uncountedTerminatedPods", f"batch.UncountedTerminatedPods{{{shown}}}", why))
    if changed("finished", "terminating") and (terminating or 0) > 0:
        errors.append(invalid("status.terminating", terminating, "terminating>0 is invalid for finished job"))
    return errors


def _indexes(spec: Document, status: Document, changed: _Changes) -> list[FieldError]:
    done, failed, completions = (
        status.get("completedIndexes") or "",
        status.get("failedIndexes"),
        spec.get("completions"),
    )
    limited = spec.get("backoffLimitPerIndex") is not None
    errors = []
    if changed("completedIndexes"):
        if completions is not None:
            errors += _readable("completedIndexes", done, completions)
        if done and spec.get("completionMode") != INDEXED:
            why = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid("status.completedIndexes", done, why))
    if failed is None:
        return errors
    if changed("failedIndexes"):
        if completions is not None and limited:
            errors += _readable("failedIndexes", failed, completions)
        if not limited:
            why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.append(invalid("status.failedIndexes", failed, why))
    if changed("failedIndexes", "completedIndexes") and completions is not None:
        shared = overlap(done, failed, completions)
        if shared is not None:
            why = f"failedIndexes and completedIndexes overlap at index: {shared}"
            errors.append(invalid("status.failedIndexes", failed, why))
    return errors


def _readable(field: str, indexes: str, completions: int) -> list[FieldError]:
    try:
        count_indexes(indexes, completions)
    except WrongIndexes as error:
        return [invalid(f"status.{field}", indexes, f"error parsing {field}: {error}")]
    return []


def _transitions(new: Document, old: Document, status: Document, before: Document) -> list[FieldError]:
    """What was said once is not taken back."""
    spec = new.get("spec") or {}
    errors = [
        invalid_whole(_CONDITIONS, f"cannot disable the terminal {condition}=True condition")
        for condition in ("Failed", "Complete", "FailureTarget")
        if holds(old, condition) and not holds(new, condition)
    ]
    shrinks = spec.get("completionMode") == INDEXED and spec.get("completions") == spec.get("parallelism")
    for field in ("failed", "succeeded"):
        now = status.get(field) or 0
        if now < (before.get(field) or 0) and not (field == "succeeded" and shrinks):
            errors.append(invalid(f"status.{field}", now, f"cannot decrease the {field} counter"))
    end, ended = status.get("completionTime"), before.get("completionTime")
    if end and ended and end != ended:
        errors.append(invalid_go("status.completionTime", _go_time(end), "completionTime cannot be mutated"))
    resumes = holds(old, "Suspended") and holds(new, "Suspended", "False")
    moved = before.get("startTime") and before["startTime"] != status.get("startTime")
    if moved and not resumes and not spec.get("suspend"):
        errors.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    met = holds(new, "SuccessCriteriaMet")
    if holds(old, "SuccessCriteriaMet") and not met:
        errors.append(invalid_whole(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    if holds(old, "Complete") and not holds(old, "SuccessCriteriaMet") and met:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(invalid_whole(_CONDITIONS, why))
    return errors


def _go_time(text: Any) -> str:
    """A time as Go prints it."""
    return f"{parse_time(text):%Y-%m-%d %H:%M:%S} +0000 UTC"

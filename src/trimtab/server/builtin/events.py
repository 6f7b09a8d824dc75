"""Event, in the core group and in events.k8s.io: one object, two shapes. It is stored in the core group's shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.server.builtin.defaults import completed
from trimtab.server.builtin.native import Native, kind
from trimtab.server.builtin.problems import at, each, immutable, invalid, required
from trimtab.server.strategy import Document

# events.k8s.io on the left, the core group on the right.
RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: field for field, core in RENAMED.items()}
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128}
MAX_MESSAGE = 1024


class CoreEvent(Native):
    """`v1` Event. Validation is lax for events without an eventTime: clients older than the newer API write those."""

    create_on_update = True
    reporter = "reportingComponent"
    selectable: Mapping[str, str] = {
        **{f"involvedObject.{field}": f"involvedObject.{field}" for field in _INVOLVED},
        **{field: field for field in ("reason", "reportingComponent", "source", "type")},
    }
    shown = (
        Column("Last Seen", ".lastTimestamp"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", ".involvedObject"),
        Column("Subobject", ".involvedObject.fieldPath", priority=1),
        Column("Source", ".source", priority=1),
        Column("Message", ".message"),
        Column("First Seen", ".firstTimestamp", priority=1),
        Column("Count", ".count", priority=1),
        Column("Name", ".metadata.name", format="name", priority=1),
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        return _lax(new, self.reporter)

    def fields(self, obj: Document) -> dict[str, str]:
        involved = obj.get("involvedObject") or {}
        found = {f"involvedObject.{field}": involved.get(field) or "" for field in _INVOLVED}
        reporter = obj.get("reportingComponent") or ""
        return found | {
            "reason": obj.get("reason") or "",
            "reportingComponent": reporter,
            "source": at(obj, "source", "component") or reporter,
            "type": obj.get("type") or "",
        }

    def cells(self, obj: Document) -> list[Any] | None:
        obj = core_form(obj)
        involved, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series")
        first = self.age(obj.get("firstTimestamp") or obj.get("eventTime"))
        last = self.age(obj["lastTimestamp"]) if obj.get("lastTimestamp") else first
        count = obj.get("count") or 1
        if series:
            last, count = self.age(series.get("lastObservedTime")), series.get("count", 0)
        target = (involved.get("kind") or "").lower()
        if involved.get("name"):
            target += "/" + involved["name"]
        component = source.get("component") or obj.get("reportingComponent") or ""
        host = source.get("host") or obj.get("reportingInstance") or ""
        return [
            last,
            obj.get("type") or "",
            obj.get("reason") or "",
            target,
            involved.get("fieldPath") or "",
            f"{component}, {host}" if host else component,
            (obj.get("message") or "").strip(),
            first,
            count,
            obj["metadata"].get("name", ""),
        ]


class Event(CoreEvent):
    """`events.k8s.io/v1` Event: complete when it is created, and hardly anything changes later."""

    reporter = "reportingController"
    selectable: Mapping[str, str] = {
        **{f"regarding.{field}": f"involvedObject.{field}" for field in _INVOLVED},
        "reason": "reason",
        "reportingController": "reportingComponent",
        "type": "type",
    }

    @property
    def storage(self) -> str:
        return "events"

    def to_storage(self, obj: Document) -> Document:
        stored = core_form(obj)
        completed(CORE.definition)(stored)
        return stored

    def from_storage(self, obj: Document) -> Document:
        shown = {_BACK.get(field, field): value for field, value in obj.items()}
        completed(self.definition)(shown)
        return shown

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        event = core_form(new)
        if old is not None:
            return _lax(event, self.reporter) + _changed(event, core_form(old))
        errors = _lax(event, self.reporter) + _series(event)
        if not event.get("eventTime"):
            errors.append(required("eventTime"))
        if event.get("type") not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
        source = event.get("source") or {}
        for field, given in (
            ("firstTimestamp", event.get("firstTimestamp")),
            ("lastTimestamp", event.get("lastTimestamp")),
            ("count", event.get("count")),
            ("source", source.get("component") or source.get("host")),
        ):
            if given:
                errors.append(invalid(field, "", "needs to be unset"))
        return errors


def core_form(obj: Document) -> Document:
    """An event of either group with the field names of the core group."""
    return {RENAMED.get(field, field): value for field, value in obj.items()}


def _lax(event: Document, reporter: str) -> list[FieldError]:
    errors = []
    namespace = event["metadata"].get("namespace", "")
    involved = at(event, "involvedObject", "namespace") or ""
    mismatch = invalid("involvedObject.namespace", involved, "does not match event.namespace")
    if not event.get("eventTime"):
        if involved != namespace and not (not involved and namespace in ("", "default")):
            errors.append(mismatch)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            errors.append(mismatch)
        controller = event.get("reportingComponent") or ""
        if not controller:
            errors.append(required(reporter))
        errors += each(reporter, controller, label_key_problems(controller))
        for field, limit in _LIMITS.items():
            text = event.get(field) or ""
            if not text:
                errors.append(required(field))
            if len(text.encode()) > limit:
                errors.append(invalid(field, "", f"can have at most {limit} characters"))
        if len((event.get("message") or "").encode()) > MAX_MESSAGE:
            errors.append(invalid("message", "", f"can have at most {MAX_MESSAGE} characters"))
    return errors + each("namespace", namespace, dns_subdomain_problems(namespace))


def _series(event: Document) -> list[FieldError]:
    series = event.get("series")
    if not series:
        return []
    errors = [] if (series.get("count") or 0) >= 2 else [invalid("series.count", "", "should be at least 2")]
    return errors if series.get("lastObservedTime") else [*errors, required("series.lastObservedTime")]


_FIXED = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
          "eventTime", "action", "related", "reportingComponent", "reportingInstance")  # fmt: skip


def _changed(new: Document, old: Document) -> list[FieldError]:
    errors = _series(new) if new.get("series") != old.get("series") else []
    for field in _FIXED:
        path = "reportingController" if field == "reportingComponent" else field
        errors += immutable(path, new.get(field), old.get(field))
    return errors


CORE = CoreEvent(kind("io.k8s.api.core.v1.Event", "events", short=("ev",)))
STRATEGIES = (Event(kind("io.k8s.api.events.v1.Event", "events", group="events.k8s.io", short=("ev",))),)

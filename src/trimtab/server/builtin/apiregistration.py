"""APIService: a group and version, and the Service of another API server that answers for it; without a Service it is ours."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from trimtab.model.clock import format_time
from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_1035_label_problems, path_segment_name
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin import names
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, invalid, items, required, unsupported
from trimtab.server.strategy import Document

GROUP = "apiregistration.k8s.io"
STATUSES = ("True", "False", "Unknown")


class APIService(Native):
    name_check = staticmethod(path_segment_name)
    unconditional_update = False
    shown = (
        NAME,
        Column("Service", ".spec.service", description="The Service that answers, or Local."),
        Column("Available", ".status.conditions", description="Whether it answers."),
        AGE,
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        """A local one is available from the beginning."""
        super().prepare(new, old, subresource)
        if old is None and at(new, "spec", "service") is None:
            new["status"] = {"conditions": [local_condition(format_time(self.clock.now()))]}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return [
                unsupported(f"status.conditions[{index}].status", condition.get("status", ""), STATUSES)
                for index, condition in enumerate(items(new, "status", "conditions"))
                if condition.get("status") not in STATUSES
            ]
        spec = new.get("spec") or {}
        group, version = spec.get("group", ""), spec.get("version", "")
        expected, name = f"{version}.{group}", new["metadata"].get("name", "")
        errors = []
        if name and name != expected and not path_segment_name(name, False):
            errors.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"'))
        if not group and version != "v1":
            errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
        if group:
            errors += each("spec.group", group, dns_subdomain_problems(group))
        errors += each("spec.version", version, dns_1035_label_problems(version))
        for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            if not 0 < spec.get(field, 0) <= most:
                errors.append(invalid(f"spec.{field}", spec.get(field, 0), f"must be positive and less than {most}"))
        return errors + _reached(spec)

    def row(self, obj: Document) -> Sequence[Any]:
        service = at(obj, "spec", "service")
        where = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
        condition = available(obj)
        if condition is None:
            return where, "Unknown"
        status, reason = condition.get("status", ""), condition.get("reason", "")
        return where, f"{status} ({reason})" if status != "True" and reason else status


def available(obj: Document) -> dict[str, Any] | None:
    """The condition that says whether somebody answers."""
    return next((each for each in items(obj, "status", "conditions") if each.get("type") == "Available"), None)


def local_condition(now: str) -> dict[str, str]:
    return {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def _reached(spec: dict[str, Any]) -> list[FieldError]:
    """What is wrong with where it is, and whom to trust there."""
    service, insecure = spec.get("service"), bool(spec.get("insecureSkipTLSVerify"))
    bundle = _size(spec.get("caBundle"))
    where = "spec.insecureSkipTLSVerify"
    errors = []
    if service is None:
        if bundle:
            errors.append(invalid("spec.caBundle", f"{bundle} bytes", "local APIServices may not have a caBundle"))
        if insecure:
            errors.append(invalid(where, True, "local APIServices may not have insecureSkipTLSVerify"))
        return errors
    errors += [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    port = service.get("port", 443)
    if problems := names.port_number(port):
        errors.append(invalid("spec.service.port", port, "port is not valid: " + ", ".join(problems)))
    if insecure and bundle:
        errors.append(invalid(where, True, "may not be true if caBundle is present"))
    return errors


def _size(bundle: Any) -> int:
    try:
        return len(base64.b64decode(bundle or ""))
    except (binascii.Error, ValueError):  # told by the schema
        return 1


STRATEGIES = (
    APIService(
        kind(
            "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
            "apiservices",
            group=GROUP,
            namespaced=False,
            categories=("api-extensions",),
            status=True,
        )
    ),
)

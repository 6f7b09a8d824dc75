"""Node. Nothing runs on it here: it is what tests and tools of operators create, label, taint and select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.names import label_key_problems
from trimtab.server.builtin.defaults import completed_status
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, forbidden, required, unsupported
from trimtab.server.builtin.quantities import canonical
from trimtab.server.strategy import Document

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ROLE, OLD_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


class Node(Native):
    selectable: Mapping[str, str] = {"spec.unschedulable": "spec.unschedulable"}
    shown = (
        NAME,
        Column("Status", "", description="The status of the node"),
        Column("Roles", "", description="The roles of the node"),
        AGE,
        Column("Version", ".status.nodeInfo.kubeletVersion"),
        Column("Internal-IP", "", priority=1),
        Column("External-IP", "", priority=1),
        Column("OS-Image", ".status.nodeInfo.osImage", priority=1),
        Column("Kernel-Version", ".status.nodeInfo.kernelVersion", priority=1),
        Column("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", priority=1),
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        """Who registers a node says how it is: its first status counts. It is tainted until it is ready."""
        if old is not None:
            super().prepare(new, old, subresource)
            return
        completed_status(self.definition)(new)
        spec = new.get("spec")
        if isinstance(spec, dict):
            taints = spec.get("taints")
            given = taints if isinstance(taints, list) else []
            if not any(isinstance(t, dict) and t.get("key") == NOT_READY["key"] for t in given):
                spec["taints"] = [*given, dict(NOT_READY)]

    def complete(self, obj: Document) -> None:
        status = obj.get("status")
        if not isinstance(status, dict):
            return
        for field in ("capacity", "allocatable"):
            if isinstance(status.get(field), dict):
                status[field] = {name: canonical(value) for name, value in status[field].items()}
        if isinstance(status.get("capacity"), dict) and status.get("allocatable") is None:
            status["allocatable"] = dict(status["capacity"])

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource:
            return ()
        spec = new.get("spec") or {}
        errors: list[FieldError] = []
        for index, taint in enumerate(spec.get("taints") or ()):
            path = f"metadata.taints[{index}]"  # the real server says so
            errors += each(f"{path}.key", taint.get("key") or "", label_key_problems(taint.get("key") or ""))
            if not taint.get("effect"):
                errors.append(required(f"{path}.effect"))
            elif taint["effect"] not in EFFECTS:
                errors.append(unsupported(f"{path}.effect", taint["effect"], EFFECTS))
        if old is not None:
            before = old.get("spec") or {}
            for field, called in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
                if before.get(field) and spec.get(field) != before[field]:
                    why = f'node updates may not change {called} except from "" to valid'
                    errors.append(forbidden(f"spec.{field}", why))
        return errors

    def fields(self, obj: Document) -> dict[str, str]:
        return {"spec.unschedulable": "true" if at(obj, "spec", "unschedulable") else "false"}

    def row(self, obj: Document) -> Sequence[Any]:
        ready = next((c for c in at(obj, "status", "conditions") or () if c.get("type") == "Ready"), None)
        words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
        if at(obj, "spec", "unschedulable"):
            words.append("SchedulingDisabled")
        roles = set()
        for label, value in (obj["metadata"].get("labels") or {}).items():
            if label.startswith(ROLE):
                roles.add(label.removeprefix(ROLE))
            elif label == OLD_ROLE:
                roles.add(value)
        return (",".join(words), ",".join(sorted(role for role in roles if role)) or "<none>")

    def wide(self, obj: Document) -> Sequence[Any]:
        info = at(obj, "status", "nodeInfo") or {}
        addresses = {a.get("type"): a.get("address") for a in reversed(at(obj, "status", "addresses") or [])}
        return (
            info.get("kubeletVersion") or "",
            addresses.get("InternalIP") or "<none>",
            addresses.get("ExternalIP") or "<none>",
            info.get("osImage") or "<unknown>",
            info.get("kernelVersion") or "<unknown>",
            info.get("containerRuntimeVersion") or "<unknown>",
        )


STRATEGIES = (Node(kind("io.k8s.api.core.v1.Node", "nodes", namespaced=False, short=("no",), status=True)),)

"""Pod, and what pods and templates of pods share: defaults and the checks that usual mistakes meet.

The real server checks far more of a pod. What is checked here is what a user of templates gets wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin.containers import container_problems, volume_problems
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.podstatus import PodSummary, summary
from trimtab.server.builtin.problems import at, each, forbidden, invalid, items, label_map, required, unsupported
from trimtab.server.builtin.quantities import canonical_resources, round_up
from trimtab.server.strategy import Document

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
MUTABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
DISABLED = (("hostUsers",), ("resources",), ("resourceClaims",), ("securityContext", "supplementalGroupsPolicy"))
"""Fields of features that are off in 1.32; the real server forgets them."""
_LATEST = re.compile(r"(?:[^/@]*/)*[^/:@]+(?::latest)?")


class Pod(Native):
    returns_deleted = True
    subresources = ("binding", "eviction")
    selectable: Mapping[str, str] = {
        field: field
        for field in ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
                      "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName")
    } | {"spec.host": "spec.nodeName"}  # fmt: skip
    shown = (
        NAME,
        Column("Ready", "", description="The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "", description="The aggregate status of the containers in this pod."),
        Column("Restarts", "", description="How often the containers in this pod have been restarted, and when last."),
        AGE,
        Column("IP", ".status.podIP", priority=1),
        Column("Node", ".spec.nodeName", priority=1),
        Column("Nominated Node", ".status.nominatedNodeName", priority=1),
        Column("Readiness Gates", ".spec.readinessGates", priority=1),
    )

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        super().prepare(new, old, subresource)
        if old is None:
            new["status"] = {"phase": "Pending", "qosClass": qos_class(new.get("spec"))}
        elif subresource == "status" and isinstance(new.get("status"), dict) and at(old, "status", "qosClass"):
            new["status"].setdefault("qosClass", old["status"]["qosClass"])
        spec = new.get("spec")
        if isinstance(spec, dict) and not subresource:
            _admit(spec, at(old, "spec") or {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"})

    def complete(self, obj: Document) -> None:
        spec = obj.get("spec")
        complete_spec(spec)
        if not isinstance(spec, dict):
            return
        spec.setdefault("enableServiceLinks", True)
        for container in (*items(spec, "containers"), *items(spec, "initContainers")):
            limits, resources = at(container, "resources", "limits"), container.get("resources")
            if isinstance(limits, dict) and isinstance(resources, dict):
                resources["requests"] = {**limits, **(resources.get("requests") or {})}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource:
            return ()
        errors = spec_problems(new.get("spec") or {}, "spec")
        if old is not None:
            errors += _changed(new.get("spec") or {}, old.get("spec") or {})
        return errors

    def fields(self, obj: Document) -> dict[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return {
            **{f"spec.{f}": spec.get(f) or "" for f in ("nodeName", "restartPolicy", "schedulerName")},
            "spec.serviceAccountName": spec.get("serviceAccountName") or "",
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            **{f"status.{f}": status.get(f) or "" for f in ("phase", "podIP", "nominatedNodeName")},
            "status.podIPs": ",".join(ip.get("ip", "") for ip in status.get("podIPs") or ()),
        }

    def row(self, obj: Document) -> Sequence[Any]:
        found: PodSummary = summary(obj)
        restarts = str(found.restarts)
        if found.restarts and found.last_restart:
            restarts += f" ({self.age(found.last_restart)} ago)"
        return (f"{found.ready}/{found.total}", found.reason, restarts)

    def wide(self, obj: Document) -> Sequence[Any]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        ips = status.get("podIPs") or [{}]
        gates = [gate.get("conditionType") for gate in spec.get("readinessGates") or ()]
        true = [c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"]
        return (
            ips[0].get("ip") or "<none>",
            spec.get("nodeName") or "<none>",
            status.get("nominatedNodeName") or "<none>",
            f"{sum(gate in true for gate in gates)}/{len(gates)}" if gates else "<none>",
        )


def _admit(spec: dict[str, Any], given_before: dict[str, Any]) -> None:
    """What the admission plugins Priority and DefaultTolerationSeconds of the real server set."""
    for field in ("priority", "preemptionPolicy"):
        if field in given_before and not spec.get("priorityClassName"):
            spec.setdefault(field, given_before[field])
    given = items(spec, "tolerations")
    effects = ("", None, "NoExecute")
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(one.get("key") in (key, "", None) and one.get("effect") in effects for one in given):
            waits = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            spec["tolerations"] = [*(spec.get("tolerations") or []), waits]


def complete_template(template: Any) -> None:
    complete_spec(at(template, "spec"))


def complete_spec(spec: Any) -> None:
    """The defaults of a pod's spec that depend on other fields; the plain ones are in the tables."""
    if not isinstance(spec, dict):
        return
    for path in DISABLED:
        _drop(spec, *path)
    for container in (*items(spec, "containers"), *items(spec, "initContainers"), *items(spec, "ephemeralContainers")):
        container.pop("resizePolicy", None)
        _drop(container, "resources", "claims")
        if not container.get("imagePullPolicy"):
            container["imagePullPolicy"] = pull_policy(container.get("image"))
        canonical_resources(container.get("resources"))
        round_up(container.get("resources"))
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            found = container.get(probe)
            if isinstance(found, dict):
                _zero_is_absent(found)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in items(spec, "volumes"):
        if not volume.keys() - {"name"}:
            volume["emptyDir"] = {}


def _drop(document: dict[str, Any], *path: str) -> None:
    holder = at(document, *path[:-1])
    if isinstance(holder, dict):
        holder.pop(path[-1], None)


def pull_policy(image: Any) -> str:
    """Always for the tag `latest`, said or meant."""
    return "Always" if isinstance(image, str) and _LATEST.fullmatch(image) else "IfNotPresent"


def _zero_is_absent(probe: dict[str, Any]) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if probe.get(field) == 0:
            probe[field] = value


def qos_class(spec: Any) -> str:
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    resources = [container.get("resources") or {} for container in containers]
    if not any(one.get("limits") or one.get("requests") for one in resources):
        return "BestEffort"
    for one in resources:
        limits = one.get("limits") or {}
        requests = {**limits, **(one.get("requests") or {})}
        if not {"cpu", "memory"} <= limits.keys() or any(requests[name] != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def template_problems(template: dict[str, Any], path: str) -> list[FieldError]:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = label_map(metadata.get("labels"), f"{path}.labels")
    errors += spec_problems(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        why = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", why))
    return errors


def spec_problems(spec: dict[str, Any], path: str) -> list[FieldError]:
    volumes, errors = volume_problems(spec.get("volumes") or [], f"{path}.volumes")
    containers = spec.get("containers") or []
    if not containers:
        errors.append(required(f"{path}.containers"))
    errors += container_problems(containers, f"{path}.containers", volumes, {})
    taken = {container.get("name", "") for container in containers}
    errors += container_problems(spec.get("initContainers") or [], f"{path}.initContainers", volumes, taken, init=True)
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        errors.append(unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES))
    if spec.get("dnsPolicy") not in DNS_POLICIES:
        errors.append(unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES))
    errors += label_map(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for field, check in (("serviceAccountName", dns_subdomain_problems), ("nodeName", dns_subdomain_problems)):
        if spec.get(field):
            errors += each(f"{path}.{field}", spec[field], check(spec[field]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors += each(f"{path}.{field}", spec[field], dns_label_problems(spec[field]))
    return errors


def _changed(new: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """Little of a pod may change."""
    errors = []
    for field in ("containers", "initContainers"):
        if len(new.get(field) or []) != len(old.get(field) or []):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    for container, where in ((c, f) for f in ("containers", "initContainers") for c in new.get(f) or []):
        if not container.get("image"):
            errors.append(required(f"spec.{where}[0].image"))
    if _fixed(new) != _fixed(old):
        errors.append(forbidden("spec", f"pod updates may not change fields other than {MUTABLE}"))
    return errors


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers")
    result = {field: value for field, value in spec.items() if field not in free}
    for field in ("containers", "initContainers"):
        result[field] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get(field) or ()]
    return result


STRATEGIES = (Pod(kind("io.k8s.api.core.v1.Pod", "pods", short=("po",), categories=("all",), status=True)),)

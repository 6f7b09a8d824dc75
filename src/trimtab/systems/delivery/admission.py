"""What delivery says about a write before it is committed: `problems`, and what shows only beside other objects.

Only what is new or changed is judged, and switches (suspend, abort, skipAnalysis, retryToken) are not: a run of a spec that
would be refused today can still be stopped. What may come later, a MetricTemplate or a VirtualService, is only warned of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import UnsetType

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment
from trimtab.model.resource import Resource
from trimtab.systems.delivery.kinds import CanaryDeployment, MetricTemplate, ReleaseGroup
from trimtab.systems.delivery.kinds.fields import OWNER
from trimtab.systems.delivery.objects import routing
from trimtab.systems.delivery.objects.names import SUFFIX
from trimtab.systems.delivery.problems import (
    changed_problems,
    group_problems,
    problems,
    template_problems,
    template_warnings,
    warnings,
)
from trimtab.systems.delivery.problems.findings import mapping
from trimtab.systems.delivery.problems.metrics import use_problems
from trimtab.systems.delivery.problems.neighbours import group_neighbour_problems, neighbour_problems, selects
from trimtab.systems.delivery.problems.routing import routing_mistakes
from trimtab.systems.delivery.problems.workload import labels

R = TypeVar("R", bound=Resource)
MOST_WARNINGS = 20


async def canary(request: AdmissionRequest[CanaryDeployment], reader: Reader) -> Allowed | Denied:
    """A CanaryDeployment."""
    new, old = request.object, request.old
    if new is None or _terminating(new) or (isinstance(old, CanaryDeployment) and _settled(old) == _settled(new)):
        return Allowed()
    errors = await asyncio.to_thread(problems, new)  # queries are parsed
    if isinstance(old, CanaryDeployment):
        errors += changed_problems(old, new)
    if errors:
        return Denied(errors=tuple(errors))
    namespace = request.namespace
    # Most changes are another image: what has not changed is in nobody's way now that was not before.
    moved = not isinstance(old, CanaryDeployment) or _claims(old) != _claims(new)
    if moved:
        errors += neighbour_problems(new, _all(CanaryDeployment, await reader.list(CanaryDeployment, namespace)))
    used, missing = await _templates(new, namespace, reader)
    errors += await asyncio.to_thread(use_problems, new, used)
    if errors:
        return Denied(errors=tuple(errors))
    said = (*warnings(new), *missing, *await _routes(new, namespace, reader))
    if moved:
        said += await _overlaps(new, namespace, reader)
    return Allowed(warnings=said[:MOST_WARNINGS])


async def template(request: AdmissionRequest[MetricTemplate], reader: Reader) -> Allowed | Denied:
    """A MetricTemplate. That a CanaryDeployment lacks a variable which it now wants is said, and no more."""
    new = request.object
    if new is None or _terminating(new) or not _changed(request):
        return Allowed()
    if errors := await asyncio.to_thread(template_problems, new):
        return Denied(errors=tuple(errors))
    users = _all(CanaryDeployment, await reader.list(CanaryDeployment, request.namespace))
    broken = await asyncio.to_thread(_broken, users, new)
    return Allowed(warnings=(*template_warnings(new), *broken)[:MOST_WARNINGS])


async def group(request: AdmissionRequest[ReleaseGroup], reader: Reader) -> Allowed | Denied:
    """A ReleaseGroup."""
    new = request.object
    if new is None or _terminating(new) or not _changed(request):
        return Allowed()
    errors = group_problems(new)
    errors += group_neighbour_problems(new, _all(ReleaseGroup, await reader.list(ReleaseGroup, request.namespace)))
    if errors:
        return Denied(errors=tuple(errors))
    there = {one.name for one in _all(CanaryDeployment, await reader.list(CanaryDeployment, request.namespace))}
    return Allowed(
        warnings=tuple(
            f"spec.members[{i}]: there is no CanaryDeployment {member.name} yet"
            for i, member in enumerate(new.spec.members)
            if member.name not in there
        )
    )


ADMISSIONS = (
    Admission(name="delivery-canary", kinds=(CanaryDeployment,), function=canary),
    Admission(name="delivery-template", kinds=(MetricTemplate,), function=template),
    Admission(name="delivery-group", kinds=(ReleaseGroup,), function=group),
)


async def _templates(
    new: CanaryDeployment, namespace: str, reader: Reader
) -> tuple[dict[str, MetricTemplate], tuple[str, ...]]:
    """Those that its metrics name, and a warning for each that is not there."""
    found: dict[str, MetricTemplate] = {}
    missing = []
    metrics = () if isinstance(new.spec.analysis, UnsetType) else new.spec.analysis.metrics
    for i, metric in enumerate(metrics):
        if isinstance(metric.template_ref, UnsetType) or metric.template_ref in found:
            continue
        one = await reader.find(MetricTemplate, metric.template_ref, namespace)
        if isinstance(one, MetricTemplate):
            found[one.name] = one
        else:
            place = f"spec.analysis.metrics[{i}].templateRef"
            missing.append(f"{place}: there is no MetricTemplate {metric.template_ref} yet: no run starts without it")
    return found, tuple(missing)


async def _routes(new: CanaryDeployment, namespace: str, reader: Reader) -> tuple[str, ...]:
    """Of a VirtualService that is driven: it may come later, and may be changed by others at any time."""
    chosen = new.spec.virtual_service
    if isinstance(chosen.name, UnsetType):
        return ()
    path = "spec.virtualService.name"
    found = await reader.find(VirtualService, chosen.name, namespace)
    if not isinstance(found, VirtualService):
        return (f"{path}: there is no VirtualService {chosen.name} yet: no run starts without it",)
    return tuple(f"{path}: {chosen.name} cannot be driven: {why}" for why in _undrivable(found, new))


def _undrivable(found: VirtualService, new: CanaryDeployment) -> list[str]:
    """It is not ours, and may hold anything."""
    spec = mapping(found.spec)
    if list(routing_mistakes(spec)):
        return ["its routes are not as Istio wants them"]
    return routing.problems({"spec": dict(spec)}, new)


async def _overlaps(new: CanaryDeployment, namespace: str, reader: Reader) -> tuple[str, ...]:
    """Deployments of others that would take its pods for theirs."""
    pods, own = labels(new.spec.deployment), (new.name, new.name + SUFFIX)
    return tuple(
        f'spec.deployment.selector: it overlaps with that of the Deployment "{other.name}"'
        for other in _all(Deployment, await reader.list(Deployment, namespace, f"!{OWNER}"))
        if other.name not in own
        and (selects(mapping(other.spec), pods) or selects(new.spec.deployment, labels(mapping(other.spec))))
    )


def _broken(users: list[CanaryDeployment], template: MetricTemplate) -> list[str]:
    return [
        f'CanaryDeployment "{user.name}" would be wrong: {problem}'
        for user in users
        for problem in use_problems(user, {template.name: template})
    ]


def _all(kind: type[R], listed: Sequence[Any]) -> list[R]:
    """But for those that do not fit their schema any more."""
    return [one for one in listed if isinstance(one, kind)]


def _settled(one: CanaryDeployment) -> Any:
    """The spec without its switches."""
    return one.spec.replace(skip_analysis=False, suspend=False, abort=False, retry_token="")


def _claims(one: CanaryDeployment) -> Any:
    """What others of its namespace could claim, too: pods and routes."""
    deployment = one.spec.deployment
    return deployment.get("selector"), labels(deployment), one.spec.virtual_service.name


def _changed(request: AdmissionRequest[Any]) -> bool:
    old, new = request.old, request.object
    return new is not None and (not isinstance(old, type(new)) or bool(old.spec != new.spec))


def _terminating(one: Resource) -> bool:
    return not isinstance(one.metadata.deletion_timestamp, UnsetType)

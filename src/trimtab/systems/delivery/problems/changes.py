"""What may not become of a CanaryDeployment that exists."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.problems.findings import forbidden, mapping, wrong
from trimtab.systems.delivery.problems.ports import named_targets, port_names, port_numbers

AT_REST = ("Stable", "Initializing")


def changed_problems(old: CanaryDeployment, new: CanaryDeployment) -> list[FieldError]:
    """What is wrong with a change whatever is right with its outcome."""
    return [*_selector(old, new), *_virtual_service(old, new), *_targets(old, new)]


def _selector(old: CanaryDeployment, new: CanaryDeployment) -> Iterator[FieldError]:
    before, now = old.spec.deployment.get("selector"), new.spec.deployment.get("selector")
    if mapping(before) and before != now:
        detail = "field is immutable: a Deployment's selector cannot change; delete and create it, or use another name"
        yield wrong("spec.deployment.selector", now, detail)


def _virtual_service(old: CanaryDeployment, new: CanaryDeployment) -> Iterator[FieldError]:
    """Weights that were set in the one before would stay there."""
    before, now = old.spec.virtual_service.name, new.spec.virtual_service.name
    phase = _phase(old)
    if before != now and phase and phase not in AT_REST:
        detail = f"may change only while no run goes on: the phase is {phase}"
        yield forbidden("spec.virtualService.name", detail)


def _targets(old: CanaryDeployment, new: CanaryDeployment) -> Iterator[FieldError]:
    """A Service changes at once, and stable's pods only once the new ones are proven."""
    template = old.spec.deployment
    if new.spec.service == old.spec.service:
        return
    names, numbers = port_names(template), port_numbers(template)
    known = {target for _, target in named_targets(old.spec.service)}
    for path, target in named_targets(new.spec.service):
        if target in known:
            continue
        if target not in names if isinstance(target, str) else (numbers and target not in numbers):
            detail = (
                "the pods that serve now have no such port, and the Service changes before they do: release pods that "
                "have both ports first, then change the Service"
            )
            yield wrong(path, target, detail)


def _phase(canary: CanaryDeployment) -> str:
    if isinstance(canary.status, UnsetType) or isinstance(canary.status.phase, UnsetType):
        return ""
    return canary.status.phase

"""What is wrong with a CanaryDeployment only beside others of its namespace, and with a ReleaseGroup beside others.

Each makes objects called `<name>` and `<name>-canary`, and pods that only it may select.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UnsetType

from trimtab.model.errors import FieldError, StatusError
from trimtab.model.selectors import LabelSelector
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup
from trimtab.systems.delivery.objects.names import SUFFIX
from trimtab.systems.delivery.problems.findings import forbidden, mapping
from trimtab.systems.delivery.problems.workload import labels


def neighbour_problems(canary: CanaryDeployment, others: Iterable[CanaryDeployment]) -> list[FieldError]:
    """`others` are those of its namespace; itself, and those that are being deleted, do not count."""
    found: list[FieldError] = []
    for other in others:
        if other.name != canary.name and isinstance(other.metadata.deletion_timestamp, UnsetType):
            found += _beside(canary, other)
    return found


def group_neighbour_problems(group: ReleaseGroup, others: Iterable[ReleaseGroup]) -> list[FieldError]:
    """A CanaryDeployment waits for one group only."""
    taken = {member.name: other.name for other in others if other.name != group.name for member in other.spec.members}
    return [
        forbidden(f"spec.members[{i}].name", f'{member.name} is in the ReleaseGroup "{taken[member.name]}"')
        for i, member in enumerate(group.spec.members)
        if member.name in taken
    ]


def selects(deployment: Mapping[str, Any], pods: Mapping[str, str]) -> bool:
    """Whether a Deployment with this spec would take pods with these labels for its own."""
    chosen = mapping(deployment.get("selector"))
    try:
        selector = LabelSelector.from_document(chosen)
    except (StatusError, AttributeError, TypeError):  # one that is not valid itself
        return False
    return not selector.empty and selector.matches(pods)


def _beside(canary: CanaryDeployment, other: CanaryDeployment) -> Iterator[FieldError]:
    who = f'CanaryDeployment "{other.name}"'
    if canary.name == other.name + SUFFIX:
        yield forbidden("metadata.name", f"{canary.name} is what the {who} calls its canary")
    elif canary.name and other.name == canary.name + SUFFIX:
        yield forbidden("metadata.name", f"its canary would be called {other.name}, and there is a {who}")
    mine, theirs = canary.spec.deployment, other.spec.deployment
    if selects(mine, labels(theirs)) or selects(theirs, labels(mine)):
        yield forbidden("spec.deployment.selector", f"it overlaps with that of the {who}: pods would belong to both")
    drives = _virtual_service(canary)
    if drives and drives == _virtual_service(other):
        yield forbidden("spec.virtualService.name", f"the {who} drives the VirtualService {drives} already")


def _virtual_service(canary: CanaryDeployment) -> str:
    """The one whose weights it sets: another's, or its own of its own name."""
    name = canary.spec.virtual_service.name
    return canary.name if isinstance(name, UnsetType) else name

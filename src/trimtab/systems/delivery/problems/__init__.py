"""What is wrong with what users write, beyond its schema, as far as it shows without other objects. Pure: for admission,
and for the controller, because an object may be older than the rule that it breaks.

A file for each part of the spec. Whatever a document holds, nothing here raises; what is too large to be looked at is
refused for that alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import UnsetType

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup
from trimtab.systems.delivery.problems.bounds import too_large
from trimtab.systems.delivery.problems.changes import changed_problems
from trimtab.systems.delivery.problems.findings import length, object_name, repeated, whole, wrong
from trimtab.systems.delivery.problems.hints import template_warnings, warnings
from trimtab.systems.delivery.problems.metrics import metric_problems, template_problems
from trimtab.systems.delivery.problems.ports import service_problems, speaks_http
from trimtab.systems.delivery.problems.routing import policy_problems, routing_problems
from trimtab.systems.delivery.problems.traffic import analysis_problems
from trimtab.systems.delivery.problems.webhooks import webhook_problems
from trimtab.systems.delivery.problems.workload import config_problems, deployment_problems

__all__ = ["changed_problems", "group_problems", "problems", "template_problems", "template_warnings", "warnings"]

MOST = 100
"""Problems that are told of one object."""
LONGEST_NAME = 56


def problems(canary: CanaryDeployment) -> list[FieldError]:
    """All that is wrong with a CanaryDeployment in itself."""
    return too_large(canary.spec) or list(islice(_all(canary), MOST))


def group_problems(group: ReleaseGroup) -> list[FieldError]:
    """All that is wrong with a ReleaseGroup in itself."""
    members = [(f"spec.members[{i}].name", member.name) for i, member in enumerate(group.spec.members)]
    found = list(repeated(members))
    for path, name in members:
        found += object_name(path, name)
    return found


def _all(canary: CanaryDeployment) -> Iterator[FieldError]:
    spec = canary.spec
    yield from _name_problems(canary.name)
    yield from deployment_problems(spec.deployment)
    yield from config_problems(spec.deployment)
    yield from service_problems(spec.service, spec.deployment)
    yield from routing_problems(canary)
    yield from policy_problems(canary)
    yield from length("spec.progressDeadline", spec.progress_deadline, 1.0, 86400.0)
    ready = whole(spec.deployment.get("minReadySeconds")) or 0
    if 0 < spec.progress_deadline.seconds <= ready:
        detail = f"must be longer than spec.deployment.minReadySeconds ({ready})"
        yield wrong("spec.progressDeadline", spec.progress_deadline, detail)
    if not isinstance(spec.autoscaler_ref, UnsetType):
        yield from object_name("spec.autoscalerRef.name", spec.autoscaler_ref.name)
    if not isinstance(spec.analysis, UnsetType):
        yield from analysis_problems(spec.analysis, http=speaks_http(spec.service))
        yield from metric_problems(spec.analysis)
        yield from webhook_problems(spec.analysis)


def _name_problems(name: str) -> Iterator[FieldError]:
    """It is a Service's name, and so is this one with -canary. Empty where the server is yet to make it."""
    if len(name) > LONGEST_NAME:
        detail = f"must be at most {LONGEST_NAME} characters: the canary's name is this one with -canary"
        yield wrong("metadata.name", name, detail)
    if name and not _SERVICE_NAME.fullmatch(name):
        detail = (
            "must be of a-z, 0-9 and -, begin with a letter and end with a letter or a digit: a Service has this name"
        )
        yield wrong("metadata.name", name, detail)


_SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # RFC 1035

"""The built-in kinds: their strategies, their schemas, and their protobuf form.

Importing this costs next to nothing; a kind's schema is read and compiled when its first object comes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.model.clock import Clock
    from trimtab.server.builtin.native import Native

__all__ = ["reviews", "strategies"]


def strategies(clock: Clock | None = None) -> tuple[Native, ...]:
    """One strategy for each served kind, in the order of discovery. Ages are told by `clock`, if it is given."""
    return _strategies() if clock is None else tuple(strategy.by(clock) for strategy in _strategies())


@functools.cache
def _strategies() -> tuple[Native, ...]:
    from trimtab.server.builtin import (
        admission_policies,
        admissionregistration,
        apiextensions,
        apiregistration,
        apps,
        autoscaling,
        autoscaling_v1,
        certificates,
        coordination,
        core,
        cronjobs,
        daemonset,
        endpoints,
        events,
        jobs,
        limits,
        networking,
        nodes,
        pod,
        policy,
        quotas,
        rbac,
        replication,
        scheduling,
        services,
        statefulset,
    )

    return (
        *sorted(
            (
                *core.STRATEGIES,
                *endpoints.STRATEGIES,
                events.CORE,
                *limits.STRATEGIES,
                *nodes.STRATEGIES,
                *pod.STRATEGIES,
                *quotas.STRATEGIES,
                *replication.STRATEGIES,
                *services.STRATEGIES,
            ),
            key=lambda strategy: strategy.kind.plural,
        ),
        *apps.STRATEGIES,
        *daemonset.STRATEGIES,
        *statefulset.STRATEGIES,
        *events.STRATEGIES,
        autoscaling.V2,
        autoscaling_v1.V1,
        *cronjobs.STRATEGIES,
        *jobs.STRATEGIES,
        *certificates.STRATEGIES,
        *networking.STRATEGIES,
        *policy.STRATEGIES,
        *rbac.STRATEGIES,
        *admission_policies.STRATEGIES,
        *admissionregistration.STRATEGIES,
        *scheduling.STRATEGIES,
        *apiextensions.STRATEGIES,
        *apiregistration.STRATEGIES,
        *coordination.STRATEGIES,
    )


@functools.cache
def reviews() -> tuple[Native, ...]:
    """The kinds that are only ever created: their schemas and names."""
    from trimtab.server.builtin.review import STRATEGIES

    return STRATEGIES

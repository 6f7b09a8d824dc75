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
        admissionregistration,
        apiextensions,
        apps,
        autoscaling,
        autoscaling_v1,
        coordination,
        core,
        endpoints,
        events,
        pod,
        policy,
        rbac,
        services,
    )

    return (
        *sorted(
            (*core.STRATEGIES, *endpoints.STRATEGIES, events.CORE, *pod.STRATEGIES, *services.STRATEGIES),
            key=lambda strategy: strategy.kind.plural,
        ),
        *apps.STRATEGIES,
        *events.STRATEGIES,
        autoscaling.V2,
        autoscaling_v1.V1,
        *policy.STRATEGIES,
        *rbac.STRATEGIES,
        *admissionregistration.STRATEGIES,
        *apiextensions.STRATEGIES,
        *coordination.STRATEGIES,
    )


@functools.cache
def reviews() -> tuple[Native, ...]:
    """The kinds that are only ever created: their schemas and names."""
    from trimtab.server.builtin.review import STRATEGIES

    return STRATEGIES

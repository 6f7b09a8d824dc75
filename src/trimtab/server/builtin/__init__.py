"""The built-in kinds: their strategies, their schemas, and their protobuf form.

Importing this costs next to nothing; a kind's schema is read and compiled when its first object comes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.server.builtin.native import Native

__all__ = ["strategies"]


@functools.cache
def strategies() -> tuple[Native, ...]:
    """One strategy for each served kind, in the order of discovery."""
    from trimtab.server.builtin import (
        admissionregistration,
        apiextensions,
        coordination,
        core,
        events,
        rbac,
    )

    return (
        *sorted((*core.STRATEGIES, events.CORE), key=lambda strategy: strategy.kind.plural),
        *events.STRATEGIES,
        *rbac.STRATEGIES,
        *admissionregistration.STRATEGIES,
        *apiextensions.STRATEGIES,
        *coordination.STRATEGIES,
    )

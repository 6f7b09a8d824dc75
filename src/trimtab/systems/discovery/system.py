"""Network discovery as a system: its kinds, its one controller, and what that may do.

Where addresses come from is open: `discovery(Lists())` is the same system with one more kind that a rule may name, and a
file with `SYSTEM = discovery(Lists())` is an operator that takes the place of the installed system.
"""

from __future__ import annotations

from typing import Any

from trimtab.runtime import Rule, System
from trimtab.systems.discovery.admission import admissions
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryVendorProfile,
    Target,
    TargetConnectionProfile,
    TargetSyncProfile,
)
from trimtab.systems.discovery.rule import watching
from trimtab.systems.discovery.scope.implementations import Implementation, known, register


def discovery(*more: Implementation[Any]) -> System:
    """The system with all implementations that are registered, these among them from now on. ValueError as `register`."""
    for implementation in more:
        register(implementation)
    sources = tuple(implementation.kind for implementation in known())
    controller = watching(sources)
    return System(
        name="discovery",
        kinds=(
            DiscoveryRule,
            *sources,
            DiscoveryVendorProfile,
            TargetConnectionProfile,
            TargetSyncProfile,
            Target,
        ),
        reconciles=(controller,),
        controllers=lambda context: [controller(context)],
        rules=(
            Rule(kinds=(Target,), verbs=("create", "patch", "delete")),
            Rule(kinds=("targets.discovery.trimtab.dev/status",), verbs=("patch",)),
        ),
        admissions=admissions(sources),
        needs_blobs=True,
    )


SYSTEM = discovery()

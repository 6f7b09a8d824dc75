"""Network discovery as a system: its kinds, its one controller, and what that may do."""

from __future__ import annotations

from trimtab.runtime import Context, Rule, System
from trimtab.systems.discovery.admission import ADMISSIONS
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryRuleIPRange,
    DiscoveryVendorProfile,
    Target,
    TargetConnectionProfile,
    TargetSyncProfile,
)
from trimtab.systems.discovery.rule import RuleController


def _controllers(context: Context) -> list[RuleController]:
    return [RuleController(context)]


SYSTEM = System(
    name="discovery",
    kinds=(
        DiscoveryRule,
        DiscoveryRuleIPRange,
        DiscoveryVendorProfile,
        TargetConnectionProfile,
        TargetSyncProfile,
        Target,
    ),
    reconciles=(RuleController,),
    controllers=_controllers,
    rules=(
        Rule(kinds=(Target,), verbs=("create", "patch", "delete")),
        Rule(kinds=("targets.discovery.trimtab.dev/status",), verbs=("patch",)),
    ),
    admissions=ADMISSIONS,
    needs_blobs=True,
)

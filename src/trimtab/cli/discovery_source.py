"""Where a rule's addresses come from, as far as this program knows: its own implementations, and those of --operator."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli.codes import Problem
from trimtab.cli.systems import NoSystem, operator

if TYPE_CHECKING:
    from trimtab.systems.discovery.kinds import DiscoveryRule
    from trimtab.systems.discovery.scope.implementations import Implementation


def learn(operators: Iterable[str]) -> None:
    """Know the implementations in these files, too. Problem when one cannot be loaded."""
    try:
        for path in operators:
            operator(Path(path))
    except NoSystem as error:
        raise Problem(str(error)) from None


def implementation_of(rule: DiscoveryRule) -> Implementation[Any]:
    """What knows the kind that the rule's `ruleRef` names. Problem when nothing does."""
    from trimtab.systems.discovery.scope.implementations import of, suffix_of, supported

    found = of(rule)
    if found is None:
        ref = rule.spec.rule_ref
        raise Problem(
            f"discoveryrule/{rule.name} names {ref.kind} of {ref.group}/{ref.version}, and this program knows "
            f"{', '.join(supported(suffix_of(rule)))}: give the file that has more with --operator"
        )
    return found

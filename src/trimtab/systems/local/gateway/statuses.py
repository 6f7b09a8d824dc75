"""What is written into the status of Istio's objects: Istio's own fields, so that whoever reads them needs not know us."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from trimtab.model.clock import format_time
from trimtab.systems.local.gateway.istio.reading import Problem

Document = dict[str, Any]
RECONCILED = "Reconciled"
MESSAGE = 4000


def status(
    before: Any, generation: int, problems: tuple[Problem, ...], now: datetime, *, reason: str = "", message: str = ""
) -> Document:
    """The status of a VirtualService or a DestinationRule. With a `reason` it is not in force, whatever the problems."""
    errors = [problem for problem in problems if problem.error]
    ok = not reason and not errors
    if not reason:
        reason = "InForce" if ok else "NotUnderstood"
    if not message:
        message = "; ".join(str(problem) for problem in (errors or problems)) or "Envoy has it"
        if errors:
            message += " (what was in force before stays so)"
    held = before if isinstance(before, dict) else {}
    condition = {
        "type": RECONCILED,
        "status": "True" if ok else "False",
        "reason": reason,
        "message": message[:MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": format_time(now),
    }
    others = []
    for each in held.get("conditions") or ():
        if isinstance(each, dict) and each.get("type") == RECONCILED:
            if each.get("status") == condition["status"] and each.get("lastTransitionTime"):
                condition["lastTransitionTime"] = each["lastTransitionTime"]
        else:
            others.append(each)
    made = {**held, "observedGeneration": generation, "conditions": [*others, condition]}
    made.pop("validationMessages", None)
    if problems:
        made["validationMessages"] = [
            {
                "level": "ERROR" if problem.error else "WARNING",
                "type": {
                    "name": "NotUnderstood" if problem.error else "Unheeded",
                    "code": "TRM0001" if problem.error else "TRM0002",
                },
                "message": str(problem)[:MESSAGE],
            }
            for problem in problems
        ]
    return made

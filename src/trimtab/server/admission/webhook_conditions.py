"""The matchConditions of a webhook: CEL over the review's request, all of which must hold for the webhook to be called.

A false condition excludes the webhook whatever the others do; only then do errors count, by the failurePolicy.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trimtab.server.admission.webhook_match import Hook

if TYPE_CHECKING:
    from trimtab.model.cel import Program

BUDGET = 2_500_000
"""What all conditions of one webhook may cost for one request."""


def conditions_met(hook: Hook, request: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the webhook is to be called, and what went wrong; a problem means that it is not."""
    from trimtab.model.cel import Budget, CelError, CostExceeded, EvaluationError, WrongResult

    bindings = {"object": request["object"], "oldObject": request["oldObject"], "request": request}
    budget = Budget(BUDGET)
    problems: list[str] = []
    for condition in hook.conditions:
        try:
            holds = _program(condition.expression).evaluate(bindings, budget)
        except (EvaluationError, CostExceeded) as error:
            problems.append(f"expression '{condition.expression}' resulted in error: {error}")
        except (CelError, WrongResult) as error:
            problems.append(f"compilation error: {error}")
        else:
            if holds is False:
                return False, ""
        if budget.remaining < 0:
            problems.append(
                "validation failed due to running out of cost budget, no further validation rules will be run"
            )
            break
    problems = list(dict.fromkeys(problems))
    if not problems:
        return True, ""
    return False, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


@functools.lru_cache(maxsize=512)
def _program(expression: str) -> Program:
    from trimtab.model.cel import DYN, compile  # noqa: A004

    return compile(expression, {"object": DYN, "oldObject": DYN, "request": DYN})

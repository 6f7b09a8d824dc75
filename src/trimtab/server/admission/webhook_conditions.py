"""The matchConditions of a webhook: CEL over the review's request, all of which must hold for the webhook to be called.

A false condition excludes the webhook whatever the others do; only then do errors count, by the failurePolicy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trimtab.server.admission.request import AdmissionRequest
from trimtab.server.admission.webhook_expressions import REQUEST_RESOURCE, compiled, variables
from trimtab.server.admission.webhook_match import Hook
from trimtab.server.auth.identity import User, service_account_name
from trimtab.server.auth.rbac import Attributes, Decision

if TYPE_CHECKING:
    from trimtab.model.cel import authz

BUDGET = 2_500_000
"""What all conditions of one webhook may cost for one request."""

Authorize = Callable[[Attributes], Decision]


def conditions_met(
    hook: Hook, request: AdmissionRequest, review: Mapping[str, Any], authorize: Authorize
) -> tuple[bool, str]:
    """Whether the webhook is to be called, and what went wrong; a problem means that it is not. `review` is the
    request as the webhook would see it."""
    from trimtab.model.cel import Budget, CelError, CostExceeded, EvaluationError, WrongResult

    bindings = bindings_of(request, review, authorize)
    budget = Budget(BUDGET)
    problems: list[str] = []
    for condition in hook.conditions:
        try:
            holds = compiled(condition.expression).evaluate(bindings, budget)
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


def bindings_of(request: AdmissionRequest, review: Mapping[str, Any], authorize: Authorize) -> dict[str, Any]:
    """What expressions about a write may speak of."""
    from trimtab.model.cel import authz

    def decide(verb: str, asked: authz.Attributes) -> authz.Decision:
        user = request.user if asked.account is None else _service_account(*asked.account)
        decision = authorize(
            Attributes(
                user=user,
                verb=verb,
                group=asked.group,
                resource=asked.resource,
                subresource=asked.subresource,
                namespace=asked.namespace,
                name=asked.name,
                path=asked.path,
            )
        )
        return authz.Decision(decision.allowed, decision.reason)

    own = authz.Attributes(
        group=request.kind.group,
        resource=request.kind.plural,
        subresource=request.subresource,
        namespace=request.namespace,
        name=request.name,
    )
    return {
        "object": review["object"],
        "oldObject": review["oldObject"],
        "request": variables()["request"].bind(review),
        "authorizer": authz.authorizer(decide),
        REQUEST_RESOURCE: authz.resource_check(decide, own),
    }


def _service_account(namespace: str, name: str) -> User:
    return User(
        service_account_name(namespace, name),
        groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
    )

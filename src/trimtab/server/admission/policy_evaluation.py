"""What a policy says of one write with one set of parameters: decisions, and annotations for the audit log. Pure.

Conditions come first and have a budget of their own; validations and their messages share one, annotations have another.
Who runs out of it fails as a whole. An error in an expression is a refusal, or nothing, by the failurePolicy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.server.admission.policy_expressions import CompiledPolicy, Failed, Validation
from trimtab.server.admission.webhook_conditions import BUDGET as CONDITIONS_BUDGET
from trimtab.server.admission.webhook_expressions import REQUEST_RESOURCE

if TYPE_CHECKING:
    from trimtab.model.cel import Budget, Program

MAX_MESSAGE = 5 * 1024
MAX_ANNOTATION = 10 * 1024
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class Refusal(NamedTuple):
    """A validation that does not hold. `place` is its place among them; an error has no reason."""

    place: int
    message: str
    reason: str = ""


class Judgement(NamedTuple):
    refusals: tuple[Refusal, ...] = ()
    annotations: Mapping[str, str] = {}
    failures: tuple[str, ...] = ()  # of annotations: they refuse whatever the actions of a binding are


class _OutOfBudget(Exception):  # noqa: N818 - it is a limit, not a mistake
    pass


class _Error(NamedTuple):
    """What became of an expression that has no value."""

    message: str


def judged(policy: CompiledPolicy, bindings: Mapping[str, Any], namespace: Any, *, ignores_failure: bool) -> Judgement:
    """`bindings` are what all expressions see, `namespace` is what conditions do not."""
    from trimtab.model.cel import PER_OBJECT, Budget

    def failed(message: str) -> Judgement:
        return Judgement() if ignores_failure else Judgement((Refusal(0, message),))

    if policy.conditions:
        try:
            met, problem = _conditions_met(policy, bindings, Budget(CONDITIONS_BUDGET))
        except _OutOfBudget:
            return failed(OUT_OF_BUDGET)
        if problem:
            return failed(problem)
        if not met:
            return Judgement()
    bound = {**bindings, "namespaceObject": namespace}
    budget = Budget(PER_OBJECT)
    try:
        results = _evaluated(policy, ((v.expression, v.program) for v in policy.validations), bound, budget)
    except _OutOfBudget:
        return failed(OUT_OF_BUDGET)
    refusals = _refusals(policy, results, bound, budget, ignores_failure=ignores_failure)
    try:
        annotations, failures = _annotations(policy, bound, Budget(PER_OBJECT), ignores_failure=ignores_failure)
    except _OutOfBudget:
        return failed(OUT_OF_BUDGET)
    return Judgement(refusals, annotations, failures)


def _conditions_met(policy: CompiledPolicy, bindings: Mapping[str, Any], budget: Budget) -> tuple[bool, str]:
    """Whether the policy applies, and what went wrong. A false condition excludes it whatever the others do."""
    results = _evaluated(policy, ((c.expression, c.program) for c in policy.conditions), bindings, budget)
    if any(result is False for result in results):
        return False, ""
    problems = list(dict.fromkeys(result.message for result in results if isinstance(result, _Error)))
    if not problems:
        return True, ""
    return False, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _evaluated(
    policy: CompiledPolicy,
    expressions: Iterable[tuple[str, Program | Failed | None]],
    bindings: Mapping[str, Any],
    budget: Budget,
) -> list[Any]:
    """The value of each, an _Error, or None where there is no expression. Variables are evaluated once for all."""
    from trimtab.model.cel.composition import NAME, Variables

    programs = {name: made.reason if isinstance(made, Failed) else made for name, made in policy.variables.items()}
    bound = {**bindings, NAME: Variables(programs, bindings, budget)}
    return [None if program is None else _value(text, program, bound, budget) for text, program in expressions]


def _value(text: str, program: Program | Failed, bindings: Mapping[str, Any], budget: Budget) -> Any:
    from trimtab.model.cel import CostExceeded, EvaluationError

    if isinstance(program, Failed):
        return _Error(f"compilation error: {program.reason}")
    value: Any
    try:
        value = program.evaluate(bindings, budget)
    except (EvaluationError, CostExceeded) as error:
        value = _Error(f"expression '{text}' resulted in error: {error}")
    if budget.remaining < 0:
        raise _OutOfBudget
    return value


def _refusals(
    policy: CompiledPolicy, results: list[Any], bindings: Mapping[str, Any], budget: Budget, *, ignores_failure: bool
) -> tuple[Refusal, ...]:
    if all(result is True for result in results):
        return ()
    # Messages do not see who may do what, nor variables that do.
    bound = {name: value for name, value in bindings.items() if name not in ("authorizer", REQUEST_RESOURCE)}
    spent = False
    told: list[Any] = [None] * len(results)
    try:
        expressions = ((v.message_expression, v.message_program) for v in policy.validations)
        told = _evaluated(policy, expressions, bound, budget)
    except _OutOfBudget:
        spent = True
    refusals = []
    for index, (validation, result, message) in enumerate(zip(policy.validations, results, told, strict=True)):
        if isinstance(result, _Error):
            if not ignores_failure:
                refusals.append(Refusal(index, result.message))
        elif spent:
            if not ignores_failure:
                refusals.append(Refusal(index, f"failed messageExpression: {OUT_OF_BUDGET}"))
        elif result is not True:
            refusals.append(Refusal(index, _message(validation, message), validation.reason or "Invalid"))
    return tuple(refusals)


def _message(validation: Validation, told: Any) -> str:
    """What the message expression says, else the message, else the expression that failed."""
    if isinstance(told, str):
        message = told.strip()
        if message and len(message.encode()) <= MAX_MESSAGE and "\n" not in message:
            return message
    return validation.message.strip() or f"failed expression: {validation.expression.strip()}"


def _annotations(
    policy: CompiledPolicy, bindings: Mapping[str, Any], budget: Budget, *, ignores_failure: bool
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    if not policy.annotations:
        return {}, ()
    expressions = ((a.expression, a.program) for a in policy.annotations)
    found: dict[str, str] = {}
    failures = []
    for annotation, value in zip(policy.annotations, _evaluated(policy, expressions, bindings, budget), strict=True):
        if isinstance(value, _Error):
            if not ignores_failure:
                failures.append(value.message)
        elif isinstance(value, str) and value.strip():
            found[annotation.key] = value.strip().encode()[:MAX_ANNOTATION].decode(errors="ignore")
    return found, tuple(failures)

"""The expressions of a ValidatingAdmissionPolicy, compiled: when it is written, to tell what is wrong with it, and when it is
first asked about a request. Pure; CEL is loaded with the first policy.

Each compiles or is the error that says why not: a policy may be stored with expressions that a later version of the
server refuses, and then its failurePolicy decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.server.admission.webhook_expressions import REQUEST_RESOURCE, compiled_with, variables

if TYPE_CHECKING:
    from trimtab.model.cel import Program, Type

NOT_AUTHORIZER = ("authorizer", REQUEST_RESOURCE)


class Failed(NamedTuple):
    """An expression that does not compile. `internal` is a failure of its constants, which is told in another way."""

    reason: str
    internal: bool


class Expressions:
    """The environment of one policy. Variables must be composed in their order, before what reads them is compiled."""

    def __init__(self, *, params: bool, composed: bool, typed: Mapping[str, Type] | None = None) -> None:
        """`typed` are variables whose types are known better than usually."""
        from trimtab.model.cel import DYN
        from trimtab.model.cel.composition import VariablesType

        known = dict(variables())
        if params:
            known["params"] = DYN
        known |= typed or {}
        self._composed = VariablesType()
        if composed:
            known["variables"] = self._composed
        self._known: dict[str, Type] = known
        self.variables: dict[str, Program | Failed] = {}

    def compose(self, name: str, expression: str) -> Program | Failed:
        """Compile a variable; it is known from now on, also when it failed."""
        from trimtab.model.cel import DYN

        made = self._compiled(expression, self._known, ())
        self._composed.compose(name, DYN if isinstance(made, Failed) else made.type)
        self.variables[name] = made
        return made

    def anything(self, expression: str) -> Program | Failed:
        return self._compiled(expression, self._known, ())

    def question(self, expression: str) -> Program | Failed:
        return self._compiled(expression, self._known, ("bool",))

    def message(self, expression: str) -> Program | Failed:
        known = {name: kind for name, kind in self._known.items() if name not in NOT_AUTHORIZER}
        return self._compiled(expression, known, ("string",))

    def annotation(self, expression: str) -> Program | Failed:
        return self._compiled(expression, self._known, ("string", "null_type"))

    def _compiled(self, expression: str, known: Mapping[str, Type], wanted: tuple[str, ...]) -> Program | Failed:
        from trimtab.model.cel import CelError
        from trimtab.model.cel.declarations import runtime_name
        from trimtab.model.cel.errors import InstantiationError

        try:
            program = compiled_with(expression, known, None)
        except InstantiationError as error:
            return Failed(error.message, internal=True)
        except CelError as error:
            return Failed(error.message, internal=False)
        found = program.type.text if program.type.params else runtime_name(program.type)
        if wanted and found not in wanted:
            listed = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
            return Failed(f"must evaluate to {listed} but got {found}", internal=False)
        return program


class Validation(NamedTuple):
    expression: str
    program: Program | Failed
    message: str
    message_expression: str
    message_program: Program | Failed | None
    reason: str


class Annotation(NamedTuple):
    key: str
    expression: str
    program: Program | Failed


class Condition(NamedTuple):
    expression: str
    program: Program | Failed


class CompiledPolicy(NamedTuple):
    variables: Mapping[str, Program | Failed]
    conditions: tuple[Condition, ...]
    validations: tuple[Validation, ...]
    annotations: tuple[Annotation, ...]


def compiled_policy(spec: Mapping[str, Any]) -> CompiledPolicy:
    """All expressions of a policy that was stored."""
    known = Expressions(params=spec.get("paramKind") is not None, composed=True)
    for variable in spec.get("variables") or ():
        known.compose(variable["name"], variable["expression"])
    return CompiledPolicy(
        variables=known.variables,
        conditions=tuple(
            Condition(one["expression"], known.question(one["expression"])) for one in spec.get("matchConditions") or ()
        ),
        validations=tuple(_validation(one, known) for one in spec.get("validations") or ()),
        annotations=tuple(
            Annotation(one["key"], one["valueExpression"], known.annotation(one["valueExpression"]))
            for one in spec.get("auditAnnotations") or ()
        ),
    )


def _validation(one: Mapping[str, Any], known: Expressions) -> Validation:
    message = one.get("messageExpression") or ""
    return Validation(
        expression=one["expression"],
        program=known.question(one["expression"]),
        message=one.get("message") or "",
        message_expression=message,
        message_program=known.message(message) if message else None,
        reason=one.get("reason") or "",
    )

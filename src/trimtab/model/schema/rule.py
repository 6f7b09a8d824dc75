"""One rule of a schema: what was declared, and the programs it compiles to at first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model import cel
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.rule_paths import field_path

VALIDATIONS = "x-kubernetes-validations"
REASONS = {
    "FieldValueInvalid": FieldProblem.INVALID,
    "FieldValueForbidden": FieldProblem.FORBIDDEN,
    "FieldValueRequired": FieldProblem.REQUIRED,
    "FieldValueDuplicate": FieldProblem.DUPLICATE,
}


class Rule:
    """One rule. What it compiles to is kept."""

    __slots__ = ("_message", "_program", "declared", "field_path", "problem", "text", "type")

    def __init__(self, declared: Mapping[str, Any], kind: cel.Type, schema: Mapping[str, Any]) -> None:
        self.declared = declared
        self.type = kind
        self.problem: str | None = None
        self._program: cel.Program | None = None
        self._message: cel.Program | None = None
        said = (declared.get("message") or "").strip()
        self.text = said or (declared.get("rule") or "").strip()
        path = declared.get("fieldPath")
        self.field_path = (field_path(path, schema) or "") if path else ""

    @property
    def optional_old(self) -> bool:
        return bool(self.declared.get("optionalOldSelf"))

    @property
    def message(self) -> str:
        said = (self.declared.get("message") or "").strip()
        return said or f"failed rule: {self.text}"

    def program(self) -> cel.Program | None:
        """The compiled rule, or None when `problem` says why there is none."""
        if self._program is None and self.problem is None:
            try:
                self._program = self.compile(self.declared["rule"], cel.BOOL)
            except cel.CelError as error:
                self.problem = error.message
            except cel.WrongResult:
                self.problem = "cel expression must evaluate to a bool"
        return self._program

    def message_program(self) -> cel.Program | None:
        expression = self.declared.get("messageExpression")
        if self._message is None and expression:
            try:
                self._message = self.compile(expression, cel.STRING)
            except (cel.CelError, cel.WrongResult):
                return None
        return self._message

    def compile(self, source: str, result: cel.Type) -> cel.Program:
        old = cel.optional_of(self.type) if self.optional_old else self.type
        return cel.compile(source, {"self": self.type, "oldSelf": old}, result=result)


def has_rules(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has rules at or below it."""
    if schema.get(VALIDATIONS):
        return True
    children = [*(schema.get("properties") or {}).values(), *(schema.get("allOf") or ())]
    children += [schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), Mapping)]
    return any(has_rules(child) for child in children)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)

"""The check of a schema's rules when a definition is written: form, types, and what they may cost.

The worst case of a rule is its estimate times how often the schema can occur in one object; a rule has a limit and so
has the sum over a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model import cel
from trimtab.model.cel.binding import REQUEST_SIZE, escape, min_size
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.gotext import quoted
from trimtab.model.schema.rule import REASONS, VALIDATIONS, Rule, has_rules, invalid
from trimtab.model.schema.rule_paths import field_path

RULE_COST = 10_000_000
SCHEMA_COST = 100_000_000


def check(document: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with the rules of a schema that stands at `path`."""
    return _Check().run(document, path)


class WrongRule(FieldError, frozen=True):  # noqa: N818 - a field error, not an exception
    """A rule that does not compile. The API prints the whole rule, as Go would."""

    @property
    def body(self) -> str:
        return f"Invalid value: {_go(self.value)}: {self.detail}"


def _go(rule: Mapping[str, Any]) -> str:
    reason = "(nil)" if rule.get("reason") is None else "(0xc000000000)"
    optional = "(nil)" if rule.get("optionalOldSelf") is None else "(0xc000000000)"
    texts = {name: quoted(rule.get(name) or "") for name in ("rule", "message", "messageExpression", "fieldPath")}
    return (
        f"apiextensions.ValidationRule{{Rule:{texts['rule']}, Message:{texts['message']}, "
        f"MessageExpression:{texts['messageExpression']}, Reason:(*apiextensions.FieldValueErrorReason){reason}, "
        f"FieldPath:{texts['fieldPath']}, OptionalOldSelf:(*bool){optional}}}"
    )


class _Check:
    """One check of all rules when a schema is written."""

    def __init__(self) -> None:
        self._total = 0
        self._expensive: list[tuple[int, str]] = []
        self._schema_errors: list[FieldError] = []
        self._cel_errors: list[FieldError] = []

    def run(self, document: Mapping[str, Any], path: str) -> list[FieldError]:
        self._visit(document, path, True, 1, None)
        errors = [*self._schema_errors, *self._cel_errors]
        if self._total > SCHEMA_COST:
            listed = sorted(self._expensive, key=lambda entry: -entry[0])[:4]
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            errors += [FieldError(at, FieldProblem.FORBIDDEN, detail=detail) for _, at in listed]
            name = f"{VALIDATIONS} estimated rule cost total for entire OpenAPIv3 schema"
            errors.append(FieldError(path, FieldProblem.FORBIDDEN, detail=_excess(name, self._total, SCHEMA_COST)))
        return errors

    def _visit(
        self, schema: Mapping[str, Any], path: str, root: bool, cardinality: int | None, uncorrelated: str | None
    ) -> None:
        before = len(self._schema_errors)
        for child, below, embedded, inside in _children(schema, path, uncorrelated):
            self._visit(child, below, embedded, _multiplied(cardinality, _most(schema)), inside)
        declared = schema.get(VALIDATIONS) or ()
        for index, rule in enumerate(declared):
            self._schema_errors += _form(rule, f"{path}.{VALIDATIONS}[{index}]", schema)
        if not declared or len(self._schema_errors) > before:
            return
        kind = cel.type_of_schema(schema, root=root)
        if kind is None:
            reason = "failed to construct type information for x-kubernetes-validations rules: "
            detail = f"internal error: {reason}unable to convert structural schema to CEL declarations"
            self._cel_errors.append(FieldError(f"{path}.{VALIDATIONS}", FieldProblem.INTERNAL, detail=detail))
            return
        if cardinality is None:
            cardinality = REQUEST_SIZE // (min_size(kind) + 1)
        for index, rule in enumerate(declared):
            self._rule(Rule(rule, kind, schema), f"{path}.{VALIDATIONS}[{index}]", cardinality, uncorrelated)

    def _rule(self, rule: Rule, path: str, cardinality: int, uncorrelated: str | None) -> None:
        program = rule.program()
        if program is None:
            self._cel_errors.append(
                WrongRule(f"{path}.rule", FieldProblem.INVALID, dict(rule.declared), rule.problem or "")
            )
            return
        cost = _multiplied(program.estimate(rule.type), cardinality)
        self._cost(f"{path}.rule", "estimated rule cost", cost or 0)
        self._message(rule, f"{path}.messageExpression")
        if "oldSelf" in program.uses:
            if uncorrelated is not None:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                self._cel_errors.append(invalid(f"{path}.rule", rule.declared["rule"], detail))
        elif rule.declared.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            self._cel_errors.append(invalid(f"{path}.optionalOldSelf", rule.declared["optionalOldSelf"], detail))

    def _message(self, rule: Rule, path: str) -> None:
        expression = rule.declared.get("messageExpression")
        if not expression:
            return
        try:
            program = rule.compile(expression, cel.STRING)
        except cel.CelError as error:
            detail = f"messageExpression {error.message}".replace("messageExpression program ", "messageExpression ")
            self._cel_errors.append(WrongRule(path, FieldProblem.INVALID, dict(rule.declared), detail))
        except cel.WrongResult:
            detail = "messageExpression must evaluate to a string"
            self._cel_errors.append(WrongRule(path, FieldProblem.INVALID, dict(rule.declared), detail))
        else:
            self._cost(path, "estimated messageExpression cost", program.estimate(rule.type))

    def _cost(self, path: str, name: str, cost: int) -> None:
        if cost > RULE_COST:
            self._cel_errors.append(FieldError(path, FieldProblem.FORBIDDEN, detail=_excess(name, cost, RULE_COST)))
        self._total += cost
        if cost >= SCHEMA_COST // 100:
            self._expensive.append((cost, path))


def _children(
    schema: Mapping[str, Any], path: str, uncorrelated: str | None
) -> Iterator[tuple[Mapping[str, Any], str, bool, str | None]]:
    """The schemas below one: where they stand, whether they are resources, and within which uncorrelatable list."""
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, Mapping):
        yield (
            additional,
            f"{path}.additionalProperties",
            bool(additional.get("x-kubernetes-embedded-resource")),
            uncorrelated,
        )
    for key, child in (schema.get("properties") or {}).items():
        if escape(key) is not None or has_rules(child):
            embedded = bool(child.get("x-kubernetes-embedded-resource"))
            yield child, f"{path}.properties[{key}]", embedded, uncorrelated
    if isinstance(items, Mapping):
        inside = uncorrelated
        if inside is None and schema.get("x-kubernetes-list-type") != "map":
            inside = path
        yield items, f"{path}.items", bool(items.get("x-kubernetes-embedded-resource")), inside


def _most(schema: Mapping[str, Any]) -> int | None:
    """How many values a schema's child can have in one value of it; None is without bound."""
    if schema.get("type") == "array":
        most = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties"):
        most = schema.get("maxProperties")
    else:
        return 1
    return None if most is None else max(int(most), 0)


def _multiplied(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a * b, (1 << 64) - 1)


def _excess(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        by = "more than 100x"
    elif factor < 1.5:
        by = f"{factor:f}x"
    else:
        by = f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {by} (try simplifying the rule, or adding maxItems, maxProperties, "
        "and maxLength where arrays, maps, and strings are declared)"
    )


def _form(rule: Mapping[str, Any], path: str, schema: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with a rule before anything of it is compiled."""
    source, message = rule.get("rule") or "", rule.get("message") or ""
    expression, reason, place = rule.get("messageExpression") or "", rule.get("reason"), rule.get("fieldPath") or ""
    if not source.strip():
        yield FieldError(f"{path}.rule", FieldProblem.REQUIRED, detail="rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "message must be non-empty if specified")
    elif _broken(message.strip()):
        yield invalid(f"{path}.message", message, "message must not contain line breaks")
    elif _broken(source.strip()) and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        yield FieldError(f"{path}.message", FieldProblem.REQUIRED, detail=detail)
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield FieldError(f"{path}.messageExpression", FieldProblem.REQUIRED, detail=detail)
    if reason is not None and reason not in REASONS:
        listed = ", ".join(f'"{name}"' for name in sorted(REASONS))
        yield FieldError(f"{path}.reason", FieldProblem.UNSUPPORTED, reason, f"supported values: {listed}")
    if place and not place.strip():
        yield invalid(f"{path}.fieldPath", place, "fieldPath must be non-empty if specified")
    if _broken(place):
        yield invalid(f"{path}.fieldPath", place, "fieldPath must not contain line breaks")
    if place and field_path(place, schema) is None:
        yield invalid(f"{path}.fieldPath", place, "fieldPath must be a valid path")


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text

"""The rules of a structural schema (`x-kubernetes-validations`): checked when a schema is written, evaluated when an
object is.

Rules stand anywhere in a schema; only the parts of an object that have rules at or below them are visited. A rule
that names `oldSelf` runs where the old value can be found: in objects, in maps, and in lists of type map. An error on
a value that did not change in an update is only warned of (ratcheting), as in Kubernetes since 1.30.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from trimtab.model import cel
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.rule import REASONS, VALIDATIONS, Rule, has_rules, invalid
from trimtab.model.schema.rule_check import check

MESSAGE_SIZE = 5 * 1024
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_ABSENT: Any = object()


class Rules:
    """The rules of one schema, compiled at first use."""

    def __init__(self, document: Mapping[str, Any], *, root: bool = True) -> None:
        self._document = document
        self._is_root = root
        self._tree: _Place | None = None
        self._built = False

    def __bool__(self) -> bool:
        return self._place() is not None

    def check(self, path: str) -> list[FieldError]:
        """What is wrong with the rules themselves. `path` is where the schema stands in its definition."""
        return check(self._document, path)

    def evaluate(
        self, obj: dict[str, Any], old: dict[str, Any] | None = None, warn: Callable[[str], None] | None = None
    ) -> list[FieldError]:
        """What the rules say of an object, and of its change from `old`. `warn` is told what is forgiven."""
        place = self._place()
        if place is None:
            return []
        run = _Run(warn)
        correlated = None if old is None else (obj, old)
        with contextlib.suppress(_Stop):
            run.visit(place, "", obj, old, correlated, None)
        return run.errors

    def _place(self) -> _Place | None:
        if not self._built:
            self._tree = _place(self._document, self._document, self._is_root)
            self._built = True
        return self._tree


class _Place:
    """A part of a schema that has rules at or below it."""

    __slots__ = ("all_of", "items", "kind", "list_keys", "properties", "rules", "shown", "values")

    def __init__(self, kind: cel.Type, rules: list[Rule], shown: str) -> None:
        self.kind = kind
        self.rules = rules
        self.shown = shown
        self.all_of: list[_Place] = []
        self.properties: dict[str, _Place] = {}
        self.values: _Place | None = None
        self.items: _Place | None = None
        self.list_keys: tuple[str, ...] | None = None


def _place(rules: Mapping[str, Any], schema: Mapping[str, Any], root: bool) -> _Place | None:
    """The place of `schema` with the rules of `rules`, which is the schema itself or an `allOf` of it."""
    if not has_rules(rules):
        return None
    kind = cel.type_of_schema(schema, root=root)
    if kind is None:
        return None
    listed = [Rule(rule, kind, schema) for rule in rules.get(VALIDATIONS) or () if (rule.get("rule") or "").strip()]
    place = _Place(kind, listed, schema.get("type") or "")
    for key, child in (rules.get("properties") or {}).items():
        below = (schema.get("properties") or {}).get(key)
        if below is not None:
            found = _place(child, below, bool(below.get("x-kubernetes-embedded-resource")))
            if found is not None:
                place.properties[key] = found
    for name in ("additionalProperties", "items"):
        child, below = rules.get(name), schema.get(name)
        if isinstance(child, Mapping) and isinstance(below, Mapping):
            found = _place(child, below, bool(below.get("x-kubernetes-embedded-resource")))
            if name == "items":
                place.items = found
            else:
                place.values = found
    if schema.get("x-kubernetes-list-type") == "map":
        place.list_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    for child in rules.get("allOf") or ():
        found = _place(child, schema, root)
        if found is not None:
            place.all_of.append(found)
    return place


class _Stop(Exception):  # noqa: N818 - the budget is spent; the error is already noted
    pass


Correlated = tuple[Any, Any] | None  # a value and the old value it is known to come from


class _Run:
    """One evaluation of all rules."""

    def __init__(self, warn: Callable[[str], None] | None) -> None:
        self.errors: list[FieldError] = []
        self._warn = warn
        self._budget = cel.Budget()

    def visit(self, place: _Place, path: str, value: Any, old: Any, now: Correlated, parent: Correlated) -> None:
        if value is None:
            return
        if place.rules:
            self._rules(place, path, value, old, now if now is not None else parent)
        for also in place.all_of:
            self.visit(also, path, value, old, None, parent)
        if isinstance(value, dict):
            self._object(place, path, value, old if isinstance(old, dict) else {}, now, parent)
        elif isinstance(value, list) and place.items is not None:
            self._list(place, path, value, old if isinstance(old, list) else [], now, parent)

    def _object(
        self, place: _Place, path: str, value: dict[str, Any], old: dict[str, Any], now: Correlated, parent: Correlated
    ) -> None:
        if place.values is not None:
            for key, item in value.items():
                self._child(place.values, f"{path}[{key}]", key, item, old.get(key), now, parent)
        for key, child in place.properties.items():
            if key in value:
                below = f"{path}.{key}" if path else key
                self._child(child, below, key, value[key], old.get(key), now, parent)

    def _child(
        self, place: _Place, path: str, key: str, value: Any, old: Any, now: Correlated, parent: Correlated
    ) -> None:
        if now is None:
            self.visit(place, path, value, old, None, parent)
        elif parent is None and key in ("apiVersion", "kind"):
            self.visit(place, path, value, old, None, None)
        else:
            before = now[1].get(key, _ABSENT) if isinstance(now[1], dict) else _ABSENT
            self.visit(place, path, value, old, None if before is _ABSENT else (value, before), now)

    def _list(
        self, place: _Place, path: str, value: list[Any], old: list[Any], now: Correlated, parent: Correlated
    ) -> None:
        assert place.items is not None  # noqa: S101 - the caller looked
        by_key = {_key(item, place.list_keys): item for item in old} if place.list_keys else {}
        for index, item in enumerate(value):
            before = by_key.get(_key(item, place.list_keys)) if place.list_keys else None
            if now is None:
                self.visit(place.items, f"{path}[{index}]", item, before, None, parent)
            else:
                self.visit(
                    place.items, f"{path}[{index}]", item, before, None if before is None else (item, before), now
                )

    def _rules(self, place: _Place, path: str, value: Any, old: Any, unchanged: Correlated) -> None:
        at = path or "<nil>"
        bindings: dict[str, Any] | None = None
        for rule in place.rules:
            if self._budget.remaining <= 0:
                self._stop(at, place, _OUT_OF_BUDGET)
            program = rule.program()
            if program is None:
                self.errors.append(invalid(at, place.shown, f"rule compile error: {rule.problem}"))
                continue
            transition = "oldSelf" in program.uses
            if transition and old is None and not rule.optional_old:
                continue
            if bindings is None:
                try:
                    bindings = {"self": place.kind.bind(value)}
                except cel.EvaluationError as error:
                    self.errors.append(invalid(at, place.shown, f"{error} evaluating rule: {rule.text}"))
                    return
            if transition:
                bindings["oldSelf"] = _old(place, rule, old)
            if self._holds(program, rule, place, at, bindings):
                continue
            problem = self._failure(rule, place, path, bindings)
            if transition or unchanged is None or unchanged[0] != unchanged[1]:
                self.errors.append(problem)
            elif self._warn is not None:
                self._warn(str(problem))

    def _holds(self, program: cel.Program, rule: Rule, place: _Place, at: str, bindings: dict[str, Any]) -> bool:
        try:
            held = program.evaluate(bindings, self._budget) is True
        except cel.EvaluationError as error:
            self._in_budget(at, place)
            if str(error).startswith("no such overload"):
                detail = (
                    f"'{error}': call arguments did not match a supported operator, function or macro signature "
                    f"for rule: {rule.text}"
                )
            else:
                detail = f"{error} evaluating rule: {rule.text}"
            self.errors.append(invalid(at, place.shown, detail))
            return True
        except cel.CostExceeded as error:
            self._in_budget(at, place)
            reason = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(at, place, f"'{error}': {reason}: {rule.text}")
        self._in_budget(at, place)
        return held

    def _in_budget(self, at: str, place: _Place) -> None:
        if self._budget.remaining < 0:
            self._stop(at, place, _OUT_OF_BUDGET)

    def _stop(self, at: str, place: _Place, detail: str) -> NoReturn:
        self.errors.append(invalid(at, place.shown, detail))
        raise _Stop

    def _failure(self, rule: Rule, place: _Place, path: str, bindings: dict[str, Any]) -> FieldError:
        at = path
        if rule.field_path:
            at = f"{path}.{rule.field_path}" if path else rule.field_path
        at = at or "<nil>"
        problem = REASONS.get(rule.declared.get("reason") or "", FieldProblem.INVALID)
        message = self._message(rule, place, at, bindings) or rule.message
        if problem is FieldProblem.DUPLICATE:
            return FieldError(at, problem, place.shown)
        return FieldError(at, problem, place.shown if problem is FieldProblem.INVALID else None, message)

    def _message(self, rule: Rule, place: _Place, at: str, bindings: dict[str, Any]) -> str | None:
        """The message that an expression makes, or None to fall back on the written one."""
        program = rule.message_program()
        if program is None:
            return None
        try:
            text = program.evaluate(bindings, self._budget)
        except cel.EvaluationError:
            text = None
        except cel.CostExceeded:
            source = program.source.replace("\\", "\\\\").replace('"', '\\"')
            self._stop(
                at,
                place,
                "no further validation rules will be run due to call cost exceeds limit "
                f'for messageExpression: "{source}"',
            )
        if self._budget.remaining < 0:
            self._stop(
                at,
                place,
                "messageExpression evaluation failed due to running out of cost budget, "
                "no further validation rules will be run",
            )
        if not isinstance(text, str):
            return None
        text = text.strip()
        return text if text and "\n" not in text and len(text.encode()) <= MESSAGE_SIZE else None


def _key(item: Any, names: tuple[str, ...] | None) -> Any:
    return tuple(item.get(name) for name in names or ()) if isinstance(item, dict) else None


def _old(place: _Place, rule: Rule, old: Any) -> Any:
    if not rule.optional_old:
        return place.kind.bind(old)
    return cel.NONE if old is None else cel.Optional(True, place.kind.bind(old))

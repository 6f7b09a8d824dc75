"""Short words for field errors, with the details that the real server gives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import label_key_problems, label_value_problems
from trimtab.server.builtin import gosource


class GoFieldError(FieldError, frozen=True):
    """An error whose value the real server prints as Go source, which `value` is here."""

    @property
    def body(self) -> str:
        text = f"{self.problem.value[0]}: {self.value}"
        return f"{text}: {self.detail}" if self.detail else text


class SilentFieldError(FieldError, frozen=True):
    """An error whose value the real server does not print."""

    @property
    def body(self) -> str:
        return f"{self.problem.value[0]}: {self.detail}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, FieldProblem.REQUIRED, None, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)


def invalid_go(path: str, source: str, detail: str) -> FieldError:
    return GoFieldError(path, FieldProblem.INVALID, source, detail)


def unsupported(path: str, value: Any, allowed: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{word}"' for word in allowed)
    return FieldError(path, FieldProblem.UNSUPPORTED, value, f"supported values: {listed}" if listed else "")


def unsupported_go(path: str, source: str, allowed: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{word}"' for word in allowed)
    return GoFieldError(path, FieldProblem.UNSUPPORTED, source, f"supported values: {listed}")


def invalid_whole(path: str, detail: str) -> FieldError:
    """An error that tells no value."""
    return SilentFieldError(path, FieldProblem.INVALID, None, detail)


def too_many(path: str, count: int, limit: int) -> FieldError:
    return FieldError(path, FieldProblem.TOO_MANY, count, f"must have at most {limit} items")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.FORBIDDEN, None, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(path, FieldProblem.DUPLICATE, value)


def duplicate_go(path: str, source: str) -> FieldError:
    return GoFieldError(path, FieldProblem.DUPLICATE, source)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(path, FieldProblem.TOO_LONG, None, f"may not be more than {limit} bytes")


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    """What is wrong when a field that never changes has changed."""
    return [] if new == old else [invalid(path, new, "field is immutable")]


def not_negative(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, "must be greater than or equal to 0")]
    return []


def int_or_percent(path: str, value: int | str) -> list[FieldError]:
    """What a count or a share of pods must be."""
    if isinstance(value, int):
        return not_negative(path, value)
    if not re.fullmatch("[0-9]+%", value):
        why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
        return [invalid_go(path, gosource.int_or_string(value), why + "used for validation is '[0-9]+%')")]
    return []


def at_most_all(path: str, value: int | str) -> list[FieldError]:
    """A share is at most 100%."""
    if isinstance(value, str) and re.fullmatch("[0-9]+%", value) and digits(value[:-1]) > 100:
        return [invalid_go(path, gosource.int_or_string(value), "must not be greater than 100%")]
    return []


def digits(text: str) -> int:
    """The number that digits are. One that is too long to be meant is some number as large: Python reads no longer ones."""
    return int(text) if len(text) < 19 else int(text.lstrip("0")[:19] or "0")


def each(path: str, value: Any, problems: Iterable[str]) -> list[FieldError]:
    """The findings of a check of names, as errors of one field."""
    return [invalid(path, value, problem) for problem in problems]


def at(document: Any, *path: str) -> Any:
    """A value deep in a document; None where the way there ends. Hooks run before types are known to be right."""
    for step in path:
        if not isinstance(document, dict):
            return None
        document = document.get(step)
    return document


def items(document: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in a list deep in a document."""
    found = at(document, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def label_map(labels: Any, path: str) -> list[FieldError]:
    """What labels must fulfil."""
    errors = []
    for key, value in (labels or {}).items():
        errors += each(path, key, label_key_problems(key))
        errors += each(path, value, label_value_problems(value))
    return errors


def label_selector(selector: Any, path: str) -> list[FieldError]:
    """What `metav1.LabelSelector` must fulfil."""
    errors = label_map(at(selector, "matchLabels"), f"{path}.matchLabels")
    for index, one in enumerate(at(selector, "matchExpressions") or []):
        here = f"{path}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden(f"{here}.values", why))
        else:
            errors.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        errors += each(f"{here}.key", one.get("key", ""), label_key_problems(one.get("key", "")))
        for position, value in enumerate(values):
            errors += each(f"{here}.values[{position}]", value, label_value_problems(value))
    return errors

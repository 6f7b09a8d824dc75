"""Whole objects inside objects (`x-kubernetes-embedded-resource`), with apiVersion, kind and metadata of their own."""

from __future__ import annotations

from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.finding import Check, Finding, Found, Stage

EMBEDDED_FIELDS = ("apiVersion", "kind", "metadata")


def embedded_check() -> Check:
    """The check of what an embedded resource has beside its schema."""

    def check(value: dict[str, Any]) -> Found:
        found: list[Finding] = []
        for name in ("apiVersion", "kind"):
            if name not in value:
                found.append(_problem(name, FieldProblem.REQUIRED, "", _EMPTY))
            elif complaint := _wrong(name, value[name]):
                found.append(_problem(name, FieldProblem.INVALID, value[name], complaint))
        if "metadata" in value:
            found += _of_metadata(value["metadata"])
        return found or None

    return check


_EMPTY = "must not be empty"


def _wrong(name: str, value: Any) -> str:
    from trimtab.model.metadata import dns_1035_label_problems

    if not isinstance(value, str):
        return "must be a string"
    if not value:
        return _EMPTY
    if name == "apiVersion":
        return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""
    problems = dns_1035_label_problems(value.lower())
    return f"may have mixed case, but should otherwise match: {','.join(problems)}" if problems else ""


def _of_metadata(meta: Any) -> list[Finding]:
    """Metadata prunes and checks itself; only the paths are ours. A name is not required."""
    from trimtab.model.metadata import decode, path_segment_name, validate_create
    from trimtab.model.schema.native import json_kind

    if not isinstance(meta, dict):
        complaint = f"json: cannot unmarshal {json_kind(meta)} into Go value of type v1.ObjectMeta"
        return [_problem("metadata", FieldProblem.INVALID, meta, complaint)]
    walk = decode(meta)
    found = [
        Finding(Stage.UNKNOWN, lambda path: FieldError(path, FieldProblem.INVALID), [path]) for path in walk.unknown
    ]
    if walk.errors:
        complaint = getattr(walk.errors[0], "message", "")
        return [*found, _problem("metadata", FieldProblem.INVALID, meta, complaint)]
    named = {**meta, "name": meta.get("name") or "fakename"}
    namespaced = bool(meta.get("namespace"))
    errors = validate_create(named, namespaced=namespaced, name_check=path_segment_name)
    return [*found, *(Finding(Stage.EMBEDDED, _below(error)) for error in errors)]


def _problem(name: str, problem: FieldProblem, value: Any, detail: str) -> Finding:
    return Finding(Stage.EMBEDDED, lambda path: FieldError(path, problem, value, detail), [name])


def _below(error: FieldError) -> Any:
    return lambda path: FieldError(
        f"{path}.{error.path}" if path else error.path, error.problem, error.value, error.detail
    )

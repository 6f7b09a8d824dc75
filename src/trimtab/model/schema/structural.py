"""May a CRD carry this schema? Structural schemas and their rules, in the real server's words.

Three passes, as in apiextensions: structure (every field has a type outside of value validations); defaults, if the
structure is sound; and what OpenAPI allows but Kubernetes does not (`supported`). Rules in CEL are compiled elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.defaults import default_errors
from trimtab.model.schema.patterns import BadPattern, matcher
from trimtab.model.schema.supported import root_errors, supported_errors, unsupported_words

Document = Mapping[str, Any]


def check(document: Document, path: str, *, status: bool = False) -> list[FieldError]:
    """What is wrong with the schema at `path` (`spec.versions[0].schema.openAPIV3Schema`). `status`: the version has a
    status subresource, so that few things may be said at the root."""
    try:
        errors = list(root_errors(document, path, status))
        broken = unsupported_words(document)
        if not broken:
            structure = sorted((*_invariants(document, path, "root"), *_completeness(document, path)), key=str)
            errors += structure or default_errors(document, path)
        errors += supported_errors(document, path)
    except RecursionError:
        return [FieldError(path, FieldProblem.INVALID, "", "exceeded max depth")]
    if broken and not errors:
        errors.append(FieldError(path, FieldProblem.INVALID, "", broken))
    return errors


def required(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.REQUIRED, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.FORBIDDEN, "", detail)


_UNTYPED = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _invariants(document: Document, path: str, level: str) -> Iterator[FieldError]:
    """What holds of each node outside of value validations."""
    declared = document.get("type") or ""
    items, additional = document.get("items"), document.get("additionalProperties")
    properties: Document = document.get("properties") or {}
    if declared == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _invariants(items, f"{path}.items", "item")
    for name, part in properties.items():
        yield from _invariants(part, f"{path}.properties[{name}]", "field")
    if additional is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _invariants(additional, f"{path}.additionalProperties", "field")
    yield from _extensions(document, path)
    skip_any = document.get("anyOf") == _INT_OR_STRING
    first = (document.get("allOf") or [{}])[0]
    yield from _values(document, path, skip_any, first.get("anyOf") == _INT_OR_STRING)
    yield from _types(document, path, level)
    yield from _resource(document, path, level)


def _extensions(document: Document, path: str) -> Iterator[FieldError]:
    if document.get("x-kubernetes-int-or-string"):
        for word in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if document.get(word):
                yield invalid(f"{path}.{word}", True, "must be false if x-kubernetes-int-or-string is true")


def _types(document: Document, path: str, level: str) -> Iterator[FieldError]:
    declared = document.get("type") or ""
    embedded = document.get("x-kubernetes-embedded-resource")
    free = document.get("x-kubernetes-int-or-string") or document.get("x-kubernetes-preserve-unknown-fields")
    if embedded and declared != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", declared, detail) if declared else required(f"{path}.type", detail)
    elif not declared and not free:
        yield required(f"{path}.type", _UNTYPED[level])
    if embedded and document.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", detail)
    if level == "root" and declared not in ("", "object"):
        yield invalid(f"{path}.type", declared, "must be object at the root")


def _resource(document: Document, path: str, level: str) -> Iterator[FieldError]:
    """At the root and in embedded resources apiVersion, kind and metadata are given."""
    properties: Document = document.get("properties") or {}
    embedded = document.get("x-kubernetes-embedded-resource")
    whole = level == "root" or embedded
    for name in ("kind", "apiVersion") if whole else ():
        if name in properties and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
    if "metadata" in properties:
        metadata, where = properties["metadata"], f"{path}.properties[metadata]"
        if whole and metadata.get("type") != "object":
            yield invalid(f"{where}.type", metadata.get("type") or "", "must be object")
        if level == "root" and not _names_only(metadata):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(where, detail)
    if embedded and not document.get("x-kubernetes-preserve-unknown-fields") and not properties:
        beside = "if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", f"must not be empty {beside}")


def _names_only(metadata: Document) -> bool:
    given = {word for word, value in metadata.items() if value not in (None, False, "", [], {}, 0)}
    return given <= {"type", "default", "properties"} and set(metadata.get("properties") or ()) <= {
        "name",
        "generateName",
    }


_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _values(document: Document, path: str, skip_any: bool, skip_first_all: bool) -> Iterator[FieldError]:
    """Value validations: what a node says beside its structure."""
    for index, part in enumerate([] if skip_any else document.get("anyOf") or ()):
        yield from _nested(part, f"{path}.anyOf[{index}]")
    for index, part in enumerate(document.get("allOf") or ()):
        yield from _nested(part, f"{path}.allOf[{index}]", skip_any=skip_first_all and index == 0)
    for index, part in enumerate(document.get("oneOf") or ()):
        yield from _nested(part, f"{path}.oneOf[{index}]")
    if document.get("not") is not None:
        yield from _nested(document["not"], f"{path}.not")
    pattern = document.get("pattern")
    if pattern and (reason := _regexp_problem(pattern)):
        detail = f"must be a valid regular expression, but isn't: {reason}"
        yield invalid(f"{path}.pattern", pattern, detail)


def _regexp_problem(pattern: str) -> str:
    try:
        matcher(pattern)
    except BadPattern as bad:
        return str(bad)
    return ""


_EMPTY = "must be empty to be structural"
_FALSE = "must be false to be structural"
_UNDEFINED = "must be undefined to be structural"
_STRUCTURE = (
    ("type", _EMPTY),
    ("additionalProperties", _UNDEFINED),
    ("default", _UNDEFINED),
    ("title", _EMPTY),
    ("description", _EMPTY),
    ("nullable", _FALSE),
    ("x-kubernetes-preserve-unknown-fields", _FALSE),
    ("x-kubernetes-embedded-resource", _FALSE),
    ("x-kubernetes-int-or-string", _FALSE),
    ("x-kubernetes-list-map-keys", _EMPTY),
    ("x-kubernetes-list-type", _UNDEFINED),
    ("x-kubernetes-map-type", _UNDEFINED),
    ("x-kubernetes-validations", _EMPTY),
)
"""What only the structure may say."""


def _nested(document: Document, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _values(document, path, skip_any, False)
    items = document.get("items")
    if isinstance(items, Mapping):
        yield from _nested(items, f"{path}.items")
    properties: Document = document.get("properties") or {}
    for name, part in properties.items():
        yield from _nested(part, f"{path}.properties[{name}]")
    for word, detail in _STRUCTURE:
        value = document.get(word)
        if value or (value is not None and (word == "default" or value == {})):
            yield forbidden(f"{path}.{word}", detail)
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(document: Document, path: str) -> Iterator[FieldError]:
    """Every field that a value validation speaks of is in the structure too."""
    yield from _specified(document, document, path, path)


def _specified(values: Document, structure: Document, path: str, said: str) -> Iterator[FieldError]:
    if values.get("not") is not None:
        yield from _specified_nested(values["not"], structure, path, f"{said}.not")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(values.get(word) or ()):
            yield from _specified_nested(part, structure, path, f"{said}.{word}[{index}]")


def _specified_nested(values: Document, structure: Document | None, path: str, said: str) -> Iterator[FieldError]:
    if structure is None:
        yield required(path, f"because it is defined in {said}")
        return
    yield from _specified(values, structure, path, said)
    items = values.get("items")
    if isinstance(items, Mapping):
        yield from _specified_nested(items, structure.get("items"), f"{path}.items", f"{said}.items")
    properties: Document = structure.get("properties") or {}
    for name, part in (values.get("properties") or {}).items():
        place = f".properties[{name}]"
        yield from _specified_nested(part, properties.get(name), path + place, said + place)

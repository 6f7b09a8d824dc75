"""What OpenAPI allows and a CRD may not say, and what list and map types need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.gotext import Strings, quoted

Document = Mapping[str, Any]


def unsupported_words(document: Any) -> str:
    """The first word that no structural schema can hold; "" if there is none."""
    for word in ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"):
        if document.get(word):
            return f"OpenAPIV3Schema '{word.removeprefix('$') if word == '$schema' else word}' is not supported"
    if document.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(document.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next(filter(None, map(unsupported_words, _parts(document))), "")


def _parts(document: Document) -> Iterator[Document]:
    for word in ("not", "items", "additionalProperties"):
        if isinstance(document.get(word), Mapping):
            yield document[word]
    for word in ("allOf", "anyOf", "oneOf"):
        yield from document.get(word) or ()
    yield from (document.get("properties") or {}).values()


_ROOT_FIELDS = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_ROOT_WORDS = {field[0].lower() + field[1:] for field in _ROOT_FIELDS.split() if not field.startswith("X")} | {
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}


def root_errors(document: Document, path: str, status: bool) -> Iterator[FieldError]:
    """What may not be said at the root."""
    if status and document.get("type") not in (None, "", "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield _invalid(f"{path}.type", document["type"], detail)
    elif status and any(value and word not in _ROOT_WORDS for word, value in document.items()):
        detail = (
            f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled"
        )
        yield _invalid(path, document, detail)
    if document.get("nullable"):
        yield _forbidden(f"{path}.nullable", "nullable cannot be true at the root")


class _Place(NamedTuple):
    """What the surroundings of a node forbid."""

    no_default: str = ""  # why, if a default may not be set
    in_metadata: bool = False


def supported_errors(document: Document, path: str) -> list[FieldError]:
    """What is wrong with a schema, node by node."""
    return list(_node(document, path, _Place(), root=True))


def _node(document: Document, path: str, place: _Place, *, root: bool = False) -> Iterator[FieldError]:
    yield from _words(document, path, place)
    if document.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield _forbidden(f"{path}.uniqueItems", detail)
    properties: Document = document.get("properties") or {}
    additional = document.get("additionalProperties")
    if additional is not None and properties and additional is not True:
        yield _forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if isinstance(additional, Mapping):
        inner = place
        if place.in_metadata:
            inner = place._replace(no_default="inside additionalProperties applying to object metadata")
        yield from _node(additional, f"{path}.additionalProperties", inner)
    for name, part in properties.items():
        inner = place
        if (root or document.get("x-kubernetes-embedded-resource")) and name in ("metadata", "kind", "apiVersion"):
            inner = _Place(f"in top-level {name}" if root else place.no_default, in_metadata=True)
        yield from _node(part, f"{path}.properties[{name}]", inner)
    if isinstance(document.get("not"), Mapping):
        yield from _node(document["not"], f"{path}.not", place)
    for word in ("allOf", "oneOf", "anyOf"):
        for index, part in enumerate(document.get(word) or ()):
            yield from _node(part, f"{path}.{word}[{index}]", place)
    items = document.get("items")
    if isinstance(items, Mapping):
        yield from _node(items, f"{path}.items", place)
    for index, part in enumerate(items if isinstance(items, list) else ()):
        yield from _node(part, f"{path}.items[{index}]", place)
    yield from _extensions(document, path)
    yield from _rules(document, f"{path}.x-kubernetes-validations")


_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def _words(document: Document, path: str, place: _Place) -> Iterator[FieldError]:
    declared = document.get("type")
    if declared and declared not in _TYPES:
        yield _unsupported(f"{path}.type", declared, _TYPES)
    if document.get("default") is not None and place.no_default:
        yield _forbidden(f"{path}.default", f"must not be set {place.no_default}")
    for word in ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        if document.get(word):
            yield _forbidden(f"{path}.{word}", f"{word} is not supported")
    if declared == "null":
        yield _forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(document.get("items"), list):
        yield _forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_metadata and document.get("x-kubernetes-embedded-resource"):
        yield _forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _extensions(document: Document, path: str) -> Iterator[FieldError]:
    if document.get("x-kubernetes-preserve-unknown-fields") is False:
        yield _invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    declared = document.get("type") or ""
    map_type, list_type = document.get("x-kubernetes-map-type"), document.get("x-kubernetes-list-type")
    keys = Strings(document.get("x-kubernetes-list-map-keys") or ())
    items = document.get("items") if isinstance(document.get("items"), Mapping) else None
    if map_type is not None and declared != "object":
        yield _mistyped(f"{path}.type", declared, "must be object if x-kubernetes-map-type is specified")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield _unsupported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None and declared != "array":
        yield _mistyped(f"{path}.type", declared, "must be array if x-kubernetes-list-type is specified")
    elif list_type == "set" and items is not None:
        yield from _set_items(items, f"{path}.items")
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield _unsupported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield _mistyped(f"{path}.x-kubernetes-list-type", list_type or "", detail)
    if list_type == "map":
        yield from _map_items(document, keys, path)
    if list_type in ("set", "map") and items is not None:
        yield from _keys(items, keys if list_type == "map" else (), list_type, f"{path}.items")


def _set_items(items: Document, path: str) -> Iterator[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield _invalid(f"{path}.x-kubernetes-list-type", inner, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield _invalid(f"{path}.x-kubernetes-map-type", inner, detail)


def _map_items(document: Document, keys: Sequence[str], path: str) -> Iterator[FieldError]:
    items = document.get("items")
    if not keys:
        yield _required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield _required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if isinstance(items, list):
        yield _invalid(f"{path}.items", items, "must only have a single schema if x-kubernetes-list-type is map")
    if not isinstance(items, Mapping):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield _invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    seen = set()
    for key in keys:
        part = (items.get("properties") or {}).get(key)
        if part is None:
            yield _invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif part.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield _invalid(f"{path}.items.properties[{key}].type", "object", detail)
        if key in seen:
            yield _invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        seen.add(key)


def _keys(items: Document, keys: Sequence[str], list_type: str, path: str) -> Iterator[FieldError]:
    if items.get("nullable"):
        yield _forbidden(f"{path}.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    for key in keys:
        part = (items.get("properties") or {}).get(key)
        if part is None:
            continue
        why = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and part.get("default") is None:
            yield _required(f"{path}.properties[{key}].default", f"{why} must have a default or be a required property")
        if part.get("nullable"):
            yield _forbidden(f"{path}.properties[{key}].nullable", f"{why} cannot be nullable")


_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def _rules(document: Document, path: str) -> Iterator[FieldError]:
    """The form of x-kubernetes-validations; what they mean is compiled elsewhere."""
    for index, rule in enumerate(document.get("x-kubernetes-validations") or ()):
        here = f"{path}[{index}]"
        text, message, expression = (
            rule.get("rule") or "",
            rule.get("message") or "",
            rule.get("messageExpression") or "",
        )
        if not text.strip():
            yield _required(f"{here}.rule", "rule is not specified")
        elif message and not message.strip():
            yield _invalid(f"{here}.message", message, "message must be non-empty if specified")
        elif _broken(message.strip()):
            yield _invalid(f"{here}.message", message, "message must not contain line breaks")
        elif _broken(text.strip()) and not message.strip():
            yield _required(f"{here}.message", "message must be specified if rule contains line breaks")
        if expression and not expression.strip():
            yield _required(f"{here}.messageExpression", "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield _unsupported(f"{here}.reason", rule["reason"], _REASONS)
        field = rule.get("fieldPath") or ""
        if field and not field.strip():
            yield _invalid(f"{here}.fieldPath", field, "fieldPath must be non-empty if specified")
        if _broken(field):
            yield _invalid(f"{here}.fieldPath", field, "fieldPath must not contain line breaks")
        if field and not _leads_somewhere(document, field):
            yield _invalid(f"{here}.fieldPath", field, "fieldPath must be a valid path")


_path_step = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^']*)'\]")


def _leads_somewhere(document: Document, path: str) -> bool:
    """Whether a path of fields and keys (`.spec.a['b']`) exists in a schema."""
    position, node = 0, document
    while position < len(path):
        step = _path_step.match(path, position)
        if step is None:
            return False
        name = step[1] or step[2]
        part = (node.get("properties") or {}).get(name, node.get("additionalProperties"))
        if not isinstance(part, Mapping):
            return False
        position, node = step.end(), part
    return True


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text


def _required(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.REQUIRED, "", detail)


def _invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value, detail)


def _forbidden(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.FORBIDDEN, "", detail)


def _mistyped(path: str, value: str, detail: str) -> FieldError:
    return _invalid(path, value, detail) if value else _required(path, detail)


def _unsupported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    detail = f"supported values: {', '.join(map(quoted, supported))}"
    return FieldError(path, FieldProblem.UNSUPPORTED, value, detail)

"""Definitions as OpenAPI v3 publishes them: with their prose and their required fields, for `kubectl explain`.

The real server also publishes Go's zero values as defaults; nobody reads those, and they are left out.
"""

from __future__ import annotations

from typing import Any

from trimtab.server.builtin.tables import DEFINITIONS, PREFIX, descriptions

COMPONENTS = "#/components/schemas/"
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SPECIAL: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object"},
    **{_CRD + name: {} for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool")},
    _CRD + "JSONSchemaPropsOrStringArray": {},
}


def published(*roots: str) -> dict[str, dict[str, Any]]:
    """The named definitions and all that they refer to, by name, with references into `components/schemas`."""
    found: dict[str, dict[str, Any]] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = _definition(name)
            pending += DEFINITIONS.references(name)
    return dict(sorted(found.items()))


def _definition(name: str) -> dict[str, Any]:
    prose = descriptions().get(name, {})
    result = dict(_SPECIAL[name]) if name in _SPECIAL else dict(DEFINITIONS[name])
    if "description" in prose:
        result["description"] = prose["description"]
    if "required" in prose:
        result["required"] = prose["required"]
    if "properties" in result:
        texts, choices = prose.get("fields", {}), prose.get("choices", {})
        result["properties"] = {
            field: _chosen(_part(part, texts.get(field)), choices.get(field, {}))
            for field, part in result["properties"].items()
        }
    return result


def _chosen(part: dict[str, Any], choices: dict[str, str]) -> dict[str, Any]:
    """A field that takes only a few words says which, and what each means."""
    if not choices:
        return part
    words = sorted(choices)
    if "items" in part:
        return {**part, "items": {**part["items"], "enum": words}}
    meanings = "\n".join(sorted(f' - `"{word}"` {choices[word]}'.rstrip() for word in words))
    return {**part, "description": f"{part['description']}\n\nPossible enum values:\n{meanings}", "enum": words}


def _part(part: dict[str, Any], description: str | None = None) -> dict[str, Any]:
    """A field, an item or a value. A reference with anything beside it is an allOf of one."""
    result = dict(part)
    if "$ref" in result:
        reference = {"$ref": COMPONENTS + result.pop("$ref").removeprefix(PREFIX)}
        if not result and description is None:
            return reference
        result["allOf"] = [reference]
    for word in ("items", "additionalProperties"):
        if word in result:
            result[word] = _part(result[word])
    return result if description is None else {"description": description, **result}

"""What is wrong with a policy's expressions for the kinds that it names: fields that they do not have, types that do not fit.

These are warnings in its status, and change nothing: a policy is evaluated without types, since it may be for many kinds.
Pure. Kinds that are named by wildcards are not looked at, and ten at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trimtab.model.kind import Kind
from trimtab.server.admission.policy_expressions import Expressions, Failed
from trimtab.server.registry import Registry

if TYPE_CHECKING:
    from trimtab.model.cel import Type

MAX_KINDS = 10
MAX_DEPTH = 24
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
ANYTHING = {"x-kubernetes-int-or-string": True}
"""What expressions see without a type."""


def expression_warnings(spec: Mapping[str, Any], registry: Registry) -> list[dict[str, str]]:
    """The expressionWarnings of a policy."""
    kinds = sorted(_named(spec, registry), key=lambda kind: (kind.group, kind.version, kind.kind))
    if not kinds:
        return []
    environments = [(kind, _environment(spec, kind, registry)) for kind in kinds]
    warnings = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            expression = validation.get(field) or ""
            told = "\n".join(_told(expression, environments)) if expression else ""
            if told:
                warnings.append({"fieldRef": f"spec.validations[{index}].{field}", "warning": told})
    return warnings


def _told(expression: str, environments: list[tuple[Kind, Expressions]]) -> Iterator[str]:
    for kind, known in environments:
        made = known.anything(expression)
        if isinstance(made, Failed) and not made.internal:
            yield f"{kind.group}/{kind.version}, Kind={kind.kind}: {made.reason.removeprefix('compilation failed: ')}\n"


def _environment(spec: Mapping[str, Any], kind: Kind, registry: Registry) -> Expressions:
    own = _type(kind)
    typed = {"object": own, "oldObject": own}
    params = spec.get("paramKind")
    served = None if params is None else registry.by_kind(params.get("apiVersion", ""), params.get("kind", ""))
    if served is not None:
        typed["params"] = _type(served.kind)
    known = Expressions(params=params is not None, composed=True, typed=typed)
    for variable in spec.get("variables") or ():
        known.compose(variable["name"], variable["expression"])
    return known


def _named(spec: Mapping[str, Any], registry: Registry) -> list[Kind]:
    found: dict[tuple[str, str, str], Kind] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in name for name in (*groups, *versions)):
            continue
        names = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
        for path in ((g, v, n) for g in sorted(groups) for v in sorted(versions) for n in sorted(names)):
            served = registry.find(*path)
            if served is not None and len(found) < MAX_KINDS:
                found[path] = served.kind
    return list(found.values())


def _type(kind: Kind) -> Type:
    from trimtab.model.cel import DYN, type_of_schema
    from trimtab.server.builtin.tables import DEFINITIONS

    document = kind.schema.document
    text = {"type": "string"}
    properties = {**document.get("properties", {}), "apiVersion": text, "kind": text}
    properties["metadata"] = {"$ref": f"#/definitions/{META}"}
    whole = _resolved({**document, "type": "object", "properties": properties}, DEFINITIONS, ())
    return type_of_schema(whole, name=kind.kind) or DYN


def _resolved(schema: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """The schema with what it refers to in its place; what refers to itself may be anything, and so may amounts."""
    reference = schema.get("$ref")
    if reference is not None:
        name = reference.removeprefix("#/definitions/")
        if name in within or len(within) > MAX_DEPTH or name.endswith(".Quantity"):
            return ANYTHING
        return _resolved(definitions[name], definitions, (*within, name))
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {
            name: _resolved(value, definitions, within) for name, value in schema["properties"].items()
        }
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            made[word] = _resolved(schema[word], definitions, within)
    if made.get("x-kubernetes-preserve-unknown-fields") and not made.get("properties"):
        return ANYTHING
    return made

"""The fields of a spec that are ours: how the resource is addressed, and what may be done to it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.model.resource import Spec
from trimtab.systems.rest.addressing import above, climbs, is_plain, matched, parameters_of, parsed, resource_path
from trimtab.systems.rest.model import CONTROL, Model, Node, Parameter
from trimtab.systems.rest.state import Parent, Policy
from trimtab.systems.rest.syncing.leaves import is_arm
from trimtab.systems.rest.syncing.paths import Path
from trimtab.systems.rest.validating import scalars
from trimtab.systems.rest.validating.finding import Found, meant
from trimtab.systems.rest.validating.shape import Walk

_NONE: Mapping[str, str] = {}
NAME, PARENT, PARAMETERS, ID, POLICY = (("spec", name) for name in CONTROL)


def check(
    model: Model,
    spec: Mapping[str, Any],
    found: Found,
    *,
    name: str = "",
    parameters: Mapping[str, str] = _NONE,
) -> None:
    """`name` is the object's, which is the resource's when the spec gives none; "" when it is not known. `parameters` are
    those that the RestService gives: it manages nothing that has others."""
    _identifier(model, spec, found, parameters)
    _name(model, spec, found, name)
    _parent(model, spec, found, parameters)
    _parameters(model, spec, found)
    if "policy" in spec:
        Walk(model, found).value(_form(Policy), spec["policy"], POLICY, ())


def policy_of(spec: Mapping[str, Any]) -> Policy:
    """As far as it can be read: what is wrong with it is told elsewhere."""
    try:
        return msgspec.convert(spec.get("policy") or {}, Policy)
    except msgspec.ValidationError:
        return Policy()


def _identifier(model: Model, spec: Mapping[str, Any], found: Found, parameters: Mapping[str, str]) -> None:
    given = spec.get("resourceID")
    if given is None:
        return
    if not isinstance(given, str):
        found.mistyped(ID, given, "must be a string")
        return
    template = resource_path(model)
    values = parsed(model, given)
    if values is None:
        why = "" if is_plain(given) else f", {_PLAIN}"
        found.wrong(ID, given, f"is no ID of a {model.kind}: it must be {template}{why}")
        return
    _of_service(model, values, ID, given, found, parameters)
    _without_slashes(model, values.values(), ID, given, found)
    own, name = values.get(model.identity.parameter), spec.get("name")
    if own is not None and isinstance(name, str) and name.casefold() != own.casefold():
        found.wrong(NAME, name, f'is not the name in spec.resourceID, "{own}": leave it out')


def _name(model: Model, spec: Mapping[str, Any], found: Found, name: str) -> None:
    own = next((p for p in model.parameters if p.name == model.identity.parameter), None)
    given = spec.get("name")
    if "name" in spec:
        if not isinstance(given, str):
            found.mistyped(NAME, given, "must be a string")
            return
        if not given:
            found.wrong(NAME, given, "must not be empty; leave it out for metadata.name")
        elif own is not None:
            _parameter(own, given, NAME, found)
            _without_slashes(model, (given,), NAME, given, found)
        return
    if own is not None and name and not model.identity.server and not spec.get("resourceID"):
        _parameter(own, name, ("metadata", "name"), found, "; the service's own name may be given in spec.name")


def _of_service(
    model: Model, values: Mapping[str, str], path: Path, given: str, found: Found, parameters: Mapping[str, str]
) -> None:
    """What the RestService gives is the bound of what it manages."""
    for parameter in model.parameters:
        own = parameters.get(parameter.name, "") if parameter.source == "service" else ""
        there = values.get(parameter.name)
        if own and there is not None and there.casefold() != own.casefold():
            found.wrong(path, given, f"this service manages {parameter.name} {own}, and not {there}")


def _parent(model: Model, spec: Mapping[str, Any], found: Found, parameters: Mapping[str, str]) -> None:
    given = spec.get("parent")
    if given is None:
        if model.parent and not spec.get("resourceID"):
            found.require(PARENT, f"it is part of a {model.parent}: give parent.name, or parent.resourceID")
        return
    if not model.parent:
        found.forbid(PARENT, f"a {model.kind} is part of nothing else")
        return
    before = len(found.errors)
    Walk(model, found).value(_form(Parent), given, PARENT, ())
    if len(found.errors) > before or not isinstance(given, Mapping):
        return
    if ("name" in given) is ("resourceID" in given):
        found.wrong(PARENT, dict(given), "must have either name or resourceID")
    elif "resourceID" in given:
        _parent_id(model, str(given["resourceID"]), found, parameters)


def _parent_id(model: Model, given: str, found: Found, parameters: Mapping[str, str]) -> None:
    path: Path = (*PARENT, "resourceID")
    if not given.startswith("/"):
        found.wrong(path, given, "must be a path below the service's endpoint")
    elif not is_plain(given):
        found.wrong(path, given, f"must be a path {_PLAIN}")
    elif all(parameter.encode for parameter in model.parameters):  # else a parameter may have any number of segments
        whole = model.calls.create.path
        template = above(whole, given)
        values = matched(template, given) or {}
        asked = {p.name for p in model.parameters if p.source == "parent"} & set(parameters_of(whole))
        if not asked <= set(values) or not template.endswith("}") or model.identity.parameter in values:
            found.wrong(path, given, f"is no ID of a {model.parent}: {whole} must begin with it")
        else:
            _of_service(model, values, path, given, found, parameters)
            _without_slashes(model, values.values(), path, given, found)


def _without_slashes(model: Model, values: Iterable[str], path: Path, given: str, found: Found) -> None:
    """Azure has no name with a slash, and may take an encoded one for the slash that it stands for: that would be a
    resource of another kind."""
    if is_arm(model) and all(p.encode for p in model.parameters) and any("/" in value for value in values):
        found.wrong(path, given, "no name in it may hold a slash")


def _parameters(model: Model, spec: Mapping[str, Any], found: Found) -> None:
    known = {parameter.name: parameter for parameter in model.parameters if parameter.source == "object"}
    given = spec.get("parameters", {})
    if not isinstance(given, Mapping):
        found.mistyped(PARAMETERS, given, "must be an object")
        return
    for name, value in given.items():
        path: Path = (*PARAMETERS, name)
        if name not in known:
            found.forbid(path, _unknown(model, name, known))
        elif not isinstance(value, str):
            found.mistyped(path, value, "must be a string")
        else:
            _parameter(known[name], value, path, found)
    if spec.get("resourceID"):
        return
    for name in parameters_of(resource_path(model)):
        if name in known and name not in given:
            found.require((*PARAMETERS, name), f"it is part of {resource_path(model)}")


def _unknown(model: Model, name: str, known: Mapping[str, Parameter]) -> str:
    source = next((parameter.source for parameter in model.parameters if parameter.name == name), None)
    if source is not None:
        return f"unknown parameter; {_SOURCES.get(source, 'it comes from elsewhere')}"
    hint = meant(name, known) or f"there are {', '.join(sorted(known)) or 'none'}"
    return f"unknown parameter; {hint}"


def _parameter(parameter: Parameter, value: str, path: Path, found: Found, hint: str = "") -> None:
    if not value:
        found.wrong(path, value, "must not be empty")
        return
    if parameter.min_length is not None and len(value) < parameter.min_length:
        found.wrong(path, value, f"must have at least {parameter.min_length} characters{hint}")
    if parameter.max_length is not None and len(value) > parameter.max_length:
        found.wrong(path, value, f"must have at most {parameter.max_length} characters{hint}")
    matches = scalars.pattern(parameter.pattern) if parameter.pattern else None
    if matches is not None and not matches(value):
        found.wrong(path, value, f"must match {parameter.pattern}{hint}")
    if climbs(value):
        found.wrong(path, value, "would lead to another path")
    elif not parameter.encode and matched("/{x}", f"/{value.strip('/')}", frozenset({"x"})) is None:
        found.wrong(path, value, "must be a path")


@functools.cache
def _form(cls: type[Spec]) -> Node:
    """Of a struct of ours."""
    from trimtab.model.structural import structural  # only those who need a schema pay for it

    return _node(structural(cls))


def _node(schema: Mapping[str, Any]) -> Node:
    return Node(
        type=schema.get("type", "any"),
        properties={name: _node(inner) for name, inner in schema.get("properties", {}).items()},
        required=tuple(schema.get("required", ())),
        enum=tuple(schema.get("enum", ())),
        pattern=schema.get("pattern", ""),
        max_length=schema.get("maxLength"),
    )


_PLAIN = "without '.', '..', '?' or '#'"
_SOURCES = {
    "identity": "that is spec.name",
    "parent": "it comes from spec.parent",
    "service": "it comes from the RestService's parameters",
}

"""What is wrong with a RestDefinition by itself and beside the others of its service. Whether its document has such
operations is for the compiler to say: the document may come later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UnsetType

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems
from trimtab.systems.rest.addressing import parameters_of
from trimtab.systems.rest.kinds import RestDefinition, RestDefinitionSpec
from trimtab.systems.rest.kinds.definition import Operation, Operations
from trimtab.systems.rest.syncing.paths import Item, PathError, parse
from trimtab.systems.rest.validating import scalars

METHODS = {
    "create": ("POST", "PUT", "PATCH"),
    "read": ("GET", "HEAD", "POST"),
    "update": ("PUT", "POST", "PATCH"),
    "patch": ("PATCH", "POST"),
    "delete": ("DELETE", "POST"),
    "list": ("GET", "POST"),
}
_SCALE = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BRACES = re.compile(r"\{[^{}]+\}")


def definition_problems(definition: RestDefinition, suffix: str) -> list[FieldError]:
    """What is wrong with it alone. `suffix` is that of the generated groups: `rest.trimtab.dev`."""
    spec = definition.spec
    return [
        *_name_problems(spec, suffix),
        *_operation_problems(spec.operations),
        *_identity_problems(spec),
        *_overlay_problems(spec),
        *_polling_problems(spec),
        *_expression_problems(spec),
        *_scale_problems(spec),
    ]


def rivals(definition: RestDefinition, others: Iterable[RestDefinition]) -> list[FieldError]:
    """Two definitions of one kind, or of one path, would fight over the same things."""
    spec, own = definition.spec, _shape(own_path(definition.spec.operations))
    found = []
    for other in others:
        if other.name == definition.name or other.spec.service_ref != spec.service_ref:
            continue
        names, theirs = spec.names, other.spec.names
        for field, one, two in (("kind", names.kind, theirs.kind), ("plural", names.plural, theirs.plural)):
            if one.lower() == two.lower():
                said = f'the RestDefinition "{other.name}" has it'
                found.append(FieldError(f"spec.names.{field}", FieldProblem.DUPLICATE, one, said))
        if own == _shape(own_path(other.spec.operations)):
            said = f'the RestDefinition "{other.name}" is about the same path'
            field, path = own_path(spec.operations)
            found.append(FieldError(f"spec.operations.{field}.path", FieldProblem.DUPLICATE, path, said))
    return found


def own_path(operations: Operations) -> tuple[str, str]:
    """The operation that speaks to one resource, and its path."""
    for name, operation in _given(operations):
        if name in ("read", "update", "patch", "delete"):
            return name, operation.path
    return "create", operations.create.path


def _shape(found: tuple[str, str]) -> str:
    """However parameters are called, it is the same path."""
    return _BRACES.sub("{}", found[1]).rstrip("/").lower()


def _given(operations: Operations) -> Iterator[tuple[str, Operation]]:
    for name in ("read", "update", "patch", "delete", "create", "list"):
        operation = getattr(operations, name)
        if not isinstance(operation, UnsetType):
            yield name, operation


def _name_problems(spec: RestDefinitionSpec, suffix: str) -> Iterator[FieldError]:
    if dns_subdomain_problems(spec.service_ref):
        yield _wrong("spec.serviceRef", spec.service_ref, "no RestService can have this name")
    resource = f"{spec.names.plural}.{spec.service_ref}.{suffix}"
    if len(resource) > 253 - len("rest-"):
        yield _wrong("spec.names.plural", spec.names.plural, f"{resource} is too long for the name of an object")
    for i, short in enumerate(spec.names.short_names):
        if dns_subdomain_problems(short) or "." in short:
            yield _wrong(f"spec.names.shortNames[{i}]", short, "must be small letters, digits and -")
    if spec.parent == spec.names.kind:
        yield _wrong("spec.parent", spec.parent, "a kind cannot be part of itself")


def _operation_problems(operations: Operations) -> Iterator[FieldError]:
    if isinstance(operations.read, UnsetType) and isinstance(operations.list, UnsetType):
        said = "nobody could tell whether a resource is there: give read, or list"
        yield FieldError("spec.operations.read", FieldProblem.REQUIRED, None, said)
    for name, operation in _given(operations):
        at = f"spec.operations.{name}"
        if operation.method not in METHODS[name]:
            said = f"must be one of {', '.join(METHODS[name])}"
            yield _wrong(f"{at}.method", operation.method, said)
        yield from _path_problems(f"{at}.path", operation.path)
        for key, template in operation.query.items():
            if "{" in _BRACES.sub("", template) or "}" in _BRACES.sub("", template):
                yield _wrong(f"{at}.query.{key}", template, "has a brace too many: parameters are {name}")
        yield from _field_path(f"{at}.items", operation.items)
        yield from _field_path(f"{at}.nextLink", operation.next_link)


def _path_problems(at: str, path: str) -> Iterator[FieldError]:
    rest = _BRACES.sub("", path)
    names = parameters_of(path)
    if not path.startswith("/"):
        yield _wrong(at, path, "must begin with /, as the document writes it")
    elif "?" in rest or "#" in rest:
        yield _wrong(at, path, "holds a query: constants and parameters of the query belong in `query`")
    elif "{" in rest or "}" in rest:
        yield _wrong(at, path, "has a brace too many: parameters are {name}")
    elif len(set(names)) < len(names):
        yield _wrong(at, path, "has a parameter twice")


def _identity_problems(spec: RestDefinitionSpec) -> Iterator[FieldError]:
    identity, (_, path) = spec.identity, own_path(spec.operations)
    if identity.parameter and identity.parameter not in parameters_of(path):
        known = ", ".join(parameters_of(path)) or "none"
        yield _wrong("spec.identity.parameter", identity.parameter, f"is no parameter of {path}; there are: {known}")
    yield from _field_path("spec.identity.field", identity.field)
    if identity.answer.startswith("header:"):
        if not _HEADER.fullmatch(identity.answer.removeprefix("header:")):
            yield _wrong("spec.identity.answer", identity.answer, "must be a path, or header: and a header's name")
    else:
        yield from _field_path("spec.identity.answer", identity.answer)
    for i, field in enumerate(identity.find):
        yield from _field_path(f"spec.identity.find[{i}]", field)


def _overlay_problems(spec: RestDefinitionSpec) -> Iterator[FieldError]:
    overlay = spec.overlay
    for path in overlay.fields:
        yield from _field_path("spec.overlay.fields", path, empty=False)
    for name in ("envelope", "wrap"):
        yield from _field_path(f"spec.overlay.{name}", getattr(overlay, name))
    for path in overlay.gone:
        yield from _field_path("spec.overlay.gone", path, empty=False)
    for i, rule in enumerate(overlay.errors):
        if rule.message and scalars.pattern(rule.message) is None:
            yield _wrong(f"spec.overlay.errors[{i}].message", rule.message, "is no regular expression of RE2")
        if isinstance(rule.status, UnsetType) and not rule.code and not rule.message:
            said = "matches every error: give status, code or message"
            yield FieldError(f"spec.overlay.errors[{i}]", FieldProblem.REQUIRED, None, said)


def _polling_problems(spec: RestDefinitionSpec) -> Iterator[FieldError]:
    polling = spec.overlay.polling
    for name in ("url", "status", "error"):
        locator = getattr(polling, name)
        place, dot, rest = locator.partition(".")
        good = not locator or locator == "code" or (dot and rest and place in ("header", "body"))
        if not good:
            said = "must be code, header.<name> or body.<path>"
            yield _wrong(f"spec.overlay.polling.{name}", locator, said)
        elif place == "body":
            yield from _field_path(f"spec.overlay.polling.{name}", rest)
    if bool(polling.status) is not bool(polling.success):
        field = "success" if polling.status else "status"
        said = "status says where to look, and success which values end it: give both"
        yield FieldError(f"spec.overlay.polling.{field}", FieldProblem.REQUIRED, None, said)


def _expression_problems(spec: RestDefinitionSpec) -> Iterator[FieldError]:
    for i, join in enumerate(spec.joins):
        yield from _jmespath(f"spec.joins[{i}].select", join.select)
    for i, export in enumerate(spec.exports):
        at = f"spec.exports[{i}]"
        if dns_subdomain_problems(export.name.replace("{name}", "x")):
            yield _wrong(f"{at}.name", export.name, f"no {export.to} can have this name; {{name}} is the object's")
        for key, expression in export.data.items():
            if not _KEY.fullmatch(key):
                yield _wrong(f"{at}.data", key, f"is no key of a {export.to}")
            yield from _jmespath(f"{at}.data.{key}", expression)
        if not isinstance(export.operation, UnsetType):
            yield from _path_problems(f"{at}.operation.path", export.operation.path)


def _scale_problems(spec: RestDefinitionSpec) -> Iterator[FieldError]:
    if isinstance(spec.scale, UnsetType):
        return
    for name, path, start in (
        ("specReplicasPath", spec.scale.spec_replicas_path, ".spec."),
        ("statusReplicasPath", spec.scale.status_replicas_path, ".status."),
    ):
        if not _SCALE.fullmatch(path) or not path.startswith(start):
            said = f"must be names with dots below {start[:-1]}, such as {start}{'observed.' * (start == '.status.')}sku.capacity"
            yield _wrong(f"spec.scale.{name}", path, said)


def _field_path(at: str, path: str, *, empty: bool = True) -> Iterator[FieldError]:
    if not path and empty:
        return
    try:
        steps = parse(path)
    except PathError as error:
        yield _wrong(at, path, str(error))
        return
    if not steps:
        yield _wrong(at, path, "is no path: it is empty")
    elif any(isinstance(step, Item | int) for step in steps):
        yield _wrong(at, path, "names one item of a list; [] stands for all of them")


def _jmespath(at: str, expression: str) -> Iterator[FieldError]:
    if not expression:
        return
    import jmespath  # late: only who writes a definition needs it

    try:
        jmespath.compile(expression)
    except jmespath.exceptions.JMESPathError as error:
        yield _wrong(at, expression, f"is no JMESPath: {str(error).splitlines()[0]}")


def _wrong(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.INVALID, value[:256] if isinstance(value, str) else value, detail)

"""From a document to proposals: a definition for each resource that its URLs show (`resources`).

The kind whose path is the longest beginning of another's is that one's parent. What is proposed is a beginning: a document
does not say who chooses an ID, or that a PATCH is a list of actions.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.rest.compiling import answers, identifying, kind_names
from trimtab.systems.rest.compiling.answers import below, has_fields, is_whole, items_below, items_of, success
from trimtab.systems.rest.compiling.resources import (
    Paths,
    Resource,
    begins,
    comparable,
    is_parameter,
    parameter_of,
    resources,
    segments_of,
)
from trimtab.systems.rest.kinds.definition import (
    IdentitySpec,
    JoinSpec,
    Names,
    Operations,
    Quirks,
    RestDefinition,
    RestDefinitionSpec,
)
from trimtab.systems.rest.kinds.definition import Operation as Named
from trimtab.systems.rest.openapi import Document, Operation
from trimtab.systems.rest.syncing.paths import format_path

MERGE_PATCH = "application/merge-patch+json"


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A definition, the path of one resource, and reads below it that may be wanted as joins."""

    definition: RestDefinition
    path: str
    candidates: tuple[JoinSpec, ...] = ()


class NoSuchKind(Exception):  # noqa: N818 - it reads as what happened
    """`only` names what the document does not have."""


def propose(document: Document, service: str, *, only: Iterable[str] = ()) -> list[RestDefinition]:
    """A definition for each resource, or for those that `only` names by kind, plural or a pattern of their path."""
    return [proposal.definition for proposal in proposals(document, service, only=only)]


def proposals(document: Document, service: str, *, only: Iterable[str] = ()) -> list[Proposal]:
    """As `propose`, with what else was found. Raises NoSuchKind."""
    paths = Paths(document)
    found = resources(paths)
    kinds = _kinds(found)
    chosen = _chosen(list(zip(kinds, found, strict=True)), tuple(only))
    chosen.sort(key=lambda pair: pair[1].segments)
    return [_proposal(paths, service, kind, resource, chosen) for kind, resource in chosen]


def conflicts(definitions: Iterable[RestDefinition]) -> list[str]:
    """What definitions of one service may not share: the path of a resource, a kind, a plural."""
    seen: dict[tuple[str, str, str], str] = {}
    found = []
    for definition in definitions:
        spec, name = definition.spec, str(definition.metadata.name)
        claims = [("kind", spec.names.kind), ("plural", spec.names.plural), ("path", _claimed(spec.operations))]
        for what, claim in claims:
            key = (spec.service_ref, what, claim)
            if claim and seen.setdefault(key, name) != name:
                shown = _own(spec.operations) if what == "path" else claim
                found.append(f"{seen[key]} and {name} both have the {what} {shown}; change one of them or remove it")
    return found


def _proposal(
    paths: Paths, service: str, kind: str, resource: Resource, chosen: list[tuple[str, Resource]]
) -> Proposal:
    arm = paths.document.is_arm
    envelope = "" if arm else answers.envelope(resource.read, (resource.update or resource.create).body)
    plural = kind_names.plural_name(kind)
    spec = RestDefinitionSpec(
        service_ref=service,
        names=Names(kind=kind, plural=plural),
        operations=Operations(
            create=_named(paths, resource.create),
            read=_named(paths, resource.read),
            update=_named(paths, resource.update),
            patch=_named(paths, resource.patch, MERGE_PATCH),
            delete=_named(paths, resource.delete),
            list=_listing(paths, resource, envelope),
        ),
        identity=_identity(resource, envelope, arm=arm),
        parent=_parent(resource, chosen),
        overlay=Quirks(envelope=envelope, upsert=_is_upsert(resource)),
    )
    return Proposal(
        definition=RestDefinition(metadata=ObjectMeta(name=f"{plural}.{service}"), spec=spec),
        path=resource.path,
        candidates=tuple(_candidates(paths, resource)),
    )


def _named(paths: Paths, operation: Operation | None, wanted: str = "application/json") -> Any:
    """The operation as a definition names it, with the constants of its query."""
    if operation is None:
        return UNSET
    chosen = operation.body is not None and len(operation.content_types) > 1
    return Named(
        method=operation.method,  # type: ignore[arg-type]
        path=operation.path,
        query=_query(paths, operation),
        content_type=wanted if chosen and wanted in operation.content_types else "",
    )


def _query(paths: Paths, operation: Operation) -> dict[str, str]:
    found = dict(operation.query)
    for param in operation.parameters:
        if param.place == "query" and param.required:
            values = param.schema.get("enum")
            if param.name == "api-version":
                found[param.name] = paths.document.version
            elif isinstance(values, list) and len(values) == 1:
                found[param.name] = str(values[0])
    return found


def _listing(paths: Paths, resource: Resource, envelope: str) -> Named | UnsetType:
    """Of several lists of one collection, the one that gives whole resources."""
    if resource.list is None:
        return UNSET
    variants = [each for each in paths.variants.get(resource.list.path, ()) if each.method == "GET"]
    offered = [resource.list, *sorted(variants, key=lambda each: len(each.query))]
    whole = below(success(resource.read), envelope) if resource.read is not None else None
    chosen, items, where = resource.list, None, ""
    for each in offered:
        where_each, items_each = items_below(each, envelope)
        if items is None or (is_whole(items_each, whole) and not is_whole(items, whole)):
            chosen, items, where = each, items_each, where_each
    pageable = chosen.extension("x-ms-pageable")
    next_link = ""
    if isinstance(pageable, dict):
        where = str(pageable.get("itemName") or "value")
        next_link = str(pageable.get("nextLinkName") or "")
    items_path, link_path = (format_path((name,)) if name else "" for name in (where, next_link))
    made: Named = _named(paths, chosen)
    return msgspec.structs.replace(made, items=items_path, next_link=link_path, whole=is_whole(items, whole))


def _identity(resource: Resource, envelope: str, *, arm: bool) -> IdentitySpec:
    if resource.fixed:
        return IdentitySpec()
    if resource.create.path == resource.path:
        return identifying.by_own_url(resource.parameter, resource.create.body, arm=arm)
    item = resource.read or resource.delete or resource.create
    return identifying.by_collection(
        resource.create, item, resource.parameter, resource.collection, envelope, upsert=_is_upsert(resource)
    )


def _is_upsert(resource: Resource) -> bool:
    return resource.update is resource.create and resource.create.method == "POST"


def _parent(resource: Resource, chosen: list[tuple[str, Resource]]) -> str:
    """The kind with the longest path that ours begins with."""
    above = [(len(other.segments), kind) for kind, other in chosen if begins(resource, other)]
    return max(above)[1] if above else ""


def _candidates(paths: Paths, resource: Resource) -> Iterable[JoinSpec]:
    """Reads of one thing right below a resource: `instanceView`, `state`."""
    for path, methods in paths.by_path.items():
        above, _, last = path.rpartition("/")
        read = methods.get("GET")
        if above != resource.path or read is None or read is resource.read or is_parameter(last):
            continue
        holds = any(each.startswith(f"{path}/{{") for each in paths.by_path)
        one = items_of(read) is None and has_fields(success(read))
        if one and not holds and "PUT" not in methods:
            name = kind_names.camel(last)
            yield JoinSpec(name=name[0].lower() + name[1:], path=last, query=_query(paths, read))


def _kinds(found: list[Resource]) -> list[str]:
    """In the order in which they choose."""
    return kind_names.unique([(_simple(resource), tuple(_prefixes(resource))) for resource in found])


def _simple(resource: Resource) -> str:
    name = kind_names.kind_name(resource.collection, resource.parameter)
    if resource.fixed and resource.fixed != "default":
        return name + kind_names.camel(resource.fixed)
    return name


def _prefixes(resource: Resource) -> Iterable[str]:
    """What a resource is below, nearest first; at last what tells the levels of ARM apart."""
    segments = segments_of(resource.path)
    for at in range(len(segments) - 3, -1, -1):
        if not is_parameter(segments[at]) and is_parameter(segments[at + 1]):
            yield kind_names.kind_name(segments[at], parameter_of(segments[at + 1]))
    first = {"providers": "Tenant"}.get(segments[0], kind_names.camel(segments[0]))
    yield "Scoped" if is_parameter(segments[0]) else first


def _chosen(found: list[tuple[str, Resource]], only: tuple[str, ...]) -> list[tuple[str, Resource]]:
    if not only:
        return found
    chosen: dict[str, tuple[str, Resource]] = {}
    for wanted in only:
        hits = [
            (kind, resource)
            for kind, resource in found
            if wanted.lower() in (kind.lower(), kind_names.plural_name(kind))
            or fnmatch.fnmatchcase(resource.path, wanted)
        ]
        if not hits:
            there = ", ".join(sorted(kind for kind, _ in found)[:40]) or "none"
            raise NoSuchKind(f"the document has no resource {wanted}; it has: {there}")
        chosen.update({kind: (kind, resource) for kind, resource in hits})
    return list(chosen.values())


def _own(operations: Operations) -> str:
    """The path of one resource."""
    named = (operations.read, operations.update, operations.patch, operations.delete, operations.create)
    return next(each.path for each in named if not isinstance(each, UnsetType))


def _claimed(operations: Operations) -> str:
    return "/".join(comparable(segments_of(_own(operations))))

"""From a document to proposals: which of its paths are kinds, found by the hierarchy of the URLs.

A resource has an item path, one that ends with its name: in ARM's documents one with PUT and GET, in others one with GET
and PUT, PATCH or DELETE, and a POST to its collection (or a PUT to itself) that creates it. The kind whose item path is the
longest beginning of another's is that one's parent.

What is proposed is a beginning: a document does not say who chooses an ID, or that a PATCH is a list of actions.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.rest.compiling import identifying, kind_names
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
from trimtab.systems.rest.openapi import Document, Operation, Schema

MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"


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
    paths = _Paths(document)
    found = list(_arm(paths) if document.is_arm else _plain(paths))
    found.sort(key=lambda resource: (_rank(resource), resource.segments))
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


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a resource before it has a name."""

    path: str
    segments: tuple[str, ...]
    collection: str  # the segment that its kind is named after
    create: Operation
    read: Operation | None = None
    update: Operation | None = None
    patch: Operation | None = None
    delete: Operation | None = None
    list: Operation | None = None
    parameter: str = ""
    fixed: str = ""  # the last segment of one that there is only one of


class _Paths:
    """The operations by path."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.by_path: dict[str, dict[str, Operation]] = {}
        self.variants: dict[str, list[Operation]] = {}
        for (method, key), operation in document.operations.items():
            if "?" in key:
                self.variants.setdefault(operation.path, []).append(operation)
            else:
                self.by_path.setdefault(key.rstrip("/") or "/", {})[method] = operation

    def get(self, path: str, *methods: str) -> Operation | None:
        there = self.by_path.get(path, {})
        return next((there[method] for method in methods if method in there), None)


def _arm(paths: _Paths) -> Iterable[_Resource]:
    for path, methods in paths.by_path.items():
        segments = _segments(path)
        create, read = methods.get("PUT"), paths.get(path, "GET", "HEAD")
        if create is None or read is None or len(segments) < 2 or create.body is None:
            continue
        last = segments[-1]
        if _is_any_resource(create, segments):
            continue
        if not _is_parameter(last) and (not _in_name_position(segments) or _items(read) is not None):
            continue
        above = path.rpartition("/")[0]
        yield _Resource(
            path=path,
            segments=_comparable(segments),
            collection=_arm_collection(segments, read),
            create=create,
            read=read,
            update=create,
            patch=_patch(methods.get("PATCH")),
            delete=methods.get("DELETE"),
            list=paths.get(above, "GET"),
            parameter=_parameter(last),
            fixed="" if _is_parameter(last) else last,
        )


def _plain(paths: _Paths) -> Iterable[_Resource]:
    for path, methods in paths.by_path.items():
        segments = _segments(path)
        if not segments or not _is_parameter(segments[-1]):
            continue
        collections = _collections(path)
        read = methods.get("GET") or paths.get(f"{path}/json", "GET")
        parameter = _parameter(segments[-1])
        create = _create(paths, collections)
        if create is None and not identifying.is_made_by_server(parameter):
            create = methods.get("PUT")
        listing = next((found for each in collections if (found := paths.get(each, "GET"))), None)
        listing = listing or paths.get(f"{collections[0]}/json", "GET")
        changes = [method for method in ("PUT", "PATCH", "DELETE") if method in methods]
        if create is None or not _has_fields(create.body) or not changes or (read is None and listing is None):
            continue
        update = methods.get("PUT")
        patch = _patch(methods.get("PATCH"))
        also = paths.get(f"{path}/update", "POST", "PUT")
        if update is None and patch is None and also is not None and not _unfilled(also):
            whole = also.body is not None and create.body is not None and _covers(also.body, create.body)
            update, patch = (also, None) if whole else (None, also)
        if update is None and patch is None and create.method == "POST" and identifying.is_upsert(create, parameter):
            update = create
        yield _Resource(
            path=path,
            segments=_comparable(segments),
            collection=next((each for each in reversed(segments) if not _is_parameter(each)), parameter),
            create=create,
            read=read,
            update=update if update is None or update.body is not None else None,
            patch=patch,
            delete=methods.get("DELETE"),
            list=listing,
            parameter=parameter,
        )


def _proposal(
    paths: _Paths, service: str, kind: str, resource: _Resource, chosen: list[tuple[str, _Resource]]
) -> Proposal:
    arm = paths.document.is_arm
    envelope = "" if arm else _envelope(resource)
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


def _named(paths: _Paths, operation: Operation | None, wanted: str = "application/json") -> Any:
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


def _query(paths: _Paths, operation: Operation) -> dict[str, str]:
    found = dict(operation.query)
    for param in operation.parameters:
        if param.place == "query" and param.required:
            values = param.schema.get("enum")
            if param.name == "api-version":
                found[param.name] = paths.document.version
            elif isinstance(values, list) and len(values) == 1:
                found[param.name] = str(values[0])
    return found


def _listing(paths: _Paths, resource: _Resource, envelope: str) -> Named | UnsetType:
    """Of several lists of one collection, the one that gives whole resources."""
    if resource.list is None:
        return UNSET
    variants = [each for each in paths.variants.get(resource.list.path, ()) if each.method == "GET"]
    offered = [resource.list, *sorted(variants, key=lambda each: len(each.query))]
    whole = _read_schema(resource, envelope)
    chosen, items, where = resource.list, None, ""
    for each in offered:
        where_each, items_each = _items_below(each, envelope)
        if items is None or (_is_whole(items_each, whole) and not _is_whole(items, whole)):
            chosen, items, where = each, items_each, where_each
    pageable = chosen.extension("x-ms-pageable")
    next_link = ""
    if isinstance(pageable, dict):
        where = str(pageable.get("itemName") or "value")
        next_link = str(pageable.get("nextLinkName") or "")
    made: Named = _named(paths, chosen)
    return msgspec.structs.replace(made, items=where, next_link=next_link, whole=_is_whole(items, whole))


def _identity(resource: _Resource, envelope: str, *, arm: bool) -> IdentitySpec:
    if resource.fixed:
        return IdentitySpec()
    if resource.create.method == "PUT":
        return identifying.by_own_url(resource.parameter, resource.create.body, arm=arm)
    item = resource.read or resource.delete or resource.create
    return identifying.by_collection(
        resource.create, item, resource.parameter, resource.collection, envelope, upsert=_is_upsert(resource)
    )


def _is_upsert(resource: _Resource) -> bool:
    return resource.update is resource.create and resource.create.method == "POST"


def _parent(resource: _Resource, chosen: list[tuple[str, _Resource]]) -> str:
    """The kind with the longest path that ours begins with."""
    above = [(len(other.segments), kind) for kind, other in chosen if _begins(resource, other)]
    return max(above)[1] if above else ""


def _begins(resource: _Resource, other: _Resource) -> bool:
    """Whether our path begins with the other's. A parameter there may be one of its values here: blobServices/default."""
    if len(other.segments) >= len(resource.segments):
        return False
    templates = _segments(other.path)
    for ours, theirs, template in zip(resource.segments, other.segments, templates, strict=False):
        if ours != theirs and not (theirs == "{}" and ours in _values(other, _parameter(template))):
            return False
    return True


def _values(resource: _Resource, parameter: str) -> list[str]:
    declared = resource.create.parameter(parameter)
    values = declared.schema.get("enum") if declared is not None else None
    return [str(value).lower() for value in values] if isinstance(values, list) else []


def _candidates(paths: _Paths, resource: _Resource) -> Iterable[JoinSpec]:
    """Reads of one thing right below a resource: `instanceView`, `state`."""
    for path, methods in paths.by_path.items():
        above, _, last = path.rpartition("/")
        read = methods.get("GET")
        if above != resource.path or read is None or read is resource.read or _is_parameter(last):
            continue
        holds = any(each.startswith(f"{path}/{{") for each in paths.by_path)
        schema = identifying.success(read)
        if not holds and not methods.get("PUT") and schema is not None and _items(read) is None and _has_fields(schema):
            name = kind_names.camel(last)
            yield JoinSpec(name=name[0].lower() + name[1:], path=last, query=_query(paths, read))


def _kinds(found: list[_Resource]) -> list[str]:
    """In the order in which they choose."""
    return kind_names.unique([(_simple(resource), tuple(_prefixes(resource))) for resource in found])


def _simple(resource: _Resource) -> str:
    name = kind_names.kind_name(resource.collection, resource.parameter)
    if resource.fixed and resource.fixed != "default":
        return name + kind_names.camel(resource.fixed)
    return name


def _prefixes(resource: _Resource) -> Iterable[str]:
    """What a resource is below, nearest first; at last what tells the levels of ARM apart."""
    segments = _segments(resource.path)
    for at in range(len(segments) - 3, -1, -1):
        if not _is_parameter(segments[at]) and _is_parameter(segments[at + 1]):
            yield kind_names.kind_name(segments[at], _parameter(segments[at + 1]))
    yield (
        "Scoped"
        if _is_parameter(segments[0])
        else "Tenant"
        if segments[0] == "providers"
        else kind_names.camel(segments[0])
    )


def _rank(resource: _Resource) -> tuple[int, int]:
    """Who chooses a name first: what is in a resource group, then what has the shorter path."""
    return (0 if "resourcegroups" in resource.segments else 1, len(resource.segments))


def _chosen(found: list[tuple[str, _Resource]], only: tuple[str, ...]) -> list[tuple[str, _Resource]]:
    if not only:
        return found
    chosen: dict[str, tuple[str, _Resource]] = {}
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


def _create(paths: _Paths, collections: list[str]) -> Operation | None:
    for collection in collections:
        found = paths.get(collection, "POST") or paths.get(f"{collection}/create", "POST")
        if found is not None:
            return found
    return None


def _collections(path: str) -> list[str]:
    """Where the siblings of an item may be: above it, or above it by the plural (`/silence/{id}`, `/silences`)."""
    above = path.rpartition("/")[0] or "/"
    last = above.rpartition("/")[2]
    if not last or _is_parameter(last) or kind_names.singular(last) != last:
        return [above]
    return [above, above[: -len(last)] + kind_names.plural(last)]


def _patch(operation: Operation | None) -> Operation | None:
    """Not one that takes a list of steps only."""
    if operation is None or operation.body is None or operation.content_types == (_JSON_PATCH,):
        return None
    return operation if operation.body.type != "array" else None


def _unfilled(operation: Operation) -> bool:
    """Whether it needs a query that nobody gives."""
    return any(param.place == "query" and param.required for param in operation.parameters)


def _envelope(resource: _Resource) -> str:
    """The property of an answer that holds the resource, where the answer itself has a scalar or two of the same name at most."""
    answer = identifying.success(resource.read) if resource.read is not None else None
    body = next((op.body for op in (resource.update, resource.create) if op and op.body), None)
    if answer is None or body is None or not body.properties:
        return ""
    wanted = set(body.properties)
    if any(answer.properties[name].type in ("object", "array") for name in wanted & set(answer.properties)):
        return ""
    found = {name: len(wanted & set(prop.properties)) for name, prop in answer.properties.items()}
    best = max(found, key=lambda name: found[name], default="")
    enough = best and 2 * found[best] >= len(wanted) and found[best] > 2 * len(wanted & set(answer.properties))
    return best if enough else ""


def _read_schema(resource: _Resource, envelope: str) -> Schema | None:
    return identifying.below(identifying.success(resource.read), envelope) if resource.read is not None else None


def _items(operation: Operation) -> Schema | None:
    """The schema of the items, when an operation gives a list."""
    return _items_below(operation, "")[1]


def _items_below(operation: Operation, envelope: str) -> tuple[str, Schema | None]:
    """Where in an answer the items are, and what they are."""
    answer = identifying.below(identifying.success(operation), envelope)
    if answer is None:
        return "", None
    if answer.items is not None:
        return "", answer.items
    pageable = operation.extension("x-ms-pageable")
    named = pageable.get("itemName") or "value" if isinstance(pageable, dict) else "value"
    lists: Mapping[str, Schema] = {n: s.items for n, s in answer.properties.items() if s.items is not None}
    if named in lists and (isinstance(pageable, dict) or set(answer.properties) <= {named, "nextLink"}):
        return str(named), lists[named]
    objects = [name for name, items in lists.items() if _has_fields(items)]
    if len(objects) == 1 and len(answer.properties) <= 4:
        return objects[0], lists[objects[0]]
    return "", None


def _is_whole(items: Schema | None, whole: Schema | None) -> bool:
    return items is not None and whole is not None and (items.key == whole.key or _covers(items, whole))


def _covers(one: Schema, other: Schema) -> bool:
    return bool(other.properties) and set(other.properties) <= set(one.properties)


def _has_fields(schema: Schema | None) -> bool:
    return schema is not None and bool(schema.properties or schema.additional or schema.one_of)


def _is_any_resource(operation: Operation, segments: list[str]) -> bool:
    """Whether a path is that of any resource by its whole ID."""
    whole = {param.name for param in operation.parameters if param.place == "path" and not param.encode}
    return _parameter(segments[-2]) in whole


def _arm_collection(segments: list[str], read: Operation) -> str:
    """What the kind is named after; the schema where a parameter stands for the type: dnsZones/{zone}/{recordType}/{name}."""
    if not _is_parameter(segments[-2]):
        return segments[-2]
    schema = identifying.success(read)
    return schema.name if schema is not None and schema.name else _parameter(segments[-2])


def _in_name_position(segments: list[str]) -> bool:
    """In ARM's paths types and names alternate after the provider: a fixed name is that of the only one."""
    low = [segment.lower() for segment in segments]
    if "providers" not in low:
        return False
    after = len(low) - 1 - low[::-1].index("providers")
    return (len(low) - after) % 2 == 0 and len(low) - after > 2


def _own(operations: Operations) -> str:
    """The path of one resource."""
    named = (operations.read, operations.update, operations.patch, operations.delete, operations.create)
    return next(each.path for each in named if not isinstance(each, UnsetType))


def _claimed(operations: Operations) -> str:
    return "/".join(_comparable(_segments(_own(operations))))


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _comparable(segments: Iterable[str]) -> tuple[str, ...]:
    return tuple("{}" if _is_parameter(segment) else segment.lower() for segment in segments)


def _is_parameter(segment: str) -> bool:
    return bool(re.fullmatch(r"\{[^{}]+\}", segment))


def _parameter(segment: str) -> str:
    return segment[1:-1] if _is_parameter(segment) else ""

"""The resources of a document, found by the hierarchy of its URLs.

A resource has an item path, one that ends with its name: in ARM's documents one with PUT and GET, in others one with GET
and PUT, PATCH or DELETE, and a POST to its collection (or a PUT to itself) that creates it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from trimtab.systems.rest.compiling import identifying, kind_names
from trimtab.systems.rest.compiling.answers import covers, has_fields, items_of, success
from trimtab.systems.rest.openapi import Document, Operation

_JSON_PATCH = "application/json-patch+json"


class Resource(msgspec.Struct, frozen=True, kw_only=True):
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


class Paths:
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


def resources(paths: Paths) -> list[Resource]:
    """Those that choose their names first are first: what is in a resource group, then what has the shorter path."""
    found = list(_arm(paths) if paths.document.is_arm else _plain(paths))
    return sorted(found, key=lambda resource: (_rank(resource), resource.segments))


def begins(resource: Resource, other: Resource) -> bool:
    """Whether our path begins with the other's. A parameter there may be one of its values here: blobServices/default."""
    if len(other.segments) >= len(resource.segments):
        return False
    templates = segments_of(other.path)
    for ours, theirs, template in zip(resource.segments, other.segments, templates, strict=False):
        if ours != theirs and not (theirs == "{}" and ours in _values(other, parameter_of(template))):
            return False
    return True


def _arm(paths: Paths) -> Iterable[Resource]:
    for path, methods in paths.by_path.items():
        segments = segments_of(path)
        create, read = methods.get("PUT"), paths.get(path, "GET", "HEAD")
        if create is None or read is None or len(segments) < 2 or create.body is None:
            continue
        last = segments[-1]
        if _is_any_resource(create, segments):
            continue
        if not is_parameter(last) and (not _in_name_position(segments) or items_of(read) is not None):
            continue
        above = path.rpartition("/")[0]
        yield Resource(
            path=path,
            segments=comparable(segments),
            collection=_arm_collection(segments, read),
            create=create,
            read=read,
            update=create,
            patch=_patch(methods.get("PATCH")),
            delete=methods.get("DELETE"),
            list=paths.get(above, "GET"),
            parameter=parameter_of(last),
            fixed="" if is_parameter(last) else last,
        )


def _plain(paths: Paths) -> Iterable[Resource]:
    for path, methods in paths.by_path.items():
        segments = segments_of(path)
        if not segments or not is_parameter(segments[-1]):
            continue
        collections = _collections(path)
        read = methods.get("GET") or paths.get(f"{path}/json", "GET")
        parameter = parameter_of(segments[-1])
        create = _create(paths, collections)
        if create is None and not identifying.is_made_by_server(parameter):
            create = _creating(methods.get("POST")) or methods.get("PUT")
        listing = next((found for each in collections if (found := paths.get(each, "GET"))), None)
        listing = listing or paths.get(f"{collections[0]}/json", "GET")
        changes = [method for method in ("PUT", "PATCH", "DELETE") if method in methods]
        if create is None or not _takes_fields(create) or not changes or (read is None and listing is None):
            continue
        update = _callable(methods.get("PUT"), read or listing)
        patch = _patch(_callable(methods.get("PATCH"), read or listing))
        also = _callable(paths.get(f"{path}/update", "POST", "PUT"), read or listing)
        if update is None and patch is None and also is not None:
            whole = also.body is not None and create.body is not None and covers(also.body, create.body)
            update, patch = (also, None) if whole else (None, also)
        if update is None and patch is None and create.method == "POST" and identifying.is_upsert(create, parameter):
            update = create
        yield Resource(
            path=path,
            segments=comparable(segments),
            collection=_collection(segments, parameter),
            create=create,
            read=read,
            update=update if update is None or update.body is not None else None,
            patch=patch,
            delete=methods.get("DELETE"),
            list=listing,
            parameter=parameter,
        )


def _values(resource: Resource, parameter: str) -> list[str]:
    declared = resource.create.parameter(parameter)
    values = declared.schema.get("enum") if declared is not None else None
    return [str(value).lower() for value in values] if isinstance(values, list) else []


def _rank(resource: Resource) -> tuple[int, int]:
    """Who chooses a name first: what is in a resource group, then what has the shorter path."""
    return (0 if "resourcegroups" in resource.segments else 1, len(resource.segments))


def _is_any_resource(operation: Operation, segments: list[str]) -> bool:
    """Whether a path is that of any resource by its whole ID."""
    whole = {param.name for param in operation.parameters if param.place == "path" and not param.encode}
    return parameter_of(segments[-2]) in whole


def _collection(segments: list[str], parameter: str) -> str:
    """What the kind is named after: the last segment that is no parameter; in volumes/custom/{volume} the one before."""
    at = next((at for at in range(len(segments) - 1, -1, -1) if not is_parameter(segments[at])), None)
    if at is None:
        return parameter
    last, before = segments[at], segments[at - 1] if at else ""
    many = kind_names.singular(before) != before and kind_names.singular(last) == last
    named = kind_names.words(parameter)[: len(kind_names.words(before))]
    return before if many and named == kind_names.words(kind_names.singular(before)) else last


def _arm_collection(segments: list[str], read: Operation) -> str:
    """What the kind is named after; the schema where a parameter stands for the type: dnsZones/{zone}/{recordType}/{name}."""
    if not is_parameter(segments[-2]):
        return segments[-2]
    schema = success(read)
    return schema.name if schema is not None and schema.name else parameter_of(segments[-2])


def _in_name_position(segments: list[str]) -> bool:
    """In ARM's paths types and names alternate after the provider: a fixed name is that of the only one."""
    low = [segment.lower() for segment in segments]
    if "providers" not in low:
        return False
    after = len(low) - 1 - low[::-1].index("providers")
    return (len(low) - after) % 2 == 0 and len(low) - after > 2


def _create(paths: Paths, collections: list[str]) -> Operation | None:
    for collection in collections:
        for path in (collection, f"{collection}/create"):
            found = paths.get(path, "POST")
            if found is not None and _takes_fields(found):
                return found
    return None


def _creating(operation: Operation | None) -> Operation | None:
    """A POST to the resource's own path, if it creates what is there: most others are actions."""
    return operation if operation is not None and 201 in operation.responses else None


def _collections(path: str) -> list[str]:
    """Where the siblings of an item may be: above it, or above it by the plural (`/silence/{id}`, `/silences`)."""
    above = path.rpartition("/")[0] or "/"
    last = above.rpartition("/")[2]
    if not last or is_parameter(last) or kind_names.singular(last) != last:
        return [above]
    return [above, above[: -len(last)] + kind_names.plural(last)]


def _patch(operation: Operation | None) -> Operation | None:
    """Not one that takes a list of steps only."""
    if operation is None or operation.body is None or operation.content_types == (_JSON_PATCH,):
        return None
    return operation if operation.body.type != "array" else None


def _callable(operation: Operation | None, read: Operation | None) -> Operation | None:
    """Not one that needs something in its query which a read does not: the version that it changes, say."""
    if operation is None or read is None:
        return operation
    return operation if _needed(operation) <= _needed(read) else None


def _needed(operation: Operation) -> set[str]:
    return {param.name for param in operation.parameters if param.place == "query" and param.required}


def _takes_fields(operation: Operation) -> bool:
    """Whether its body is an object of JSON."""
    types = operation.content_types
    return has_fields(operation.body) and (not types or any("json" in each or each == "*/*" for each in types))


def segments_of(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def comparable(segments: Iterable[str]) -> tuple[str, ...]:
    return tuple("{}" if is_parameter(segment) else segment.lower() for segment in segments)


def is_parameter(segment: str) -> bool:
    return bool(re.fullmatch(r"\{[^{}]+\}", segment))


def parameter_of(segment: str) -> str:
    return segment[1:-1] if is_parameter(segment) else ""

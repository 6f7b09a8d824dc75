"""What the answers of operations hold: the resource itself, perhaps in an envelope, or a list of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.systems.rest.openapi import Operation, Schema


def success(operation: Operation) -> Schema | None:
    """The schema of the answer when all went well."""
    found = [response.schema for status in (200, 201, 202, "2XX") if (response := operation.responses.get(status))]
    return next((schema for schema in found if schema is not None), None)


def below(schema: Schema | None, envelope: str) -> Schema | None:
    """What is in the envelope, where there is one."""
    if schema is not None and envelope and envelope in schema.properties:
        return schema.properties[envelope]
    return schema


def items_of(operation: Operation) -> Schema | None:
    """The schema of the items, when an operation gives a list."""
    return items_below(operation, "")[1]


def items_below(operation: Operation, envelope: str) -> tuple[str, Schema | None]:
    """Where in an answer the items are, and what they are."""
    answer = below(success(operation), envelope)
    if answer is None:
        return "", None
    if answer.items is not None:
        return "", answer.items
    pageable = operation.extension("x-ms-pageable")
    named = pageable.get("itemName") or "value" if isinstance(pageable, dict) else "value"
    lists: Mapping[str, Schema] = {n: s.items for n, s in answer.properties.items() if s.items is not None}
    if named in lists and (isinstance(pageable, dict) or set(answer.properties) <= {named, "nextLink"}):
        return str(named), lists[named]
    objects = [name for name, items in lists.items() if has_fields(items)]
    if len(objects) == 1 and len(answer.properties) <= 4:
        return objects[0], lists[objects[0]]
    return "", None


def envelope(read: Operation | None, body: Schema | None) -> str:
    """The property of an answer that holds the resource. The answer itself may have a scalar of the same name (`type`)."""
    answer = success(read) if read is not None else None
    if answer is None or body is None or not body.properties:
        return ""
    wanted = set(body.properties)
    if any(answer.properties[name].type in ("object", "array") for name in wanted & set(answer.properties)):
        return ""
    found = {name: len(wanted & set(prop.properties)) for name, prop in answer.properties.items()}
    best = max(found, key=lambda name: found[name], default="")
    enough = best and 2 * found[best] >= len(wanted) and found[best] > 2 * len(wanted & set(answer.properties))
    return best if enough else ""


def is_whole(items: Schema | None, whole: Schema | None) -> bool:
    return items is not None and whole is not None and (items.key == whole.key or covers(items, whole))


def covers(one: Schema, other: Schema) -> bool:
    return bool(other.properties) and set(other.properties) <= set(one.properties)


def has_fields(schema: Schema | None) -> bool:
    return schema is not None and bool(schema.properties or schema.additional or schema.one_of)

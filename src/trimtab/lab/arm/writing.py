"""What a write makes of a body: how a PUT and a PATCH join what is there, and what the service adds by itself."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trimtab.lab.arm.behaviour import Behaviour
from trimtab.lab.arm.documents import Route
from trimtab.lab.arm.resources import Id
from trimtab.lab.arm.schemas import Field, Schema

DEPTH = 30
OWN = ("id", "name", "type", "etag", "eTag", "provisioningState", "systemData")
"""What an example's answer has, and which every resource has in its own way."""


def put(
    sent: dict[str, Any], before: Mapping[str, Any] | None, taken: Field | None, behaviour: Behaviour
) -> dict[str, Any]:
    """The body after a PUT. What the service added (read-only) and secrets that were left out stay in every case."""
    if before is None:
        return copy.deepcopy(sent)
    if isinstance(before.get("properties"), dict):  # which have what is the service's own
        sent = {"properties": {}, **sent}
    return _joined(sent, before, taken.schema if taken else None, behaviour)


def patch(sent: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The body after a PATCH: RFC 7396, but that the tags are replaced whole."""
    after: dict[str, Any] = merged(before, {name: value for name, value in sent.items() if name != "tags"})
    if "tags" in sent:
        after["tags"] = copy.deepcopy(sent["tags"]) if sent["tags"] is not None else {}
    return after


def merged(before: Any, change: Any) -> Any:
    """RFC 7396."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    after = dict(before) if isinstance(before, Mapping) else {}
    for name, value in change.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = merged(after.get(name), value)
    return after


def with_defaults(body: dict[str, Any], field: Field | None, depth: int = 0) -> dict[str, Any]:
    """The body with the defaults of the document, in objects that are there."""
    if field is None or depth > DEPTH:
        return body
    schema = field.schema.of(body)
    for name, each in schema.properties.items():
        if each.default is not None and not each.read_only and not each.write_only:
            body.setdefault(name, copy.deepcopy(each.default))
        value = body.get(name)
        if isinstance(value, dict):
            with_defaults(value, each, depth + 1)
        elif isinstance(value, list) and each.schema.items is not None:
            for item in value:
                if isinstance(item, dict):
                    with_defaults(item, each.schema.items, depth + 1)
    return body


def with_facts(body: dict[str, Any], route: Route, identity: Id, now: datetime) -> dict[str, Any]:
    """The body of a new resource with what the service says of it by itself: times, identifiers, endpoints, and what an
    example of the document has in read-only fields."""
    field = route.schema
    if field is None:
        return body
    examples = route.operations["PUT"].examples if "PUT" in route.operations else ()
    for example in examples:
        answers = example.get("responses", {}) if isinstance(example, Mapping) else {}
        for code in ("200", "201"):
            _borrow(body, answers.get(code, {}).get("body"), field.schema, 0)
    _invent(body, field.schema, identity, now, 0)
    if "systemData" in field.schema.properties:
        by = {"createdBy": "someone@lab.test", "createdByType": "User", "createdAt": _time(now)}
        body.setdefault("systemData", by)
    return body


def state_of(body: Mapping[str, Any]) -> str | None:
    properties = body.get("properties")
    found = properties.get("provisioningState") if isinstance(properties, Mapping) else None
    return found if isinstance(found, str) else None


def set_state(body: dict[str, Any], field: Field | None, state: str | None) -> None:
    """Write the state where the document has it."""
    inner = field.schema.properties.get("properties") if field else None
    if inner is None or "provisioningState" not in inner.schema.properties:
        return
    properties = body.get("properties")
    properties = dict(properties) if isinstance(properties, dict) else {}
    properties.pop("provisioningState", None)
    body["properties"] = {**properties, **({"provisioningState": state} if state else {})}


def _joined(
    sent: Mapping[str, Any], before: Mapping[str, Any], schema: Schema | None, behaviour: Behaviour
) -> dict[str, Any]:
    schema = schema.of(sent) if schema else None
    after: dict[str, Any] = {}
    for name, old in before.items():
        if name not in sent and _stays(name, old, schema, behaviour):
            after[name] = copy.deepcopy(old)
    for name, new in sent.items():
        old = before.get(name)
        field = schema.properties.get(name, schema.additional) if schema else None
        if new is None:
            if (behaviour.null_keeps or (field is not None and field.secret)) and name in before:
                after[name] = copy.deepcopy(old)
            elif behaviour.put != "merge":
                after[name] = None
        elif isinstance(new, dict) and isinstance(old, Mapping) and (field is None or field.schema.properties):
            after[name] = _joined(new, old, field.schema if field else None, behaviour)
        elif isinstance(new, dict) and isinstance(old, Mapping) and behaviour.put == "merge" and name != "tags":
            after[name] = merged(old, new)
        else:
            after[name] = copy.deepcopy(new)
    return after


def _stays(name: str, old: Any, schema: Schema | None, behaviour: Behaviour) -> bool:
    field = schema.properties.get(name) if schema else None
    if schema is not None and field is None and schema.additional is None and not schema.open:
        return True  # what only a read has
    if field is not None and (field.read_only or field.write_only):
        return True
    if behaviour.put == "merge" or behaviour.null_keeps:
        return True
    return behaviour.put == "keep-collections" and isinstance(old, dict | list)


def _borrow(body: dict[str, Any], example: Any, schema: Schema, depth: int) -> None:
    if not isinstance(example, Mapping) or depth > 2:
        return
    for name, field in schema.properties.items():
        value = example.get(name)
        if name in OWN or value is None:
            continue
        if field.read_only and not field.secret:
            body.setdefault(name, copy.deepcopy(value))
        elif isinstance(value, Mapping) and isinstance(body.get(name), dict):
            _borrow(body[name], value, field.schema, depth + 1)


def _invent(body: dict[str, Any], schema: Schema, identity: Id, now: datetime, depth: int) -> None:
    for name, field in schema.properties.items():
        lower = name.lower()
        if name in OWN or depth > 2:
            continue
        if not field.read_only:
            if isinstance(body.get(name), dict):
                _invent(body[name], field.schema, identity, now, depth + 1)
        elif field.format == "date-time" and "creat" in lower:
            body.setdefault(name, _time(now))
        elif field.schema.type == "string" and (lower.endswith(("guid", "uniqueid", "uuid")) or field.format == "uuid"):
            body.setdefault(name, str(uuid.uuid5(uuid.NAMESPACE_URL, identity.key)))
        elif lower.endswith("endpoints") and field.schema.properties:
            names = [each for each, one in field.schema.properties.items() if one.schema.type == "string"]
            body.setdefault(name, {each: f"https://{identity.name}.{each}.lab.test/" for each in names})


def _time(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

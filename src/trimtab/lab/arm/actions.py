"""POST to a resource: keys that are the same at every start, keys made anew, and actions that only take their time."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from typing import Any

import msgspec

from trimtab.lab.arm import operations
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Operation, Route
from trimtab.lab.arm.reads import above
from trimtab.lab.arm.resources import Resource
from trimtab.lab.arm.schemas import Schema
from trimtab.lab.arm.world import Answer, Ask, World


def post(world: World, ask: Ask, route: Route) -> Answer:
    action = ask.path.rstrip("/").rpartition("/")[2]
    known = above(world, ask.path)
    operation = route.operations["POST"]
    if known is not None and action.lower().startswith("regenerate"):
        _renew(known, ask.body)
    body = msgspec.json.encode(_answer(known, action, operation))
    behaviour = world.behaviour(route.type) if known is None else world.behaviour(known.id.type, known.id.key)
    lro = operations.chosen(behaviour, "post", operation)
    if known is None or not lro.running:
        if known is not None:
            world.tell("Action", "Success", known.id.path)
        return Answer(status=200 if "204" not in operation.answers or "200" in operation.answers else 204, body=body)
    finish = partial(_finished, world, known.id.path)
    result = partial(Answer, status=200, body=body)
    _, headers = operations.begun(world, ask, known.id, lro, finish, result)
    return Answer(status=lro.code, headers=headers)


def _finished(world: World, path: str, status: str) -> None:
    world.tell("Action", "Success" if status == "Succeeded" else "Failure", path)


def _answer(known: Resource | None, action: str, operation: Operation) -> dict[str, Any]:
    lower = action.lower()
    if lower == "checknameavailability":
        return {"nameAvailable": True}
    field = operation.answers.get("200")
    if known is None or field is None or not lower.startswith(("list", "regenerate")):
        return {}
    return _sample(known, field.schema)


def _sample(known: Resource, schema: Schema) -> dict[str, Any]:
    """An answer in the form of the schema: every string is a key, in lists there are two."""
    made: dict[str, Any] = {}
    for name, field in schema.properties.items():
        if field.schema.type == "string":
            made[name] = _secret(known, name)
        elif field.schema.type == "array" and field.schema.items is not None and field.schema.items.schema.properties:
            made[name] = [_item(known, field.schema.items.schema, number) for number in (1, 2)]
    return made


def _item(known: Resource, schema: Schema, number: int) -> dict[str, Any]:
    values = {"keyname": f"key{number}", "permissions": "FULL", "value": _secret(known, f"key{number}")}
    made = {name: values.get(name.lower()) for name in schema.properties}
    return {name: value for name, value in made.items() if value is not None}


def _secret(known: Resource, name: str) -> str:
    turn = known.keys.get(name.lower(), 0)
    return base64.b64encode(hashlib.sha256(f"{known.id.key}/{name}/{turn}".encode()).digest()).decode()


def _renew(known: Resource, body: Any) -> None:
    """`keyName` of storage is the name itself, `keyType` of a cache is "Primary"."""
    given = body if isinstance(body, dict) else {}
    which = str(given.get("keyName") or given.get("keyType") or "").lower()
    if not which:
        raise ArmError(400, "InvalidParameter", "Required parameter 'keyName' is missing (null).")
    name = {"primary": "primarykey", "secondary": "secondarykey"}.get(which, which)
    known.keys[name] = known.keys.get(name, 0) + 1

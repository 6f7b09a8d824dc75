"""From a request to its answer: which of the emulator's parts it is for."""

from __future__ import annotations

from typing import Literal

import msgspec

from trimtab.lab.arm import actions, operations, reads, writes
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Route
from trimtab.lab.arm.resources import parse
from trimtab.lab.arm.world import Answer, Ask, World

Verb = Literal["read", "list", "create", "update", "patch", "delete", "action", "poll", "derived", "other"]


def answer(world: World, ask: Ask) -> Answer:
    try:
        return _answer(world, ask)
    except ArmError as error:
        body = error_body(error.code, error.message)
        return Answer(status=error.status, body=body, headers=error.headers)


def error_body(code: str, message: str) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": message}})


def verb(world: World, ask: Ask) -> tuple[Verb, str]:
    """What a request is for, and the type that it is about."""
    known = world.resources.find(ask.path)
    if ask.query.get("asyncId") or _is_monitor(ask.path):
        return "poll", ""
    route = known.route if known is not None else world.routes.find(ask.path)
    if route is None:
        return "other", ""
    kind = route.type
    if ask.method in ("GET", "HEAD"):
        operation = route.operations.get("GET")
        if operation is not None and operation.items:
            return "list", kind
        return ("read" if "PUT" in route.operations else "derived"), kind
    if ask.method == "PUT":
        return ("update" if known is not None else "create"), kind
    if ask.method == "POST":
        return "action", kind
    return ("patch" if ask.method == "PATCH" else "delete" if ask.method == "DELETE" else "other"), kind


def _answer(world: World, ask: Ask) -> Answer:
    known = world.resources.find(ask.path)
    route = known.route if known is not None else None
    if known is None or ask.query.get("asyncId"):
        polled = operations.monitor(world, ask) if ask.method == "GET" else None
        if polled is not None:
            return polled
        route = world.routes.find(ask.path)
    if route is None:
        raise _no_such(ask)
    _version(world, ask, route)
    _name(ask, route)
    if ask.method == "GET" and known is not None:
        return reads.resource(world, ask, known)
    if ask.method == "HEAD" and ("HEAD" in route.operations or "GET" in route.operations):
        return reads.head(world, ask, route)
    handler = _HANDLERS.get(ask.method)
    if handler is None or ask.method not in route.operations:
        raise ArmError(
            405, "MethodNotAllowed", f"The resource does not take {ask.method}.", {"Allow": ", ".join(route.operations)}
        )
    return handler(world, ask, route)


_HANDLERS = {
    "GET": reads.get,
    "PUT": writes.put,
    "PATCH": writes.patch,
    "DELETE": writes.delete,
    "POST": actions.post,
}


def _version(world: World, ask: Ask, route: Route) -> None:
    version = ask.query.get("api-version", "")
    if not version:
        raise ArmError(
            400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required."
        )
    built_in = route.type.startswith("Microsoft.Resources/")
    if version not in route.versions and not built_in and world.behaviour(route.type).strict_versions:
        known = ", ".join(sorted(route.versions))
        message = (
            f"No registered resource provider found for API version '{version}'. The supported ones are '{known}'."
        )
        raise ArmError(400, "NoRegisteredProviderFound", message)


def _name(ask: Ask, route: Route) -> None:
    name = ask.path.rstrip("/").rpartition("/")[2]
    if not route.names.allow(name):
        rule = f"'{route.names.pattern.pattern}', {route.names.shortest} to {route.names.longest} characters"
        message = f"Resource name '{name}' is invalid. It must be as follows: {rule}."
        raise ArmError(400, "InvalidResourceName", message)


def _no_such(ask: Ask) -> ArmError:
    kind = parse(ask.path).type
    namespace, _, rest = kind.partition("/")
    return ArmError(
        404, "InvalidResourceType", f"The resource type '{rest}' could not be found in the namespace '{namespace}'."
    )


def _is_monitor(path: str) -> bool:
    parts = path.rstrip("/").split("/")
    return len(parts) > 2 and parts[-2].lower() in ("operations", "operationresults")

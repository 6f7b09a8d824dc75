"""PUT, PATCH and DELETE of a resource."""

from __future__ import annotations

from functools import partial
from typing import Any

from trimtab.lab.arm import checking, operations, writing
from trimtab.lab.arm.behaviour import Behaviour, Lro
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Operation, Route
from trimtab.lab.arm.resources import Id, Resource
from trimtab.lab.arm.world import Answer, Ask, World


def put(world: World, ask: Ask, route: Route) -> Answer:
    identity = world.identity(ask.path, route)
    world.require_parents(identity)
    behaviour = world.behaviour(route.type, identity.key)
    operation = route.operations["PUT"]
    known = world.resources.find(identity.key)
    _precondition(known, ask, behaviour)
    _undisturbed(world, identity, behaviour)
    live = world.view(known) if known else None
    given = ask.body if known else _without_own(ask.body, identity)
    sent = checking.check_put(given, operation.body, route.schema, live, behaviour)
    body = writing.put(sent, known.body if known else None, operation.body, behaviour)
    body.pop("name", None)
    return _written(world, ask, route, operation, identity, known, body, "update" if known else "create")


def patch(world: World, ask: Ask, route: Route) -> Answer:
    identity = world.identity(ask.path, route)
    world.require_parents(identity)
    behaviour = world.behaviour(route.type, identity.key)
    operation = route.operations["PATCH"]
    known = _existing(world, identity)
    _precondition(known, ask, behaviour)
    _undisturbed(world, identity, behaviour)
    sent = checking.check_patch(ask.body, operation.body, route.schema, world.view(known), behaviour)
    return _written(world, ask, route, operation, identity, known, writing.patch(sent, known.body), "patch")


def delete(world: World, ask: Ask, route: Route) -> Answer:
    identity = world.identity(ask.path, route)
    world.require_parents(identity)
    behaviour = world.behaviour(route.type, identity.key)
    known = world.resources.find(identity.key)
    if known is None:
        if behaviour.delete_missing == 404 or identity.type == "Microsoft.Resources/resourceGroups":
            raise not_found(identity)
        return Answer(status=204)
    _precondition(known, ask, behaviour)
    _undisturbed(world, identity, behaviour)
    lro = operations.chosen(behaviour, "delete", route.operations["DELETE"])
    if not lro.running:
        world.remove(known.id)
        return Answer(status=lro.code)
    writing.set_state(known.body, route.schema, "Deleting")
    known.touch()
    finish = partial(_deleted, world, known)
    underway, headers = operations.begun(world, ask, identity, lro, finish, lambda: Answer(status=204))
    known.operation = underway
    return Answer(status=lro.code, headers=headers)


def not_found(identity: Id) -> ArmError:
    if identity.type == "Microsoft.Resources/resourceGroups":
        return ArmError(404, "ResourceGroupNotFound", f"Resource group '{identity.name}' could not be found.")
    message = f"The Resource '{identity.type}/{identity.name}' under resource group '{identity.group}' was not found."
    return ArmError(404, "ResourceNotFound", message)


def _written(
    world: World,
    ask: Ask,
    route: Route,
    operation: Operation,
    identity: Id,
    known: Resource | None,
    body: Any,
    verb: str,
) -> Answer:
    behaviour = world.behaviour(route.type, identity.key)
    lro = operations.chosen(behaviour, verb, operation)
    before = world.encoded(known) if known is not None and behaviour.stale_reads else b""
    body = writing.with_defaults(body, operation.body if verb != "patch" else route.schema)
    body = writing.with_facts(body, route, identity, world.clock.now())
    writing.set_state(body, route.schema, _shown_state(lro, verb))
    made = world.place(known.id if known else identity, route, body)
    if verb == "create":
        made.hidden_reads = behaviour.missing_reads
    elif behaviour.stale_reads:
        made.stale = (behaviour.stale_reads, before)
    if verb != "create" and behaviour.renames:
        made = _renamed(world, made)
    headers: dict[str, str] = {}
    made.unborn = verb == "create" and lro.code == 202
    world.gather_above(made)
    if lro.running:
        finish = partial(_settled, world, made, lro, verb)
        made.operation, headers = operations.begun(world, ask, made.id, lro, finish, partial(_result, world, made))
    else:
        world.tell("Write", "Success", made.id.path)
    if behaviour.etags:
        headers["ETag"] = made.etag
    return Answer(status=lro.code, body=b"" if lro.body == "empty" else world.encoded(made), headers=headers)


def _shown_state(lro: Lro, verb: str) -> str | None:
    if lro.body == "no-state":
        return None
    if lro.body == "terminal" or not lro.running:
        return "Succeeded"
    return "Creating" if verb == "create" else "Updating"


def _settled(world: World, made: Resource, lro: Lro, verb: str, status: str) -> None:
    made.operation = None
    made.unborn = False
    if lro.code == 202 and verb == "create" and status != "Succeeded":
        world.remove(made.id)
        world.tell("Write", "Failure", made.id.path)
        return
    writing.set_state(made.body, made.route.schema, None if lro.body == "no-state" else status)
    world.touched(made)
    world.tell("Write", "Success" if status == "Succeeded" else "Failure", made.id.path)


def _deleted(world: World, known: Resource, status: str) -> None:
    known.operation = None
    if status == "Succeeded":
        world.remove(known.id)
        return
    writing.set_state(known.body, known.route.schema, status)
    known.touch()
    world.tell("Delete", "Failure", known.id.path)


def _result(world: World, made: Resource) -> Answer:
    return Answer(status=200, body=world.encoded(made))


def _renamed(world: World, made: Resource) -> Resource:
    """The same under another name, as services do that keep what was."""
    number = made.renamed + 1
    name = f"{made.id.name.removesuffix(f'-r{made.renamed}')}-r{number}"
    identity = world.identity(f"{made.id.path.rpartition('/')[0]}/{name}", made.route)
    world.resources.remove(made.id.key)
    moved = Resource(identity, made.route, made.body)
    moved.serial, moved.renamed = made.serial, number
    world.resources.add(moved)
    return moved


def _existing(world: World, identity: Id) -> Resource:
    known = world.visible(identity.key)
    if known is None:
        raise not_found(identity)
    return known


def _without_own(body: Any, identity: Id) -> Any:
    """A creation may say who it is, although that is read-only."""
    own = {"id": identity.key, "name": identity.name.lower(), "type": identity.type.lower()}
    if not isinstance(body, dict):
        return body
    return {name: value for name, value in body.items() if own.get(name) is None or str(value).lower() != own[name]}


def _precondition(known: Resource | None, ask: Ask, behaviour: Behaviour) -> None:
    if not behaviour.etags:
        return
    wanted, unwanted = ask.headers.get("if-match"), ask.headers.get("if-none-match")
    failed = wanted is not None and (known is None or (wanted != "*" and known.etag not in _listed(wanted)))
    failed = failed or (
        unwanted is not None and known is not None and (unwanted == "*" or known.etag in _listed(unwanted))
    )
    if failed and behaviour.etag_mismatch == 409:
        raise ArmError(409, "EtagMismatch", "The ETag given is not the one of the resource.")
    if failed:
        raise ArmError(412, "PreconditionFailed", "A condition of the request's headers is not met.")


def _listed(header: str) -> list[str]:
    return [each.strip().removeprefix("W/") for each in header.split(",")]


def _undisturbed(world: World, identity: Id, behaviour: Behaviour) -> None:
    """Refuse a write while there is another one; where it is not refused, the other one ends now."""
    parent = world.resources.find(identity.parent)
    if parent is not None and behaviour.relatives == "refuse":
        for each in (parent, *world.resources.collection(identity.collection)):
            if each.operation is not None and each.id.key != identity.key:
                raise _busy(each)
    known = world.resources.find(identity.key)
    if known is not None and known.operation is not None:
        if behaviour.concurrent == "refuse":
            raise _busy(known)
        known.operation.end()


def _busy(known: Resource) -> ArmError:
    message = f"Another operation on '{known.id.name}' is in progress. Try again when it is done."
    return ArmError(409, "AnotherOperationInProgress", message)

"""Long-running operations as their callers see them: the first answer, and what a look at the operation gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.lab.arm.behaviour import Behaviour, Lro, shape
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.documents import Operation
from trimtab.lab.arm.resources import Id
from trimtab.lab.arm.world import Answer, Ask, Underway, World


def chosen(behaviour: Behaviour, verb: str, operation: Operation) -> Lro:
    """How a verb (create, update, patch, delete, post) answers: as it is switched, else as the document has it."""
    if not behaviour.asynchronous:
        return shape(AT_ONCE[verb])
    if verb in behaviour.operations:
        return behaviour.operations[verb]
    if not operation.long_running:
        return shape(AT_ONCE[verb])
    codes = operation.answers
    if verb == "create":
        return shape(
            "201+AAO nonterminal" if "201" in codes else "202+LOC" if "202" in codes else "200+AAO nonterminal"
        )
    if verb == "update":
        return shape("200 terminal" if "202" in codes and "200" in codes else "200+AAO nonterminal")
    return shape("202+AAO+LOC" if verb == "patch" else "202+LOC")


AT_ONCE = {
    "create": "201 terminal",
    "update": "200 terminal",
    "patch": "200 terminal",
    "delete": "200 empty",
    "post": "200 no-state",
}


def begun(
    world: World,
    ask: Ask,
    identity: Id,
    lro: Lro,
    finish: Callable[[str], None],
    result: Callable[[], Answer],
) -> tuple[Underway, dict[str, str]]:
    """An operation that goes on, and the headers that say where."""
    underway = world.start(lro, world.behaviour(identity.type, identity.key), finish, result)
    return underway, headers(world, underway, identity, ask)


def headers(world: World, underway: Underway, identity: Id, ask: Ask) -> dict[str, str]:
    lro = underway.lro
    wait = lro.retry_after if lro.retry_after is not None else world.behaviour(identity.type, identity.key).retry_after
    made = {} if wait is None else {"Retry-After": str(wait)}
    base = "" if lro.host == "/" else lro.host or world.url
    version = ask.query.get("api-version", "")
    namespace = identity.type.partition("/")[0]
    turn = f"&t={underway.looks}" if lro.rotating else ""
    place = f"/subscriptions/{identity.subscription}/providers/{namespace}/locations/lab"
    if lro.async_operation:
        made["Azure-AsyncOperation"] = f"{base}{place}/operations/{underway.name}?api-version={version}{turn}"
    if lro.location and lro.polls_resource:
        made["Location"] = f"{base}{identity.path}?api-version={version}&asyncId={underway.name}"
    elif lro.location:
        made["Location"] = f"{base}{place}/operationResults/{underway.name}?api-version={version}{turn}"
    return made


def monitor(world: World, ask: Ask) -> Answer | None:
    """The answer to a look at an operation; None when the path is none of one."""
    parts = ask.path.rstrip("/").split("/")
    kind = parts[-2].lower() if len(parts) > 2 else ""
    name = ask.query.get("asyncId", "") or (parts[-1] if kind in ("operations", "operationresults") else "")
    underway = world.monitors.get(name)
    if underway is None or (underway.lro.rotating and ask.query.get("t", "") != str(underway.looks)):
        if name and kind in ("operations", "operationresults"):
            raise ArmError(404, "OperationNotFound", f"The operation '{name}' was not found.")
        return None
    if underway.lro.monitor_gone:
        raise ArmError(404, "OperationNotFound", f"The operation '{name}' was not found.")
    if underway.errors > 0:
        underway.errors -= 1
        raise ArmError(500, "InternalServerError", "The status of the operation could not be read.")
    underway.looks += 1
    status = underway.look(world.clock.monotonic())
    at = Id(
        path=ask.path,
        key="",
        parent="",
        collection="",
        subscription=parts[2],
        group="",
        name="",
        type=_namespace(parts),
    )
    again = headers(world, underway, at, ask)
    if kind == "operations" and not ask.query.get("asyncId"):
        return _status(underway, status, again, ask.path)
    return _result(underway, status, again, ask)


def _status(underway: Underway, status: str, again: dict[str, str], path: str) -> Answer:
    body: dict[str, Any] = {
        "id": path,
        "name": underway.name,
        "status": status.lower() if underway.lro.lower_case else status,
        "startTime": "2026-01-01T00:00:00Z",
    }
    if status in ("Failed", "Canceled"):
        body["error"] = {"code": underway.lro.error_code, "message": underway.lro.error_message}
    keep = again if status == "InProgress" else {}
    if not underway.lro.rotating:
        keep = {name: value for name, value in keep.items() if name == "Retry-After"}
    return Answer(status=200, body=msgspec.json.encode(body), headers=keep)


def _result(underway: Underway, status: str, again: dict[str, str], ask: Ask) -> Answer:
    if status == "InProgress":
        if ask.query.get("asyncId"):
            return Answer(status=202, body=b'{"properties":{"provisioningState":"InProgress"}}', headers=again)
        return Answer(status=202, headers=again)
    if status != "Succeeded":
        raise ArmError(409 if status == "Canceled" else 400, underway.lro.error_code, underway.lro.error_message)
    return underway.result()


def _namespace(parts: list[str]) -> str:
    lower = [part.lower() for part in parts]
    return parts[lower.index("providers") + 1] if "providers" in lower[:-1] else ""

"""What the emulator is told over HTTP when it is a process of its own, as in a bench: below /_lab/.

GET  /_lab/counts       {"verbs": {…}, "types": {…}, "writes": n, "resources": n}
GET  /_lab/requests     the requests, newest last
GET  /_lab/resources    IDs; with ?id= the body of one
POST /_lab/behaviour    {"type": "", "behaviour": {…}}: what is left out stays as it is
POST /_lab/put          {"id": …, "body": {…}}, or a list of these
POST /_lab/change       {"id": …, "patch": {…}}: RFC 7396
POST /_lab/remove       {"id": …}
POST /_lab/clear        forget the requests
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from trimtab.lab.arm import writing

if TYPE_CHECKING:
    from trimtab.lab.arm.server import ArmEmulator


async def obey(arm: ArmEmulator, request: web.BaseRequest, path: str) -> web.Response:
    order = path.removeprefix("/_lab/")
    try:
        given = msgspec.json.decode(await request.read()) if request.body_exists else None
        said = _obeyed(arm, request.method, order, given, request.query.get("id", ""))
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        return web.Response(status=400, text=f"{error}\n")
    return web.Response(body=msgspec.json.encode(said), content_type="application/json")


def _obeyed(arm: ArmEmulator, method: str, order: str, given: Any, wanted: str) -> Any:
    match method, order:
        case "GET", "counts":
            log = arm.log
            there = len(arm.resources)
            return {"verbs": log.verbs, "types": log.by_type, "writes": log.writes, "resources": there}
        case "GET", "requests":
            return arm.requests
        case "GET", "resources":
            return arm.resources[wanted] if wanted else list(arm.resources)
        case "POST", "behaviour":
            return arm.behave(given.get("type", ""), **given.get("behaviour", {}))
        case "POST", "put":
            for each in given if isinstance(given, list) else [given]:
                arm.put(each["id"], each["body"])
        case "POST", "change":
            arm.change(given["id"], lambda body: body.update(writing.merged(body, given["patch"])))
        case "POST", "remove":
            arm.remove(given["id"])
        case "POST", "clear":
            arm.log.clear()
        case _:
            raise KeyError(f"no order {method} {order}")
    return {}

"""A hook for sets of records in PowerDNS, which are changed by a PATCH of their zone that lists actions.

The definition gives each set a path of its own below its zone. A write to it becomes that PATCH here; a read needs no hook,
because the zone can be asked for one set alone.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec


async def modify_request(ctx: Any, request: Any, following: Any) -> Any:
    request = await following(request)
    zone, below, own = request.url.partition("/rrsets/")
    if not below:
        return request
    name, _, kind = own.partition("/")
    action: dict[str, Any] = {"name": unquote(name), "type": unquote(kind), "changetype": "DELETE"}
    if request.verb != "delete":
        action = {"ttl": 3600, **request.body, **action, "changetype": "REPLACE"}
    return msgspec.structs.replace(request, method="PATCH", url=zone, body={"rrsets": [action]})

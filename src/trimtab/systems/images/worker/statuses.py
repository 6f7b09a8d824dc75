"""The status of an object that others write too: read, changed and written, again when somebody was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource
from trimtab.runtime.objects import uid_of, uncached
from trimtab.runtime.status import write_status

ATTEMPTS = 8
R = TypeVar("R", bound=Resource)


async def change_status(client: Client, obj: R, change: Callable[[R], Any]) -> R | None:
    """The object with the status that `change` makes of the one that is there now; None when the object is gone.

    An object of the same name with another uid counts as gone. The last conflict is raised.
    """
    for attempt in range(1, ATTEMPTS + 1):
        current = await find(client, type(obj), obj.name, obj.namespace, uid_of(obj))
        if current is None:
            return None
        try:
            return await write_status(client, current, change(current))
        except StatusError as error:
            if error.code == 404:
                return None
            if error.code != 409 or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


async def find(client: Client, kind: type[R], name: str, namespace: str, uid: str = "") -> R | None:
    """As the API has it now; None when it is gone, or when another one has its name."""
    try:
        found = await uncached(client).get(kind, name, namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
    return None if uid and uid_of(found) != uid else found

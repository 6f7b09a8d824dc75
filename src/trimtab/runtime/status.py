"""Status is written when it changed, and only for the object that it was judged from.

`write_status` sends a patch of the status subresource with the revision that the verdict was made from. When the object
changed since, the write is repeated once on a fresh read, if that is safe: the same object, at the same generation, with
the status that we saw; so only its metadata moved, and the verdict stands. Otherwise the conflict is raised, and the
next reconcile judges anew.

`ready` makes the condition that every kind has which converges. Other conditions are made by `condition`.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, overload

from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Client, Object
from trimtab.model.clock import Clock
from trimtab.model.conditions import Condition, Truth, set_condition
from trimtab.model.document import plain
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import kind_of, uid_of, uncached

READY = "Ready"
MESSAGE_MAX = 32768  # metav1.Condition
REASON_MAX = 1024
R = TypeVar("R", bound=Resource)


@overload
async def write_status(client: Client, obj: R, status: Any) -> R: ...
@overload
async def write_status(client: Client, obj: Object, status: Any) -> Any: ...


async def write_status(client: Client, obj: Object, status: Any) -> Any:
    """The object with this status; `obj` itself, and no write, when it has it already. 409 when the world moved on."""
    changed = _with_status(obj, status)
    if _status(changed) == _status(obj):
        return obj
    try:
        return await client.patch(obj, changed, subresource="status")
    except StatusError as error:
        if error.code != 409:
            raise
        conflict = error
    fresh = await uncached(client).get(kind_of(obj), obj.name, obj.namespace)
    if not is_same_verdict(obj, fresh):
        raise conflict
    return await client.patch(fresh, _with_status(fresh, status), subresource="status")


def is_same_verdict(old: Object, fresh: Object) -> bool:
    """Whether what was judged from `old` stands for `fresh`: at most its metadata moved."""
    return (
        uid_of(fresh) == uid_of(old)
        and fresh.metadata.generation == old.metadata.generation
        and _status(fresh) == _status(old)
    )


def ready(
    conditions: tuple[Condition, ...] | UnsetType,
    clock: Clock,
    generation: int | UnsetType,
    ok: bool | None,
    reason: str,
    message: str = "",
) -> tuple[Condition, ...]:
    """`conditions` with Ready. `ok` is None while nobody knows. The same tuple when nothing changed."""
    return condition(conditions, clock, generation, READY, ok, reason, message)


def condition(
    conditions: tuple[Condition, ...] | UnsetType,
    clock: Clock,
    generation: int | UnsetType,
    kind: str,
    ok: bool | None,
    reason: str,
    message: str = "",
) -> tuple[Condition, ...]:
    """`conditions` with one of type `kind`. Too long a message is cut; a reason that is no CamelCase word is a mistake
    of the program, a ValueError: the API would refuse the whole status."""
    if len(reason) > REASON_MAX or not _REASON.fullmatch(reason):
        raise ValueError(f"{reason[:64]!r} is no reason: write one CamelCase word, and the rest in the message")
    truth: Truth = "Unknown" if ok is None else "True" if ok else "False"
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX - 1] + "…"
    return set_condition(conditions, kind, truth, reason, message, now=clock.now(), observed_generation=generation)


def _with_status(obj: Object, status: Any) -> Object:
    if isinstance(obj, Untyped):
        return Untyped({**obj.raw, "status": plain(status)})
    return obj.replace(status=status)


def _status(obj: Object) -> Any:
    if isinstance(obj, Untyped):
        return obj.raw.get("status") or {}
    return getattr(obj, "status", UNSET)


_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)

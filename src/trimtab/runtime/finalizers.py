"""A finalizer as a contract: clean up before an object goes, whatever happens in between.

Flow, for one object seen by a reconcile:
1. It has no finalizer of this name and is not being deleted: the finalizer is added, then `apply` runs.
2. It has it and is not being deleted: `apply` runs.
3. It has it and is being deleted: `cleanup` runs; when it returns, the finalizer is removed, and the object may go.
4. It does not have it and is being deleted: nothing is left to do.

Guarantees: `apply` never runs for an object without the finalizer, so what it made is always cleaned up. `cleanup` runs
at least once before the object is gone, and again when it raised, or when its success could not be recorded.
Finalizers of others stay, in their order. None is added to an object that is being deleted.

Assumes that `apply` and `cleanup` may run any number of times, and that nobody else removes the finalizer.

Caveats: an object that is removed by force goes without `cleanup`. An addition that meets a change raises the conflict,
for the spec may be another by now: reconcile again. A removal that meets one is repeated on a fresh read, a few times;
then the conflict is raised, and the next reconcile cleans up once more.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from trimtab.client.protocol import Client, Object
from trimtab.model.errors import StatusError
from trimtab.model.names import label_key_problems
from trimtab.runtime.objects import is_deleting, kind_of, uid_of, uncached, with_metadata

ATTEMPTS = 5
O = TypeVar("O", bound=Object)  # noqa: E741 - an object
T = TypeVar("T")


class Act(enum.Enum):
    """What is to be done with an object."""

    ADD = "add the finalizer, then apply"
    APPLY = "apply"
    CLEAN_UP = "clean up, then remove the finalizer"
    NOTHING = "nothing is left to do"


def act_for(finalizers: Sequence[str], deleting: bool, name: str) -> Act:
    """The whole decision. Pure."""
    if name in finalizers:
        return Act.CLEAN_UP if deleting else Act.APPLY
    return Act.NOTHING if deleting else Act.ADD


async def finalizer(
    client: Client,
    obj: O,
    name: str,
    *,
    apply: Callable[[O], Awaitable[T]],
    cleanup: Callable[[O], Awaitable[T]],
) -> T | None:
    """What `apply` or `cleanup` returned; None when the object is gone, or is going without us."""
    if "/" not in name or label_key_problems(name):
        raise ValueError(f"{name[:128]!r} is no name of a finalizer: it must be like example.com/cleanup")
    act = act_for(_finalizers(obj), is_deleting(obj), name)
    if act is Act.ADD:
        added = with_metadata(obj, finalizers=(*_finalizers(obj), name))
        try:
            obj = await client.patch(obj, added)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return await apply(obj)
    if act is Act.APPLY:
        return await apply(obj)
    if act is Act.CLEAN_UP:
        result = await cleanup(obj)
        await _remove(client, obj, name)
        return result
    return None


async def _remove(client: Client, obj: Object, name: str) -> None:
    uid = uid_of(obj)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            left = tuple(other for other in _finalizers(obj) if other != name)
            await client.patch(obj, with_metadata(obj, finalizers=left))
            return
        except StatusError as error:
            if error.code == 404:
                return
            if error.code != 409 or attempt == ATTEMPTS:
                raise
        try:
            obj = await uncached(client).get(kind_of(obj), obj.name, obj.namespace)
        except StatusError as error:
            if error.code == 404:
                return
            raise
        if uid_of(obj) != uid or name not in _finalizers(obj):
            return


def _finalizers(obj: Object) -> tuple[str, ...]:
    return obj.metadata.finalizers or ()

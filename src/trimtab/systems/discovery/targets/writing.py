"""Writing Targets: what `settle` decided, and only that. A write that meets another's is left to the next settling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Preconditions, Ref
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.owners import owner_reference
from trimtab.runtime.status import write_status
from trimtab.systems.discovery.kinds import DiscoveryRule, Target, TargetStatus
from trimtab.systems.discovery.targets.settle import Write

AT_A_TIME = 16


class Written(msgspec.Struct, frozen=True):
    """What came of the writes. `refused` has what the API will not take, by Target; `again` what met a change, or a
    server that could not answer."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    again: dict[str, str] = {}
    refused: dict[str, str] = {}


async def write(client: CachedClient, rule: DiscoveryRule, writes: Iterable[Write]) -> Written:
    """All of them, some at a time. It raises what no second try mends: no rights, for one."""
    turns = asyncio.Semaphore(AT_A_TIME)
    created: list[str] = []
    changed: list[str] = []
    again: dict[str, str] = {}
    refused: dict[str, str] = {}

    async def one(change: Write) -> None:
        async with turns:
            try:
                await _write(client, rule, change)
            except StatusError as error:
                if error.code in (400, 422):
                    refused[change.target.name] = error.message
                elif error.code in (404, 409, 429) or error.code >= 500:
                    again[change.target.name] = error.message
                else:
                    raise
            except (OSError, TimeoutError) as error:
                again[change.target.name] = str(error) or "no answer"
            else:
                (changed if change.existing else created).append(change.target.name)

    async with asyncio.TaskGroup() as tasks:
        for change in writes:
            tasks.create_task(one(change))
    return Written(tuple(created), tuple(changed), again, refused)


async def _write(client: CachedClient, rule: DiscoveryRule, change: Write) -> None:
    owner = owner_reference(rule, client.scheme)
    wanted = change.target
    if change.existing is None:
        metadata = ObjectMeta(
            name=wanted.name,
            namespace=rule.namespace,
            labels=wanted.metadata.labels,
            annotations=wanted.metadata.annotations,
            owner_references=(owner,),
        )
        held = await client.create(Target(metadata=metadata, spec=wanted.spec))
    else:
        before = change.existing
        others = tuple(r for r in before.metadata.owner_references or () if not r.controller and r.uid != owner.uid)
        meant = with_metadata(
            before,
            labels=wanted.metadata.labels,
            annotations=wanted.metadata.annotations,
            owner_references=(*others, owner),
        ).replace(spec=wanted.spec)
        held = before if meant == before else await client.patch(before, meant)
    await write_status(client, held, wanted.status or TargetStatus())


async def delete(client: CachedClient, target: Target) -> bool:
    """Whether it is gone by us. Not when it changed since it was judged."""
    preconditions = Preconditions(
        uid=target.metadata.uid or None, resource_version=target.metadata.resource_version or None
    )
    try:
        await client.delete(Ref(Target, target.name, target.namespace), preconditions=preconditions)
    except StatusError as error:
        if error.code in (404, 409):
            return False
        raise
    return True


def owned(targets: Iterable[Target], rule: DiscoveryRule) -> list[Target]:
    """Those that this very rule has made and that are not going."""
    uid = rule.metadata.uid
    return [
        target
        for target in targets
        if target.metadata.deletion_timestamp in (UNSET, None, "")
        and any(r.uid == uid and r.controller is True for r in target.metadata.owner_references or ())
    ]

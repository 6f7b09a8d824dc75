"""`trimtab git confirm`, `suspend` and `resume`: a person's word to a sync. Saying any of them twice does no harm."""

from __future__ import annotations

import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.annotations import annotate
from trimtab.cli.codes import OK, Problem, escaped, run
from trimtab.cli.git_find import called, stands, status_of, sync_of
from trimtab.client.api import MERGE
from trimtab.client.transport import Call
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import CONFIRM, SUSPENDED_BY


def confirm(access: Access, name: str, plan: str) -> int:
    return run(_confirm(access, name, plan))


def suspend(access: Access, name: str, reason: str) -> int:
    return run(_suspend(access, name, reason))


def resume(access: Access, name: str) -> int:
    return run(_resume(access, name))


async def _confirm(access: Access, name: str, plan: str) -> int:
    async with session(access) as server:
        sync = await sync_of(server, name)
        held = status_of(sync).held
        if not held:
            print(f"{called(sync)} holds nothing back: {stands(sync)[1]}")
            return OK
        if plan and plan != held.plan:
            raise Problem(f"{called(sync)} holds the plan {held.plan}, not {plan}: look again, and confirm that")
        await annotate(server, sync, CONFIRM, held.plan)
    print(f"{called(sync)} deletes {held.count} objects:")
    print("\n".join(f"  {escaped(name)}" for name in held.deletes))
    return OK


async def _suspend(access: Access, name: str, reason: str) -> int:
    async with session(access) as server:
        sync = await sync_of(server, name)
        await _set(server, sync, True, reason or None)
    print(f"{called(sync)} does nothing until `trimtab git resume {sync.name}`")
    return OK


async def _resume(access: Access, name: str) -> int:
    async with session(access) as server:
        sync = await sync_of(server, name)
        await _set(server, sync, False, None)
    print(f"{called(sync)} goes on")
    return OK


async def _set(server: Session, sync: GitSync, suspended: bool, reason: str | None) -> None:
    place = await server.client.place(GitSync)
    metadata = {"uid": sync.metadata.uid, "annotations": {SUSPENDED_BY: reason}}
    body = orjson.dumps({"metadata": metadata, "spec": {"suspend": suspended}})
    path = place.path(sync.namespace, sync.name)
    await server.transport.call(Call(method="PATCH", path=path, body=body, content_type=MERGE))

"""Whose an object is that keeps a lineage: a GitSync's, as long as there is that GitSync.

One that was deleted owns nothing any more, nor does it when another of its name was made since: uids tell them apart. One that
cannot be read may live, so what it had stays its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.systems.gitops.kinds import GitSync


def lineage_of(sync: GitSync) -> str:
    """By which objects tell that they are of this sync."""
    return f"{sync.namespace}/{sync.name}@{sync.metadata.uid}"


async def living(client: Client, lineages: Iterable[str]) -> dict[str, str]:
    """Those of these lineages that have an owner, with its namespace and name. `client` reads from no cache: that may not
    have seen the owner yet, or follow its namespace."""
    found = {}
    for lineage in {*lineages}:
        owner, _, uid = lineage.rpartition("@")
        if await _lives(client, owner, uid):
            found[lineage] = owner or lineage
    return found


async def _lives(client: Client, owner: str, uid: str) -> bool:
    namespace, _, name = owner.partition("/")
    if not (namespace and name):
        return True  # none of our words: whoever wrote it may know
    try:
        sync = await client.get(GitSync, name, namespace)
    except StatusError as error:
        return error.code != 404
    return sync.metadata.uid == uid

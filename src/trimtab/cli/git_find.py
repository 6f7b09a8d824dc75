"""The GitSync that a command is about, and how it stands, in one line."""

from __future__ import annotations

from trimtab.cli.access import Session
from trimtab.cli.codes import NOT_FOUND, Problem
from trimtab.client.protocol import Query
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.systems.gitops.kinds import GitSync, GitSyncStatus

MOST_NAMES = 20
NONE = GitSyncStatus()


async def sync_of(server: Session, name: str) -> GitSync:
    """By its name; without one the only one there is. What is wrong is a Problem that says what there is instead."""
    if name:
        try:
            return await server.client.get(GitSync, name, server.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
    try:
        listed = await server.client.list(GitSync, Query(namespace=server.namespace))
    except StatusError as error:
        if error.code != 404:
            raise
        raise Problem("the server has no GitSyncs: it runs no system gitops", NOT_FOUND) from None
    found = [item for item in listed.items if isinstance(item, GitSync)]
    if not name and len(found) == 1:
        return found[0]
    names = [item.name for item in found]
    there = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
    what = f"there is no gitsync/{name}" if name else "name one GitSync of several" if names else "there is no GitSync"
    raise Problem(f"{what} in namespace {server.namespace}; there are: {there or 'none'}", NOT_FOUND)


def called(sync: GitSync) -> str:
    return f"gitsync/{sync.name}"


def status_of(sync: GitSync) -> GitSyncStatus:
    return sync.status or NONE


def stands(sync: GitSync) -> tuple[bool, str]:
    """Whether it is ready, and its condition in words."""
    found = get_condition(status_of(sync).conditions, "Ready")
    if found is None:
        return False, "it did not run yet"
    return found.status == "True", f"{found.reason}: {found.message}" if found.message else found.reason

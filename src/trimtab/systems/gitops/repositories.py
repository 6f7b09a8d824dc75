"""The Repository that a GitSync means by a name: its own project's, else one that another project shares with it."""

from __future__ import annotations

from msgspec import UnsetType

from trimtab.client.protocol import Client, Query
from trimtab.model.errors import StatusError
from trimtab.model.hub import EVERYONE
from trimtab.systems.gitops.kinds import Repository


class Ambiguous(Exception):  # noqa: N818 - it reads as what happened
    """Several projects share one of this name."""

    def __init__(self, name: str, owners: list[str]) -> None:
        super().__init__(f'"{name}" is shared by several projects ({", ".join(owners)}): make one in this project')


async def repository_of(client: Client, name: str, project: str) -> Repository | None:
    """None when there is none that the project may use. Ambiguous."""
    try:
        return await client.get(Repository, name, project)
    except StatusError as error:
        if error.code != 404:
            raise
    named = (await client.list(Repository, Query(fields=f"metadata.name={name}"))).items
    shared = [each for each in named if isinstance(each, Repository) and _reaches(each, project)]
    if len(shared) > 1:
        raise Ambiguous(name, sorted(each.namespace for each in shared))
    return shared[0] if shared else None


def _reaches(repository: Repository, project: str) -> bool:
    sharing = repository.spec.sharing
    if isinstance(sharing, UnsetType) or not sharing.enabled:
        return False
    return any(each.name in (project, EVERYONE) for each in sharing.projects)

"""Puts the parts that hub kinds have besides status onto a server: files, and published versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.hub.artifacts.digests import FilePaths
from trimtab.hub.artifacts.endpoint import MAX_ARTIFACT, Artifacts
from trimtab.hub.artifacts.naming import published_digests, row_key
from trimtab.hub.artifacts.versions import Versions
from trimtab.hub.storage.contract import Storage
from trimtab.server.registry import Served
from trimtab.server.target import Target

if TYPE_CHECKING:
    from trimtab.server.core import Server


def mount_parts(
    server: Server,
    served: Served,
    storage: Storage,
    *,
    organization: str,
    type_: str,
    files: FilePaths,
    versioned: bool,
    limit: int = MAX_ARTIFACT,
) -> None:
    """Of one kind, which has what it has: no files, no `/artifacts`."""

    async def published(target: Target) -> set[str]:
        key = await row_key(storage, organization, type_, target.namespace, target.name)
        return await published_digests(storage, key)

    parts = server.subresources
    served.strategy.subresources = ()
    if files:
        also = published if versioned else None
        parts.mount(served, "artifacts", Artifacts(server, storage.blobs, files, published=also, limit=limit))
    if versioned:
        parts.mount(served, "versions", Versions(storage, organization=organization, type_=type_))

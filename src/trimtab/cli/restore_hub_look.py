"""What a running server has of the hub's resources that an archive has, too: with lineage, and with published versions."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from trimtab.cli.access import Session
from trimtab.cli.restore_hub_plan import Spec, verdict
from trimtab.cli.restore_hub_read import Part
from trimtab.cli.restore_plan import LINEAGE, Document, Name, Verdict, name_of
from trimtab.client.discovery import ApiResource
from trimtab.hub.offline import Kept
from trimtab.model.errors import StatusError

AT_ONCE = 8


class Seen(msgspec.Struct, kw_only=True):
    """`published`: versions and their specs, the oldest first. `lineage`: whether we may see and write it."""

    live: dict[Name, Document] = {}
    published: dict[Name, dict[str, Spec]] = {}
    verdicts: dict[Name, Verdict] = {}
    lineage: bool = True


async def look(server: Session, part: Part) -> Seen:
    """Everything that a plan must know. It only reads."""
    seen = Seen()
    if not part.kept:
        return seen
    slots = asyncio.Semaphore(AT_ONCE)
    wanted = {(name.api_version, name.kind) for name in part.kept}
    catalogue = await server.catalogue()
    resources = {(each.api_version, each.kind): each for each in catalogue if "list" in each.verbs}
    for key in sorted(wanted & resources.keys()):
        await _list(server, resources[key], seen)

    async def judge(name: Name, kept: Kept) -> None:
        async with slots:
            resource = resources.get((name.api_version, name.kind))
            present = seen.live.get(name)
            if present is not None and resource is not None and kept.versions:
                seen.published[name] = await _published(server, resource, name, kept)
            if not seen.lineage:
                kept = msgspec.structs.replace(kept, document=_without_lineage(kept.document))
                present = present and _without_lineage(present)
            missing = await part.missing(kept)
            seen.verdicts[name] = verdict(kept, present, seen.published.get(name, {}), missing)

    await asyncio.gather(*(judge(name, kept) for name, kept in part.kept.items()))
    return seen


async def _list(server: Session, resource: ApiResource, seen: Seen) -> None:
    found: list[dict[str, Any]] = []
    try:
        found = await _items(server, resource, seen.lineage)
    except StatusError as error:
        if error.code != 403:
            raise
        with contextlib.suppress(StatusError):  # not allowed at all: a create says it again
            found = await _items(server, resource, False)
            seen.lineage = False
    for item in found:
        document = {**item, "apiVersion": resource.api_version, "kind": resource.kind}
        seen.live[name_of(document)] = document


async def _items(server: Session, resource: ApiResource, lineage: bool) -> list[dict[str, Any]]:
    answer = await server.read(resource.place.path().rstrip("/"), **({"includeLineage": "true"} if lineage else {}))
    found: list[dict[str, Any]] = answer.get("items") or []
    return found


async def _published(server: Session, resource: ApiResource, name: Name, kept: Kept) -> dict[str, Spec]:
    """Of versions that the archive has not, the names alone count."""
    path = resource.place.path(name.namespace, name.name)
    listed = await server.read(f"{path}/versions")
    ours = {version.name for version in kept.versions}
    found: dict[str, Spec] = {}
    for each in reversed(listed.get("items") or ()):
        version = each["version"]
        found[version] = (await server.read(path, version=version))["spec"] if version in ours else {}
    return found


def _without_lineage(document: Document) -> Document:
    given = document["metadata"].get("annotations") or {}
    annotations = {key: value for key, value in given.items() if key != LINEAGE}
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}

"""What tests of Images need: a claimed Registry, catalogues, and a client with a cache."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.model.clock import SystemClock
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.informers import Informers
from trimtab.systems.images.kinds import Registry, RegistrySpec
from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.catalogue import Catalogue, Pictured, Tag

START = datetime(2026, 1, 1, tzinfo=UTC)


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def catalogue(
    tags: Mapping[str, Mapping[str, Any]], *, members: Mapping[str, list[str]] | None = None, layers: int = 1
) -> Catalogue:
    """By repository and tag: the name of an image, or names of those behind an index."""
    found: dict[str, dict[str, Tag]] = {}
    images: dict[str, Pictured] = {}
    for repository, named in tags.items():
        for tag, names in named.items():
            each = [names] if isinstance(names, str) else list(names)
            for name in each:
                made = tuple(Layer("application/gzip", digest(f"{name}{n}"), 7, "", "RUN it") for n in range(layers))
                images[digest(name)] = Pictured("linux/amd64", made, 7 * layers, "2026-01-01T00:00:00Z")
            points = digest(names) if isinstance(names, str) else digest(" ".join(each))
            found.setdefault(repository, {})[tag] = Tag(points, "", tuple(digest(name) for name in each))
    mine = {repository: list(named) for repository, named in found.items()} if members is None else dict(members)
    return Catalogue(tags=found, images=images, members=mine)


async def claimed(
    client: ApiClient, namespace: str, *, run: str = "run-1", at: datetime = START, name: str = "main", **spec: Any
) -> Registry:
    """A Registry that a run has: made, or taken over by the next run."""
    listed = await client.list(Registry, Query(namespace=namespace, fields=f"metadata.name={name}"))
    held = listed.items[0] if listed.items else None
    if held is None:
        metadata = ObjectMeta(name=name, namespace=namespace)
        held = await client.create(Registry(metadata=metadata, spec=RegistrySpec(uri="registry.example.com", **spec)))
    running = claim.Running(id=run, type="scheduled", started_at=at)
    annotations = claim.claimed(held.metadata.annotations or {}, running)
    return await client.patch(
        held, held.replace(metadata=msgspec.structs.replace(held.metadata, annotations=annotations))
    )


@asynccontextmanager
async def cached(client: ApiClient, *kinds: Any, writer: Any = None) -> AsyncIterator[CachedClient]:
    """A client as controllers have it, which follows these kinds."""
    informers = Informers(client, clock=SystemClock(), chance=random.Random(1))
    following = [informers.subscribe(kind, Query(), lambda change: None) for kind in kinds]
    try:
        async with asyncio.timeout(30):
            for informer in following:
                await informer.synced.wait()
        yield CachedClient(client, informers, writer)
    finally:
        await informers.close()

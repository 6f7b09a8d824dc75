"""Our side of `sbom_rate.py`: what a worker does for images of a registry, without the resources that it would write.
Loop and memory are those of the program.

    python bench/peers/sbom_ours.py HOST TAG CACHE REPOSITORY ...
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from trimtab.cli.memory import tune
from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images.kinds import ImageLayer
from trimtab.systems.images.layers.image import Inventory, merge
from trimtab.systems.images.registry.client import Head, RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.references import endpoint
from trimtab.systems.images.registry.resolving import Resolver
from trimtab.systems.images.sbom.subject import Subject
from trimtab.systems.images.worker import documents
from trimtab.systems.images.worker.layers import Gathered, Layers

CREATED = datetime(2026, 1, 1, tzinfo=UTC)


async def main(host: str, tag: str, place: str, *repositories: str) -> None:
    layers = Layers(Scratch(Path(place), 1 << 30))
    told: dict[str, dict[str, object]] = {}
    async with Connections() as connections:
        client = connections.client(endpoint(host, plain_http=True))
        for repository in repositories:
            start = time.process_time()
            inventory = await document(client, repository, tag, layers)
            seconds = time.process_time() - start
            told[repository] = {"seconds": seconds, "purls": [package.purl for package in inventory.packages]}
    print(json.dumps(told))


async def document(client: RegistryClient, repository: str, tag: str, layers: Layers) -> Inventory:
    """From the tag to both documents, as the handlers of CreateCatalog and GenerateSBOM do it."""
    head = await client.head(repository, tag)
    assert isinstance(head, Head)
    (image,) = (await Resolver(client, (), frozenset()).resolve(repository, head.digest)).images

    async def pull(layer: ImageLayer) -> AsyncGenerator[bytes, None]:
        async with aclosing(client.blob(repository, layer.digest, layer.size)) as pieces:
            async for piece in pieces:
                yield piece

    gathered = Gathered()
    for each in image.layers:
        layer = ImageLayer(digest=each.digest, diff_id=each.diff_id, size=each.size, media_type=each.media_type)
        gathered.add(await layers.result(layer, pull))
    inventory = await in_thread(merge, gathered.results)
    subject = Subject(repository=f"{client.registry.name}/{repository}", digest=image.digest, tag=tag)
    await in_thread(documents.write, documents.encode(inventory), subject, CREATED)
    return inventory


if __name__ == "__main__":
    tune(layers=True)
    uvloop.run(main(*sys.argv[1:]))

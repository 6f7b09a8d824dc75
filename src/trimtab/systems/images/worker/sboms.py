"""Makes the SBOM of an Image: its layers are read, its documents are blobs, and the SBOM names them.

Flow: an SBOM that is there is only pinned again. Else the layers' results are merged, the documents put, the SBOM created,
and its blobs pinned for it. Then the Image says that it is Ready.

Guarantees: killed anywhere, the next delivery brings it to its end: documents are the same bytes every time, and blobs that
were put and not pinned live for their grace. Of two who make the same SBOM at once one creates it, and both pin it. What
cannot be done ever is written to the Image, with the run that asked; what cannot be done now is raised as Later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from msgspec import UNSET

from trimtab.model.backoff import Chance
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.owners import controller_of, own, owned_by
from trimtab.runtime.status import ready
from trimtab.storage.blobs import BlobMissing, BlobTooLarge, Digest
from trimtab.storage.threads import in_thread
from trimtab.systems.images.kinds import (
    SBOM,
    Attempt,
    Documents,
    Image,
    ImageLayer,
    ImageStatus,
    Registry,
    SBOMSpec,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.layers.image import Inventory, merge
from trimtab.systems.images.layers.problems import LayerError
from trimtab.systems.images.messages import GenerateSBOM
from trimtab.systems.images.pins import FINALIZER, documents_owner
from trimtab.systems.images.reach import client_of
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.errors import RateLimited, RegistryError, Unavailable, Untrusted
from trimtab.systems.images.sbom import cyclonedx, spdx
from trimtab.systems.images.worker import documents
from trimtab.systems.images.worker.handling import Tools
from trimtab.systems.images.worker.layers import Gathered, Layers
from trimtab.systems.images.worker.patience import Patience
from trimtab.systems.images.worker.statuses import change_status, find

GENERATED = "SBOMGenerated"
MANY = 2000
"""Packages whose documents are written in a process of their own."""
READ_AT_ONCE = 3
MOST_WARNINGS, LONGEST = 20, 512


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """The SBOM cannot be made, whatever the registry says."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class SbomHandler:
    """Fulfils `Handler[GenerateSBOM]`. One in a process: it bounds what is read at once."""

    def __init__(self, tools: Tools, *, chance: Chance | None = None) -> None:
        self._tools = tools
        self._layers = Layers(tools.scratch)
        self._patience = Patience(chance)
        self._reading = asyncio.Semaphore(READ_AT_ONCE)

    async def handle(self, message: GenerateSBOM) -> None:
        image = await find(self._tools.client, Image, message.image, message.namespace, message.image_uid)
        registry = await find(self._tools.client, Registry, message.registry, message.namespace, message.registry_uid)
        if image is None or registry is None or is_deleting(image):
            return
        try:
            await self._complete(image, registry)
        except (RateLimited, Unavailable) as error:
            if isinstance(error, Untrusted):
                await self._fail(image, message.run, error.reason, str(error))
                return
            wish = error.retry_after if isinstance(error, RateLimited) else None
            raise self._patience.later(uid_of(image), error.reason, str(error), wish) from None
        except (RegistryError, Refused) as error:
            await self._fail(image, message.run, error.reason, str(error))
        except LayerError as error:
            await self._fail(image, message.run, type(error).__name__, str(error))
        except BlobTooLarge as error:
            await self._fail(image, message.run, "DocumentTooLarge", str(error))
        else:
            self._patience.forget(uid_of(image))
            await self._tell(image, Attempt(run=message.run), ok=True, reason=GENERATED)

    async def give_up(self, message: GenerateSBOM, why: str) -> None:
        image = await find(self._tools.client, Image, message.image, message.namespace, message.image_uid)
        if image is None:
            return
        sbom = await find(self._tools.client, SBOM, image.name, image.namespace)
        if sbom is not None and owned_by(sbom, image) and await self._pinned(sbom):
            await self._tell(image, Attempt(run=message.run), ok=True, reason=GENERATED)
            return  # only the last word was missing
        reason, last = self._patience.last(uid_of(image))
        await self._fail(image, message.run, reason or "GivenUp", f"{last} ({why})" if last else why)

    async def _complete(self, image: Image, registry: Registry) -> None:
        """The SBOM is there, and its blobs stay as long as it does."""
        sbom = await self._existing(image)
        if sbom is not None and await self._pinned(sbom):
            return
        spec = await self._made(image, registry)
        sbom = await self._written(image, registry, spec, sbom)
        if not await self._pinned(sbom):
            raise self._patience.later(uid_of(image), "SBOMGone", "the SBOM or its documents went while it was made")

    async def _existing(self, image: Image) -> SBOM | None:
        """The SBOM of this very Image."""
        sbom = await find(self._tools.client, SBOM, image.name, image.namespace)
        if sbom is None:
            return None
        if is_deleting(sbom) or (controller_of(sbom) is not None and not owned_by(sbom, image)):
            raise self._patience.later(uid_of(image), "SBOMGoing", "an SBOM of this name is still on its way out")
        if not owned_by(sbom, image):
            raise Refused("NameTaken", f"the SBOM {sbom.name} exists and belongs to no Image: delete it")
        return sbom

    async def _made(self, image: Image, registry: Registry) -> SBOMSpec:
        """The documents are put. Few images are read at once, and small documents of many are put at once: what costs
        memory is bounded, and what only waits for a disk is not."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._reading)
            inventory = await self._inventory(image, registry)
            content = documents.encode(inventory)
            subject, created = documents.subject_of(image.spec), documents.created_of(image)
            if len(inventory.packages) > MANY:
                written = await self._tools.workers.run(documents.write, content, subject, created)
            else:
                written = await in_thread(documents.write, content, subject, created)
                await stack.aclose()
            put = self._tools.blobs.put
            names = await asyncio.gather(
                put(written.spdx, media_type=spdx.MEDIA_TYPE),
                put(written.cyclonedx, media_type=cyclonedx.MEDIA_TYPE),
                put(content, media_type=documents.INVENTORY_TYPE, max_bytes=documents.LARGEST_INVENTORY),
            )
        distro = f"{inventory.distro.id} {inventory.distro.version}".strip()[:128]
        return SBOMSpec(
            **documents.metadata_of(image.spec),
            documents=Documents(spdx=names[0], cyclonedx=names[1], inventory=names[2]),
            distro=distro or UNSET,
            packages=dict(sorted(Counter(package.type for package in inventory.packages).items())) or UNSET,
            package_count=len(inventory.packages),
            warnings=tuple(_short(warning) for warning in inventory.warnings[:MOST_WARNINGS]),
        )

    async def _inventory(self, image: Image, registry: Registry) -> Inventory:
        source = _Source(self._tools, registry, image.spec.repository)
        gathered = Gathered()
        foreign = [layer.digest for layer in image.spec.layers if layer.foreign]
        for layer in image.spec.layers:
            if not layer.foreign:
                gathered.add(await self._layers.result(layer, source.pieces))
        inventory = await in_thread(merge, gathered.results)
        unread = tuple(f"layer {digest}: it is kept elsewhere, and was not read" for digest in foreign)
        return msgspec.structs.replace(inventory, warnings=unread + inventory.warnings) if unread else inventory

    async def _written(self, image: Image, registry: Registry, spec: SBOMSpec, before: SBOM | None) -> SBOM:
        """The SBOM with this spec; as somebody else made it meanwhile; or as it was, with documents that are there."""
        if before is not None:
            return before if before.spec == spec else await self._tools.client.patch(before, before.replace(spec=spec))
        metadata = ObjectMeta(
            name=image.name,
            namespace=image.namespace,
            labels={REGISTRY_LABEL: uid_of(registry)},
            finalizers=(FINALIZER,),
        )
        try:
            return await self._tools.client.create(own(SBOM(metadata=metadata, spec=spec), image))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        existing = await self._existing(image)
        if existing is None:
            raise self._patience.later(uid_of(image), "SBOMGone", "the SBOM went while it was made")
        return existing

    async def _pinned(self, sbom: SBOM) -> bool:
        """Whether its blobs are held for it now. Not when some are gone, or when it is: whoever cleaned up after it may
        have been before us."""
        named, owner = sbom.spec.documents, documents_owner(sbom)
        try:
            digests = (named.spdx, named.cyclonedx, named.inventory)
            await asyncio.gather(*(self._tools.blobs.pin(Digest(digest), owner) for digest in digests))
        except BlobMissing:
            return False
        current = await find(self._tools.client, SBOM, sbom.name, sbom.namespace, uid_of(sbom))
        if current is None or is_deleting(current):
            await self._tools.blobs.unpin(owner)
            return False
        return True

    async def _fail(self, image: Image, run: str, reason: str, why: str) -> None:
        self._patience.forget(uid_of(image))
        await self._tell(image, Attempt(run=run, reason=reason, message=_short(why)), ok=False, reason=reason, why=why)

    async def _tell(self, image: Image, attempt: Attempt, *, ok: bool, reason: str, why: str = "") -> None:
        def status(image: Image) -> ImageStatus:
            before = image.status or ImageStatus()
            generation = image.metadata.generation
            conditions = ready(before.conditions, self._tools.clock, generation, ok, reason, why)
            return before.replace(conditions=conditions, attempt=attempt)

        await change_status(self._tools.client, image, status)


class _Source:
    """The registry of one image. It is reached when the first layer must be pulled, and not before."""

    def __init__(self, tools: Tools, registry: Registry, repository: str) -> None:
        self._tools, self._registry, self._repository = tools, registry, repository
        self._client: RegistryClient | None = None

    async def pieces(self, layer: ImageLayer) -> AsyncGenerator[bytes, None]:
        if self._client is None:
            self._client = await client_of(self._registry, self._tools.connections, self._tools.credentials)
        async with aclosing(self._client.blob(self._repository, layer.digest, layer.size)) as pieces:
            async for piece in pieces:
                yield piece


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

"""From a digest to the images behind it: the manifests of an index, their configs, their layers.

Contents are named by their digest, so what was read once in a run is not read again, whichever tag or repository comes to
it; who comes while it is being read waits. A failure is not kept: another repository may be readable.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Container

import msgspec

from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.configs import layers_of, parse_config
from trimtab.systems.images.registry.errors import BadAnswer
from trimtab.systems.images.registry.manifests import (
    BadManifest,
    Document,
    ImageManifest,
    Index,
    Left,
    NoImage,
    Platform,
    Why,
    parse,
    unfold,
)
from trimtab.systems.images.registry.outcomes import FoundImage

MOST_KEPT = 4096


class Resolved(msgspec.Struct, frozen=True):
    """What is behind a digest. `no_image` says what it is otherwise."""

    images: tuple[FoundImage, ...] = ()
    left: tuple[Left, ...] = ()
    no_image: str = ""


class Resolver:
    """For one run: it remembers what it read."""

    def __init__(self, client: RegistryClient, platforms: tuple[Platform, ...], known: Container[str]) -> None:
        self._client, self._platforms, self._known = client, platforms, known
        self._kept: OrderedDict[str, asyncio.Future[Resolved]] = OrderedDict()

    async def resolve(self, repository: str, digest: str) -> Resolved:
        """RegistryError when it cannot be read."""
        while (kept := self._kept.get(digest)) is not None:
            await asyncio.wait((kept,))
            if not kept.cancelled() and kept.exception() is None:
                return kept.result()
        mine = self._kept[digest] = asyncio.get_running_loop().create_future()
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        try:
            resolved = await self._read(repository, digest)
        except BaseException:
            mine.cancel()
            if self._kept.get(digest) is mine:
                del self._kept[digest]
            raise
        mine.set_result(resolved)
        return resolved

    async def _read(self, repository: str, digest: str) -> Resolved:
        document = await self._document(repository, digest)
        if isinstance(document, NoImage):
            return Resolved(no_image=document.why)
        if isinstance(document, ImageManifest):
            image = await self._image(repository, digest, document, None, "")
            return _selected([image], (), self._platforms)
        return await self._index(repository, digest, document)

    async def _index(self, repository: str, digest: str, index: Index) -> Resolved:
        documents: dict[str, Document] = {digest: index}
        while (unfolded := unfold(digest, documents, self._platforms)).missing:
            for missing in unfolded.missing:
                documents[missing] = await self._document(repository, missing)
        images: list[FoundImage] = []
        left = list(unfolded.left)
        for entry in unfolded.images:
            if entry.platform is not None and entry.digest in self._known:
                images.append(FoundImage(digest=entry.digest, platform=entry.platform, index_digest=digest))
                continue
            document = documents.get(entry.digest) or await self._document(repository, entry.digest)
            if isinstance(document, ImageManifest):
                images.append(await self._image(repository, entry.digest, document, entry.platform, digest))
            else:
                why = document.why if isinstance(document, NoImage) else "it is an index and said to be an image"
                left.append(Left(entry.digest, Why.NOT_AN_IMAGE, why))
        return _selected(images, tuple(left), self._platforms)

    async def _document(self, repository: str, digest: str) -> Document:
        manifest = await self._client.manifest(repository, digest)
        try:
            return parse(manifest.content, manifest.media_type)
        except BadManifest as bad:
            raise BadAnswer(f"manifest of {repository}@{digest}", str(bad)) from None

    async def _image(
        self, repository: str, digest: str, manifest: ImageManifest, platform: Platform | None, index: str
    ) -> FoundImage:
        content = await self._client.config(repository, manifest.config.digest, manifest.config.size)
        try:
            config = parse_config(content)
        except BadManifest as bad:
            raise BadAnswer(f"config of {repository}@{digest}", str(bad)) from None
        return FoundImage(
            digest=digest,
            platform=platform or config.platform,
            index_digest=index,
            layers=layers_of(manifest, config),
            size=sum(layer.size for layer in manifest.layers),
            created=config.created,
            labels=config.labels,
        )


def _selected(images: list[FoundImage], left: tuple[Left, ...], wanted: tuple[Platform, ...]) -> Resolved:
    """Without those whose config tells of a platform that is not wanted. One that tells of none is kept."""
    kept = [image for image in images if image.platform is None or image.platform.within(wanted)]
    others = tuple(Left(image.digest, Why.PLATFORM, str(image.platform)) for image in images if image not in kept)
    return Resolved(tuple(kept), left + others)

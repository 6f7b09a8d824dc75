"""A catalogue: every tag of a registry that was found, and the images behind it. A blob, named by the registry and the job.

A worker makes it from its listing and from the catalogue before (`cataloguing`), so that it is whole even where a tag was
not asked for again. What it knows of images holds for the platforms that were selected: it is of no use for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET

from trimtab.systems.images.kinds.job import MOST_CHANGES, Diff, TagChange
from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.outcomes import KnownTag
from trimtab.systems.images.registry.references import image_name

MAX_BYTES = 256 << 20
MEDIA_TYPE = "application/vnd.trimtab.catalog.v1+msgpack"


class Tag(msgspec.Struct, frozen=True, array_like=True):
    """What a tag points to, and the manifests of the images behind it. No image is a tag of something else."""

    digest: str
    etag: str = ""
    images: tuple[str, ...] = ()


class Pictured(msgspec.Struct, frozen=True, array_like=True):
    """One image, by the digest of its manifest."""

    platform: str = ""
    layers: tuple[Layer, ...] = ()
    size: int = 0
    created: str = ""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """`members` are the tags of this run: those that were found now. `gone` are those that the registry has no more."""

    tags: dict[str, dict[str, Tag]] = {}  # repository, tag
    images: dict[str, Pictured] = {}
    members: dict[str, list[str]] = {}
    gone: dict[str, list[str]] = {}
    platforms: tuple[Platform, ...] = ()  # that were selected


class ImageRef(msgspec.Struct, frozen=True):
    """One image behind one tag: what becomes an Image. `index_digest` is empty where the tag points to the image itself."""

    repository: str
    tag: str
    digest: str
    index_digest: str
    pictured: Pictured

    def name(self, registry: str) -> str:
        """Of its Image, in the Registry of this name."""
        return image_name(registry, self.repository, self.tag, self.digest)


class Unreadable(ValueError):  # noqa: N818 - it reads as what happened
    """Bytes that are no catalogue, or one of another version."""


def encode(catalogue: Catalogue) -> bytes:
    """Images share most of their layers, so each layer is written once and images refer to it by its place."""
    places: dict[Layer, int] = {}
    images = {
        digest: (
            image.platform,
            [places.setdefault(layer, len(places)) for layer in image.layers],
            image.size,
            image.created,
        )
        for digest, image in catalogue.images.items()
    }
    written = _Written(
        tags=catalogue.tags,
        images=images,
        layers=[msgspec.structs.astuple(layer) for layer in places],
        members=catalogue.members,
        gone=catalogue.gone,
        platforms=catalogue.platforms,
    )
    return msgspec.msgpack.encode(written)


def decode(content: bytes) -> Catalogue:
    """Unreadable when it is none."""
    try:
        written = msgspec.msgpack.decode(content, type=_Written)
        same: dict[str, str] = {}
        layers = [
            Layer(same.setdefault(media_type, media_type), digest, size, diff_id, command, foreign)
            for media_type, digest, size, diff_id, command, foreign in written.layers
        ]
        images = {
            digest: Pictured(platform, tuple(layers[place] for place in places), size, created)
            for digest, (platform, places, size, created) in written.images.items()
        }
    except (msgspec.DecodeError, IndexError) as error:
        raise Unreadable(f"this is no catalogue: {error}") from None
    return Catalogue(
        tags=written.tags, images=images, members=written.members, gone=written.gone, platforms=written.platforms
    )


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    tags: dict[str, dict[str, Tag]]
    images: dict[str, tuple[str, list[Annotated[int, msgspec.Meta(ge=0)]], int, str]]
    layers: list[tuple[str, str, int, str, str, bool]]
    members: dict[str, list[str]]
    gone: dict[str, list[str]]
    platforms: tuple[Platform, ...]


def image_refs(catalogue: Catalogue) -> Iterator[ImageRef]:
    """Every image of every tag, also of those that this run did not see."""
    for repository, tags in catalogue.tags.items():
        for tag in tags:
            yield from _refs(catalogue, repository, tag)


def member_refs(catalogue: Catalogue) -> Iterator[ImageRef]:
    """Those of this run."""
    for repository, tags in catalogue.members.items():
        for tag in tags:
            yield from _refs(catalogue, repository, tag)


def members(catalogue: Catalogue, registry: str) -> tuple[str, ...]:
    """The names of this run's Images, each once."""
    return tuple(dict.fromkeys(ref.name(registry) for ref in member_refs(catalogue)))


def known(previous: Catalogue | None) -> dict[tuple[str, str], KnownTag]:
    """What a listing need not ask for again, by repository and tag."""
    if previous is None:
        return {}
    return {
        (repository, name): KnownTag(tag.digest, tag.etag)
        for repository, tags in previous.tags.items()
        for name, tag in tags.items()
        if _whole(previous, tag)
    }


def known_digests(previous: Catalogue | None) -> frozenset[str]:
    """Those of tags and of images that are known, whichever tag points to them now."""
    if previous is None:
        return frozenset()
    of_tags = (tag.digest for tags in previous.tags.values() for tag in tags.values() if _whole(previous, tag))
    return frozenset(previous.images) | frozenset(of_tags)


def diff(previous: Catalogue, new: Catalogue) -> Diff:
    """What changed from one to the other. Only tags of images count."""
    added, moved, removed = [], [], []
    for repository in {*previous.tags, *new.tags}:
        before, after = _digests(previous, repository), _digests(new, repository)
        added += [(repository, tag) for tag in after.keys() - before.keys()]
        removed += [(repository, tag) for tag in before.keys() - after.keys()]
        moved += [(repository, tag) for tag in after.keys() & before.keys() if after[tag] != before[tag]]
    changes = sorted([*added, *moved, *removed])[:MOST_CHANGES]
    return Diff(
        added=len(added),
        moved=len(moved),
        removed=len(removed),
        changes=tuple(_change(previous, new, repository, tag) for repository, tag in changes),
    )


def _whole(catalogue: Catalogue, tag: Tag) -> bool:
    return all(digest in catalogue.images for digest in tag.images)


def _refs(catalogue: Catalogue, repository: str, name: str) -> Iterator[ImageRef]:
    tag = catalogue.tags.get(repository, {}).get(name)
    for digest in tag.images if tag is not None else ():
        index = tag.digest if tag is not None and tag.digest != digest else ""
        yield ImageRef(repository, name, digest, index, catalogue.images.get(digest, Pictured()))


def _digests(catalogue: Catalogue, repository: str) -> dict[str, str]:
    return {name: tag.digest for name, tag in catalogue.tags.get(repository, {}).items() if tag.images}


def _change(previous: Catalogue, new: Catalogue, repository: str, tag: str) -> TagChange:
    before, after = _digest_of(previous, repository, tag), _digest_of(new, repository, tag)
    return TagChange(
        change="moved" if before and after else "added" if after else "removed",
        repository=repository,
        tag=tag,
        digest=after or UNSET,
        before=before or UNSET,
    )


def _digest_of(catalogue: Catalogue, repository: str, tag: str) -> str:
    found = catalogue.tags.get(repository, {}).get(tag)
    return found.digest if found is not None and found.images else ""

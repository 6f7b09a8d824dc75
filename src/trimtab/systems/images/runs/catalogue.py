"""A catalogue: every tag of a registry that was found, and the images behind it. A blob, named by the registry and the job.

The worker makes it from its listing and from the catalogue before, so that it is whole even where a tag was not asked for
again. What a listing did not learn stays as it was.
"""

from __future__ import annotations

import msgspec

from trimtab.systems.images.registry.configs import Layer

MAX_BYTES = 256 << 20
MEDIA_TYPE = "application/vnd.trimtab.catalog+msgpack"


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


def encode(catalogue: Catalogue) -> bytes:
    return msgspec.msgpack.encode(catalogue)


def decode(content: bytes) -> Catalogue:
    return msgspec.msgpack.decode(content, type=Catalogue)

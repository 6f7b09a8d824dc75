"""Which Image is meant: by its name, or as people call it, `repository:tag`.

A tag may stand for several Images: one a platform, and one in each registry that has it; and where it moved, what it
pointed to is an Image still, until it goes. Of those the ones that the tag points to now are meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.cli.access import Session
from trimtab.cli.codes import NOT_FOUND, USAGE, Problem
from trimtab.client.protocol import Query
from trimtab.model.errors import StatusError
from trimtab.systems.images.kinds import Image

LISTED = 8
"""How many of several are named."""


class Wanted(msgspec.Struct, frozen=True):
    """What a person wrote."""

    text: str
    platform: str = ""
    registry: str = ""


async def image_of(server: Session, wanted: Wanted) -> Image:
    """The one that is meant. A Problem when there is none, or there are several."""
    called = _called(wanted.text)
    if called is None:
        return await _by_name(server, wanted.text)
    there = await _by_fields(server, called)
    if not there:
        raise Problem(
            f"there is no image {wanted.text} in namespace {server.namespace}: `trimtab get images` lists those that are,"
            " and -n looks elsewhere",
            NOT_FOUND,
        )
    return _chosen(there, wanted)


class _Called(msgspec.Struct, frozen=True):
    """`repository:tag`, `repository@digest`, each perhaps with the host of its registry in front."""

    repository: str
    field: str
    value: str

    def without_host(self) -> tuple[str, _Called] | None:
        host, slash, rest = self.repository.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            return None
        return host, msgspec.structs.replace(self, repository=rest)


def _called(text: str) -> _Called | None:
    """None for what can only be the name of an Image."""
    repository, at, digest = text.partition("@")
    if at:
        return _Called(repository, "spec.digest", digest)
    repository, colon, tag = text.rpartition(":")
    if colon and "/" not in tag:
        return _Called(repository, "spec.tag", tag)
    if "/" in text:
        raise Problem(f"{text} names no tag: write {text}:TAG", USAGE)
    return None


async def _by_name(server: Session, name: str) -> Image:
    try:
        return await server.client.get(Image, name, server.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        raise Problem(
            f"{error.message}; `trimtab get images` lists those that are, and {name}:TAG names a tag", NOT_FOUND
        ) from None


async def _by_fields(server: Session, called: _Called) -> list[Image]:
    found = await _listed(server, called)
    if found or (apart := called.without_host()) is None:
        return found
    host, rest = apart
    return [image for image in await _listed(server, rest) if image.spec.registry_uri == host]


async def _listed(server: Session, called: _Called) -> list[Image]:
    fields = f"spec.repository={called.repository},{called.field}={called.value}"
    listed = (await server.client.list(Image, Query(namespace=server.namespace, fields=fields))).items
    return [image for image in listed if isinstance(image, Image)]


def _chosen(there: Sequence[Image], wanted: Wanted) -> Image:
    left = [image for image in there if wanted.registry in ("", image.spec.registry)]
    left = _of_platform(left, wanted.platform)
    if not left:
        raise Problem(f"{wanted.text} is there, but not so: there is {_several(there)}", NOT_FOUND)
    left = [image for image in left if not (image.status and image.status.missing_since)] or left
    if len(left) > 1:
        raise Problem(f"{wanted.text} is several images, {_narrower(left)}: {_several(left)}", USAGE)
    return left[0]


def _of_platform(images: Sequence[Image], platform: str) -> list[Image]:
    """`linux/arm64` is any variant of it, unless there is one without."""
    exactly = [image for image in images if platform in ("", image.spec.platform)]
    return exactly or [image for image in images if f"{image.spec.platform or ''}/".startswith(f"{platform}/")]


def _narrower(images: Sequence[Image]) -> str:
    """The option that tells them apart."""
    if len({image.spec.platform or "" for image in images}) > 1:
        return "choose with --platform"
    if len({image.spec.registry for image in images}) > 1:
        return "choose with --registry"
    return "choose by name"


def _several(images: Sequence[Image]) -> str:
    named = [
        f"{image.spec.platform or 'no platform'} of registry {image.spec.registry} ({image.name})" for image in images
    ]
    more = f" and {len(named) - LISTED} more" if len(named) > LISTED else ""
    return ", ".join(sorted(named)[:LISTED]) + more

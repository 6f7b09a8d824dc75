"""What an Image should be, by a catalogue, and what it says of itself when its tag is gone. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time, parse_time
from trimtab.systems.images.kinds.image import Image, ImageLayer, ImageSpec, ImageStatus
from trimtab.systems.images.kinds.registry import Registry
from trimtab.systems.images.registry.references import endpoint

if TYPE_CHECKING:
    from trimtab.systems.images.runs.catalogue import Catalogue, ImageRef

MOST_LAYERS = 512
LONGEST_COMMAND = 256


class Wanted(msgspec.Struct, frozen=True):
    """An Image that should be. What it is made of is not always known; what is there then stays."""

    name: str
    spec: ImageSpec
    is_pictured: bool


def wanted(registry: Registry, catalogue: Catalogue) -> Iterator[Wanted]:
    """Every Image that the Registry should have. BadReference when its uri is none."""
    from trimtab.systems.images.runs.catalogue import image_refs  # loads an HTTP client

    uri = endpoint(registry.spec.uri, plain_http=registry.spec.plain_http).name
    described: dict[str, ImageSpec] = {}
    for ref in image_refs(catalogue):
        if ref.digest not in described:
            described[ref.digest] = _described(registry.name, uri, ref)
        spec = described[ref.digest].replace(
            repository=ref.repository, tag=ref.tag, index_digest=ref.index_digest or UNSET
        )
        yield Wanted(ref.name(registry.name), spec, ref.digest in catalogue.images)


def _described(registry: str, uri: str, ref: ImageRef) -> ImageSpec:
    """All that does not depend on the tag: many often point to one image."""
    pictured = ref.pictured
    layers = tuple(
        ImageLayer(
            digest=layer.digest,
            diff_id=layer.diff_id or UNSET,
            size=layer.size,
            media_type=layer.media_type[:255] or UNSET,
            command=layer.command[:LONGEST_COMMAND] or UNSET,
            foreign=layer.foreign,
        )
        for layer in pictured.layers[:MOST_LAYERS]
    )
    return ImageSpec(
        registry=registry,
        registry_uri=uri,
        repository="",
        tag="",
        digest=ref.digest,
        platform=pictured.platform[:128] or UNSET,
        layers=layers,
        size=pictured.size or UNSET,
        created=pictured.created[:64] or UNSET,
    )


def corrected(image: Image, meant: Wanted) -> Image:
    """The Image as it should be; itself when it is."""
    if missing_since(image) is not None:
        image = image.replace(status=_status(image).replace(missing_since=UNSET))
    spec = meant.spec
    if not meant.is_pictured:
        held = image.spec
        spec = spec.replace(layers=held.layers, size=held.size, created=held.created, platform=held.platform)
    return image if image.spec == spec else image.replace(spec=spec)


def marked(image: Image, now: datetime) -> Image:
    """The Image when its tag is gone; itself when it is marked already."""
    if missing_since(image) is not None:
        return image
    return image.replace(status=_status(image).replace(missing_since=format_time(now)))


def is_due(image: Image, before: datetime) -> bool:
    """Whether it has been missing since before that."""
    since = missing_since(image)
    return since is not None and since < before


def missing_since(image: Image) -> datetime | None:
    """Since when its tag is gone; None when it is not."""
    since = _status(image).missing_since
    return parse_time(since) if since else None


def _status(image: Image) -> ImageStatus:
    return image.status or ImageStatus()

"""The documents of an SBOM: SPDX, CycloneDX, and the inventory that scans read. Pure, and the same bytes every time.

So the same image gives the same blobs, whoever makes them, and what is made twice is kept once.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UnsetType

from trimtab import __version__
from trimtab.model.clock import parse_time
from trimtab.systems.images.kinds import Image, ImageMetadata
from trimtab.systems.images.layers.image import Inventory
from trimtab.systems.images.sbom import cyclonedx, spdx
from trimtab.systems.images.sbom.contents import contents_of
from trimtab.systems.images.sbom.subject import Subject

INVENTORY_TYPE = "application/vnd.trimtab.inventory+msgpack"
LARGEST_INVENTORY = 64 << 20


class Documents(msgspec.Struct, frozen=True):
    spdx: bytes
    cyclonedx: bytes


def encode(inventory: Inventory) -> bytes:
    return msgspec.msgpack.encode(inventory)


def decode(content: bytes) -> Inventory:
    """msgspec.DecodeError."""
    return _DECODER.decode(content)


def subject_of(spec: ImageMetadata) -> Subject:
    return Subject(
        repository=f"{spec.registry_uri}/{spec.repository}",
        digest=spec.digest,
        tag=spec.tag,
        platform=_text(spec.platform),
    )


def metadata_of(spec: ImageMetadata) -> dict[str, Any]:
    """Which image, for the specs of what is made from it."""
    return {name: getattr(spec, name) for name in ImageMetadata.__struct_fields__}


def created_of(image: Image) -> datetime:
    """When the image was made; where it does not say so, when we saw it first."""
    try:
        return parse_time(_text(image.spec.created))
    except ValueError:
        return image.metadata.creation_timestamp or datetime.fromtimestamp(0, UTC)


def write(inventory: bytes, subject: Subject, created: datetime) -> Documents:
    """Both documents of an encoded inventory. For a thread, or for a process where there are many packages."""
    contents = contents_of(decode(inventory))
    namespace = _namespace(subject, inventory)
    return Documents(
        spdx.write(subject, contents, created=created, namespace=namespace, version=__version__),
        cyclonedx.write(subject, contents, created=created, namespace=namespace, version=__version__),
    )


def _namespace(subject: Subject, inventory: bytes) -> str:
    """A URI that no other document has (SPDX 2.3, 6.5): another inventory of the same image has another."""
    content = hashlib.sha256(inventory).hexdigest()[:32]
    return f"https://trimtab.dev/spdx/{quote(f'{subject.name}@{subject.digest}', safe='/:@')}/{content}"


def _text(value: str | UnsetType) -> str:
    return "" if isinstance(value, UnsetType) else value


_DECODER = msgspec.msgpack.Decoder(Inventory)

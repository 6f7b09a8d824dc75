"""What a manifest says: the layers of an image, or the images of an index. Pure.

Both families are read, OCI and Docker, by what the document is rather than by what a header calls it. An index may hold
anything: other indexes, attestations, artifacts that are no images, entries without a platform, the same digest twice.
`unfold` takes it apart from the documents that are known so far and says which are still missing, so that whoever has
them need know no rules. Depth and number are bounded, and an index within itself is not entered again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.systems.images.registry.references import is_digest

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
ACCEPT = ", ".join((OCI_INDEX, DOCKER_LIST, OCI_MANIFEST, DOCKER_MANIFEST))
INDEXES = frozenset({OCI_INDEX, DOCKER_LIST})
IMAGES = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})
IMAGE_CONFIGS = frozenset(
    {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)
DEEPEST = 4
MOST_ENTRIES = 512
MOST_LAYERS = 512
LARGEST_SIZE = 1 << 50


class Platform(msgspec.Struct, frozen=True, order=True):
    """What an image runs on. As text: `linux/arm/v7`."""

    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))

    @property
    def known(self) -> bool:
        return bool(self.os and self.architecture)

    def within(self, wanted: Iterable[Platform]) -> bool:
        """Whether one of the wanted is it; what a wanted one leaves empty may be anything. None wanted are all."""
        wanted = tuple(wanted)
        return not wanted or any(
            each.os in ("", self.os)
            and each.architecture in ("", self.architecture)
            and each.variant in ("", self.variant)
            for each in wanted
        )


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to content."""

    media_type: str
    digest: str
    size: int
    platform: Platform | None = None
    annotations: Mapping[str, str] = {}
    artifact_type: str = ""
    foreign: bool = False  # kept elsewhere, by urls: not fetched


class ImageManifest(msgspec.Struct, frozen=True):
    """The parts of one image."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


class Index(msgspec.Struct, frozen=True):
    """Several, usually one for each platform."""

    entries: tuple[Descriptor, ...]


class NoImage(msgspec.Struct, frozen=True):
    """Something else that a registry keeps: a chart, a signature, an attestation, an image of 2016."""

    why: str


Document = ImageManifest | Index | NoImage


class BadManifest(ValueError):  # noqa: N818 - it reads as what happened
    """It is no manifest."""


class Why(enum.Enum):
    """For what reason an entry of an index is not among its images."""

    ATTESTATION = "Attestation"
    NOT_AN_IMAGE = "NotAnImage"
    PLATFORM = "PlatformNotSelected"
    CYCLE = "Cycle"
    TOO_DEEP = "TooDeep"
    TOO_MANY = "TooManyEntries"
    REPEATED = "Repeated"


class Left(msgspec.Struct, frozen=True):
    """An entry that is no image of ours, and why."""

    digest: str
    why: Why
    detail: str = ""


class PlatformManifest(msgspec.Struct, frozen=True):
    """One image behind a tag. `platform` is None where the index does not say it and only the config can."""

    digest: str
    platform: Platform | None
    size: int


class Unfolded(msgspec.Struct, frozen=True):
    """What an index comes to; complete when nothing is `missing`."""

    images: tuple[PlatformManifest, ...]
    missing: tuple[str, ...]
    left: tuple[Left, ...]


def parse(content: bytes, media_type: str = "") -> Document:
    """What a manifest's bytes say. `media_type` is the registry's word for it, used where the document has none."""
    try:
        raw = msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise BadManifest("the manifest is no JSON object") from None
    said = raw.get("mediaType") or media_type
    if not isinstance(said, str):
        raise BadManifest("its media type is none")
    if raw.get("schemaVersion") == 1:
        return NoImage("it is a manifest of schema 1, which holds no digests that could be verified")
    if said in INDEXES or (said not in IMAGES and "manifests" in raw and "layers" not in raw):
        return Index(_descriptors(raw.get("manifests"), "manifests", MOST_ENTRIES * 4))
    if said in IMAGES or "config" in raw:
        return _image(raw)
    return NoImage(f"it is of type {_shown(said) or 'unknown'}")


def unfold(root: str, documents: Mapping[str, Document], wanted: Iterable[Platform] = ()) -> Unfolded:
    """The images of the index `root`, each once, as far as its `documents` are known by their digest.

    Of an image that an index refers to only the entry is looked at; whether it is an image shows in its document, if that
    is known.
    """
    walk = _Walk(documents, tuple(wanted))
    index = documents.get(root)
    if not isinstance(index, Index):
        return Unfolded((), (root,) if index is None else (), ())
    walk.enter(root, index, (root,))
    return Unfolded(tuple(walk.images.values()), tuple(dict.fromkeys(walk.missing)), tuple(walk.left))


class _Walk:
    def __init__(self, documents: Mapping[str, Document], wanted: tuple[Platform, ...]) -> None:
        self._documents, self._wanted = documents, wanted
        self._entries = 0
        self.images: dict[str, PlatformManifest] = {}
        self.missing: list[str] = []
        self.left: list[Left] = []

    def enter(self, digest: str, index: Index, path: tuple[str, ...]) -> None:
        for entry in index.entries:
            self._entries += 1
            if self._entries > MOST_ENTRIES:
                self.left.append(Left(digest, Why.TOO_MANY, f"only its first {MOST_ENTRIES} entries are read"))
                return
            self._one(entry, path)

    def _one(self, entry: Descriptor, path: tuple[str, ...]) -> None:
        document = self._documents.get(entry.digest)
        if _is_attestation(entry):
            self.left.append(Left(entry.digest, Why.ATTESTATION))
        elif entry.media_type in INDEXES or isinstance(document, Index):
            self._nested(entry, document, path)
        elif isinstance(document, NoImage):
            self.left.append(Left(entry.digest, Why.NOT_AN_IMAGE, document.why))
        elif entry.media_type not in IMAGES and not isinstance(document, ImageManifest):
            self.left.append(Left(entry.digest, Why.NOT_AN_IMAGE, f"it is of type {_shown(entry.media_type)}"))
        elif entry.platform is not None and not entry.platform.within(self._wanted):
            self.left.append(Left(entry.digest, Why.PLATFORM, str(entry.platform)))
        elif entry.digest in self.images:
            self.left.append(Left(entry.digest, Why.REPEATED, str(entry.platform or "")))
        else:
            self.images[entry.digest] = PlatformManifest(entry.digest, entry.platform, entry.size)

    def _nested(self, entry: Descriptor, document: Document | None, path: tuple[str, ...]) -> None:
        if entry.digest in path:
            self.left.append(Left(entry.digest, Why.CYCLE, "it is within itself"))
        elif len(path) >= DEEPEST:
            self.left.append(Left(entry.digest, Why.TOO_DEEP, f"indexes are read {DEEPEST} deep"))
        elif document is None:
            self.missing.append(entry.digest)
        elif isinstance(document, Index):
            self.enter(entry.digest, document, (*path, entry.digest))
        else:
            self.left.append(Left(entry.digest, Why.NOT_AN_IMAGE, "it is said to be an index and is none"))


def _image(raw: Mapping[str, Any]) -> Document:
    config = _descriptor(raw.get("config"), "config")
    if config.media_type not in IMAGE_CONFIGS:
        kind = _shown(str(raw.get("artifactType") or "")) or _shown(config.media_type) or "unknown"
        return NoImage(f"it is an artifact of type {kind}")
    layers = _descriptors(raw.get("layers"), "layers", MOST_LAYERS)
    if layers and not any(each.media_type.startswith(_LAYERS) for each in layers):
        return NoImage(f"its content is of type {_shown(layers[0].media_type) or 'unknown'}")  # as signatures are kept
    return ImageManifest(config, layers)


def _is_attestation(entry: Descriptor) -> bool:
    """Marked as one, and for no platform. The mark alone would hide an image that runtimes do find by its platform."""
    return entry.platform is None and "vnd.docker.reference.type" in entry.annotations


def _descriptors(raw: Any, where: str, most: int) -> tuple[Descriptor, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) > most:
        raise BadManifest(f"its {where} are no list of at most {most}")
    return tuple(_descriptor(each, where) for each in raw)


def _descriptor(raw: Any, where: str) -> Descriptor:
    if not isinstance(raw, dict):
        raise BadManifest(f"its {where} hold something else than descriptors")
    media_type, digest, size = raw.get("mediaType", ""), raw.get("digest"), raw.get("size", 0)
    if not isinstance(digest, str) or not is_digest(digest):
        raise BadManifest(f"its {where} hold a digest that cannot be verified")
    if not isinstance(media_type, str) or len(media_type) > 255:
        raise BadManifest(f"its {where} hold a media type that is none")
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= LARGEST_SIZE:
        raise BadManifest(f"its {where} hold a size that is none")
    annotations = raw.get("annotations")
    return Descriptor(
        media_type=media_type,
        digest=digest,
        size=size,
        platform=platform_of(raw["platform"]) if isinstance(raw.get("platform"), dict) else None,
        annotations={str(name): str(value) for name, value in annotations.items()}
        if isinstance(annotations, dict)
        else {},
        artifact_type=_shown(str(raw.get("artifactType") or "")),
        foreign=bool(raw.get("urls")),
    )


def platform_of(raw: Mapping[str, Any]) -> Platform | None:
    """Of an entry, or of a config, which have the same members; None where it is not said, or said to be unknown."""
    found = Platform(*(_shown(str(raw.get(name) or "")) for name in ("os", "architecture", "variant")))
    return found if found.known and (found.os, found.architecture) != ("unknown", "unknown") else None


_LAYERS = ("application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs.")


def _shown(text: str) -> str:
    """What others wrote, fit to be shown and kept."""
    return "".join(letter for letter in text[:128] if letter.isascii() and letter.isprintable())

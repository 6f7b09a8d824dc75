"""What comes of each tag of a listing, and how far the listing went.

`Coverage` decides what may be concluded from silence: a tag that was not met is gone only when its repository is `whole`,
and a repository only when the catalogue is. All else is not known.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.errors import RegistryError
from trimtab.systems.images.registry.manifests import Left, Platform


class KnownTag(msgspec.Struct, frozen=True):
    """What a tag was when it was last seen."""

    digest: str
    etag: str = ""


class FoundImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image behind a tag. `layers` is None for one whose digest was known, and so is its size then."""

    digest: str
    platform: Platform | None
    index_digest: str = ""
    layers: tuple[Layer, ...] | None = None
    size: int | None = None  # of all layers, as they are kept
    created: str = ""
    labels: Mapping[str, str] = {}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A tag and what it points to. `images` is None when the digest was known: they are as they were."""

    repository: str
    tag: str
    digest: str
    etag: str = ""
    media_type: str = ""
    images: tuple[FoundImage, ...] | None = None
    left: tuple[Left, ...] = ()

    @property
    def known(self) -> KnownTag:
        return KnownTag(self.digest, self.etag)


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """Without a tag it is the repository that could not be read, without a repository the rest of the registry."""

    error: RegistryError
    repository: str = ""
    tag: str = ""


class SkipReason(enum.Enum):
    """Why a tag has no images, where nothing went wrong."""

    FILTERED = "Filtered"
    FILTER_FAILED = "InvalidFilter"
    NOT_AN_IMAGE = "NotAnImage"
    NO_PLATFORM = "NoSelectedPlatform"
    GONE = "Gone"


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """`digest` is empty where it was not asked for."""

    repository: str
    tag: str
    reason: SkipReason
    detail: str = ""
    digest: str = ""
    etag: str = ""


Outcome = Found | Failed | Skipped


class FilterFailed(Exception):  # noqa: N818 - it reads as what happened
    """What a filter raises when it cannot decide about one tag."""


class Coverage(msgspec.Struct, kw_only=True):
    """How far a listing went; it grows while the listing runs, and is final when that has ended."""

    catalogue: bool = False  # it was asked for, and read to its end
    named: bool = False  # all repositories that belong to the listing are known
    ended: bool = False  # neither given up nor left early
    whole: set[str] = msgspec.field(default_factory=set)  # all tags are known, and each has an outcome
    partly: set[str] = msgspec.field(default_factory=set)  # not all
    absent: set[str] = msgspec.field(default_factory=set)  # the registry itself says NAME_UNKNOWN: no bare 404 does
    repositories: int = 0  # that were named so far
    tags: int = 0  # that were met so far
    found: int = 0
    failed: int = 0
    skipped: int = 0
    skipped_by: dict[SkipReason, int] = msgspec.field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every repository was read whole, so that silence means absence."""
        return self.ended and self.named and not self.partly and len(self.whole) + len(self.absent) == self.repositories

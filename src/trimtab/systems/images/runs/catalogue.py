"""A catalogue: every tag of a registry that was found, and the images behind it. A blob, named by the registry and the job.

The worker makes it from its listing and from the catalogue before (`Builder`), so that it is whole even where a tag was not
asked for again. What a listing did not learn stays as it was: a tag is `gone` only when the registry, or the Registry, said
so. What it knows of images holds for the platforms that were selected, so it is read anew when those change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec
from msgspec import UNSET

from trimtab.systems.images.kinds.job import MOST_CHANGES, Diff, TagChange
from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.outcomes import (
    Coverage,
    Failed,
    Found,
    FoundImage,
    KnownTag,
    Outcome,
    Skipped,
    SkipReason,
)
from trimtab.systems.images.registry.references import image_name

MAX_BYTES = 256 << 20
MEDIA_TYPE = "application/vnd.trimtab.catalog+msgpack"
LONGEST_COMMAND = 1024


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


def encode(catalogue: Catalogue) -> bytes:
    return msgspec.msgpack.encode(catalogue)


def decode(content: bytes) -> Catalogue:
    """msgspec.DecodeError, a ValueError, when it is none."""
    return msgspec.msgpack.decode(content, type=Catalogue)


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


class Builder:
    """Takes the outcomes of a listing one by one, and makes the catalogue when it has ended.

    `only` is for a run that was told of pushes: it touches what it meets, and nothing is gone by it. The counts are those of
    tags: a tag that is known to be no image is skipped, also when it was found.
    """

    def __init__(
        self, previous: Catalogue | None = None, platforms: Sequence[Platform] = (), *, only: bool = False
    ) -> None:
        self.found = self.skipped = self.failed = 0
        self._previous = previous or Catalogue()
        self._platforms, self._only = tuple(platforms), only
        self._images_of = {tag.digest: tag.images for tags in self._previous.tags.values() for tag in tags.values()}
        self._tags: dict[str, dict[str, Tag]] = {}
        self._images: dict[str, Pictured] = {}
        self._members: dict[str, list[str]] = {}
        self._gone: dict[str, set[str]] = {}
        self._layers: dict[Layer, Layer] = {}  # many images have the same ones: each is kept once

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, Found):
            images = self._images_behind(outcome)
            self._keep(outcome, images)
            if images:
                self.found += 1
                self._members.setdefault(outcome.repository, []).append(outcome.tag)
            else:
                self.skipped += 1
        elif isinstance(outcome, Failed):
            self.failed += 1
            self._carry(outcome)
        else:
            self.skipped += 1
            self._skip(outcome)

    def finish(self, coverage: Coverage, selected: Collection[str] | None) -> Catalogue:
        """`selected` are the repositories that were to be listed; None is all of the registry's catalogue."""
        tags = self._tags
        gone = {} if self._only else self._gone
        for repository, before in self._previous.tags.items():
            now = tags.setdefault(repository, {})
            lost = gone.get(repository, set())
            silent = not self._only and _is_silent(repository, coverage, selected)
            for name, tag in before.items():
                if name in now or name in lost:
                    continue
                if silent:
                    gone.setdefault(repository, set()).add(name)
                else:
                    now[name] = tag
        tags = {repository: named for repository, named in tags.items() if named}
        return Catalogue(
            tags=tags,
            images=self._pictures(tags),
            members={repository: sorted(names) for repository, names in self._members.items()},
            gone={repository: sorted(names) for repository, names in gone.items()},
            platforms=self._platforms,
        )

    def _keep(self, outcome: Found | Skipped, images: tuple[str, ...]) -> None:
        self._tags.setdefault(outcome.repository, {})[outcome.tag] = Tag(outcome.digest, outcome.etag, images)

    def _carry(self, outcome: Failed | Skipped) -> None:
        """Nothing was learned of it: it is as it was."""
        if (before := self._before(outcome.repository, outcome.tag)) is not None:
            self._tags.setdefault(outcome.repository, {})[outcome.tag] = before

    def _skip(self, outcome: Skipped) -> None:
        match outcome.reason:
            case SkipReason.NOT_AN_IMAGE | SkipReason.NO_PLATFORM:
                self._keep(outcome, ())  # so that it is not fetched again
            case SkipReason.FILTER_FAILED:
                self._carry(outcome)
            case SkipReason.FILTERED | SkipReason.GONE:
                if self._before(outcome.repository, outcome.tag) is not None:
                    self._gone.setdefault(outcome.repository, set()).add(outcome.tag)

    def _before(self, repository: str, tag: str) -> Tag | None:
        return self._previous.tags.get(repository, {}).get(tag)

    def _images_behind(self, found: Found) -> tuple[str, ...]:
        if found.images is None:
            # The digest of a known tag, or of an image that was behind an index.
            return self._images_of.get(found.digest, (found.digest,))
        for image in found.images:
            if image.layers is not None and image.digest not in self._images:
                self._images[image.digest] = self._pictured(image, image.layers)
        return tuple(dict.fromkeys(image.digest for image in found.images))

    def _pictured(self, image: FoundImage, layers: tuple[Layer, ...]) -> Pictured:
        return Pictured(
            platform=str(image.platform or ""),
            layers=tuple(self._shared(layer) for layer in layers),
            size=image.size or 0,
            created=image.created,
        )

    def _shared(self, layer: Layer) -> Layer:
        if len(layer.command) > LONGEST_COMMAND:
            layer = msgspec.structs.replace(layer, command=layer.command[:LONGEST_COMMAND])
        return self._layers.setdefault(layer, layer)

    def _pictures(self, tags: dict[str, dict[str, Tag]]) -> dict[str, Pictured]:
        """Those that a tag still has."""
        wanted = dict.fromkeys(digest for named in tags.values() for tag in named.values() for digest in tag.images)
        seen = ((digest, self._images.get(digest) or self._previous.images.get(digest)) for digest in wanted)
        return {digest: pictured for digest, pictured in seen if pictured is not None}


def _is_silent(repository: str, coverage: Coverage, selected: Collection[str] | None) -> bool:
    """Whether a tag that was not met is gone: its repository was read whole, or is gone, or is not asked for any more."""
    if repository in coverage.whole or repository in coverage.absent:
        return True
    if selected is not None:
        return repository not in selected
    return coverage.catalogue and coverage.ended and repository not in coverage.partly


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

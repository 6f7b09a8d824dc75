"""From the outcomes of a listing, and the catalogue before, to a new catalogue. Pure.

What a listing did not learn stays as it was: a tag is gone only when the registry said so, or when the Registry does not
select it any more. Tags are put together one by one, and layers that images share are held once: a registry may be large.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from trimtab.systems.images.registry.configs import Layer
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.outcomes import Coverage, Failed, Found, FoundImage, Outcome, Skipped, SkipReason
from trimtab.systems.images.runs.catalogue import Catalogue, Pictured, Tag

LONGEST_COMMAND = 1024


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

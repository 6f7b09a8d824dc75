"""From a registry to all its images.

    async with Listing(client, filter=selects, known=known) as listing:
        async for outcome in listing:
            ...
    listing.coverage.whole

Flow: repositories, named or from the catalogue → the tags of each → the filter → HEAD, many at once and in turn for each
repository → the manifests of digests that are not known.

Guarantees: each tag has exactly one outcome. What cannot be read fails alone. What a tag points to is what its HEAD said,
also when it moves meanwhile; only when that is gone it is asked again, once. `coverage` never calls whole what was not, and
nothing is absent or gone by a 404 alone: the registry must say so by its error code, for a proxy that lost its way answers
404 to everything. A registry that fails at every turn is given up after `patience` failures in a row, with one Failed for
the rest. The first tags that are skipped for another reason than a filter are logged.

Assumptions: the consumer reads on: outcomes are not kept beyond a bound. An error of the catalogue's first page is raised
to the consumer, for then there is nothing to list; a later one is a Failed without a repository.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self, TypeVar

from trimtab.model.logs import log
from trimtab.systems.images.registry.client import NotModified, RegistryClient
from trimtab.systems.images.registry.errors import BadAnswer, NotFound, RateLimited, RegistryError, Unavailable
from trimtab.systems.images.registry.manifests import Left, Platform
from trimtab.systems.images.registry.outcomes import (
    Coverage,
    Failed,
    FilterFailed,
    Found,
    KnownTag,
    Outcome,
    Skipped,
    SkipReason,
)
from trimtab.systems.images.registry.resolving import Resolver
from trimtab.systems.images.registry.turns import Turns
from trimtab.systems.images.registry.width import Width

T = TypeVar("T")

Filter = Callable[[str, str], bool]
"""Whether a tag (repository, tag) is wanted. FilterFailed when it cannot tell."""

CONCURRENCY = 32
OPEN_REPOSITORIES = 8
WAITING = 256
AGAIN = 8
LONGEST_WISH = 300.0
"""Seconds that a registry may ask to wait for. Of one that wants more, the rest is given up."""
PATIENCE = 128
BREATHE = 0.005
"""Seconds of filters after which others have their turn."""
LOGGED = 100
"""Skipped tags of one listing that are named in the log."""
NO_REPOSITORY = "NAME_UNKNOWN"
NO_TAG = frozenset({"MANIFEST_UNKNOWN", "NAME_UNKNOWN", "NOT_FOUND"})  # the last is Harbor's


class Listing:
    """One run over one registry. Entering starts it, leaving ends it, wherever it is."""

    def __init__(
        self,
        client: RegistryClient,
        *,
        repositories: Sequence[str] | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        filter: Filter = lambda repository, tag: True,  # noqa: A002 - the field's word
        known: Mapping[tuple[str, str], KnownTag] = {},
        known_digests: Container[str] = frozenset(),
        platforms: Iterable[Platform] = (),
        concurrency: int = CONCURRENCY,
        patience: int = PATIENCE,
    ) -> None:
        """`repositories` are full names, None is the catalogue. `only` names tags or digests, and nothing else is listed:
        then no repository is whole. `known_digests` are those of tags and of images whose details are not needed again."""
        self.coverage = Coverage()
        self._client, self._filter, self._known, self._digests = client, filter, known, known_digests
        self._repositories = list(dict.fromkeys(repositories)) if repositories is not None else None
        self._only = only
        self._resolver = Resolver(client, tuple(platforms), known_digests)
        self._concurrency, self._patience = concurrency, patience
        self._turns, self._width = Turns(OPEN_REPOSITORIES), Width(concurrency)
        self._outcomes: asyncio.Queue[Outcome | BaseException | None] = asyncio.Queue(WAITING)
        self._owed: dict[str, int] = {}  # tags without an outcome, of repositories that were read to their end
        self._filtering, self._filtered = asyncio.Lock(), 0.0
        self._in_a_row = 0
        self._given_up = False
        self._run: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._run = asyncio.create_task(self._all(), name="listing")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait((self._run,))

    async def __aiter__(self) -> AsyncIterator[Outcome]:
        while (outcome := await self._outcomes.get()) is not None:
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome

    async def _all(self) -> None:
        ending: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(self._work()) for _ in range(self._concurrency)]
                async with asyncio.TaskGroup() as listers:
                    await self._open_all(listers)
                await self._turns.close()
                await asyncio.wait(workers)
            self.coverage.ended = not self._given_up
        except BaseExceptionGroup as errors:
            ending = _first(errors)
        finally:
            self.coverage.partly.update(self._owed)  # they have tags without an outcome
        await self._outcomes.put(ending)

    async def _open_all(self, listers: asyncio.TaskGroup) -> None:
        """Each repository is read by a task of its own, as far as there is room."""
        if self._only is not None:
            for repository, tags in self._only.items():
                self.coverage.repositories += 1
                self.coverage.partly.add(repository)
                await self._turns.enter()
                await self._add(repository, tags)
            return
        async for repository in self._named():
            await self._turns.enter()
            if self._given_up:
                self._turns.leave()
                self.coverage.partly.add(repository)
            else:
                listers.create_task(self._list(repository))

    async def _named(self) -> AsyncIterator[str]:
        if self._repositories is not None:
            for repository in self._repositories:
                self.coverage.repositories += 1
                yield repository
            self.coverage.named = True
            return
        try:
            async with aclosing(self._client.repositories()) as catalogue:
                async for repository in catalogue:
                    self.coverage.repositories += 1
                    yield repository
            self.coverage.catalogue = self.coverage.named = True
        except RegistryError as error:
            if not self.coverage.repositories:
                raise
            await self._tell(Failed(error=error))

    async def _list(self, repository: str) -> None:
        tags: list[str] = []  # those before an error count
        try:
            await self._patiently(lambda: self._read_tags(repository, tags))
            self._owed[repository] = len(tags)
            self._settle(repository)
        except RegistryError as error:
            absent = isinstance(error, NotFound) and error.code == NO_REPOSITORY and not tags
            (self.coverage.absent if absent else self.coverage.partly).add(repository)
            if not absent or self._repositories is not None:  # a catalogue may name what has no tags any more
                await self._tell(Failed(error=error, repository=repository))
        await self._add(repository, tags)

    async def _read_tags(self, repository: str, tags: list[str]) -> None:
        tags.clear()
        async with aclosing(self._client.tags(repository)) as pages:
            async for tag in pages:
                tags.append(tag)  # noqa: PERF401 - not to be lost with an error

    async def _add(self, repository: str, tags: Sequence[str]) -> None:
        self.coverage.tags += len(tags)
        await self._turns.add(repository, tags)

    async def _work(self) -> None:
        while (turn := await self._turns.next()) is not None:
            repository, tag = turn
            if self._given_up:
                continue
            await self._tell(await self._one(repository, tag))
            if repository in self._owed:
                self._owed[repository] -= 1
                self._settle(repository)

    def _settle(self, repository: str) -> None:
        if not self._owed[repository]:
            del self._owed[repository]
            self.coverage.whole.add(repository)

    async def _one(self, repository: str, tag: str) -> Outcome:
        try:
            if not await self._selects(repository, tag):
                return Skipped(repository=repository, tag=tag, reason=SkipReason.FILTERED)
        except FilterFailed as failed:
            return Skipped(repository=repository, tag=tag, reason=SkipReason.FILTER_FAILED, detail=str(failed))
        try:
            return await self._patiently(lambda: self._asked(repository, tag))
        except NotFound as error:
            return await self._gone(repository, tag, error)
        except RegistryError as error:
            return Failed(error=error, repository=repository, tag=tag)

    async def _gone(self, repository: str, tag: str, error: RegistryError) -> Outcome:
        """Whether it is, the answer to a GET tells: that to a HEAD has no body, and what is missing may be a part of it."""
        try:
            await self._patiently(lambda: self._client.manifest(repository, tag))
        except NotFound as said:
            if said.code in NO_TAG:
                return Skipped(repository=repository, tag=tag, reason=SkipReason.GONE)
        except RegistryError as other:
            error = other
        return Failed(error=error, repository=repository, tag=tag)

    async def _selects(self, repository: str, tag: str) -> bool:
        """One at a time, and others have their turn in between: a filter may cost milliseconds of a processor."""
        async with self._filtering:
            if self._filtered >= BREATHE:
                self._filtered = 0.0
                await asyncio.sleep(0)
            began = time.perf_counter()
            try:
                return self._filter(repository, tag)
            finally:
                self._filtered += time.perf_counter() - began

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Asked again where the registry only wants fewer requests at once. It waits as long as the registry wishes."""
        for _ in range(AGAIN):
            try:
                async with self._width:
                    answer = await ask()
            except RateLimited as limited:
                self._width.narrow()
                if (limited.retry_after or 0.0) > LONGEST_WISH:
                    self._in_a_row = self._patience  # nobody waits that long
                    raise
            else:
                self._width.widen()
                return answer
        async with self._width:
            return await ask()

    async def _asked(self, repository: str, tag: str) -> Outcome:
        known = self._known.get((repository, tag))
        head = await self._client.head(repository, tag, _condition(known))
        if known is not None and (isinstance(head, NotModified) or head.digest == known.digest):
            return Found(repository=repository, tag=tag, digest=known.digest, etag=head.etag)
        if isinstance(head, NotModified):
            raise BadAnswer(f"{repository}:{tag}", "it is said to be unchanged, which was not asked")
        if head.digest in self._digests:
            return Found(repository=repository, tag=tag, digest=head.digest, etag=head.etag, media_type=head.media_type)
        try:
            resolved = await self._resolver.resolve(repository, head.digest)
        except NotFound:  # it moved, and what it pointed to was deleted
            again = await self._client.head(repository, tag)
            if isinstance(again, NotModified) or again.digest == head.digest:
                raise
            head = again
            resolved = await self._resolver.resolve(repository, head.digest)
        if not resolved.images:
            reason = SkipReason.NOT_AN_IMAGE if resolved.no_image or not resolved.left else SkipReason.NO_PLATFORM
            detail = resolved.no_image or _told(resolved.left)
            return Skipped(
                repository=repository, tag=tag, reason=reason, detail=detail, digest=head.digest, etag=head.etag
            )
        return Found(
            repository=repository,
            tag=tag,
            digest=head.digest,
            etag=head.etag,
            media_type=head.media_type,
            images=resolved.images,
            left=resolved.left,
        )

    async def _tell(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            self.coverage.failed += 1
            self._in_a_row = self._in_a_row + 1 if outcome.error.of_registry else 0
        elif isinstance(outcome, Skipped):
            self._note(outcome)
            self._in_a_row = self._in_a_row if outcome.reason is SkipReason.FILTERED else 0
        else:
            self.coverage.found += 1
            self._in_a_row = 0
        await self._outcomes.put(outcome)
        if isinstance(outcome, Failed) and self._in_a_row >= self._patience and not self._given_up:
            self._given_up = True
            why = f"given up after {self._in_a_row} failures in a row; the last: {outcome.error.why}"
            error = Unavailable(f"the rest of {self._client.registry.name}", why)
            self.coverage.failed += 1
            await self._outcomes.put(Failed(error=error))

    def _note(self, skipped: Skipped) -> None:
        """Who left a tag out by a filter knows where to look for it; for the others the log is the place."""
        coverage, reason = self.coverage, skipped.reason
        coverage.skipped += 1
        coverage.skipped_by[reason] = coverage.skipped_by.get(reason, 0) + 1
        logged = coverage.skipped - coverage.skipped_by.get(SkipReason.FILTERED, 0)
        if reason is SkipReason.FILTERED or logged > LOGGED:
            return
        name = self._client.registry.name
        log.info(
            "a tag is skipped",
            registry=name,
            repository=skipped.repository,
            tag=skipped.tag,
            reason=reason.value,
            detail=skipped.detail,
        )
        if logged == LOGGED:
            log.info("more tags that are skipped are not named", registry=name)


def _condition(known: KnownTag | None) -> str:
    """The ETag to ask with. Where none is kept, distribution's own is the digest."""
    if known is None:
        return ""
    return known.etag or f'"{known.digest}"'


def _told(left: tuple[Left, ...]) -> str:
    """Why nothing of an index is taken, shortly."""
    each = dict.fromkeys(f"{one.why.value}{f' {one.detail}' if one.detail else ''}" for one in left)
    return ", ".join(list(each)[:8])


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended a group, out of the groups that it is in."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found

"""Lists a registry for a run, and puts what it found into a catalogue.

Flow: look whether the run is still wanted → take it (`Hold`) → list, put and pin the catalogue, and tell all the while that
we are at it, once a second when there is news → say so in the job's status. Why there is no catalogue is said there too: a
registry that cannot be listed is no failure of the worker, and is not tried again here.

Guarantees: a worker that was overtaken, or whose run ended, writes nothing any more and stops; a message that comes twice
does nothing the second time. A run that was taken too often ends: it may be what workers die of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from msgspec import UNSET

from trimtab.model.clock import Clock, format_micro_time, format_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.tasks import ended
from trimtab.storage.blobs import BlobDamaged, BlobMissing, BlobTooLarge, parse_digest, read
from trimtab.systems.images.filters import Filters, InvalidFilter
from trimtab.systems.images.kinds import DiscoveryJobStatus, ImageError, Listed, ListingCounts, Registry
from trimtab.systems.images.kinds.job import MOST_ERRORS
from trimtab.systems.images.messages import CreateCatalog
from trimtab.systems.images.reach import client_of, endpoint_of, filters_of, platforms_of, repositories_of
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.errors import RegistryError
from trimtab.systems.images.registry.listing import Listing
from trimtab.systems.images.registry.outcomes import Coverage, Failed, Outcome, Skipped, SkipReason
from trimtab.systems.images.registry.references import is_tag
from trimtab.systems.images.runs import catalogue as catalogues
from trimtab.systems.images.runs.catalogue import Catalogue
from trimtab.systems.images.runs.cataloguing import Builder
from trimtab.systems.images.runs.states import PROGRESSING, told
from trimtab.systems.images.worker.handling import Later, Tools
from trimtab.systems.images.worker.hold import SILENT, Hold, Lost

TELL_EVERY = 1.0
HEARTBEAT = 20.0
LONGEST_MESSAGE = 512
MOST_TAKEN = 8
"""How often workers take one run, before it counts as one that cannot be listed."""


class CatalogHandler:
    """Fulfils `Handler[CreateCatalog]`."""

    def __init__(self, tools: Tools, *, silent: float = SILENT) -> None:
        """`silent` are the seconds after which a worker without a word is taken for dead."""
        self._tools = tools
        self._running: set[str] = set()  # runs that this process lists
        self._silent = silent

    async def handle(self, message: CreateCatalog) -> None:
        if message.run in self._running:
            raise Later(f"the run {message.run} is listed by this worker already", 30.0)
        self._running.add(message.run)
        try:
            hold = await Hold.take(self._tools, message, self._silent)
            if hold is not None and hold.fence > MOST_TAKEN:
                await _give_up(hold, f"{MOST_TAKEN} workers began it, and none came to its end")
            elif hold is not None:
                await self._held(hold, message)
        except Lost as lost:
            log.info("a discovery is not ours any more", run=message.run, why=str(lost))
        finally:
            self._running.discard(message.run)

    async def give_up(self, message: CreateCatalog, why: str) -> None:
        if message.run in self._running:
            return  # a second message for what goes well
        try:
            hold = await Hold.take(self._tools, message, self._silent)
            if hold is not None:
                await _give_up(hold, why)
        except (Later, Lost) as alive:
            log.info("a message too many for a discovery that goes on", run=message.run, why=str(alive))

    async def _held(self, hold: Hold, message: CreateCatalog) -> None:
        try:
            await _Run(self._tools, hold, message).done()
        except Lost:
            raise
        except BaseException:
            await hold.let_go()
            raise


async def _give_up(hold: Hold, why: str) -> None:
    listed = _failed("WorkerCrashed", f"the listing was tried too often: {why}", hold.registry)
    await hold.tell(lambda status: status.replace(listed=listed))


class _Run:
    """One listing, from the moment that it is ours."""

    def __init__(self, tools: Tools, hold: Hold, message: CreateCatalog) -> None:
        self._tools, self._hold, self._only = tools, hold, message.only
        self._registry = hold.registry
        self._told = _Told(tools.clock)
        self._forgot = False  # what was known before could not be read
        self._may_be_pinned = False

    async def done(self) -> None:
        """From the first word to the last."""
        try:
            listed = await self._while_telling()
            await self._hold.tell(lambda status: self._told.into(status).replace(listed=listed))
        except Lost:
            if self._may_be_pinned:
                await self._hold.unpin()
            raise

    async def _while_telling(self) -> Listed:
        """What there is to say at the end. Until then nobody takes us for dead, however long it takes."""
        telling = asyncio.create_task(self._keep_telling())
        making = asyncio.create_task(self._listed())
        try:
            await asyncio.wait({telling, making}, return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                telling.result()  # Lost
            return making.result()
        finally:
            await ended(telling, making)

    async def _listed(self) -> Listed:
        """With the catalogue; or why there is none."""
        try:
            catalogue = await self._list()
        except RegistryError as error:
            return _failed(error.reason, str(error), self._registry)
        except InvalidFilter as error:
            return _failed("InvalidFilter", str(error), self._registry)
        await self._hold.verify()
        return await self._put(catalogue)

    async def _put(self, catalogue: Catalogue) -> Listed:
        try:
            content = await asyncio.to_thread(catalogues.encode, catalogue)  # a large one takes a while
            digest = await self._tools.blobs.put(
                content, media_type=catalogues.MEDIA_TYPE, max_bytes=catalogues.MAX_BYTES
            )
        except BlobTooLarge as error:
            return _failed(
                "CatalogTooLarge", f"the registry has too many images for one catalogue: {error}", self._registry
            )
        self._may_be_pinned = True
        await self._tools.blobs.pin(digest, self._hold.owner)
        # What could not be read now is as it was before, if that is known: otherwise it would seem to be gone.
        is_known = not self._forgot or not self._told.failures
        return Listed(
            catalog=digest,
            complete=self._told.coverage.complete and self._only is None and is_known,
            registry_generation=self._registry.metadata.generation or UNSET,
            registry_uri=endpoint_of(self._registry).name,
        )

    async def _list(self) -> Catalogue:
        registry, tools = self._registry, self._tools
        filters, platforms = Filters.compile(filters_of(registry)), platforms_of(registry)
        client = await client_of(registry, tools.connections, tools.credentials)
        selected = await repositories_of(registry, client)
        previous = await self._previous()
        usable = previous if previous is not None and previous.platforms == platforms else None
        builder = Builder(previous, platforms, only=self._only is not None)
        self._told.builder = builder
        only = await self._pushed(client, selected) if self._only is not None else None
        async with Listing(
            client,
            repositories=selected,
            only=only,
            filter=filters,
            known=catalogues.known(usable),
            known_digests=catalogues.known_digests(usable),
            platforms=platforms,
        ) as listing:
            self._told.coverage = listing.coverage
            async for outcome in listing:
                self._told.add(outcome)
        return builder.finish(listing.coverage, selected)

    async def _previous(self) -> Catalogue | None:
        """The catalogue before; None when there is none that can be read: then everything is asked for."""
        digest = self._registry.status.catalog if self._registry.status else UNSET
        if not digest:
            return None
        try:
            content = await read(self._tools.blobs, parse_digest(digest), max_bytes=catalogues.MAX_BYTES)
            return await asyncio.to_thread(catalogues.decode, content)
        except (BlobMissing, BlobDamaged, BlobTooLarge, ValueError) as error:
            log.warning("the catalogue before cannot be read", registry=self._registry.name, error=str(error))
            self._forgot = True
            return None

    async def _pushed(self, client: RegistryClient, selected: Sequence[str] | None) -> dict[str, list[str]]:
        """The tags that were pushed, of repositories that are selected. No tags are all of a repository."""
        found: dict[str, list[str]] = {}
        for repository, tags in (self._only or {}).items():
            if selected is not None and repository not in selected:
                continue
            try:
                named = tags or [tag async for tag in client.tags(repository)]
            except RegistryError as error:
                self._told.add(Failed(error=error, repository=repository))
            else:
                found[repository] = [tag for tag in dict.fromkeys(named) if is_tag(tag)]
        return found

    async def _keep_telling(self) -> None:
        """At most once a second, and so often that nobody takes us for dead. It ends only by an error: Lost."""
        clock, told_at, told = self._tools.clock, self._tools.clock.monotonic(), self._told.news
        while True:
            await clock.sleep(TELL_EVERY)
            now = clock.monotonic()
            news = self._told.news
            if news == told and now - told_at < HEARTBEAT:
                continue
            try:
                await self._hold.tell(self._told.into)
            except (StatusError, OSError, TimeoutError) as error:  # the work goes on; if others take it, we are Lost
                log.warning("how far a discovery is cannot be told", run=self._hold.run, error=str(error))
            told, told_at = news, now


class _Told:
    """How far the listing is."""

    def __init__(self, clock: Clock) -> None:
        self.coverage, self.builder = Coverage(), Builder()
        self._clock, self._began, self._start = clock, clock.now(), clock.monotonic()
        self._errors: list[ImageError] = []
        self.failures = 0

    def add(self, outcome: Outcome) -> None:
        self.builder.add(outcome)
        if isinstance(outcome, Failed):
            self._note(outcome.repository, outcome.tag, outcome.error.reason, str(outcome.error))
        elif isinstance(outcome, Skipped) and outcome.reason is SkipReason.FILTER_FAILED:
            self._note(outcome.repository, outcome.tag, outcome.reason.value, outcome.detail)

    @property
    def news(self) -> str:
        return f"{self._done} of {self.coverage.tags} tags"

    @property
    def _done(self) -> int:
        return self.builder.found + self.builder.skipped + self.builder.failed

    def into(self, status: DiscoveryJobStatus) -> DiscoveryJobStatus:
        """The status with it, and a heartbeat."""
        now, coverage, builder = self._clock.now(), self.coverage, self.builder
        status = status.replace(
            heartbeat=format_time(now),
            progress=ProgressStatus(
                done=self._done,
                total=coverage.tags,
                note="tags",
                started=format_micro_time(self._began),
                updated=format_micro_time(self._began + timedelta(seconds=self._clock.monotonic() - self._start)),
            ),
            listing=ListingCounts(
                repositories=coverage.repositories,
                tags=coverage.tags,
                found=builder.found,
                skipped=builder.skipped,
                failed=builder.failed,
            ),
            errors=tuple(self._errors) or UNSET,
            error_count=self.failures or UNSET,
        )
        return told(status, PROGRESSING, "True", "Listing", self.news, now)

    def _note(self, repository: str, tag: str, reason: str, message: str) -> None:
        self.failures += 1
        if len(self._errors) < MOST_ERRORS:
            self._errors.append(
                ImageError(
                    repository=repository[:255] or UNSET,
                    tag=tag[:128] or UNSET,
                    reason=reason,
                    message=message[:LONGEST_MESSAGE],
                )
            )


def _failed(reason: str, message: str, registry: Registry) -> Listed:
    return Listed(
        reason=reason,
        message=message[:LONGEST_MESSAGE],
        registry_generation=registry.metadata.generation or UNSET,
    )

"""Which objects stand for a resource: caches of the services that take notifications, and of the kinds of these.

Flow: RestServices and RestDefinitions are followed; for each kind that is served, of a service with `notifications`, its
objects are followed too, and filed under their resource IDs. A question is answered from memory alone.

Caveats: what is not filed yet is not found; `listed` waits for the first lists.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from urllib.parse import unquote

import msgspec
from msgspec import UNSET

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Change
from trimtab.runtime.index import Index
from trimtab.runtime.informers import Informer, Informers
from trimtab.runtime.tasks import ended
from trimtab.systems.rest.kinds import RestDefinition, RestService

IDS = "rest-ids"
DEEPEST = 64
"""Segments of an ID."""


class Target(msgspec.Struct, frozen=True, order=True):
    """One object."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Finder:
    """Follows the server from `start` to `stop`."""

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Clock,
        chance: random.Random | None = None,
        objects: Query = Query(),  # noqa: B008 - frozen
    ) -> None:
        self._informers = Informers(client, clock=clock, chance=chance or random.Random())  # noqa: S311 - jitter
        self._objects = objects
        self._services: dict[str, RestService] = {}
        self._definitions: dict[str, RestDefinition] = {}
        self._followed: dict[tuple[str, Named], Informer] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the services are known."""
        services = self._informers.subscribe(RestService, Query(), self._service)
        definitions = self._informers.subscribe(RestDefinition, Query(), self._definition)
        await services.synced.wait()
        await definitions.synced.wait()
        await self._adjust()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            await ended(self._task)
        await self._informers.close()

    async def supervise(self) -> None:
        """Waits for the end of what never ends, and raises why."""
        assert self._task is not None  # noqa: S101 - it was started
        informers = asyncio.create_task(self._informers.supervise())
        try:
            await asyncio.wait((self._task, informers), return_when=asyncio.FIRST_COMPLETED)
            await (self._task if self._task.done() else informers)
        finally:
            await ended(informers)

    def service(self, name: str) -> RestService | None:
        """One that takes notifications."""
        found = self._services.get(name)
        return found if found is not None and found.spec.notifications is not UNSET else None

    async def listed(self, service: str) -> None:
        """Returns when all its objects are known; a kind that is not served, or may not be read, has none."""
        for (name, _), informer in list(self._followed.items()):
            if name == service and not _refused(informer):
                await informer.synced.wait()

    def find(self, service: RestService, subject: str) -> list[Target]:
        """The objects of a resource; when it has none, those of the nearest one above it that has some."""
        endpoint = service.spec.endpoint.rstrip("/")
        path = subject[len(endpoint) :] if subject.casefold().startswith(endpoint.casefold()) else subject
        key = _key(path.partition("?")[0])
        for _ in range(DEEPEST):
            if not key.startswith("/"):
                break
            found = list(self._at(service.name, key))
            if found:
                return sorted(found)
            key = key.rpartition("/")[0]
        return []

    def _at(self, service: str, key: str) -> Iterable[Target]:
        for (name, kind), informer in self._followed.items():
            if name == service:
                for request in informer.cache.indexed(IDS, key):
                    yield Target(kind.api_version, kind.kind, request.namespace, request.name)

    # --- following ---------------------------------------------------------------------------------------------------

    def _service(self, change: Change) -> None:
        if isinstance(change.new, RestService):
            self._services[change.request.name] = change.new
        else:
            self._services.pop(change.request.name, None)
        self._changed.set()

    def _definition(self, change: Change) -> None:
        if isinstance(change.new, RestDefinition):
            self._definitions[change.request.name] = change.new
        else:
            self._definitions.pop(change.request.name, None)
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            await self._adjust()

    async def _adjust(self) -> None:
        """Follow what should be followed, and nothing else."""
        self._changed.clear()
        wanted = set(self._wanted())
        for place in wanted - self._followed.keys():
            index = Index(IDS, _ids)
            self._followed[place] = self._informers.subscribe(place[1], self._objects, _ignore, (index,))
        for place in self._followed.keys() - wanted:
            await self._informers.unsubscribe(self._followed.pop(place), _ignore)

    def _wanted(self) -> Iterable[tuple[str, Named]]:
        for definition in self._definitions.values():
            status, spec = definition.status, definition.spec
            if self.service(spec.service_ref) is not None and status is not UNSET and status.api_version is not UNSET:
                yield spec.service_ref, Named(status.api_version, spec.names.kind)


def _refused(informer: Informer) -> bool:
    return isinstance(informer.problem, StatusError) and informer.problem.code in (401, 403, 404)


def _ignore(_: Change) -> None:
    """The index is all that is wanted."""


def _ids(obj: Untyped) -> Iterable[str]:
    for part in ("status", "spec"):
        found = (obj.raw.get(part) or {}).get("resourceID")
        if isinstance(found, str) and found:
            return (_key(found),)
    return ()


def _key(identifier: str) -> str:
    """Without regard to case, to how it is encoded, and to a slash at its end."""
    return unquote(identifier).casefold().rstrip("/")

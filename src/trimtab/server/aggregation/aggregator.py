"""All APIServices: which groups others answer for, whether they do, and what they say they serve.

Flow: one watch follows APIServices. Each of another server has a task that checks it when it, its Service or its Endpoints
change, twice a minute else, and writes the condition `Available`; requests go on only while that is True. Without any such
APIService there is one watch, and requests pay for an empty look-up.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

import orjson

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.aggregation.availability import check
from trimtab.server.aggregation.forwarding import forward, target_of
from trimtab.server.aggregation.published import Published
from trimtab.server.aggregation.registration import RESOURCE, SETTLING, Registration
from trimtab.server.aggregation.remote import READER, FrontProxyPair, Remote, failures
from trimtab.server.aggregation.services import ApiService, GroupVersion, foreign
from trimtab.server.auth.deciding import decided
from trimtab.server.auth.rbac import Attributes, denial
from trimtab.server.http import Answer, Request
from trimtab.server.options import is_watching
from trimtab.server.strategy import Document
from trimtab.store.contract import Entry, Gone, Key, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server
    from trimtab.server.registry import Served

RECHECK = 30.0
FIRST_RETRY = 0.1
RETRY = 1.0


class Aggregator:
    def __init__(self, server: Server, identity: FrontProxyPair | None) -> None:
        self._server = server
        self.identity = identity
        self.services: dict[GroupVersion, ApiService] = {}  # of others
        self.listed: dict[GroupVersion, Document] = {}  # what each said last that it serves
        self.schemas: dict[GroupVersion, dict[str, Document]] = {}  # links of each to its OpenAPI v3 documents
        self.changed = 0
        self._remote = Remote(server.store, identity)
        self._registration = Registration(server)
        self._published = Published(server)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wakes: dict[str, asyncio.Event] = {}
        self._places: dict[str, asyncio.Task[None]] = {}  # watches of Services and Endpoints, while they matter
        self._since = 0

    @property
    def _served(self) -> Served:
        served = self._server.registry.find("apiregistration.k8s.io", "v1", "apiservices")
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    # What requests ask.

    def find(self, path: str) -> ApiService | None:
        """Who answers for a path, where that is not us."""
        parts = path.split("/", 4)
        return self.services.get((parts[2], parts[3])) if len(parts) > 3 and parts[1] == "apis" else None

    def passes(self, url: bytes) -> bool:
        """The same of a URL as the wire has it."""
        return bool(self.services) and self.find(url.partition(b"?")[0].decode("latin-1")) is not None

    async def forward(self, request: Request, service: ApiService) -> Answer:
        """Authorize here, then let the other server answer."""
        target = target_of(request.path)
        if target is None:
            attributes = Attributes(request.user, request.method.lower(), path=request.path)
            decision = await decided(self._server.authorizer, attributes)
            if not decision.allowed:
                raise denial(attributes, decision.reason)
            return await forward(self._remote, service, request, watching=False)
        watching = request.method == "GET" and (
            target.watch or ("watch" in request.query and is_watching(request.query) and not target.name)
        )
        await self._server.authorize(request, target, watching)
        return await forward(self._remote, service, request, watching=watching)

    async def schema(self, request: Request, name: str) -> Answer | None:
        """An OpenAPI v3 document of another server; None when it is not of one."""
        for key, links in self.schemas.items():
            if name in links and key in self.services:
                return await forward(self._remote, self.services[key], request, watching=False, as_=READER)
        return None

    async def swagger(self) -> list[Document]:
        """The OpenAPI v2 documents of all that answer now, cut to their own paths."""
        asked = [self._swagger_of(each) for each in self.services.values() if each.available]
        return [found for found in await asyncio.gather(*asked) if found is not None]

    async def _swagger_of(self, service: ApiService) -> Document | None:
        from trimtab.server.aggregation.swagger import part_of

        try:
            document = orjson.loads(await self._remote.fetch(service, "/openapi/v2"))
            return await asyncio.to_thread(part_of, document, service.path)
        except Exception as error:
            if not isinstance(error, (LookupError, ValueError, *failures())):
                raise
            log.debug("another API server tells no schemas", service=service.name, error=str(error))
            return None

    async def empty(self, namespace: str) -> tuple[dict[str, list[Entry]], list[str]]:
        """See `emptying`."""
        if not self.services:
            return {}, []
        from trimtab.server.aggregation.emptying import empty

        return await empty(self._remote, self.services.values(), self.listed, namespace)

    # The life.

    async def start(self) -> None:
        await self._published.seed()
        await self.load()

    async def load(self) -> None:
        await self._registration.reconcile(self._served, starting=True)
        page = await self._server.store.list(Query(resource=RESOURCE))
        self._since = page.revision
        names = {entry.key.name for entry in page.entries}
        for service in [each for each in self.services.values() if each.name not in names]:
            self._gone(service.name)
        for entry in page.entries:
            self._seen(entry)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._register())
            tasks.create_task(self._published.run())

    async def close(self) -> None:
        await self._remote.close()

    async def _register(self) -> None:
        """Our own, as kinds come and go."""
        settled = asyncio.create_task(self._server.clock.sleep(SETTLING))
        seen = self._server.registry.changed
        try:
            await self._registration.reconcile(self._served)
            while True:
                news = asyncio.create_task(self._server.registry.news(seen))
                await asyncio.wait({news} if settled.done() else {news, settled}, return_when=asyncio.FIRST_COMPLETED)
                seen = self._server.registry.changed
                news.cancel()
                await self._registration.reconcile(self._served, removing=settled.done())
        finally:
            settled.cancel()

    async def _follow(self) -> None:
        while True:
            try:
                async with aclosing(self._server.store.watch(Query(resource=RESOURCE), self._since)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            if change.op is Op.PUT:
                                self._seen(change.entry)
                            else:
                                self._gone(change.entry.key.name)
                                await self._registration.reconcile(self._served)
                        self._since = batch.revision
            except Gone:
                await self.load()

    def _seen(self, entry: Entry) -> None:
        name = entry.key.name
        service = foreign(self._served.decode(entry))
        if service is None:
            self._gone(name)
            return
        old = self.services.get(service.key)
        if old == service:
            return
        self.services[service.key] = service
        self.changed += 1
        if name not in self._tasks:
            self._wakes[name] = asyncio.Event()
            self._tasks[name] = self._server.spawn(self._keep(service.key), f"availability of {name}")
            self._look_for_places()
        elif old is None or (old.namespace, old.service, old.port) != (
            service.namespace,
            service.service,
            service.port,
        ):
            self._wakes[name].set()

    def _gone(self, name: str) -> None:
        version, _, group = name.partition(".")
        task = self._tasks.pop(name, None)
        if task is None:
            return
        task.cancel()
        self._wakes.pop(name, None)
        for kept in (self.services, self.listed, self.schemas):
            kept.pop((group, version), None)
        self.changed += 1
        self._look_for_places()

    def _look_for_places(self) -> None:
        if self._tasks and not self._places:
            for resource in ("services", "endpoints"):
                self._places[resource] = self._server.spawn(self._follow_places(resource), f"places: {resource}")
        elif not self._tasks:
            while self._places:
                self._places.popitem()[1].cancel()

    async def _follow_places(self, resource: str) -> None:
        store = self._server.store
        while True:
            try:
                async with aclosing(store.watch(Query(resource=resource), store.revision)) as batches:
                    async for batch in batches:
                        self._moved({change.entry.key for change in batch.changes})
            except Gone:
                continue
            except StoreError as error:
                log.warning("places of API services cannot be followed now", resource=resource, error=str(error))
                await self._server.clock.sleep(RETRY)

    def _moved(self, keys: set[Key]) -> None:
        places = {(key.namespace, key.name) for key in keys}
        for service in self.services.values():
            if (service.namespace, service.service) in places:
                self._wakes[service.name].set()

    async def _keep(self, key: GroupVersion) -> None:
        """Check one again and again, until cancelled."""
        retry = FIRST_RETRY
        while True:
            service = self.services[key]
            wake = self._wakes[service.name]
            wake.clear()
            try:
                failed = not await self._checked(service)
            except (StoreError, StatusError) as error:  # what a disk refuses now it may take later
                log.warning("an API service cannot be judged now", service=service.name, error=str(error))
                failed = True
            pause = retry if failed else RECHECK
            retry = min(retry * 2, RECHECK) if failed else FIRST_RETRY
            await self._sleep(wake, pause)

    async def _checked(self, service: ApiService) -> bool:
        """Judge one and say so in its condition. False: it may answer better soon."""
        verdict = await check(self._server.store, self._remote, service)
        if verdict.resources is not None and self.listed.get(service.key) != verdict.resources:
            self.listed[service.key] = verdict.resources
            self.changed += 1
        write = partial(verdict.write, now=self._server.timestamp())
        await self._server.acts.modify(self._served, "", service.name, write, "status")
        if verdict.status == "True":
            await self._read_schemas(service)
        return verdict.reason != "FailedDiscoveryCheck"

    async def _sleep(self, wake: asyncio.Event, seconds: float) -> None:
        woken = asyncio.create_task(wake.wait())
        slept = asyncio.create_task(self._server.clock.sleep(seconds))
        try:
            await asyncio.wait({woken, slept}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            slept.cancel()

    async def _read_schemas(self, service: ApiService) -> None:
        """Which OpenAPI v3 documents it has. One that has none is as good."""
        try:
            paths = orjson.loads(await self._remote.fetch(service, "/openapi/v3")).get("paths") or {}
            own = service.path[1:]
            self.schemas[service.key] = {
                name: link
                for name, link in paths.items()
                if (name == own or name.startswith(own + "/")) and _is_link(link)
            }
        except Exception as error:
            if not isinstance(error, (LookupError, AttributeError, ValueError, *failures())):
                raise
            log.debug("another API server tells no schemas", service=service.name, error=str(error))


def _is_link(link: object) -> bool:
    return isinstance(link, dict) and isinstance(link.get("serverRelativeURL"), str)


def merged(documents: list[Document], into: Document) -> Document:
    """OpenAPI v2: paths and definitions of others beside ours; what is there already stays."""
    for document in documents:
        for word in ("paths", "definitions"):
            into[word] = {**document[word], **into.get(word, {})}
    return into

"""Puts the hub together: for each kind the chain of proxies over its accessor, served by a server.

One storage service, one memory of names and one follower serve all kinds; further group suffixes are further views of the
same rows. The follower is what keeps this replica in step with the others: it moves revisions on, forgets project IDs and
drops cached pages of what changed elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import msgspec

from trimtab.hub.artifacts.mount import mount_parts
from trimtab.hub.artifacts.pins import release_deleted
from trimtab.hub.backend import AccessorBackend
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.follow import Follower
from trimtab.hub.cache.generations import Change as Changed
from trimtab.hub.contract import ORGANIZATION
from trimtab.hub.ledger import Ledger
from trimtab.hub.proto.loading import Loaded
from trimtab.hub.proxies.auth import Auth
from trimtab.hub.proxies.cached import Cached
from trimtab.hub.proxies.default import Default
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.inhabited import Inhabited
from trimtab.hub.proxies.lineage import Lineage
from trimtab.hub.proxies.names import Names
from trimtab.hub.proxies.validate import Validate
from trimtab.hub.proxies.version import Version
from trimtab.hub.proxies.view import View
from trimtab.hub.registry import Registry
from trimtab.hub.scheme import HubConfig, HubScheme, Registered, SpokeConvertor
from trimtab.hub.storage.contract import PROJECTS, Row, RowConflict, RowKey, RowWrite, Storage
from trimtab.hub.storage_accessor import StorageAccessor
from trimtab.hub.strategy import HubStrategy, OlderStrategy
from trimtab.model.clock import Clock, format_time
from trimtab.model.hub import MADE_FOR, PROJECT_LABEL, HubKind, lineage_key
from trimtab.model.kind import Kind
from trimtab.model.schema import Schema
from trimtab.model.scheme import SUFFIX, Scheme
from trimtab.server.auth.deciding import decided
from trimtab.server.auth.identity import AUTHENTICATED, User
from trimtab.server.auth.rbac import Attributes, denial
from trimtab.server.core import Server
from trimtab.server.registry import Served
from trimtab.server.turns import Turns

DEFAULT_PROJECT = "default"


class Hub:
    """The hub's kinds of one process, and what they share."""

    def __init__(
        self,
        server: Server,
        kinds: Sequence[HubKind | Loaded],
        storage: Storage,
        *,
        organization: str = ORGANIZATION,
        suffixes: Sequence[str] = (),
        caches: Caches | None = None,
    ) -> None:
        self.storage = storage
        self.organization = organization
        self.names = Names(storage)
        self._server = server
        self.caches = caches or Caches(alone=getattr(storage, "alone", False))
        self.scheme = HubScheme((SUFFIX, *suffixes))
        self.registry = Registry()
        self._services: dict[str, Any] = {}  # by type: what all views of it share
        self._turns: dict[str, Turns] = {}  # by type, too
        self._ledgers: list[Ledger] = []
        self._cached: list[Cached] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.backends: list[AccessorBackend] = []
        self._views: list[Served] = []
        self.scheme.add(*map(config_of, kinds))
        own = {kind.cls: kind for kind in kinds if isinstance(kind, HubKind)}
        self._own = {each.type: own[each.config.cls] for each in self.scheme.registered() if each.config.cls in own}
        for registered in self.scheme.registered():
            self._register(registered)

    def _register(self, registered: Registered) -> None:
        kind, files, versioned = as_hub_kind(registered.kind), registered.files, registered.versioned
        strategy = HubStrategy(
            kind,
            changed_by=changed_by_key(registered.suffix),
            lineage=lineage_key(registered.suffix),
            files=files,
            defaulter=registered.config.defaulter,
        )
        kept = self._chain(registered, kind, versioned)
        defaulter = registered.config.defaulter
        asked = Auth(
            Validate(Default(kept, kind, defaulter), kind, files=files), partial(self._may, kind), plural=kind.plural
        )
        self.registry.add_hub_storage(registered, kind.resource, asked)
        chain = Validate(Default(kept, kind, defaulter, served=True), kind, files=files, served=True)
        turns = self._turns.setdefault(registered.type, Turns())
        served = [Served(strategy, self._backend(chain, turns, lineage=lineage)) for lineage in (False, True)]
        for each in served:
            assert isinstance(each.backend, AccessorBackend)  # noqa: S101 - made above
            each.backend.serve(each)
            if registered.type == PROJECTS and self._server.beside is None:
                each.backend.created = self._furnish
            mount_parts(
                self._server,
                each,
                self.storage,
                organization=self.organization,
                type_=registered.type,
                files=files,
                versioned=versioned,
            )
        served[0].with_lineage = served[1]
        self._views += [served[0], *self._older(served[0])]

    def _older(self, current: Served) -> Iterator[Served]:
        """Other versions of the API of a kind, which is kept in the current one."""
        assert isinstance(current.strategy, HubStrategy)  # noqa: S101 - made by `_register`
        for (api_version, name), registered in self.scheme.versions.items():
            if registered.kind.resource != current.kind.resource:
                continue
            found = self.scheme.older(api_version, name)
            assert found is not None  # noqa: S101 - it is one of its versions
            kind = as_hub_kind(Scheme(registered.suffix).kind_of(found[0].type))
            older = Served(OlderStrategy(kind, current.strategy, self.scheme), current.backend, stored=current)
            if current.with_lineage is not None:
                older.with_lineage = Served(older.strategy, current.with_lineage.backend, stored=current.with_lineage)
            yield older

    async def _may(self, kind: Kind, verb: str, plural: str, project: str, name: str, user: str) -> None:
        """Whoever takes an accessor of the registry is asked as the server asks its clients."""
        who = User(user, groups=(AUTHENTICATED,))
        asked = Attributes(who, verb, kind.group, kind.version, plural, "", project, name)
        decision = await decided(self._server.authorizer, asked)
        if not decision.allowed:
            raise denial(asked, decision.reason)

    def _backend(self, chain: Any, turns: Turns, *, lineage: bool) -> AccessorBackend:
        made = AccessorBackend(chain, organization=self.organization, lineage=lineage, turns=turns)
        self.backends.append(made)
        return made

    def _chain(self, registered: Registered, kind: Kind, versioned: bool) -> Any:
        service = self._services.get(registered.type)
        if service is None:
            service = self._services[registered.type] = self._service(registered, kind)
        suffix = registered.suffix
        renamed = {} if suffix == SUFFIX else {changed_by_key(SUFFIX): changed_by_key(suffix)}
        others = tuple(lineage_key(other) for other in self.scheme.suffixes)
        chain: Any = Lineage(View(service, kind, renamed), lineage_key(suffix), others=others)
        return Version(chain, kind.kind, versioned=versioned)

    def _service(self, registered: Registered, kind: Kind) -> Any:
        """The part of the chain that is the same whatever the kind's group is called."""
        own = self._own.get(registered.type)
        if own is not None and own.accessor is not None:
            ledger = Ledger(own.accessor(), self.storage, kind, registered.type, self._server.clock)
            self._ledgers.append(ledger)
            return ledger
        convertor = None if own is None else own.convertor
        accessor = StorageAccessor(
            self.storage,
            kind,
            registered.config.cls,
            convertor,
            type_=registered.type,
            versioned=registered.versioned,
            files=registered.files,
        )
        cached = Cached(accessor, registered.type, self.caches)
        self._cached.append(cached)
        references = self.scheme.references(registered)
        hydrated = Hydrate(cached, references, self.names, kind=kind.kind, namespaced=kind.namespaced)
        if registered.type != PROJECTS:
            return hydrated
        inside = sorted({each.type for each in self.scheme.registered() if each.kind.namespaced})
        return Inhabited(hydrated, self.storage, inside, self._server.clock)

    async def start(self) -> None:
        """Reach the service; make sure that there is a project to begin with."""
        await self.storage.ready()
        await self._seed()
        newest, oldest = await self.storage.horizon()
        for backend in self.backends:
            backend.seen(newest, oldest)
        for served in self._views:
            self._server.registry.add(served)
        self._server.metrics.collectors.append(self.caches)
        holding = sorted({each.type for each in self.scheme.registered() if each.files})
        released = release_deleted(
            self.storage, organization=self.organization, types=holding, clock=self._server.clock
        )
        clock = self._server.clock
        follower = Follower(self.storage, self.organization, self.caches, self._heard, clock=clock)
        self._tasks = [self._server.spawn(follower.run(newest), "hub"), self._server.spawn(released, "artifacts")]
        self._tasks += [self._server.spawn(each.follow(self.organization), "ledger") for each in self._ledgers]

    async def stop(self) -> None:
        """Let go of the service: its kinds are no longer served."""
        for served in self._views:
            self._server.registry.remove(served.kind.group, served.kind.version, served.kind.plural)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for cached in self._cached:
            await cached.drain()
        for ledger in self._ledgers:
            await ledger.drain()
        await self.storage.close()

    async def _seed(self) -> None:
        if self.organization not in await self.storage.organizations():
            await self.storage.add_organization(self.organization)
        key = RowKey(self.organization, PROJECTS, "", DEFAULT_PROJECT)
        envelope = new_envelope(self._server.clock)
        words = "Where resources are when nobody says otherwise."
        row = Row(key=key, description=words, body={"adopt": True}, envelope=envelope)
        with contextlib.suppress(RowConflict):
            await self.storage.commit(RowWrite(row=row, expect=0))

    async def _furnish(self, project: dict[str, Any]) -> None:
        """A new project's namespace is there when its maker hears of it: what comes next in the same file needs it. The
        project's controller does the same where this was cut short."""
        metadata = project["metadata"]
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": metadata["name"],
                "labels": {PROJECT_LABEL: metadata["name"]},
                "annotations": {MADE_FOR: metadata["uid"]},
            },
        }
        await self._server.acts.ensure(namespace)

    def _heard(self, revision: int, changes: tuple[Changed, ...] | None) -> None:
        """What happened in the storage service, by whomever; None: what was missed may be anything."""
        if changes is None or any(change.type == PROJECTS for change in changes):
            self.names.forget()
        for backend in self.backends:
            backend.seen(revision)


def mounted(
    server: Server, kinds: Sequence[HubKind | Loaded], storage: Storage, **options: Any
) -> AbstractAsyncContextManager[None]:
    """The hub's kinds on a server, until the block is left. ValueError, before it begins, for kinds that cannot be served
    together."""
    return _running(Hub(server, kinds, storage, **options))


@contextlib.asynccontextmanager
async def _running(hub: Hub) -> AsyncIterator[None]:
    try:
        await hub.start()
        yield
    finally:
        await asyncio.shield(hub.stop())


def config_of(kind: HubKind | Loaded) -> HubConfig:
    if isinstance(kind, Loaded):
        return kind.config
    spokes = tuple(SpokeConvertor(type_, convertor) for type_, convertor in kind.spokes)
    return HubConfig.of(kind, exempt=kind.exempt, spokes=spokes)


def as_hub_kind(kind: Kind) -> Kind:
    """The kind with the metadata that hub kinds have."""
    return msgspec.structs.replace(kind, schema=Schema(lambda: _with_metadata(kind.schema.document)))


def changed_by_key(suffix: str) -> str:
    """The annotation that tells who changed a resource last."""
    return f"hub.{suffix}/changed-by"


def new_envelope(clock: Clock) -> dict[str, Any]:
    return {"uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": format_time(clock.now())}


def _with_metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    own = {
        "project": {"type": "string", "description": "The project that the resource is in: its namespace."},
        "description": {"type": "string", "description": "What it is for, in words."},
    }
    properties = {**document["properties"], "metadata": {"type": "object", "properties": own}}
    for part, words in (("spec", "What is wanted."), ("status", "What has come of it, as controllers tell.")):
        if part in properties:
            properties[part] = {"description": words, **properties[part]}
    return {**document, "properties": properties}

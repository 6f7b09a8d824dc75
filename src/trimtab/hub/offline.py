"""What a hub's storage holds, read without a server: documents as clients get them, with names and never IDs.

For a restore from a copy. Lineage and what is sensitive are in them, and each resource comes with the versions that were
published of it, and the places of its files. Kinds that a service of their own holds are not here: the storage has
only what the hub last saw of them, and that service is where they come back from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from trimtab.hub.artifacts.digests import FilePaths
from trimtab.hub.compose import as_hub_kind, config_of
from trimtab.hub.contract import ORGANIZATION, GetOptions, Hub, HubError
from trimtab.hub.proto.loading import Loaded
from trimtab.hub.proxies.default import defaulted
from trimtab.hub.proxies.hydrate import Hydrate
from trimtab.hub.proxies.names import Names
from trimtab.hub.references import has_sharing
from trimtab.hub.scheme import HubScheme, Registered
from trimtab.hub.storage.contract import INTENTS, RowQuery, Storage
from trimtab.hub.storage_accessor import StorageAccessor
from trimtab.model.hub import HubKind


class Version(msgspec.Struct, frozen=True):
    """A published version: its name, and the spec as it was; sharing is as it is now, for it is no part of a version."""

    name: str
    spec: dict[str, Any]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One resource. `versions` are the oldest first."""

    document: Hub
    versions: tuple[Version, ...] = ()
    files: FilePaths = FilePaths()
    suspends: bool = False
    """Whether its spec has a `suspend`: whoever acts on it can be told to wait."""
    complete: Callable[[Hub], Hub] = lambda document: document
    """A document of its kind with all defaults: what was never written by a client may lack some."""


class Untold(msgspec.Struct, frozen=True):
    """What there is and cannot be told, so many of them, and why. `damaged`: it should have been possible."""

    what: str
    count: int
    why: str
    damaged: bool = False


class Contents(msgspec.Struct, frozen=True):
    """All that there is, and what is not in it."""

    resources: tuple[Kept, ...] = ()
    untold: tuple[Untold, ...] = ()


async def contents(
    storage: Storage, kinds: Sequence[HubKind | Loaded], types: Mapping[str, int], *, organization: str = ORGANIZATION
) -> Contents:
    """Everything in an open storage. `types` are those of its rows, with how many there are; `kinds` are known here."""
    scheme = HubScheme()
    scheme.add(*map(config_of, kinds))
    own = {kind.cls: kind for kind in kinds if isinstance(kind, HubKind)}
    registered = {each.type: each for each in scheme.registered()}
    names = Names(storage)
    found: list[Kept] = []
    untold: list[Untold] = []
    for type_, count in types.items():
        if type_.startswith(INTENTS):
            continue  # who held what while it was written: of no use to anybody else
        known = registered.get(type_)
        kind = own.get(known.config.cls) if known is not None and known.config.cls is not None else None
        if known is None:
            untold.append(Untold(type_, count, "no such kind is known here"))
        elif kind is not None and kind.accessor is not None:
            untold.append(Untold(type_, count, "a service of their own holds them"))
        else:
            reader = _Reader(_chain(storage, scheme, known, kind, names), known, organization)
            async for project, name in _names(storage, organization, type_):
                try:
                    found.append(await reader.read(project, name))
                except HubError as error:
                    untold.append(Untold(f"{type_} {project}/{name}", 1, str(error), damaged=True))
    return Contents(tuple(found), tuple(untold))


def _chain(storage: Storage, scheme: HubScheme, registered: Registered, own: HubKind | None, names: Names) -> Hydrate:
    kind = as_hub_kind(registered.kind)
    accessor = StorageAccessor(
        storage,
        kind,
        registered.config.cls,
        None if own is None else own.convertor,
        type_=registered.type,
        versioned=registered.versioned,
        files=registered.files,
    )
    references = scheme.references(registered)
    return Hydrate(accessor, references, names, kind=kind.kind, namespaced=kind.namespaced)


async def _names(storage: Storage, organization: str, type_: str) -> AsyncIterator[tuple[str, str]]:
    """Project and name of each resource."""
    after: tuple[str, str] | None = None
    while True:
        page = await storage.list(RowQuery(organization=organization, type=type_, after=after))
        projects = await storage.names(sorted({row.key.project for row in page.rows if row.key.project}))
        for row in page.rows:
            owner = projects.get(row.key.project)
            yield "" if owner is None else owner.name, row.key.name
        after = page.after
        if after is None:
            return


class _Reader:
    """Of one kind."""

    def __init__(self, chain: Hydrate, registered: Registered, organization: str) -> None:
        schema = registered.kind.schema.document
        spec = (schema.get("properties") or {}).get("spec") or {}
        self._chain = chain
        self._registered = registered
        self._organization = organization
        self._shared = has_sharing(schema)
        self._suspends = "suspend" in (spec.get("properties") or {})
        self._complete = partial(defaulted, kind=as_hub_kind(registered.kind), defaulter=registered.config.defaulter)

    async def read(self, project: str, name: str) -> Kept:
        """HubError when it is not whole."""
        asked = GetOptions(organization=self._organization, project=project, include_lineage=True)
        document = await self._chain.get(name, asked)
        published = await self._chain.published(name, asked) if self._registered.versioned else ()
        sharing = {"sharing": document["spec"]["sharing"]} if self._shared else {}
        return Kept(
            document=document,
            versions=tuple(Version(each.version, {**each.body, **sharing}) for each in published),
            files=self._registered.files,
            suspends=self._suspends,
            complete=self._complete,
        )

"""Which kinds a server has, by its own account, and which one a person means by `deploy`, `deployments.apps` or
`Deployment`.

Two requests when the server knows aggregated discovery; else one for each group and version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.client.paths import Place
from trimtab.client.transport import Call, Transport, document_of
from trimtab.model.errors import StatusError

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json"


class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """One kind in one version, as a server offers it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def place(self) -> Place:
        return Place(self.api_version, self.kind, self.plural, self.namespaced)

    @property
    def label(self) -> str:
        """As people read it in front of a name: `configmap`, `deployment.apps`."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def is_called(self, word: str) -> bool:
        """Whether `word`, in lower case, is one of its names, alone or with the group or with version and group."""
        names = (self.plural, self.singular, self.kind.lower())
        first, _, rest = word.partition(".")
        return first in names and rest in ("", self.group, f"{self.version}.{self.group}")


class Catalogue:
    """All kinds of a server, preferred groups and versions first."""

    def __init__(self, resources: Iterable[ApiResource]) -> None:
        self._resources = tuple(resources)

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._resources)

    def find(self, word: str) -> ApiResource | None:
        """The kind that is meant by a plural, singular or short name or a kind, with or without a group."""
        lower = word.lower()
        by_name = (resource for resource in self._resources if resource.is_called(lower))
        by_short = (resource for resource in self._resources if lower in resource.short_names)
        return next(by_name, None) or next(by_short, None)

    def kind(self, api_version: str, kind: str) -> ApiResource | None:
        return next((r for r in self._resources if r.api_version == api_version and r.kind == kind), None)

    def category(self, name: str) -> list[ApiResource]:
        """The kinds of a category such as `all`, each in its preferred version."""
        return [resource for resource in self.preferred() if name in resource.categories]

    def preferred(self) -> list[ApiResource]:
        """Each kind once."""
        chosen: dict[tuple[str, str], ApiResource] = {}
        for resource in self._resources:
            chosen.setdefault((resource.group, resource.plural), resource)
        return list(chosen.values())


async def discover(transport: Transport) -> Catalogue:
    """Ask the server for all its kinds. A group that cannot be read is left out."""
    answers = await asyncio.gather(*(_document(transport, root) for root in ("/api", "/apis")))
    found: list[ApiResource] = []
    for answer in answers:
        if answer.get("kind") == "APIGroupDiscoveryList":
            found += _aggregated(answer)
        else:
            found += await _legacy(transport, answer)
    return Catalogue(found)


def _aggregated(answer: dict[str, Any]) -> Iterator[ApiResource]:
    for group in answer.get("items") or ():
        for version in group.get("versions") or ():
            for row in version.get("resources") or ():
                yield ApiResource(
                    group=group["metadata"].get("name", ""),
                    version=version["version"],
                    kind=row["responseKind"]["kind"],
                    plural=row["resource"],
                    singular=row.get("singularResource") or row["responseKind"]["kind"].lower(),
                    namespaced=row.get("scope") == "Namespaced",
                    short_names=tuple(row.get("shortNames") or ()),
                    categories=tuple(row.get("categories") or ()),
                    verbs=frozenset(row.get("verbs") or ()),
                )


async def _legacy(transport: Transport, answer: dict[str, Any]) -> list[ApiResource]:
    versions = list(answer.get("versions") or ()) if answer.get("kind") == "APIVersions" else []
    paths = [f"/api/{version}" for version in versions]
    for group in answer.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        offered = [version["groupVersion"] for version in group.get("versions") or ()]
        paths += [f"/apis/{name}" for name in sorted(offered, key=lambda name: name != preferred)]
    lists = await asyncio.gather(*(_document(transport, path) for path in paths))
    return [resource for document in lists for resource in _rows(document)]


def _rows(document: dict[str, Any]) -> Iterator[ApiResource]:
    group, _, version = str(document.get("groupVersion", "")).rpartition("/")
    for row in document.get("resources") or ():
        if "/" not in row["name"]:
            yield ApiResource(
                group=group,
                version=version,
                kind=row["kind"],
                plural=row["name"],
                singular=row.get("singularName") or row["kind"].lower(),
                namespaced=row["namespaced"],
                short_names=tuple(row.get("shortNames") or ()),
                categories=tuple(row.get("categories") or ()),
                verbs=frozenset(row.get("verbs") or ()),
            )


async def _document(transport: Transport, path: str) -> dict[str, Any]:
    try:
        reply = await transport.call(Call(method="GET", path=path, accept=ACCEPT))
    except StatusError as error:
        if error.code in (404, 503):  # an aggregated API may be down; the others are not
            return {}
        raise
    return document_of(reply.body)

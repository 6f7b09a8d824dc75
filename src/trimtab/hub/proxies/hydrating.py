"""Documents from names to IDs and back, in batches. Documents are copied along the paths of references, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.hub.contract import ApplyOptions, Hub, HubChange, Refused
from trimtab.hub.proxies.default import owned
from trimtab.hub.proxies.names import Names
from trimtab.hub.references import Reference, collected, mapped, placed, stays, tree_of
from trimtab.hub.storage.contract import PROJECTS

if TYPE_CHECKING:
    from trimtab.hub.storage.contract import Snapshot

UNRESOLVED = "name:"
"""Before a name that had no ID when it was written."""

UNKNOWN = "(unknown)"
"""In the place of an ID that nobody knows: an ID never leaves."""

is_id = re.compile("[0-9a-f]{32}").fullmatch


class Hydration:
    """What a kind's class says of references, and who knows their IDs."""

    def __init__(self, references: tuple[Reference, ...], names: Names, *, namespaced: bool) -> None:
        self._references = references
        self._tree = tree_of(references)
        self._names = names
        self._namespaced = namespaced

    async def down(self, hub: Hub, options: ApplyOptions) -> Hub:
        """A document with IDs. Refused when it names a project that is not there."""
        metadata = dict(hub.get("metadata") or {})
        hub = {**hub, "metadata": metadata}
        organization = options.organization
        owner = owned(hub, options.project) if self._namespaced else ""
        if self._namespaced and not owner:
            raise Refused([("metadata.project", "must name a project")])
        named: dict[str, set[str]] = {PROJECTS: {owner} if owner else set()}
        for type_, name in collected(hub, self._tree):
            if not stays(name):
                named.setdefault(type_, set()).add(name)
        ids: dict[str, Mapping[str, str]] = {PROJECTS: {}}
        if projects := named.pop(PROJECTS):
            ids[PROJECTS] = await self._names.ids(organization, PROJECTS, None, sorted(projects))
            self._refuse_unknown(hub, owner, ids[PROJECTS])
        project = ids[PROJECTS][owner] if owner else None
        for type_, names in named.items():
            ids[type_] = await self._names.ids(organization, type_, project, sorted(names))
        if owner:
            metadata["project"] = project
            metadata.pop("namespace", None)

        def lowered(type_: str, name: str) -> str:
            return name if stays(name) else ids[type_].get(name) or f"{UNRESOLVED}{name}"

        below: Hub = mapped(hub, self._tree, lowered)
        return below

    async def up(self, hubs: Sequence[Hub], *, envelope: bool = True) -> list[Hub]:
        """Documents with names. `envelope`: they have metadata. Nobody is asked when all names are remembered."""
        named = envelope and self._namespaced
        try:
            return [self._raised(hub, self._names.known, named) for hub in hubs]
        except _UnknownId:
            pass
        ids = {text for hub in hubs for _, text in collected(hub, self._tree) if is_id(text)}
        if named:
            ids.update(hub["metadata"]["project"] for hub in hubs if hub["metadata"].get("project"))
        names = dict(await self._names.names(ids))
        names.update(dict.fromkeys(ids - names.keys(), UNKNOWN))
        return [self._raised(hub, names, named) for hub in hubs]

    async def changes(self, changes: Sequence[HubChange]) -> tuple[HubChange, ...]:
        if not changes:
            return ()
        befores = [change.before for change in changes if change.before is not None]
        shown = await self.up([*(change.hub for change in changes), *befores])
        before = iter(shown[len(changes) :])
        return tuple(
            HubChange(op=change.op, hub=hub, before=None if change.before is None else next(before))
            for change, hub in zip(changes, shown, strict=False)
        )

    async def snapshots(self, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
        shown = await self.up([{"spec": snapshot.body} for snapshot in snapshots], envelope=False)
        return [
            msgspec.structs.replace(snapshot, body=hub["spec"]) for snapshot, hub in zip(snapshots, shown, strict=True)
        ]

    def _raised(self, hub: Hub, names: Mapping[str, str], named: bool) -> Hub:
        def raised(type_: str, text: str) -> str:
            name = names.get(text)
            if name is not None:
                return name
            if text.startswith(UNRESOLVED):
                return text[len(UNRESOLVED) :]
            if is_id(text):
                raise _UnknownId
            return text

        shown: Hub = mapped(hub, self._tree, raised)
        if named and (project := shown["metadata"].get("project")):
            name = names.get(project)
            if name is None:
                raise _UnknownId
            shown = {**shown, "metadata": {**shown["metadata"], "namespace": name, "project": name}}
        return shown

    def _refuse_unknown(self, hub: Hub, owner: str, ids: Mapping[str, str]) -> None:
        said: list[tuple[str, str]] = [("metadata.project", owner)] if owner else []
        for reference in self._references:
            # a status tells what was: a project that has gone since may well be in it
            if reference.type == PROJECTS and reference.path[0] != "status":
                said += placed(hub, reference.path)
        unknown = [(field, name) for field, name in said if not stays(name) and name not in ids]
        if unknown:
            raise Refused([(field, f'there is no project "{name}"') for field, name in unknown])


class _UnknownId(Exception):  # noqa: N818
    """The name of an ID must be asked for."""


def ids_in(document: Any) -> Iterable[str]:
    """Every text of a document that could be an ID: for tests that none leaves."""
    if isinstance(document, str):
        if is_id(document):
            yield document
    elif isinstance(document, dict):
        for value in document.values():
            yield from ids_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from ids_in(value)

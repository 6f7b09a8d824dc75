"""The APIServices of what we serve ourselves: those of built-in groups are made whole at each start, those of definitions and
of mounted kinds come and go with them. One that somebody made without our label is theirs."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from trimtab.model.errors import StatusError
from trimtab.server.aggregation.priorities import CUSTOM, OURS, builtin
from trimtab.server.strategy import Document
from trimtab.store.contract import Query

if TYPE_CHECKING:
    from trimtab.server.core import Server
    from trimtab.server.registry import Registry, Served

RESOURCE = "apiservices.apiregistration.k8s.io"
LABEL = "kube-aggregator.kubernetes.io/automanaged"
SETTLING = 10.0
"""Seconds after a start in which kinds may still be mounted: until then nothing is taken away."""


def wanted(registry: Registry) -> dict[str, Document]:
    """What there should be, by name."""
    found: dict[str, Document] = {}
    for served in registry:
        group, version = served.kind.group, served.kind.version
        priority = builtin(group, version) if served.strategy.native else CUSTOM
        if group == OURS or priority is None:
            continue
        found[f"{version}.{group}"] = {
            "apiVersion": f"{OURS}/v1",
            "kind": "APIService",
            "metadata": {
                "name": f"{version}.{group}",
                "labels": {LABEL: "onstart" if served.strategy.native else "true"},
            },
            "spec": {
                **({"group": group} if group else {}),
                "groupPriorityMinimum": priority.group,
                "version": version,
                "versionPriority": priority.version,
            },
        }
    return found


class Registration:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def reconcile(self, served: Served, *, starting: bool = False, removing: bool = False) -> None:
        """Make, mend and, if `removing`, take away."""
        page = await self._server.store.list(Query(resource=RESOURCE))
        current = {entry.key.name: served.decode(entry) for entry in page.entries}
        due = wanted(self._server.registry)
        missing = [d for n, d in due.items() if n not in current and (starting or _kept(d) == "true")]
        await asyncio.gather(*(self._server.acts.ensure(document) for document in missing))
        for name, document in current.items():
            kept, expected = _kept(document), due.get(name)
            if expected is None:
                if removing and kept == "true":
                    await self._remove(served, name)
            elif (kept == "true" or (kept == "onstart" and starting)) and document.get("spec") != expected["spec"]:
                await self._server.acts.modify(served, "", name, partial(_specify, spec=expected["spec"]))

    async def _remove(self, served: Served, name: str) -> None:
        try:
            await self._server.acts.remove(served, "", name)
        except StatusError as error:
            if error.code != 404:
                raise


def _specify(document: Document, spec: Document) -> None:
    document["spec"] = spec


def _kept(document: Document) -> str:
    return str((document["metadata"].get("labels") or {}).get(LABEL, ""))

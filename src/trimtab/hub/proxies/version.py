"""Reads of a published version: `?version=v1`, `?version=latest`. What is published never changes; who may use it can."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.hub.contract import GetOptions, Hub, Missing, Refused
from trimtab.hub.proxies.passing import Passing
from trimtab.model.hub import HubVersioner
from trimtab.model.schema.shape import copied

LATEST = "latest"


class Version(Passing):
    """`kind` is what messages call it; a kind that is not `versioned` has no versions to read."""

    def __init__(self, inner: Any, kind: str, *, versioned: bool = True) -> None:
        super().__init__(inner)
        self._kind = kind
        self._versioned = versioned

    async def get(self, name: str, options: GetOptions) -> Hub:
        if not options.version:
            return await super().get(name, options)
        if not self._versioned:
            raise Refused([("version", f"a {self._kind} has no published versions: read it without one")])
        plain = msgspec.structs.replace(options, version="")
        current = await super().get(name, plain)
        for snapshot in reversed(await self.published(name, options)):
            if options.version in (snapshot.version, LATEST):
                return as_published(current, snapshot.body)
        snapshots = await self.published(name, plain)
        if not snapshots:
            raise Missing(f'{self._kind} "{name}" has no published version: give it a spec.version')
        known = ", ".join(snapshot.version for snapshot in snapshots[-20:])
        raise Missing(f'{self._kind} "{name}" has no published version "{options.version}"; it has {known}')


def as_published(current: Hub, body: dict[str, Any]) -> Hub:
    """The resource as that version of it was. Its status is that of the resource as it is now, so another has none."""
    spec = current.get("spec") or {}
    then = copied(body)
    if "sharing" in spec:
        then = {"sharing": spec["sharing"], **then}
    found = {**current, "spec": then}
    if spec.get("version") != then.get("version"):
        found.pop("status", None)
    return found


def is_versioned(cls: type | None) -> bool:
    """Whether a class is a HubVersioner."""
    return cls is not None and issubclass(cls, HubVersioner)

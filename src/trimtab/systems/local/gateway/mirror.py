"""The objects of a few kinds, decoded once: a change of one kind costs no reading of the others."""

from __future__ import annotations

from typing import Any, TypeVar

from trimtab.client.protocol import Query
from trimtab.model.resource import Resource
from trimtab.runtime.cached import CachedClient
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.world import key_of

R = TypeVar("R", bound=Resource)


class Mirror:
    """Read again when `stale` was said of a kind; a write of our own is laid over by `keep`."""

    def __init__(self, client: CachedClient) -> None:
        self._client = client
        self._held: dict[type[Resource], dict[Key, Any]] = {}

    def stale(self, name: str) -> None:
        """Of the kind of this name."""
        for kind in [kind for kind in self._held if kind.__name__ == name]:
            del self._held[kind]

    async def all(self, kind: type[R]) -> tuple[R, ...]:
        """What does not fit its class is left out: it cannot be understood either."""
        if kind not in self._held:
            listed = (await self._client.list(kind, Query())).items
            self._held[kind] = {key_of(each): each for each in listed if isinstance(each, kind)}
        return tuple(self._held[kind].values())

    def keep(self, obj: Resource) -> None:
        """What a write returned."""
        held = self._held.get(type(obj), {})
        if key_of(obj) in held:
            held[key_of(obj)] = obj

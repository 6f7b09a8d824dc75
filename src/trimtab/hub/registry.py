"""The accessors of a process by the declared plural of their kinds. Their cache groups are in `Caches`, by type."""

from __future__ import annotations

from typing import Any

from trimtab.hub.scheme import Registered, UnknownKind


class Registry:
    """Whoever uses accessors in this process finds them here."""

    def __init__(self) -> None:
        self._accessors: dict[str, tuple[Registered, Any]] = {}

    def add_hub_storage(self, registered: Registered, plural: str, accessor: Any) -> None:
        """`plural` must be the one that the kind declares; under further suffixes it is with the group's name."""
        if plural not in (registered.kind.plural, registered.type, registered.kind.resource):
            raise ValueError(f"the plural of {registered.kind.kind} is {registered.kind.plural}, and not {plural}")
        if plural in self._accessors:
            raise ValueError(f"{plural} have an accessor already")
        self._accessors[plural] = (registered, accessor)

    def accessor(self, plural: str) -> Any:
        """UnknownKind, which lists the known ones."""
        return self._found(plural)[1]

    def registered(self, plural: str) -> Registered:
        return self._found(plural)[0]

    def _found(self, plural: str) -> tuple[Registered, Any]:
        found = self._accessors.get(plural)
        if found is None:
            known = ", ".join(sorted(self._accessors))
            raise UnknownKind(f"nobody serves {plural}; served are {known or 'none'}")
        return found

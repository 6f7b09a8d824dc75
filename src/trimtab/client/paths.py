"""Where objects live in the URL space. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from trimtab.model.kind import Kind


class Place(NamedTuple):
    """One kind's place."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of the collection, of an object, or of a part of one."""
        parts = ["/apis" if "/" in self.api_version else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe=":") for part in (name, subresource) if part]
        return "/".join(parts)


def place_of(kind: Kind) -> Place:
    return Place(kind.api_version, kind.kind, kind.plural, kind.namespaced)

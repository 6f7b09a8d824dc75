"""Where objects live in the URL space. Pure.

A name comes from anywhere, also from what a user wrote into another object, so it must not lead to another place: a
name that a server could take for a path is refused here.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from trimtab.model.errors import bad_request
from trimtab.model.kind import Kind


class Place(NamedTuple):
    """One kind's place."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of the collection, of an object, or of a part of one."""
        if not _plain(f"{namespace} {name} {subresource}"):
            for segment in (namespace, name, subresource):
                _check(segment)
            namespace, name, subresource = (
                quote(namespace, safe=""),
                quote(name, safe=":"),
                quote(subresource, safe=":"),
            )
        parts = ["/apis" if "/" in self.api_version else "/api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


_plain = re.compile(r"[a-z0-9-]* [a-z0-9-]* [a-z0-9-]*").fullmatch  # what needs no second look: nearly all


def place_of(kind: Kind) -> Place:
    return Place(kind.api_version, kind.kind, kind.plural, kind.namespaced)


def _check(segment: str) -> None:
    """As Kubernetes judges names in paths (apimachinery, `IsValidPathSegmentName`)."""
    if segment in (".", ".."):
        raise bad_request(f"invalid resource name \"{segment}\": [may not be '{segment}']")
    found = [f"may not contain '{bad}'" for bad in ("/", "%") if bad in segment]
    if found:
        raise bad_request(f'invalid resource name "{segment}": [{" ".join(found)}]')

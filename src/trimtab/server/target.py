"""What a URL path names: the grammar of resource paths, with no knowledge of which kinds exist."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.model.errors import StatusError

PARTS = ("status", "artifacts", "versions", "scale")
"""What a path may go into of one object."""

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Target(NamedTuple):
    """A collection, an object, or a part of one."""

    group: str
    version: str
    namespace: str  # "" is none
    resource: str
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the deprecated /watch/ prefix
    inner: str = ""  # the path of an artifact, as it came

    def verb(self, method: str, watch: bool) -> str:
        """The verb as RBAC names it."""
        if method == "GET":
            if self.watch or (watch and not self.name):
                return "watch"
            return "get" if self.name else "list"
        if method == "DELETE":
            return "delete" if self.name else "deletecollection"
        try:
            return VERBS[method]
        except KeyError:
            why = "the server does not allow this method on the requested resource"
            raise StatusError(405, "MethodNotAllowed", why, {}) from None


def parse(path: str) -> Target | None:
    """None when the path is not one of resources (`/version`, `/apis/apps/v1`)."""
    parts = path.split("/")
    if parts[-1] == "":
        parts.pop()
    if len(parts) > 3 and parts[1] == "api":
        group, version, rest = "", parts[2], parts[3:]
    elif len(parts) > 4 and parts[1] == "apis":
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "projects" and len(rest) > 2 and rest[2] not in PARTS:  # a project is a namespace of the hub's kinds
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) == 2 or (len(rest) == 3 and rest[2] in ("status", "finalize")):
            return Target(group, version, namespace, "namespaces", namespace, rest[2] if len(rest) == 3 else "", watch)
        rest = rest[2:]
    inner = ""
    if len(rest) > 3 and rest[2] == "artifacts":
        rest, inner = rest[:3], "/".join(rest[3:])
    if len(rest) > 3 or not all(rest):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return Target(group, version, namespace, rest[0], name, subresource, watch, inner)

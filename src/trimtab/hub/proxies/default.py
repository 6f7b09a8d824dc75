"""Completes what is applied: project, sharing in its one spelling, the schema's defaults, the kind's own. Twice is once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.hub import sharing
from trimtab.hub.contract import ApplyOptions, Hub, Refused
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.references import has_sharing
from trimtab.model.kind import Kind
from trimtab.model.schema.shape import copied

Defaulter = Callable[[Hub], None]


class Default(Passing):
    """`defaulter` completes a document in place. `served`: below a `Validate` that is, too."""

    def __init__(self, inner: Any, kind: Kind, defaulter: Defaulter | None = None, *, served: bool = False) -> None:
        super().__init__(inner)
        self._kind = kind
        self._defaulter = defaulter
        self._served = served

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        if self._served:
            complete(hub, self._kind, self._defaulter, project=options.project, walked=True)
        else:
            hub = defaulted(hub, self._kind, self._defaulter, project=options.project)
        return await super().apply(hub, options)


def defaulted(hub: Hub, kind: Kind, defaulter: Defaulter | None = None, *, project: str = "") -> Hub:
    """A completed copy of a document. Refused when it contradicts itself."""
    hub = copied(hub)
    complete(hub, kind, defaulter, project=project)
    return hub


def complete(
    hub: Hub, kind: Kind, defaulter: Defaulter | None = None, *, project: str = "", walked: bool = False
) -> None:
    """The same in place, for a server that compares a document with the one before: both must be complete. `walked`: the
    schema's defaults are in it."""
    hub.setdefault("apiVersion", kind.api_version)
    hub.setdefault("kind", kind.kind)
    owner = owned(hub, project) if kind.namespaced else ""
    schema = kind.schema.document
    if "spec" in (schema.get("properties") or {}) and hub.get("spec") is None:
        hub["spec"] = {}
        walked = False
    if not walked:
        kind.schema.default(hub)
    if defaulter is not None:
        defaulter(hub)
    if has_sharing(schema) and isinstance(hub.get("spec"), dict):
        hub["spec"]["sharing"] = sharing.canonical(hub["spec"].get("sharing"), owner)


def owned(hub: Hub, project: str = "") -> str:
    """Say a document's project and namespace in it, which are one word, and give it."""
    metadata = hub.setdefault("metadata", {})
    said = {"metadata.project": metadata.get("project"), "metadata.namespace": metadata.get("namespace")}
    found = {name for name in (project, *said.values()) if name}
    if len(found) > 1:
        told = ", ".join(f"{field} is {name}" for field, name in said.items() if name)
        where = f", and the request is for {project}" if project else ""
        raise Refused([("metadata.project", f"{told}{where}: it is one project, which is also the namespace")])
    if found:
        metadata["project"] = metadata["namespace"] = next(iter(found))
    return str(metadata.get("project", ""))

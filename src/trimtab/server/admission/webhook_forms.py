"""The form in which webhooks see a write: in another version of its kind, as a Scale, or before it has a uid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from trimtab.model.errors import internal
from trimtab.model.kind import Kind
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.registry import Registry, Served

Document = dict[str, Any]

SET_AT_CREATION = ("uid", "creationTimestamp", "generation")


class Forms:
    """Versions are those that the registry has now."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def equivalents(self, kind: Kind) -> Sequence[Kind]:
        """The other kinds under which the same objects are served."""
        own = self._served(kind)
        return [s.kind for s in self._registry if s.strategy.storage == own.strategy.storage and s.kind is not kind]

    async def convert(self, document: Document, kind: Kind) -> Document:
        """A document of an equivalent kind as one of this kind, sharing nothing with it."""
        group, _, version = document["apiVersion"].rpartition("/")
        source, target = self._registry.find(group, version, kind.plural), self._served(kind)
        if source is None or source.strategy.storage != target.strategy.storage:
            raise internal(f"{document['apiVersion']} {document.get('kind')} cannot be shown as {kind.api_version}")
        converted: Document = orjson.loads(orjson.dumps(document))
        if target.versions is not None:
            (shown,) = await target.versions.converted([converted], kind.api_version)
            return shown
        if source.stored is not source:
            converted = source.strategy.to_storage(converted)
        if target.stored is not target:
            converted = target.strategy.from_storage(converted)
        return converted | {"apiVersion": kind.api_version, "kind": kind.kind}

    def shown(self, request: AdmissionRequest) -> AdmissionRequest:
        """The write with the documents that its subresource has."""
        if request.subresource != "scale":
            return request
        from trimtab.server.builtin import scale
        from trimtab.server.subresources import scale_of

        served = self._served(request.kind)
        new, old = (None if doc is None else scale_of(served, doc) for doc in (request.object, request.old))
        return msgspec.structs.replace(request, object=new, old=old, form=scale.NATIVE.kind)

    def taken(self, request: AdmissionRequest, mutated: Document) -> Document:
        """The object of a write after webhooks changed what they were shown of it."""
        assert request.object is not None  # noqa: S101 - a deletion is not changed
        if request.subresource != "scale":
            self._check_kind(request.form or request.kind, mutated, form=request.form)
            return mutated
        paths = request.kind.scale
        assert paths is not None  # noqa: S101 - it has the subresource
        changed: Document = orjson.loads(orjson.dumps(request.object))
        place = changed
        *parents, last = paths.spec_replicas.strip(".").split(".")
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = (mutated.get("spec") or {}).get("replicas", 0)
        return changed

    def _check_kind(self, kind: Kind, mutated: Document, *, form: Kind | None) -> None:
        api_version, name = mutated.get("apiVersion"), mutated.get("kind")
        native = form is not None or self._served(kind).strategy.native
        if native and (api_version, name) != (kind.api_version, kind.kind):
            scheme = 'in scheme "pkg/runtime/scheme.go:100"'
            raise internal(f'no kind "{name}" is registered for version "{api_version}" {scheme}')

    def _served(self, kind: Kind) -> Served:
        served = self._registry.find(kind.group, kind.version, kind.plural)
        if served is None:
            raise internal(f"{kind.resource} is not served any more")
        return served


def unborn(request: AdmissionRequest) -> AdmissionRequest:
    """A creation as mutating webhooks see it: what the server sets when it creates is not yet there."""
    if request.operation is not Operation.CREATE or request.object is None:
        return request
    metadata = {k: v for k, v in request.object["metadata"].items() if k not in SET_AT_CREATION}
    return msgspec.structs.replace(request, object={**request.object, "metadata": metadata})

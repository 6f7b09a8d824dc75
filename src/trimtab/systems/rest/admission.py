"""What this system says about a write before it is committed: of the kinds that it generates, of services, of definitions.

A generated kind is judged by its Model, which is kept in a ConfigMap and read as often as an object is written, but decoded
only when it changed. Only a spec that is new or changed is judged, so that metadata can be set on an object that would be
refused today; an object that is being deleted is left alone, so that nothing keeps it from going.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Operation, Reader
from trimtab.model.errors import FieldError, StatusError
from trimtab.model.kind import Kind
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest import hooks, models
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.validating import judged

MOST_KEPT = 512
GENERATED = "rest.trimtab.dev"


class NotReady(Exception):  # noqa: N818 - it reads as what happened
    """There is no Model to judge by."""


class Judged(msgspec.Struct, frozen=True):
    """A Model as it was stored once, with its hooks."""

    version: tuple[str, str]
    model: Model
    hooks: hooks.Hooks


class Objects:
    """The function for generated kinds: it keeps the Models that it has decoded."""

    def __init__(self) -> None:
        self._kept: dict[str, Judged] = {}

    async def __call__(self, request: AdmissionRequest[Untyped], reader: Reader) -> Allowed | Denied:
        new, old = request.object, request.old
        if new is None or (request.operation is Operation.UPDATE and _untouched(new, old)):
            return Allowed()
        try:
            by = await self._by(request.kind, reader)
            if request.subresource == "scale":
                old = await reader.find(request.kind, request.name, request.namespace)
                if old is None:
                    return Allowed()  # the server says that it is not there
                new = _scaled(by.model, old, new)
        except (NotReady, hooks.NoHook) as error:
            return Denied(message=str(error), code=503)
        found = await judged(by.model, by.hooks, new, old, await _given(by.model, new, reader))
        return _answer(found.errors, found.warnings)

    async def _by(self, kind: Kind, reader: Reader) -> Judged:
        name = models.name_of(kind.plural, kind.group)
        stored = await reader.find(ConfigMap, name, NAMESPACE)
        if stored is None:
            raise NotReady(await _waits(kind, reader))
        metadata = stored.metadata
        version = (str(metadata.uid), str(metadata.resource_version))
        kept = self._kept.get(name)
        if kept is not None and kept.version == version:
            return kept
        model = await asyncio.to_thread(models.kept, stored)  # some of them have thousands of fields
        if model is None:
            raise NotReady(f"the ConfigMap {name} is damaged: delete it, and it is made anew")
        fresh = Judged(version, model, hooks.installed(model.overlay.hooks))
        while len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[name] = fresh
        return fresh


async def service(request: AdmissionRequest[RestService], reader: Reader) -> Allowed | Denied:
    """A RestService."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    from trimtab.systems.rest.validating.services import service_problems, service_warnings

    errors = await asyncio.to_thread(service_problems, new)  # an inline document is parsed
    return _answer(errors, () if errors else service_warnings(new))


async def definition(request: AdmissionRequest[RestDefinition], reader: Reader) -> Allowed | Denied:
    """A RestDefinition. Its service and the parent's definition may come later: that they are missing is said."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    from trimtab.systems.rest.validating.definitions import definition_problems, rivals

    listed = await reader.list(RestDefinition)
    others = [other for other in listed if isinstance(other, RestDefinition) and other.name != new.name]
    errors = [*definition_problems(new, GENERATED), *rivals(new, others)]
    return _answer(errors, () if errors else await _missing(new, others, reader))


async def _missing(new: RestDefinition, others: list[RestDefinition], reader: Reader) -> list[str]:
    spec, said = new.spec, []
    if await reader.find(RestService, spec.service_ref) is None:
        said.append(f'spec.serviceRef: there is no RestService "{spec.service_ref}" yet')
    siblings = {other.spec.names.kind for other in others if other.spec.service_ref == spec.service_ref}
    if spec.parent and spec.parent not in siblings:
        said.append(f'spec.parent: no RestDefinition of this service has the kind "{spec.parent}" yet')
    try:
        hooks.installed(spec.overlay.hooks)
    except hooks.NoHook as error:
        said.append(f"spec.overlay.hooks: {error}")
    return said


ADMISSIONS = (
    Admission(name="rest-objects", groups=("*.rest",), function=Objects(), subresources=("", "scale")),
    Admission(name="rest-services", kinds=(RestService,), function=service),
    Admission(name="rest-definitions", kinds=(RestDefinition,), function=definition),
)


async def _given(model: Model, new: Untyped, reader: Reader) -> Mapping[str, str]:
    """The RestService's parameters, where the spec names a path that must fit them."""
    spec = new.raw.get("spec")
    if not isinstance(spec, Mapping) or not (spec.get("resourceID") or spec.get("parent")):
        return {}
    service = await reader.find(RestService, model.service)
    return service.spec.parameters if isinstance(service, RestService) else {}


def _scaled(model: Model, old: Untyped, scale: Untyped) -> Untyped:
    """The object as a write of its scale leaves it."""
    replicas = (scale.raw.get("spec") or {}).get("replicas", 0)
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(old.raw))
    place = document
    *parents, last = model.scale_spec.strip(".").split(".")
    for part in parents:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            return Untyped(document)
        place = inner
    if place.get(last) != replicas:
        place[last] = replicas
    return Untyped(document)


def _untouched(new: Untyped, old: Untyped | None) -> bool:
    """Whether there is nothing to judge: the spec is as it was, or the object is going."""
    if old is None:
        return False
    return new.raw.get("spec") == old.raw.get("spec") or bool((old.raw.get("metadata") or {}).get("deletionTimestamp"))


def _changed(request: AdmissionRequest[Any]) -> bool:
    old = request.old
    return request.object is None or not isinstance(old, type(request.object)) or old.spec != request.object.spec


async def _waits(kind: Kind, reader: Reader) -> str:
    """Where to look why there is no Model."""
    service = kind.group.rpartition(".rest.")[0]
    for found in await _definitions(reader):
        if not isinstance(found, RestDefinition):
            continue
        if (found.spec.service_ref, found.spec.names.plural) == (service, kind.plural):
            return f"the kind is not ready: see kubectl get restdefinition {found.name}"
    why = f"no RestDefinition makes {kind.plural} of the service {service}; see kubectl get restdefinition"
    return f"the kind is not ready: {why}"


async def _definitions(reader: Reader) -> Sequence[Any]:
    """None while the kind itself is not served yet."""
    try:
        return await reader.list(RestDefinition)
    except StatusError as error:
        if error.code != 404:
            raise
        return ()


def _answer(errors: Any, warnings: Any = ()) -> Allowed | Denied:
    found: tuple[FieldError, ...] = tuple(errors)
    said = tuple(warnings)
    return Denied(errors=found, warnings=said) if found else Allowed(warnings=said)

"""A kind with admission functions, as a system declares them: the same ones are shown in every home."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.client.api import ApiClient
from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Operation, Reader
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.certificates.keeper import Certificates
from trimtab.runtime.certificates.publish import Targets
from trimtab.runtime.webhooks.server import WebhookServer

NAME = "trimtab-gadgets"


class GadgetSpec(Spec):
    size: int
    owner: str | UnsetType = UNSET
    config: str | UnsetType = UNSET


class Gadget(Resource, group="hooks", version="v1", plural="gadgets"):
    spec: GadgetSpec


async def owned(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
    """Who creates a gadget owns it, if nobody is named."""
    assert request.object is not None
    gadget = request.object
    if gadget.spec.owner is not UNSET:
        return Allowed()
    labels = {} if isinstance(gadget.metadata.labels, UnsetType) else gadget.metadata.labels
    metadata = msgspec.structs.replace(gadget.metadata, labels={**labels, "hooks.dev/by": "owned"})
    return Allowed(object=gadget.replace(spec=gadget.spec.replace(owner=request.user.username), metadata=metadata))


async def sized(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
    """Small enough, and what it names is there; a frozen one does not change."""
    assert request.object is not None
    if request.old is not None and "hooks.dev/frozen" in (request.old.metadata.annotations or {}):
        return Denied(message="it is frozen")
    spec, errors = request.object.spec, []
    if spec.size > 10:
        errors.append(FieldError("spec.size", FieldProblem.INVALID, spec.size, "must be at most 10"))
    config = spec.config
    if not isinstance(config, UnsetType) and await reader.find(ConfigMap, config, request.namespace) is None:
        errors.append(FieldError("spec.config", FieldProblem.NOT_FOUND, config))
    if errors:
        return Denied(errors=tuple(errors))
    return Allowed(warnings=("a gadget of this size is slow",) if spec.size > 5 else ())


async def kept(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
    """The last gadget stays."""
    assert request.old is not None
    gadgets = await reader.list(Gadget, request.namespace)
    return Allowed() if len(gadgets) > 1 else Denied(message="the last gadget stays")


ADMISSION = (
    Admission(name="gadget-owner", kinds=(Gadget,), function=owned, operations=(Operation.CREATE,), mutating=True),
    Admission(name="gadget-size", kinds=(Gadget,), function=sized),
    Admission(name="gadget-last", kinds=(Gadget,), function=kept, operations=(Operation.DELETE,)),
)


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "hooks.trimtab.dev/v1",
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


@contextlib.asynccontextmanager
async def serving(
    client: ApiClient,
    namespace: str,
    functions: Sequence[Admission],
    reader: Reader,
    definitions: tuple[str, ...] = (),
    **more: Any,
) -> AsyncIterator[tuple[str, Certificates]]:
    """A webhook server on loopback with certificates of its own; its URL."""
    targets = Targets(validating=(NAME,), mutating=(NAME,), definitions=definitions)
    certificates = Certificates(client, namespace=namespace, name="hooks", hosts=("127.0.0.1",), targets=targets)
    await certificates.refresh()
    server = WebhookServer(functions, tls=certificates.context, reader=reader, port=0, **more)
    try:
        yield f"https://127.0.0.1:{await server.start()}", certificates
    finally:
        await server.stop()

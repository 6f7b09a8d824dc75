"""Drive a VirtualService of someone else: set traffic on its routes to us, and give it back in the end.

Its lists of routes are applied whole, at the revision that was read: whatever others change meanwhile is seen first, and
what is no route is never touched. All lists that it has are applied, ours or not: a list that we once applied and then
left out would be deleted. It is given back by a patch, for the same reason.
"""

from __future__ import annotations

from msgspec import UnsetType

from trimtab.client.protocol import Client, Named
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import is_deleting, uncached
from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.objects.drifting import Drift, drifts
from trimtab.systems.delivery.objects.enforcing import ATTEMPTS, MANAGER, Conflict, Document, Enforced
from trimtab.systems.delivery.objects.grounds import Confirm, unasked
from trimtab.systems.delivery.objects.routes import SECTIONS
from trimtab.systems.delivery.objects.routing import (
    API_VERSION,
    MEMORY,
    Traffic,
    applied_of,
    applied_to,
    driven,
    problems,
    released,
)

VIRTUAL_SERVICE = Named(API_VERSION, "VirtualService")


async def drive(
    client: Client, canary: CanaryDeployment, traffic: Traffic, *, dry: bool = False, confirm: Confirm = unasked
) -> Enforced:
    """The VirtualService that the spec names, with this traffic. Problems of it come as conflicts; then it is left alone.
    `confirm` is awaited before it is written to."""
    name = canary.spec.virtual_service.name
    if isinstance(name, UnsetType):
        raise ValueError("the spec names no VirtualService to drive")
    key = ("VirtualService", name)
    live = await _find(client, name, canary.namespace)
    for _ in range(ATTEMPTS):
        if live is None:
            return Enforced(conflicts=(Conflict(*key, "does not exist"),))
        found: Document = live.raw
        if why := problems(found, canary):
            return Enforced(
                objects={key: found}, conflicts=tuple(Conflict(*key, f"cannot be driven: {w}") for w in why)
            )
        wanted = driven(found, canary, traffic)
        if wanted == found:
            return Enforced(objects={key: found})
        told: tuple[Drift, ...] = ()
        if applied_to(found, canary) == applied_of(wanted["spec"], canary):
            told = tuple(drifts(found, wanted, wanted, MANAGER))
        if dry:
            return Enforced(objects={key: found}, drifts=told)
        await confirm()
        try:
            answer = await client.apply(Untyped(_partial(wanted, canary)), manager=MANAGER, force=True)
        except StatusError as error:
            if error.code == 422:
                why_not = f"is refused by the server: {error.message[:512]}"
                return Enforced(objects={key: found}, conflicts=(Conflict(*key, why_not),))
            if error.code not in (404, 409):
                raise
            refused = error
            live = await _find(uncached(client), name, canary.namespace)
            continue
        return Enforced(objects={key: _document(answer)}, drifts=told)
    raise refused


async def release(client: Client, canary: CanaryDeployment, name: str = "") -> Document | None:
    """The VirtualService as its author wrote it, with all traffic at stable. None when there is none. Without a name, the
    one that the spec names."""
    name = name or canary.spec.virtual_service.name or ""
    if not name:
        return None
    live = await _find(uncached(client), name, canary.namespace)  # nobody looks again after this
    for _ in range(ATTEMPTS):
        if live is None:
            return None
        wanted = released(live.raw, canary)
        if wanted == live.raw or is_deleting(live):
            return dict(live.raw)
        try:
            return _document(await client.patch(live, Untyped(wanted)))
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            refused = error
        live = await _find(uncached(client), name, canary.namespace)
    raise refused


async def _find(client: Client, name: str, namespace: str) -> Untyped | None:
    try:
        return Untyped(_document(await client.get(VIRTUAL_SERVICE, name, namespace)))
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _partial(wanted: Document, canary: CanaryDeployment) -> Document:
    metadata = wanted["metadata"]
    memory = MEMORY + canary.name
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualService",
        "metadata": {
            **{name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")},
            "annotations": {memory: metadata["annotations"][memory]},
        },
        "spec": {section: wanted["spec"][section] for section in SECTIONS if section in wanted["spec"]},
    }


def _document(found: object) -> Document:
    raw = getattr(found, "raw", None) or {}
    return {**raw, "apiVersion": API_VERSION, "kind": "VirtualService"}

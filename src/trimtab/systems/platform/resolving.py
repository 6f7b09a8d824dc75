"""Who a name means: a resource of the same project first, else one that another project shares with it; and which of its
published versions. Two that are shared under one name are nobody: the author must say which by unsharing one.
"""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import AnyKind, Client, Named, Query
from trimtab.client.transport import Call, document_of
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource
from trimtab.systems.platform.convertors import is_whole
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import LATEST, Addon, Blueprint, Workload
from trimtab.systems.platform.sharing import reaches

R = TypeVar("R", bound=Resource)
V = TypeVar("V", Addon, Blueprint)
REPOSITORY = Named("hub.trimtab.dev/v3", "Repository")


async def resolve(client: Client, kind: type[R], name: str, project: str) -> R:
    """What `name` means in `project`. Fault `<Kind>Missing` or `<Kind>Ambiguous`."""
    found = await _resolve(client, kind, name, project)
    if not isinstance(found, kind):
        raise Fault(f"{kind.__name__}Invalid", f"{kind.__name__} {name} is of another shape than this release knows")
    return found


async def resolve_repository(client: Client, name: str, project: str) -> dict[str, Any]:
    """The document of a Repository, which is another system's kind."""
    found = await _resolve(client, REPOSITORY, name, project)
    return dict(found.raw or {})


async def _resolve(client: Client, kind: AnyKind, name: str, project: str) -> Any:
    told = kind.__name__ if isinstance(kind, type) else kind.kind
    try:
        return await client.get(kind, name, project)
    except StatusError as error:
        if error.code != 404:
            raise
    try:
        listed = await client.list(kind, Query(fields=f"metadata.name={name}"))
    except StatusError as error:
        if error.code != 404:
            raise
        raise Fault(f"{told}Missing", f"this API does not serve {told}") from None
    shared = [item for item in listed.items if item.name == name and reaches(_sharing(item), item.namespace, project)]
    if not shared:
        raise Fault(f"{told}Missing", f"{told} {name} is neither in project {project} nor shared with it")
    if len(shared) > 1:
        owners = ", ".join(sorted(item.namespace for item in shared))
        raise Fault(
            f"{told}Ambiguous",
            f"{told} {name} is shared with project {project} by several: {owners}; rename all but one",
        )
    return shared[0]


def _sharing(obj: Any) -> Any:
    spec = (obj.raw or {}).get("spec")
    return spec.get("sharing") if isinstance(spec, dict) else None


async def published(api: ApiClient, obj: V, wanted: str) -> V:
    """The resource as it was published at a version; `latest` is the newest, or the draft when nothing ever was."""
    if obj.version() and (wanted == obj.version() or (wanted == LATEST and _is_whole(obj))):
        return obj
    found = await _version(api, obj, wanted)
    if found is not None:
        return found
    if wanted == LATEST:
        return obj
    raise Fault("VersionMissing", f"{type(obj).__name__} {obj.name} was never published at version {wanted}")


def _is_whole(obj: Addon | Blueprint) -> bool:
    """Whether it is published: one whose files are still to come is not."""
    return not isinstance(obj, Addon) or is_whole(obj)


async def _version(api: ApiClient, obj: V, wanted: str) -> V | None:
    place = await api.place(type(obj))
    call = Call(method="GET", path=place.path(obj.namespace, obj.name), query={"version": wanted})
    try:
        document = document_of((await api.transport.call(call)).body)
    except StatusError as error:
        if error.code not in (400, 404, 410):
            raise
        return None
    try:
        made = convert(document, type(obj))
    except msgspec.ValidationError as error:
        raise Fault("VersionInvalid", f"version {wanted} of {obj.name} is of another shape: {error}") from None
    # A server without versions answers with what is there now.
    return made if made.version() == wanted or (wanted == LATEST and made.version()) else None


async def artifact(api: ApiClient, obj: Addon | Workload, path: str) -> bytes:
    """The bytes of a file of a resource, at its version, by the API. Fault when it was never uploaded."""
    place = await api.place(type(obj))
    target = f"{place.path(obj.namespace, obj.name)}/artifacts/{quote(path, safe='/')}"
    query = {"version": obj.version()} if obj.version() else {}
    try:
        reply = await api.transport.call(Call(method="GET", path=target, query=query, accept="*/*"))
    except StatusError as error:
        if error.code != 404:
            raise
        raise Fault("ArtifactMissing", f"file {path} was not uploaded yet") from None
    return reply.body

"""`trimtab apply`: files become objects by server-side apply. Namespaces, projects and definitions go first, and what needs a
definition waits until it is served. One bad document does not stop the others.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import FAILED, OK, USAGE, Problem, complain, plain, run, together, told
from trimtab.cli.manifests import Bad, Manifest, read
from trimtab.cli.output import named
from trimtab.client.api import APPLY
from trimtab.client.discovery import ApiResource, Catalogue
from trimtab.client.transport import Call, document_of
from trimtab.model.errors import StatusError

ESTABLISHED_WITHIN = 30.0
FIRST = ("Namespace", "Project", "CustomResourceDefinition")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    manager: str = "trimtab"
    force: bool = False
    dry_run: bool = False
    recursive: bool = False


def apply(access: Access, sources: list[str], options: Options) -> int:
    return run(_apply(access, sources, options))


async def _apply(access: Access, sources: list[str], options: Options) -> int:
    if not sources:
        raise Problem("name a file, a folder or - with -f", USAGE)
    found = read(sources, recursive=options.recursive)
    if not found:
        raise Problem(f"there is no object in {', '.join(sources)}")
    codes: list[int] = []
    for bad in found:
        if isinstance(bad, Bad):
            complain(f"{bad.where}: {bad.problem}")
            codes.append(FAILED)
    good = [each for each in found if isinstance(each, Manifest)]
    async with session(access) as server:
        first = sorted((m for m in good if m.kind in FIRST), key=lambda m: FIRST.index(m.kind))
        definitions: list[Manifest] = []
        for manifest in first:
            codes.append(await _one(server, manifest, options))
            if manifest.kind == "CustomResourceDefinition" and codes[-1] == OK:
                definitions.append(manifest)
        if definitions and not options.dry_run:
            await wait_until_served(server, definitions)
        codes += [await _one(server, manifest, options) for manifest in good if manifest.kind not in FIRST]
    return together(codes)


async def _one(server: Session, manifest: Manifest, options: Options) -> int:
    try:
        print(plain(await applied(server, manifest, options)), flush=True)
    except (StatusError, Problem) as error:
        code, message = told(error)
        complain(f"{manifest.where}: {message}")
        return code
    return OK


async def applied(server: Session, manifest: Manifest, options: Options) -> str:
    """Apply one document. Returns the line that says what became of it."""
    resource = await resource_of(server, manifest)
    document = copy.deepcopy(manifest.document)
    metadata = document["metadata"]
    if "name" not in metadata:
        raise Problem("apply needs metadata.name; generateName is for create")
    metadata.pop("managedFields", None)
    namespace = manifest.namespace or server.namespace
    path = resource.place.path(namespace, metadata["name"])
    before = await _before(server, path)
    query = {"fieldManager": options.manager, "fieldValidation": "Strict"}
    if options.force:
        query["force"] = "true"
    if options.dry_run:
        query["dryRun"] = "All"
    call = Call(method="PATCH", path=path, query=query, body=orjson.dumps(document), content_type=APPLY)
    reply = await server.transport.call(call)
    after = document_of(reply.body)
    outcome = "created" if before is None else "unchanged" if _same(before, after) else "configured"
    return f"{named(resource, metadata['name'])} {outcome}" + (" (dry run)" if options.dry_run else "")


async def resource_of(server: Session, manifest: Manifest) -> ApiResource:
    catalogue = await server.catalogue()
    resource = catalogue.kind(manifest.api_version, manifest.kind)
    if resource is None:
        known = "".join(f"; {one} has {', '.join(kinds)}" for one, kinds in _known(catalogue, manifest.api_version))
        raise Problem(f'no matches for kind "{manifest.kind}" in version "{manifest.api_version}"{known}')
    return resource


def _known(catalogue: Catalogue, api_version: str) -> Iterator[tuple[str, list[str]]]:
    """The kinds of the same group, by version."""
    group = api_version.rpartition("/")[0]
    of_group = [each for each in catalogue if each.group == group]
    for one in dict.fromkeys(each.api_version for each in of_group):
        yield one, sorted({each.kind for each in of_group if each.api_version == one})


async def _before(server: Session, path: str) -> dict[str, Any] | None:
    try:
        return await server.read(path)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether nothing happened. A dry run keeps the revision, so it does not tell; the rest does."""
    return _essence(before) == _essence(after)


def _essence(document: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in document["metadata"].items() if name != "resourceVersion"}
    managers = [{**entry, "time": ""} for entry in metadata.get("managedFields") or ()]
    return {**document, "metadata": {**metadata, "managedFields": managers}}


async def wait_until_served(server: Session, definitions: list[Manifest]) -> None:
    """Wait until the server serves the kinds of these definitions, which it has taken; others fail later, by name."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
    waiting = {m.metadata["name"] for m in definitions}
    kinds = {
        (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
        for spec in (m.document["spec"] for m in definitions)
        for version in spec["versions"]
        if version.get("served")
    }
    try:
        async with asyncio.timeout(ESTABLISHED_WITHIN):
            while waiting:
                for name in sorted(waiting):
                    if await _established(server, path + name):
                        waiting.discard(name)
                if waiting:
                    await asyncio.sleep(0.05)
            while True:
                catalogue = await server.catalogue(anew=True)
                if all(catalogue.kind(*kind) is not None for kind in kinds):
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        await server.catalogue(anew=True)


async def _established(server: Session, path: str) -> bool:
    """Whether there is nothing to wait for: it is served, it never will be, or it was not even created."""
    try:
        document = await server.read(path)
    except StatusError as error:
        if error.code != 404:
            raise
        return True
    conditions = {c["type"]: c["status"] for c in (document.get("status") or {}).get("conditions") or ()}
    return conditions.get("Established") == "True" or conditions.get("NamesAccepted") == "False"

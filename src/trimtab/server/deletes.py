"""Delete: at once when nothing holds the object, else marked, and gone when its last finalizer is.

Life of a deletion: asked for → `deletionTimestamp` set (finalizers remain) → each holder removes its finalizer → removed.
The propagation policies Foreground and Orphan are finalizers too; the garbage collector is their holder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError, bad_request, conflict
from trimtab.server import body, reads
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.http import Request, Response, json_response
from trimtab.server.options import DeleteOptions, delete_options, list_options
from trimtab.server.registry import Served
from trimtab.server.settle import rehearse, turn
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Conflict, Entry, Op

if TYPE_CHECKING:
    from trimtab.server.core import Server

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
ATTEMPTS = 5
OPTION_TYPES = {
    "gracePeriodSeconds": int,
    "orphanDependents": bool,
    "propagationPolicy": str,
    "preconditions": dict,
    "dryRun": list,
}


async def delete(server: Server, request: Request, served: Served, target: Target) -> Response:
    options = _options(request, served)
    await server.namespaces.check_delete(served.kind, target.name)
    document, gone = await remove(server, request, served, target.namespace, target.name, options)
    if not gone or served.strategy.returns_deleted:
        return Response(body=served.encode(document))
    details = {
        "name": target.name,
        "group": served.kind.group,
        "kind": served.kind.plural,
        "uid": document["metadata"].get("uid", ""),
    }
    if not details["group"]:
        del details["group"]
    return json_response(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    )


async def delete_collection(server: Server, request: Request, served: Served, target: Target) -> Response:
    """Deletes what the list shows, object by object; one that is gone meanwhile is no failure."""
    options = _options(request, served)
    listing = list_options(request.query)
    page = await reads.fetch(served, target, listing)
    for entry in page.entries:
        try:
            await remove(server, request, served, entry.key.namespace, entry.key.name, options)
        except StatusError as error:
            if error.code != 404:
                raise
    items = [served.item(entry) for entry in page.entries]
    meta = reads.list_meta(served, page)
    return Response(body=reads.list_body(served.kind.list_kind, served.kind.api_version, meta, items))


async def remove(
    server: Server, request: Request, served: Served, namespace: str, name: str, options: DeleteOptions
) -> tuple[Document, bool]:
    """Delete or mark one object. Returns it, and whether it is gone."""
    for attempt in range(ATTEMPTS):
        async with turn(served, namespace, name, attempt):
            entry, live = await served.load(namespace, name)
            _check_preconditions(served, live, entry, options)
            admission = AdmissionRequest(
                operation=Operation.DELETE,
                kind=served.kind,
                subresource="",
                namespace=namespace,
                name=name,
                object=None,
                old=live,
                user=request.user,
                dry_run=options.dry_run,
                warn=request.warn,
                annotate=request.annotate,
                options=_shown_options(options),
            )
            if server.admission.mutates(admission):
                await server.admission.mutate(admission)
            await server.admission.validate(admission)
            try:
                return await _remove(server, served, entry, live, options)
            except Conflict:
                continue
    raise conflict(
        served.kind.plural,
        served.kind.group,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


async def _remove(
    server: Server, served: Served, entry: Entry, live: Document, options: DeleteOptions
) -> tuple[Document, bool]:
    metadata = {**live["metadata"]}
    finalizers = metadata.get("finalizers") or []
    finalizers = held_by(finalizers, options.propagation or _usual(served, finalizers))
    if not metadata.get("deletionTimestamp"):
        finalizers += [finalizer for finalizer in served.strategy.finalizers_on_delete if finalizer not in finalizers]
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    marked: Document = {**live, "metadata": metadata}
    if server.deletable(served, marked):
        if options.dry_run:
            await rehearse(served, live, entry.revision, Op.DELETE)
            return live, True
        gone = await served.backend.commit(served.write(live, entry.revision, Op.DELETE))
        return served.decode(gone), True
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = format_time(server.clock.now())
        if served.strategy.graceful:
            metadata["deletionGracePeriodSeconds"] = 0
            if served.strategy.has_generation and metadata.get("generation"):
                metadata["generation"] += 1
        served.strategy.deleting(marked)
    if marked == live or options.dry_run:
        return marked, False
    committed = await served.backend.commit(served.write(marked, entry.revision))
    return served.decode(committed), False


def _usual(served: Served, finalizers: list[str]) -> str:
    """The policy of a deletion that names none: the object's finalizers say it, or the kind does."""
    return "Orphan" if served.strategy.orphans and not {ORPHAN, FOREGROUND} & set(finalizers) else ""


def held_by(finalizers: list[str], propagation: str) -> list[str]:
    """The finalizers of an object whose deletion was asked for with this policy."""
    if not propagation:
        return list(finalizers)
    kept = [finalizer for finalizer in finalizers if finalizer not in (ORPHAN, FOREGROUND)]
    if propagation == "Orphan":
        kept.append(ORPHAN)
    elif propagation == "Foreground":
        kept.append(FOREGROUND)
    return kept


def _check_preconditions(served: Served, live: Document, entry: Entry, options: DeleteOptions) -> None:
    kind, name = served.kind, live["metadata"]["name"]
    uid = live["metadata"].get("uid")
    if options.uid is not None and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). The object might have "
            "been deleted and then recreated"
        )
        raise conflict(kind.kind, kind.group, name, why)
    if options.resource_version is not None and options.resource_version != str(entry.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in "
            f"record ({entry.revision}). The object might have been modified"
        )
        raise conflict(kind.kind, kind.group, name, why)


def _shown_options(options: DeleteOptions) -> Document:
    """DeleteOptions as webhooks see them."""
    given = {"uid": options.uid, "resourceVersion": options.resource_version}
    fields = {
        "gracePeriodSeconds": options.grace_period,
        "preconditions": {field: value for field, value in given.items() if value is not None} or None,
        "propagationPolicy": options.propagation or None,
    }
    return {field: value for field, value in fields.items() if value is not None}


def _options(request: Request, served: Served) -> DeleteOptions:
    options = _parsed(request)
    if not options.propagation and served.strategy.deletion_warning:
        request.warn(served.strategy.deletion_warning)
    return options


def _parsed(request: Request) -> DeleteOptions:
    if not request.body:
        return delete_options(request.query, None)
    document = body.decode(request.body, request.header(b"content-type"), kind="DeleteOptions", native=True)
    if not isinstance(document, dict) or document.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("the body of a delete must be DeleteOptions")
    for field, wanted in OPTION_TYPES.items():
        value = document.get(field)
        if value is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            raise bad_request(f"DeleteOptions.{field} is of the wrong type: {body.go_type(value)}")
    return delete_options(request.query, document)

"""Create and update: the body is the whole object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from trimtab.model.errors import Bare, FieldError, FieldProblem, StatusError, bad_request, invalid, not_found
from trimtab.server import documents
from trimtab.server.http import Request, Response
from trimtab.server.naming import generated
from trimtab.server.registry import Served
from trimtab.server.settle import ATTEMPTS, MODIFIED, changed_meanwhile, check_uid, insert, intend, replace
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Conflict

if TYPE_CHECKING:
    from trimtab.server.core import Server

GENERATE_ATTEMPTS = 8


async def create(server: Server, request: Request, served: Served, target: Target) -> Response:
    intent = intend(server, request, served, target, "CreateOptions")
    read = documents.read(request, served, target, intent.options.field_validation)
    new, metadata = read.document, read.document["metadata"]
    await server.namespaces.check_create(served.kind, target.namespace, metadata.get("name", ""))
    generate = metadata.get("generateName") if not metadata.get("name") else None
    intent.names = bool(generate)
    for attempt in range(GENERATE_ATTEMPTS):
        if generate:
            metadata["name"] = generated(generate)
        try:
            return await insert(intent, _copy(new) if generate else new, read.errors)
        except StatusError as error:
            if error.reason != "AlreadyExists" or not generate or attempt == GENERATE_ATTEMPTS - 1:
                raise
            if (error.details or {}).get("name") != metadata["name"]:  # one that a webhook chose
                raise
    raise AssertionError("unreachable")


async def update(server: Server, request: Request, served: Served, target: Target) -> Response:
    """PUT. The body is the whole object; with a resourceVersion it is a compare-and-swap."""
    intent = intend(server, request, served, target, "UpdateOptions")
    read = documents.read(request, served, target, intent.options.field_validation)
    new = read.document
    given = new["metadata"].get("resourceVersion")
    for _ in range(ATTEMPTS):
        entry = await served.backend.get(served.key(target.namespace, target.name))
        if entry is None:
            if served.strategy.create_on_update and not target.subresource:
                if given:
                    raise changed_meanwhile(served, target.name, "StorageError: invalid object, Code: 4")
                await server.namespaces.check_create(served.kind, target.namespace, target.name)
                await server.authorize_create(request, target)
                return await insert(intent, new, read.errors)
            if new["metadata"].get("uid"):
                wanted = f"UID in precondition: {new['metadata']['uid']}, UID in object meta: "
                raise changed_meanwhile(
                    served, target.name, f"StorageError: invalid object, Precondition failed: {wanted}"
                )
            raise not_found(served.kind.plural, served.kind.group, target.name)
        if not given and not served.strategy.unconditional_update:
            why = FieldError(
                "metadata.resourceVersion", FieldProblem.INVALID, Bare("0x0"), "must be specified for an update"
            )
            raise invalid(served.kind.plural, served.kind.group, target.name, [why])
        if given and given != str(entry.revision):
            if not (given.isascii() and given.isdigit()):
                raise bad_request(f'resourceVersion: Invalid value: "{given}": it is not a revision')
            raise changed_meanwhile(served, target.name, MODIFIED)
        check_uid(served, new, entry, served.decode(entry))
        try:
            return await replace(intent, _copy(new), served.decode(entry), entry, read.errors)
        except Conflict:
            if given:
                raise changed_meanwhile(served, target.name, MODIFIED) from None
    raise changed_meanwhile(served, target.name, MODIFIED)


def _copy(document: Document) -> Document:
    copied: Document = orjson.loads(orjson.dumps(document))
    return copied

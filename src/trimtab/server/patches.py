"""Patch and server-side apply: the body says what should change, and is tried again when someone else was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.errors import (
    FieldError,
    FieldProblem,
    StatusError,
    bad_request,
    invalid,
    not_found,
    unsupported_media_type,
)
from trimtab.server import apply, body, documents
from trimtab.server.conversion.managed import bare, stepped
from trimtab.server.http import Request, Response
from trimtab.server.patch import json_patch, merge, strategic
from trimtab.server.registry import Served
from trimtab.server.settle import (
    ATTEMPTS,
    MODIFIED,
    Intent,
    changed_meanwhile,
    check_uid,
    insert,
    intend,
    replace,
    turn,
)
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Conflict

if TYPE_CHECKING:
    from trimtab.server.core import Server

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(server: Server, request: Request, served: Served, target: Target) -> Response:
    media = body.media_type(request.header(b"content-type"))
    kind = {JSON_PATCH: "json", MERGE_PATCH: "merge", STRATEGIC_PATCH: "strategic", APPLY_PATCH: "apply"}.get(media)
    accepted = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]
    if not served.strategy.native:
        accepted.remove(STRATEGIC_PATCH)
        kind = None if kind == "strategic" else kind
    if kind is None:
        raise unsupported_media_type(accepted)
    intent = intend(server, request, served, target, "PatchOptions", patch_type=kind)
    if kind == "apply":
        return await _apply(intent)
    return await _patch(intent, _patcher(intent, kind))


Patcher = Callable[[Document], Document]


def _patcher(intent: Intent, kind: str) -> Patcher:
    document = body.from_patch(intent.request.body, "" if kind == "strategic" else "error decoding patch: ")
    if kind == "json":
        if intent.options.field_validation == "Warn" and isinstance(document, list):
            for problem in json_patch.unknown_fields(document):
                intent.request.warn(problem)
        return lambda live: json_patch.apply(live, document)
    if document is None and kind == "strategic":
        document = {}
    if document is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(document, dict):
        given = body.go_type(document)
        lead = "" if kind == "strategic" else "error decoding patch: "
        raise bad_request(f"{lead}json: cannot unmarshal {given} into Go value of type map[string]interface {{}}")
    if kind == "strategic":
        document = {field: value for field, value in document.items() if field not in ("apiVersion", "kind")}
    if kind == "merge":
        return lambda live: merge.apply(live, document)
    schema = intent.served.kind.schema
    return lambda live: strategic.apply(live, document, schema.document, schema.definitions)


async def _patch(intent: Intent, patcher: Patcher) -> Response:
    served, target = intent.served, intent.target
    for attempt in range(ATTEMPTS):
        async with turn(served, target.namespace, target.name, attempt):
            entry, live = await served.load(target.namespace, target.name)
            new = patcher(live)
            _check_patched(intent, new)
            documents.check_identity(new, served, target)
            given = new["metadata"].get("resourceVersion")
            if given and given != str(entry.revision):
                raise changed_meanwhile(served, target.name, MODIFIED)
            errors = _walk_patched(intent, new)
            try:
                return await replace(intent, new, live, entry, errors)
            except Conflict:
                continue
    raise changed_meanwhile(served, target.name, MODIFIED)


def _check_patched(intent: Intent, new: Any) -> None:
    """A patch that makes another kind of an object is refused as a bad value, not as a bad request."""
    kind = intent.served.kind
    if not isinstance(new, dict):
        raise bad_request("the patch does not leave an object")
    name, api_version = new.get("kind"), new.get("apiVersion")
    if name == kind.kind and api_version == kind.api_version:
        return
    if intent.served.strategy.native:
        why = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:100"'
        raise _bad_patch(new, why)
    if api_version != kind.api_version:
        error = FieldError("apiVersion", FieldProblem.INVALID, api_version, f"must be {kind.api_version}")
        raise invalid(kind.kind, "", intent.target.name, [error])
    error = FieldError("kind", FieldProblem.INVALID, name, f"must be {kind.kind}")
    raise invalid(str(name), kind.group, intent.target.name, [error])


def _walk_patched(intent: Intent, new: Document) -> list[FieldError]:
    try:
        return documents.walk(intent.request, intent.served, new, intent.options.field_validation, _twice(intent))
    except documents.Undecoded as error:
        raise _bad_patch(new, error.why) from None


def _twice(intent: Intent) -> list[str]:
    if intent.options.field_validation == "Ignore":
        return []
    request = intent.request
    return body.duplicate_keys(request.body, request.header(b"content-type"), body.from_patch(request.body))


def _bad_patch(new: Document, why: str) -> StatusError:
    value = orjson.dumps(new).decode()
    return invalid("", "", "", [FieldError("patch", FieldProblem.INVALID, value, why)])


async def _apply(intent: Intent) -> Response:
    """Server-side apply: the body is what the manager means to own."""
    served, target = intent.served, intent.target
    config = documents.read_applied(intent.request, served, target)
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    given = config["metadata"].get("resourceVersion")
    for attempt in range(ATTEMPTS):
        async with turn(served, target.namespace, target.name, attempt):
            entry = await served.backend.get(served.key(target.namespace, target.name))
            live = served.decode(entry) if entry else None
            if live is None:
                if target.subresource:
                    raise not_found(served.kind.plural, served.kind.group, target.name)
                if not config["metadata"].get("name"):
                    raise documents.nameless(target.name)
                if config["metadata"].get("uid"):
                    why = f"the provided object specified uid {config['metadata']['uid']}, and no existing object was found"
                    raise changed_meanwhile(served, target.name, f"uid mismatch: {why}")
                await intent.server.namespaces.check_create(served.kind, target.namespace, target.name)
                await intent.server.authorize_create(intent.request, target)
            elif given and entry is not None and given != str(entry.revision):
                raise changed_meanwhile(served, target.name, MODIFIED)
            elif entry is not None:
                check_uid(served, config, entry, live)
            steps = apply.applying(
                live,
                config,
                manager=intent.manager,
                force=bool(intent.options.force),
                api_version=served.kind.api_version,
                schema=served.kind.schema,
                subresource=target.subresource,
                now=intent.now,
                reset=served.strategy.reset(target.subresource),
                versions=None if served.versions is None else served.versions.schemas,
            )
            merged = await stepped(steps, served.versions)
            merged["metadata"]["name"] = target.name
            if served.kind.namespaced:
                merged["metadata"]["namespace"] = target.namespace
            errors = []
            if live is None or served.versions is None or bare(merged) != bare(live):
                errors = documents.walk(intent.request, served, merged, "Ignore")  # what stays needs no new defaults
            try:
                if live is None or entry is None:
                    return await insert(intent, merged, errors, applied=True)
                return await replace(intent, merged, live, entry, errors, applied=True)
            except Conflict:
                continue
    raise changed_meanwhile(served, target.name, MODIFIED)

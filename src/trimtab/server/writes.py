"""Create, update, patch and apply: four ways to a new object, one way from there to the store.

Flow: the body becomes a document → `_settle` makes it whole (system metadata, the kind's own rules, managed fields,
mutating admission), then judges it (schema, rules, validating admission) → compare-and-swap. A write that changes nothing
keeps its revision. A patch without a resourceVersion is tried again when someone else was faster.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model import metadata as object_meta
from trimtab.model.errors import (
    Bare,
    FieldError,
    FieldProblem,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported_media_type,
)
from trimtab.server import apply, body, documents, options
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.apply.empty import empty_object
from trimtab.server.http import Request, Response
from trimtab.server.options import WriteOptions
from trimtab.server.patch import json_patch, merge, strategic
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import ABSENT, Conflict, Entry, Op, TooLarge

if TYPE_CHECKING:
    from trimtab.server.core import Server

ATTEMPTS = 5
GENERATE_ATTEMPTS = 8
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words
MAX_GENERATED = 63
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Intent(msgspec.Struct, kw_only=True):
    """Who wants to write what, through which door."""

    server: Server
    request: Request
    served: Served
    target: Target
    options: WriteOptions

    @property
    def manager(self) -> str:
        """The field manager: as given, or the program's name in the user agent."""
        if self.options.field_manager:
            return self.options.field_manager
        agent = self.request.header(b"user-agent").split("/", 1)[0]
        return "".join(char for char in agent if char.isprintable())[:128] or "unknown"

    @property
    def now(self) -> str:
        return self.server.timestamp()


async def create(server: Server, request: Request, served: Served, target: Target) -> Response:
    intent = _intent(server, request, served, target, "CreateOptions")
    read = documents.read(request, served, target, intent.options.field_validation)
    new, metadata = read.document, read.document["metadata"]
    if metadata.get("resourceVersion") not in (None, "", "0"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    await server.namespaces.check_create(served.kind, target.namespace, metadata.get("name", ""))
    generate = metadata.get("generateName") if not metadata.get("name") else None
    for attempt in range(GENERATE_ATTEMPTS):
        if generate:
            metadata["name"] = generate[: MAX_GENERATED - 5] + "".join(
                secrets.choice(SUFFIX_ALPHABET) for _ in range(5)
            )
        try:
            return await _create(intent, _copy(new) if generate else new, read.errors)
        except StatusError as error:
            if error.reason != "AlreadyExists" or not generate or attempt == GENERATE_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def update(server: Server, request: Request, served: Served, target: Target) -> Response:
    """PUT. The body is the whole object; with a resourceVersion it is a compare-and-swap."""
    intent = _intent(server, request, served, target, "UpdateOptions")
    read = documents.read(request, served, target, intent.options.field_validation)
    new = read.document
    given = new["metadata"].get("resourceVersion")
    for _ in range(ATTEMPTS):
        entry = await served.backend.get(served.key(target.namespace, target.name))
        if entry is None:
            if served.strategy.create_on_update and not target.subresource:
                if given:
                    raise _conflict(served, target.name, "StorageError: invalid object, Code: 4")
                await server.namespaces.check_create(served.kind, target.namespace, target.name)
                return await _create(intent, new, read.errors)
            if new["metadata"].get("uid"):
                wanted = f"UID in precondition: {new['metadata']['uid']}, UID in object meta: "
                raise _conflict(served, target.name, f"StorageError: invalid object, Precondition failed: {wanted}")
            raise not_found(served.kind.plural, served.kind.group, target.name)
        if not given and not served.strategy.unconditional_update:
            why = FieldError(
                "metadata.resourceVersion", FieldProblem.INVALID, Bare("0x0"), "must be specified for an update"
            )
            raise invalid(served.kind.plural, served.kind.group, target.name, [why])
        if given and given != str(entry.revision):
            if not (given.isascii() and given.isdigit()):
                raise bad_request(f'resourceVersion: Invalid value: "{given}": it is not a revision')
            raise _conflict(served, target.name, MODIFIED)
        _check_uid(served, new, entry, served.decode(entry))
        try:
            return await _replace(intent, _copy(new), served.decode(entry), entry, read.errors)
        except Conflict:
            if given:
                raise _conflict(served, target.name, MODIFIED) from None
    raise _conflict(served, target.name, MODIFIED)


async def patch(server: Server, request: Request, served: Served, target: Target) -> Response:
    media = body.media_type(request.header(b"content-type"))
    kind = {JSON_PATCH: "json", MERGE_PATCH: "merge", STRATEGIC_PATCH: "strategic", APPLY_PATCH: "apply"}.get(media)
    accepted = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]
    if not served.strategy.native:
        accepted.remove(STRATEGIC_PATCH)
        kind = None if kind == "strategic" else kind
    if kind is None:
        raise unsupported_media_type(accepted)
    intent = _intent(server, request, served, target, "PatchOptions", patch_type=kind)
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
    for _ in range(ATTEMPTS):
        entry, live = await served.load(target.namespace, target.name)
        new = patcher(live)
        _check_patched(intent, new)
        documents.check_identity(new, served, target)
        given = new["metadata"].get("resourceVersion")
        if given and given != str(entry.revision):
            raise _conflict(served, target.name, MODIFIED)
        errors = _walk_patched(intent, new)
        try:
            return await _replace(intent, new, live, entry, errors)
        except Conflict:
            continue
    raise _conflict(served, target.name, MODIFIED)


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
    for _ in range(ATTEMPTS):
        entry = await served.backend.get(served.key(target.namespace, target.name))
        live = served.decode(entry) if entry else None
        if live is None:
            if target.subresource:
                raise not_found(served.kind.plural, served.kind.group, target.name)
            if not config["metadata"].get("name"):
                raise documents.nameless(target.name)
            if config["metadata"].get("uid"):
                why = f"the provided object specified uid {config['metadata']['uid']}, and no existing object was found"
                raise _conflict(served, target.name, f"uid mismatch: {why}")
            await intent.server.namespaces.check_create(served.kind, target.namespace, target.name)
        elif given and entry is not None and given != str(entry.revision):
            raise _conflict(served, target.name, MODIFIED)
        elif entry is not None:
            _check_uid(served, config, entry, live)
        merged = apply.apply(
            live,
            config,
            manager=intent.manager,
            force=bool(intent.options.force),
            api_version=served.kind.api_version,
            schema=served.kind.schema,
            subresource=target.subresource,
            now=intent.now,
            reset=None if served.kind.status else {},
        )
        merged["metadata"]["name"] = target.name
        if served.kind.namespaced:
            merged["metadata"]["namespace"] = target.namespace
        errors = documents.walk(intent.request, served, merged, "Ignore")
        try:
            if live is None or entry is None:
                return await _create(intent, merged, errors, applied=True)
            return await _replace(intent, merged, live, entry, errors, applied=True)
        except Conflict:
            continue
    raise _conflict(served, target.name, MODIFIED)


async def _create(intent: Intent, new: Document, errors: list[FieldError], *, applied: bool = False) -> Response:
    served, server = intent.served, intent.server
    metadata = new["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        metadata.pop(field, None)
    metadata["uid"] = _uid()
    metadata["creationTimestamp"] = intent.now
    metadata.pop("generation", None)
    if served.strategy.has_generation:
        metadata["generation"] = 1
    new = await _settle(intent, new, None, errors, applied=applied)
    key = served.key(metadata.get("namespace", ""), metadata["name"])
    if intent.options.dry_run:
        if await served.backend.get(key) is not None:
            raise already_exists(served.kind.plural, served.kind.group, key.name)
        return Response(code=201, body=served.encode(new))
    try:
        entry = await _commit(served, served.write(new, ABSENT, expires=server.expiry(served)))
    except Conflict:
        if applied:
            raise
        raise already_exists(served.kind.plural, served.kind.group, key.name) from None
    return Response(code=201, body=served.rendered(entry))


async def _replace(
    intent: Intent, new: Document, old: Document, entry: Entry, errors: list[FieldError], *, applied: bool = False
) -> Response:
    """Commit `new` in place of `old`, which is at `entry`. Raises the store's Conflict when that is no longer there."""
    served = intent.served
    _keep_system_fields(intent, new, old)
    new = await _settle(intent, new, old, errors, applied=applied)
    metadata = new["metadata"]
    if new == old:
        return Response(body=served.rendered(entry))
    if intent.options.dry_run:
        return Response(body=served.encode(new))
    if metadata.get("deletionTimestamp") and intent.server.deletable(served, new):
        await _commit(served, served.write(old, entry.revision, Op.DELETE))
        return Response(body=served.encode(new))  # at the revision of its last state, as the real server answers
    committed = await _commit(served, served.write(new, entry.revision, expires=intent.server.expiry(served)))
    return Response(body=served.rendered(committed))


async def _commit(served: Served, write: Any) -> Entry:
    try:
        return await served.backend.commit(write)
    except TooLarge:
        raise StatusError(413, "RequestEntityTooLarge", "Request entity too large: limit is 1572864", {}) from None


def _keep_system_fields(intent: Intent, new: Document, old: Document) -> None:
    """What the server writes stays when a writer leaves it out. What a writer changes of it, validation refuses."""
    before, after = old["metadata"], new["metadata"]
    if not after.get("uid"):
        after["uid"] = before["uid"]
    for field in ("creationTimestamp", "generation", "namespace", "resourceVersion"):
        after.pop(field, None)
        if field in before:
            after[field] = before[field]
    if before.get("deletionTimestamp"):
        after["deletionTimestamp"] = before["deletionTimestamp"]
        after["deletionGracePeriodSeconds"] = before.get("deletionGracePeriodSeconds")
        if after["deletionGracePeriodSeconds"] is None:
            del after["deletionGracePeriodSeconds"]
    after.pop("selfLink", None)
    after.setdefault("name", before["name"])
    if intent.target.subresource == "status" and not intent.served.strategy.native:
        new["metadata"] = {**before, **{k: after[k] for k in ("managedFields",) if k in after}}


async def _settle(
    intent: Intent, new: Document, old: Document | None, errors: list[FieldError], *, applied: bool
) -> Document:
    """From a walked document to the one that is committed. `errors` are what the walk found."""
    served, server, target = intent.served, intent.server, intent.target
    strategy, kind = served.strategy, served.kind
    if not applied:
        _manage(intent, new, old)
    strategy.prepare(new, old, target.subresource)
    if errors:  # what this door does not write was put back; what was wrong before and did not change is forgiven
        errors = kind.schema.walk(new, old).errors
    if old is None and kind.status and strategy.native:
        zero = empty_object(kind.api_version, kind.kind).get("status") or {}
        new["status"] = {**zero, **(new.get("status") or {})}
    operation = Operation.CREATE if old is None else Operation.UPDATE
    admission = AdmissionRequest(
        operation=operation,
        kind=kind,
        subresource=target.subresource,
        namespace=new["metadata"].get("namespace", ""),
        name=new["metadata"].get("name", ""),
        object=new,
        old=old,
        user=intent.request.user,
        dry_run=intent.options.dry_run,
        warn=intent.request.warn,
    )
    if server.admission.mutates(admission):
        mutated = await server.admission.mutate(admission)
        if mutated is not new:
            new = mutated
            errors = documents.walk(intent.request, served, new, "Ignore")
    if old is not None:
        new = apply.with_old_times(new, old)
    if old is not None and strategy.has_generation and strategy.bumps_generation(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    errors = [
        *_metadata_errors(served, new, old),
        *errors,
        *strategy.validate(new, old, target.subresource),
    ]
    errors += kind.schema.rules(new, old, errors)
    if errors:
        raise invalid(kind.kind, kind.group, new["metadata"].get("name", ""), errors)
    for warning in strategy.warnings(new, old):
        intent.request.warn(warning)
    await server.admission.validate(msgspec.structs.replace(admission, object=new))
    return new


def _metadata_errors(served: Served, new: Document, old: Document | None) -> list[FieldError]:
    before = old["metadata"] if old else None
    check = served.strategy.name_check
    errors = object_meta.validate(new["metadata"], namespaced=served.kind.namespaced, old=before, name_check=check)
    if served.strategy.native and new["metadata"].get("finalizers"):
        errors += object_meta.finalizer_errors(new["metadata"])
    return errors


def _manage(intent: Intent, new: Document, old: Document | None) -> None:
    managed = apply.update_managed_fields(
        old,
        new,
        manager=intent.manager,
        api_version=intent.served.kind.api_version,
        schema=intent.served.kind.schema,
        subresource=intent.target.subresource,
        now=intent.now,
        reset=None if intent.served.kind.status else {},
    )
    if managed:
        new["metadata"]["managedFields"] = managed
    else:
        new["metadata"].pop("managedFields", None)


def _intent(
    server: Server, request: Request, served: Served, target: Target, kind: str, patch_type: str = ""
) -> Intent:
    parsed = options.write_options(request.query, kind, patch_type=patch_type)
    return Intent(server=server, request=request, served=served, target=target, options=parsed)


def _check_uid(served: Served, new: Document, entry: Entry, old: Document) -> None:
    """A PUT or an apply that names a uid means that object and no other."""
    given, uid = new["metadata"].get("uid"), old["metadata"].get("uid")
    if given and given != uid:
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {uid}"
        raise _conflict(served, entry.key.name, why)


def _uid() -> str:
    """A random UUID (RFC 4122 §4.4)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _copy(document: Document) -> Document:
    copied: Document = orjson.loads(orjson.dumps(document))
    return copied


def _conflict(served: Served, name: str, why: str) -> StatusError:
    return conflict(served.kind.plural, served.kind.group, name, why)

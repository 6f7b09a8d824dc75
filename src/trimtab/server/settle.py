"""From a document that someone wants to the object that is committed: one way for every kind of write.

Flow: system metadata → managed fields → the kind's own rules → mutating admission → judgement (metadata, schema, rules,
validating admission) → compare-and-swap. A write that changes nothing keeps its revision.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model import metadata as object_meta
from trimtab.model.document import same
from trimtab.model.errors import FieldError, StatusError, already_exists, bad_request, conflict, internal, invalid
from trimtab.server import apply, documents, options
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.apply.empty import empty_object
from trimtab.server.backend import RehearsingBackend
from trimtab.server.conversion.managed import views_of
from trimtab.server.http import Request, Response
from trimtab.server.lifecycle.definitions import RESOURCE as DEFINITIONS
from trimtab.server.naming import identify
from trimtab.server.options import WriteOptions
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import ABSENT, Conflict, Entry, Key, Op, TooLarge

if TYPE_CHECKING:
    from trimtab.server.core import Server

ATTEMPTS = 5
GENERIC = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups of built-in kinds whose finalizers need no domain; that of a definition which ends has none."""
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Intent(msgspec.Struct, kw_only=True):
    """Who wants to write what, through which door."""

    server: Server
    request: Request
    served: Served
    target: Target
    options: WriteOptions
    names: bool = False
    """Whether the server makes the name of the object."""

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


def turn(served: Served, namespace: str, name: str, attempt: int) -> AbstractAsyncContextManager[None]:
    """Around one try to write an object."""
    if served.turns is None:
        return contextlib.nullcontext()
    return served.turns.turn(served.key(namespace, name), again=attempt > 0)


def intend(server: Server, request: Request, served: Served, target: Target, kind: str, patch_type: str = "") -> Intent:
    parsed = options.write_options(request.query, kind, patch_type=patch_type)
    return Intent(server=server, request=request, served=served, target=target, options=parsed)


async def insert(intent: Intent, new: Document, errors: list[FieldError], *, applied: bool = False) -> Response:
    served, server = intent.served, intent.server
    metadata = new["metadata"]
    given = metadata.get("resourceVersion")
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        metadata.pop(field, None)
    metadata["uid"] = _uid()
    metadata["creationTimestamp"] = intent.now
    metadata.pop("generation", None)
    if served.strategy.has_generation:
        metadata["generation"] = 1
    new = await _settle(intent, new, None, errors, applied=applied)
    key = served.key(new["metadata"].get("namespace", ""), new["metadata"]["name"])
    charge = await _charged(intent, new, None)
    if intent.options.dry_run:
        if (there := await served.backend.get(key)) is not None:
            raise _taken(served, key, there)
        await rehearse(served, new, ABSENT)
        if given:
            new["metadata"]["resourceVersion"] = given
        return Response(code=201, body=served.encode(new))
    try:
        with charge:
            if given not in (None, "", "0") and not applied:
                raise bad_request("resourceVersion should not be set on objects to be created")
            entry = await _commit(served, served.write(new, ABSENT, expires=server.expiry(served)))
    except Conflict as error:
        if applied:
            raise
        raise _taken(served, key, error.current) from None
    if key.resource == DEFINITIONS:
        await server.definitions.decided(entry.revision)
    return Response(code=201, body=served.rendered(entry))


async def replace(
    intent: Intent, new: Document, old: Document, entry: Entry, errors: list[FieldError], *, applied: bool = False
) -> Response:
    """Commit `new` in place of `old`, which is at `entry`. Raises the store's Conflict when that is no longer there."""
    served = intent.served
    _keep_system_fields(intent, new, old)
    new = await _settle(intent, new, old, errors, applied=applied)
    metadata = new["metadata"]
    if same(new, old) and served.is_settled(entry, new):
        return Response(body=served.rendered(entry))
    charge = await _charged(intent, new, old)
    if intent.options.dry_run:
        await rehearse(served, new, entry.revision)
        return Response(body=served.encode(new))
    with charge:
        if metadata.get("deletionTimestamp") and intent.server.deletable(served, new):
            await _commit(served, served.write(old, entry.revision, Op.DELETE))
            return Response(body=served.encode(new))  # at the revision of its last state, as the real server answers
        committed = await _commit(served, served.write(new, entry.revision, expires=intent.server.expiry(served)))
    return Response(body=served.rendered(committed))


async def _charged(intent: Intent, new: Document, old: Document | None) -> AbstractContextManager[None]:
    """Around the commit: what the object uses is charged to the quotas of its namespace, or it is refused."""
    quotas = intent.server.quotas
    if intent.target.subresource or new["metadata"].get("namespace") not in quotas.quotas:
        return _FREE
    return await quotas.charge(intent.served, new, old, dry_run=intent.options.dry_run) or _FREE


_FREE: AbstractContextManager[None] = contextlib.nullcontext()


async def rehearse(served: Served, new: Document, expect: int, op: Op = Op.PUT) -> None:
    """Raises what the backend would say against a write."""
    if isinstance(served.backend, RehearsingBackend):
        await served.backend.rehearse(served.write(new, expect, op))


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
        await _manage(intent, new, old)
    strategy.prepare(new, old, target.subresource)
    if old is None:
        strategy.authored(new, intent.request.user)
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
        annotate=intent.request.annotate,
        options={f: v for f in ("fieldManager", "fieldValidation") if (v := intent.request.query.get(f))},
    )
    if server.admission.mutates(admission):
        mutated = await server.admission.mutate(admission)
        if mutated is not new:
            identify(mutated, new, target, creates=old is None)
            new = mutated
            try:
                errors = documents.walk(intent.request, served, new, "Ignore")
            except documents.Undecoded as error:  # what a webhook made of it is not the client's fault
                raise internal(error.why) from None
    if old is not None:
        new = apply.with_old_times(new, old)
    if old is not None and strategy.has_generation and strategy.bumps_generation(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    errors = [
        *_metadata_errors(served, new, old),
        *errors,
        *strategy.validate(new, old, target.subresource),
    ]
    request = intent.request
    errors += await server.judging.rules(request.user.name, kind.schema, new, old, errors, request.warn)
    if errors:
        raise invalid(kind.kind, kind.group, new["metadata"].get("name", ""), errors)
    for warning in strategy.warnings(new, old):
        intent.request.warn(warning)
    name = new["metadata"]["name"] if intent.names else admission.name
    await server.admission.validate(msgspec.structs.replace(admission, object=new, name=name))
    return new


def _metadata_errors(served: Served, new: Document, old: Document | None) -> list[FieldError]:
    before = old["metadata"] if old else None
    check = served.strategy.name_check
    errors = object_meta.validate(new["metadata"], namespaced=served.kind.namespaced, old=before, name_check=check)
    if new["metadata"].get("finalizers") and served.strategy.native and served.kind.group not in GENERIC:
        errors += object_meta.finalizer_errors(new["metadata"])
    return errors


async def _manage(intent: Intent, new: Document, old: Document | None) -> None:
    versions = intent.served.versions
    managed = apply.update_managed_fields(
        old,
        new,
        manager=intent.manager,
        api_version=intent.served.kind.api_version,
        schema=intent.served.kind.schema,
        subresource=intent.target.subresource,
        now=intent.now,
        reset=intent.served.strategy.reset(intent.target.subresource),
        served=None if versions is None else versions.schemas,
        views=None if versions is None else await views_of(versions, old, new),
    )
    if managed:
        new["metadata"]["managedFields"] = managed
    else:
        new["metadata"].pop("managedFields", None)


def _taken(served: Served, key: Key, there: Entry | None) -> StatusError:
    """The name has an object already; who reads it shall know whether to wait."""
    refusal = already_exists(served.kind.plural, served.kind.group, key.name)
    if there is not None and orjson.loads(there.value)["metadata"].get("deletionTimestamp"):
        refusal.message = f"object is being deleted: {refusal.message}"
    return refusal


def check_uid(served: Served, new: Document, entry: Entry, old: Document) -> None:
    """A PUT or an apply that names a uid means that object and no other."""
    given, uid = new["metadata"].get("uid"), old["metadata"].get("uid")
    if given and given != uid:
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {uid}"
        raise changed_meanwhile(served, entry.key.name, why)


def _uid() -> str:
    """A random UUID (RFC 4122 §4.4). The system is asked for randomness for many at once."""
    if not _randomness:
        pool = os.urandom(16 * 256)
        _randomness.extend(pool[at : at + 16] for at in range(0, len(pool), 16))
    raw = bytearray(_randomness.pop())
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_randomness: list[bytes] = []


def changed_meanwhile(served: Served, name: str, why: str) -> StatusError:
    return conflict(served.kind.plural, served.kind.group, name, why)

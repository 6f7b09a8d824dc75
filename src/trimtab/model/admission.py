"""Admission: what a system has to say about a write before it is committed.

Flow: a system declares an `Admission` in its own package. The embedded server calls its function in the request; on a
cluster `runtime/webhooks` serves it as a webhook; a reconcile may repeat it (`repeat`). All go through `ask`.

Guarantees: the function sees copies, so it changes nothing by accident. It answers within `timeout` or the write is
refused. Whatever it raises refuses the write, `SystemExit` and a `CancelledError` of its own included; only a
cancellation of the task that asks goes through. A mutating function cannot change which object it is, nor lose fields
that its class does not know. A terminating object may always let go of its finalizers: for that nobody is asked.

Assumptions: the function has no effects (`sideEffects: None`): it may be called for a dry run, and for a write that
fails afterwards. What it reads may change before the write is committed. It does not block: it runs in the event loop of
the server, so one that does (`time.sleep`, a long computation) stalls the whole API, and no timeout can end it. Await
instead, or use `asyncio.to_thread`.

Caveats: `object` always is of the declared class, for another shape is refused. `old` comes as Untyped where it does not
fit, so that an object from before a rule can still be repaired. The name is empty where the server is yet to make it.
A `SystemExit` in a task that the function starts is not caught: asyncio hands it to the loop.
"""

from __future__ import annotations

import asyncio
import enum
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec

from trimtab.model.document import convert, to_document
from trimtab.model.errors import FieldError, FieldProblem, StatusError, forbidden, invalid
from trimtab.model.kind import Kind
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped

TIMEOUT = 10.0

Document = dict[str, Any]
R = TypeVar("R", bound=Resource)
O = TypeVar("O", bound=Resource | Untyped)  # noqa: E741 - an object


class Operation(enum.Enum):
    """What a write does to its object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks (authentication.k8s.io UserInfo)."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class AdmissionRequest(msgspec.Struct, Generic[O], frozen=True, kw_only=True, eq=False):
    """One write. `object` is None for a deletion, `old` for a creation."""

    operation: Operation
    kind: Kind
    namespace: str = ""
    name: str = ""
    object: O | None = None
    old: O | None = None
    user: UserInfo = UserInfo()
    dry_run: bool = False
    subresource: str = ""


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """The write may be. `object` is what a mutating function makes of it, by `replace`; None leaves it as it is."""

    object: Resource | Untyped | None = None
    warnings: tuple[str, ...] = ()


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """The write must not be: either what is wrong with which fields (422 Invalid), or a message (403 Forbidden, or
    another code)."""

    errors: tuple[FieldError, ...] = ()
    message: str = ""
    code: int = 403
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.errors) is bool(self.message):
            raise ValueError("a denial has either field errors or a message")
        if not 400 <= self.code < 600:
            raise ValueError(f"{self.code} is no code of a refusal")


class Reader(Protocol):
    """Other objects, to judge by. Read as the server's own: not limited by the rights of who asks."""

    @overload
    async def find(self, kind: type[R], name: str, namespace: str = "") -> R | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str = "") -> Any: ...

    @overload
    async def list(self, kind: type[R], namespace: str = "", labels: str = "") -> Sequence[R]: ...
    @overload
    async def list(self, kind: Kind, namespace: str = "", labels: str = "") -> Sequence[Any]: ...


Function = Callable[[AdmissionRequest[Any], Reader], Awaitable[Allowed | Denied]]


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """One function and the writes that it is asked about. `name` is a DNS label: it is part of the webhook's name and
    path. The subresource "" is the object itself.

    `groups` are patterns of groups whose kinds are known only at run time: `*.rest` is every group below `rest`, with the
    scheme's suffix. Their objects are always Untyped. A cluster asks only by the rules of configurations that are made
    with those kinds."""

    name: str
    kinds: tuple[type[Resource] | Kind, ...] = ()
    groups: tuple[str, ...] = ()
    function: Function
    operations: tuple[Operation, ...] = (Operation.CREATE, Operation.UPDATE)
    subresources: tuple[str, ...] = ("",)
    mutating: bool = False
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        if not _LABEL.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no DNS label")
        if not 0 < self.timeout <= 30:
            raise ValueError("a function has up to 30 s")
        if not (self.kinds or self.groups) or not self.operations or not self.subresources:
            raise ValueError(f"{self.name} is asked about nothing: name its kinds, operations and subresources")
        for pattern in self.groups:
            if not pattern.startswith("*.") or not pattern[2:] or "*" in pattern[2:]:
                raise ValueError(f'{self.name}: {pattern!r} is no pattern of groups, such as "*.rest"')

    @property
    def path(self) -> str:
        """Where its webhook is served."""
        return f"/{'mutate' if self.mutating else 'validate'}/{self.name}"

    def matched(self, scheme: Scheme) -> tuple[Kind, ...]:
        """The kinds, with the full names of their groups."""
        return tuple(kind if isinstance(kind, Kind) else scheme.kind_of(kind) for kind in self.kinds)

    def suffixes(self, scheme: Scheme) -> tuple[str, ...]:
        """What the groups that it is asked about end with: `.rest.trimtab.dev`."""
        return tuple(f".{scheme.group(pattern[2:])}" for pattern in self.groups)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking: the error to answer with, or the document as a mutating function changed it."""

    refusal: StatusError | None = None
    document: Document | None = None
    warnings: tuple[str, ...] = ()


class AdmissionFailed(Exception):  # noqa: N818 - it reads as what happened
    """A function gave no answer that makes sense, so the write is refused. Says nothing that a client may not know."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f'admission function "{name}" failed: {why}')


async def ask(admission: Admission, request: AdmissionRequest[Untyped], reader: Reader, scheme: Scheme) -> Verdict:
    """Call the function with typed copies of what the request has. Raises AdmissionFailed."""
    if _lets_go(request):
        return Verdict()
    try:
        typed = _typed(admission, request, scheme)
    except msgspec.ValidationError as error:
        return Verdict(refusal=refusal(request, Denied(errors=(_misfit(error),))))
    answer = await _called(admission, typed, reader)
    if isinstance(answer, Denied):
        return Verdict(refusal=refusal(request, answer), warnings=answer.warnings)
    if answer.object is None:
        return Verdict(warnings=answer.warnings)
    if not admission.mutating or request.object is None:
        raise AdmissionFailed(admission.name, "it may not change the object")
    return Verdict(document=_changed(request.object.raw, answer.object, scheme), warnings=answer.warnings)


async def repeat(
    admissions: Sequence[Admission], obj: Resource | Untyped, reader: Reader, scheme: Scheme
) -> StatusError | None:
    """What the validating functions would say if this object were created now. For a reconcile, which must not trust
    that anybody was asked: the object may be older than the function."""
    document = scheme.document(obj)
    for admission in admissions:
        if admission.mutating or Operation.CREATE not in admission.operations or "" not in admission.subresources:
            continue
        for kind in admission.matched(scheme):
            if (kind.api_version, kind.kind) != (document["apiVersion"], document["kind"]):
                continue
            request = AdmissionRequest(
                operation=Operation.CREATE,
                kind=kind,
                namespace=obj.namespace,
                name=obj.name,
                object=Untyped(document),
            )
            verdict = await ask(admission, request, reader, scheme)
            if verdict.refusal is not None:
                return verdict.refusal
    return None


def refusal(request: AdmissionRequest[Any], denied: Denied) -> StatusError:
    """The answer to whoever wanted to write."""
    kind, name = request.kind, request.name or (request.object.name if request.object is not None else "")
    if denied.errors:
        return invalid(kind.kind, kind.group, name, denied.errors)
    error = forbidden(kind.plural, kind.group, name, denied.message)
    if denied.code == 403:
        return error
    return StatusError(denied.code, _REASONS.get(denied.code, ""), denied.message, error.details)


async def _called(admission: Admission, typed: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    task = asyncio.current_task()
    cancellations = 0 if task is None else task.cancelling()
    try:
        async with asyncio.timeout(admission.timeout) as limit:
            answer: object = await admission.function(typed, reader)
    except TimeoutError as error:
        why = f"no answer within {admission.timeout:g} s" if limit.expired() else "it raised TimeoutError"
        raise AdmissionFailed(admission.name, why) from error
    except GeneratorExit:
        raise
    except BaseException as error:  # whatever it is, the write is refused and the cause kept for the log
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > cancellations:
            raise
        raise AdmissionFailed(admission.name, f"it raised {type(error).__name__}") from error
    if not isinstance(answer, Allowed | Denied):
        raise AdmissionFailed(admission.name, f"it answered with {type(answer).__name__}")
    return answer


def _typed(admission: Admission, request: AdmissionRequest[Untyped], scheme: Scheme) -> AdmissionRequest[Any]:
    classes = {
        (kind.api_version, kind.kind): declared
        for declared, kind in zip(admission.kinds, admission.matched(scheme), strict=True)
        if isinstance(declared, type)
    }

    by_group = request.kind.group.endswith(admission.suffixes(scheme))

    def read(document: Document) -> Resource | Untyped:
        copy: Document = msgspec.json.decode(msgspec.json.encode(document))
        if by_group:
            return Untyped(copy)
        cls = classes.get((str(copy.get("apiVersion", "")), str(copy.get("kind", ""))))
        return scheme.decode(copy) if cls is None else convert(copy, cls)

    new = None if request.object is None else read(request.object.raw)
    old: Resource | Untyped | None = None
    if request.old is not None:
        try:
            old = read(request.old.raw)
        except msgspec.ValidationError:
            old = request.old
    return msgspec.structs.replace(request, object=new, old=old)


def _changed(before: Document, obj: Resource | Untyped, scheme: Scheme) -> Document:
    """The document of a changed object, with the identity of the one before and all that its class does not know."""
    document = obj.raw if isinstance(obj, Untyped) else scheme.document(obj) | to_document(obj, before)
    metadata, kept = dict(document.get("metadata") or {}), before.get("metadata") or {}
    for field in _IDENTITY:
        metadata.pop(field, None)
        if field in kept:
            metadata[field] = kept[field]
    changed = {**document, "metadata": metadata}
    return changed | {field: before[field] for field in ("apiVersion", "kind") if field in before}


def _lets_go(request: AdmissionRequest[Untyped]) -> bool:
    """Whether the write only removes finalizers from an object that is being deleted."""
    if request.object is None or request.old is None or request.operation is not Operation.UPDATE:
        return False
    new, old = request.object.raw, request.old.raw
    after, before = (document.get("metadata") or {} for document in (new, old))
    if not before.get("deletionTimestamp"):
        return False
    if not set(after.get("finalizers") or ()) <= set(before.get("finalizers") or ()):
        return False
    return _without(new, ("metadata",)) == _without(old, ("metadata",)) and _without(after, _MOVING) == _without(
        before, _MOVING
    )


def _without(mapping: Mapping[str, Any], names: Sequence[str]) -> Document:
    return {name: value for name, value in mapping.items() if name not in names}


def _misfit(error: msgspec.ValidationError) -> FieldError:
    """`Expected int, got str - at $.spec.size`, as a problem of that field."""
    why, _, where = str(error).partition(" - at `$")
    return FieldError(where.strip("`.") or "<document>", FieldProblem.FORBIDDEN, None, why.replace("`", ""))


_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MOVING = ("finalizers", "managedFields", "resourceVersion", "generation")
_IDENTITY = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
_REASONS = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}

"""Admission functions of our own systems, called in the request: no network, no configuration, no certificate.

They are asked as their webhooks would be on a cluster: mutating ones one after the other, validating ones all; in the
version that they declare, whichever version is written (matchPolicy Equivalent); a failure refuses the write. Unlike
there, a refusal's message is not wrapped in the name of a webhook, and a function that blocks stalls the whole API: it
runs in the server's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from trimtab.model import admission as model
from trimtab.model.admission import AdmissionFailed, AdmissionRequest, Verdict, ask
from trimtab.model.document import convert
from trimtab.model.errors import StatusError, internal
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.model.selectors import LabelSelector
from trimtab.server.admission.request import AdmissionRequest as Write
from trimtab.server.admission.request import Operation
from trimtab.server.admission.webhook_forms import Forms
from trimtab.server.admission.webhook_match import exempt
from trimtab.server.registry import Registry, Served
from trimtab.store.contract import Query

Document = dict[str, Any]
R = TypeVar("R", bound=Resource)


class _Asked(NamedTuple):
    """A function that a write concerns, and the served kind in whose form it wants to see it."""

    admission: model.Admission
    kind: Kind


class Functions:
    """What was declared, found by the resource that is written."""

    def __init__(self, declared: Sequence[model.Admission], scheme: Scheme, registry: Registry, forms: Forms) -> None:
        self._scheme = scheme
        self._registry = registry
        self._forms = forms
        self._reader = BackendReader(registry, scheme)
        self._mutating = _table([a for a in declared if a.mutating], scheme)
        self._validating = _table([a for a in declared if not a.mutating], scheme)

    def mutates(self, write: Write) -> bool:
        """Hot: without functions it costs nothing."""
        return self._mutating is not None and any(self._concerned(self._mutating, write))

    def validates(self, write: Write) -> bool:
        return self._validating is not None and any(self._concerned(self._validating, write))

    async def mutate(self, write: Write) -> Document | None:
        """The object as the functions leave it; None for a deletion. Raises StatusError."""
        document = write.object
        for asked in self._concerned(self._mutating, write):
            verdict = await self._ask(asked, msgspec.structs.replace(write, object=document))
            if verdict.refusal is not None:
                raise verdict.refusal
            if verdict.document is not None:
                document = await self._as(verdict.document, write.kind, asked.kind, write)
        return document

    async def validate(self, write: Write) -> None:
        """Raises StatusError when one refuses; all are asked, so that all can warn."""
        verdicts = await asyncio.gather(
            *(self._ask(asked, write) for asked in self._concerned(self._validating, write)), return_exceptions=True
        )
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict
            if verdict.refusal is not None:
                raise verdict.refusal

    async def _ask(self, asked: _Asked, write: Write) -> Verdict:
        admission, kind = asked
        new, old = [
            None if document is None else Untyped(await self._as(document, kind, write.kind, write) or {})
            for document in (write.object, write.old)
        ]
        request = AdmissionRequest(
            operation=model.Operation(write.operation.value),
            kind=kind,
            namespace=write.namespace,
            name=write.name,
            object=new,
            old=old,
            user=model.UserInfo(write.user.name, write.user.uid, write.user.groups, write.user.extra),
            dry_run=write.dry_run,
            subresource=write.subresource,
        )
        try:
            verdict = await ask(admission, request, self._reader, self._scheme)
        except AdmissionFailed as error:
            log.error("an admission function failed", function=admission.name, exc_info=error)
            raise internal(str(error)) from None
        for warning in verdict.warnings:
            write.warn(warning)
        return verdict

    def _concerned(self, table: _Table | None, write: Write) -> Iterator[_Asked]:
        if table is None:
            return
        group = write.kind.group
        declared = table.resources.get((group, write.kind.plural), ())
        wide = table.groups if group.endswith(table.suffixes) else ()
        if not (declared or wide) or write.operation is Operation.CONNECT or exempt(write):
            return
        for admission, kinds in declared:
            kind = self._seen(kinds, write.kind) if _asks(admission, write) else None
            if kind is not None:
                yield _Asked(admission, kind)
        for admission, suffixes in wide:
            if group.endswith(suffixes) and _asks(admission, write):
                yield _Asked(admission, write.kind)

    def _seen(self, declared: Sequence[Kind], written: Kind) -> Kind | None:
        """The written version where it is declared, else the first that is declared and served."""
        if any(kind.version == written.version for kind in declared):
            return written
        for kind in declared:
            served = self._registry.find(kind.group, kind.version, kind.plural)
            if served is not None:
                return served.kind
        return None

    async def _as(self, document: Document, kind: Kind, given: Kind, write: Write) -> Document:
        return document if write.form is not None or kind is given else await self._forms.convert(document, kind)


class BackendReader:
    """Fulfils `model.admission.Reader` over what the server serves now."""

    def __init__(self, registry: Registry, scheme: Scheme) -> None:
        self._registry = registry
        self._scheme = scheme

    @overload
    async def find(self, kind: type[R], name: str, namespace: str = "") -> R | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str = "") -> Any: ...

    async def find(self, kind: type[Resource] | Kind, name: str, namespace: str = "") -> Any:
        served = self._served(kind)
        entry = None if served is None else await served.backend.get(served.key(namespace, name))
        return None if entry is None or served is None else self._read(kind, served.decode(entry))

    @overload
    async def list(self, kind: type[R], namespace: str = "", labels: str = "") -> Sequence[R]: ...
    @overload
    async def list(self, kind: Kind, namespace: str = "", labels: str = "") -> Sequence[Any]: ...

    async def list(self, kind: type[Resource] | Kind, namespace: str = "", labels: str = "") -> Sequence[Any]:
        served = self._served(kind)
        if served is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
        selector = LabelSelector.parse(labels) if labels else None
        query = Query(resource=served.strategy.storage, namespace=namespace or None, labels=selector, counted=False)
        page = await served.backend.list(query)
        return [self._read(kind, served.decode(entry)) for entry in page.entries]

    def _read(self, kind: type[Resource] | Kind, document: Document) -> Resource | Untyped:
        return self._scheme.decode(document) if isinstance(kind, Kind) else convert(document, kind)

    def _served(self, kind: type[Resource] | Kind) -> Served | None:
        wanted = kind if isinstance(kind, Kind) else self._scheme.kind_of(kind)
        return self._registry.find(wanted.group, wanted.version, wanted.plural)


class _Table(NamedTuple):
    """Functions by group and plural, each with the versions that it declares of it; and those of whole groups, each with
    the ends of the groups' names."""

    resources: dict[tuple[str, str], tuple[tuple[model.Admission, tuple[Kind, ...]], ...]]
    groups: tuple[tuple[model.Admission, tuple[str, ...]], ...]
    suffixes: tuple[str, ...]


def _table(declared: Sequence[model.Admission], scheme: Scheme) -> _Table | None:
    """None when there are no functions."""
    if not declared:
        return None
    resources: dict[tuple[str, str], tuple[tuple[model.Admission, tuple[Kind, ...]], ...]] = {}
    for admission in declared:
        versions: dict[tuple[str, str], list[Kind]] = {}
        for kind in admission.matched(scheme):
            versions.setdefault((kind.group, kind.plural), []).append(kind)
        for resource, kinds in versions.items():
            resources[resource] = (*resources.get(resource, ()), (admission, tuple(kinds)))
    groups = tuple((admission, admission.suffixes(scheme)) for admission in declared if admission.groups)
    return _Table(resources, groups, tuple(suffix for _, suffixes in groups for suffix in suffixes))


def _asks(admission: model.Admission, write: Write) -> bool:
    return write.subresource in admission.subresources and any(
        operation.value == write.operation.value for operation in admission.operations
    )

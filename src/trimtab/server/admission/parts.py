"""Admission of what is created at a door of an object and not kept: a TokenRequest, an Eviction, a Binding.

Rules name them as `serviceaccounts/token`, `pods/eviction`, `pods/binding`; what is seen of them is the body of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from trimtab.model.kind import Kind
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.http import Request
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target

if TYPE_CHECKING:
    from trimtab.server.core import Server

Admit = Callable[[Document], Awaitable[None]]
"""Raises when what is asked for must not be."""


async def mutated(
    server: Server, request: Request, served: Served, target: Target, document: Document, *, form: Kind, dry_run: bool
) -> tuple[Document, Admit]:
    """The document as webhooks leave it, and who is to be asked about it once it was found to be well-formed."""
    document = {**document, "kind": form.kind, "apiVersion": form.api_version}
    asked = AdmissionRequest(
        operation=Operation.CREATE,
        kind=served.kind,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name,
        object={**document, "metadata": document.get("metadata") or {}},
        old=None,
        user=request.user,
        dry_run=dry_run,
        warn=request.warn,
        annotate=request.annotate,
        form=form,
    )
    admission = server.admission
    if admission.mutates(asked):
        document = await admission.mutate(asked)

    async def admit(shown: Document) -> None:
        await admission.validate(msgspec.structs.replace(asked, object=shown))

    return document, admit

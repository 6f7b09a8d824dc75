"""Exports: values of a resource for others to use, in a Secret or a ConfigMap beside the object, which owns it.

What was exported is remembered as a digest only, so that no secret is in the status. Others' Secrets are never touched.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from trimtab.client.protocol import Named
from trimtab.model.document import plain
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.owners import controller_of, owner_reference
from trimtab.systems.rest.addressing import url_of
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.model import Export
from trimtab.systems.rest.reconciling import memory
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import Session

MANAGER = "trimtab-rest-export"


async def exported(session: Session, live: Live) -> None:
    """Write what changed. A call that fails, or a name that is taken, is an event, and is tried again with the next look."""
    if not session.model.exports and not session.place.hooks.has("export"):
        return
    made: dict[str, dict[str, str]] = {}
    for export in session.model.exports:
        try:
            source = await _source(session, export, live)
        except CallError as error:
            session.place.events.warning(session.subject.raw, "ExportFailed", str(error))
            return
        name = export.name.replace("{name}", session.subject.raw.name)
        made.setdefault(f"{export.to}/{name}", {}).update(_values(export.data, source))
    digest = hmac.new(session.place.key, memory.text(made).encode(), hashlib.sha256).hexdigest()
    if digest == session.status.sync.exported and await _are_there(session, made):
        return
    for target, values in made.items():
        kind, _, name = target.partition("/")
        await _write(session, kind, name, values)
    session.remember(exported=digest)


async def _source(session: Session, export: Export, live: Live) -> Any:
    async def own(body: Any) -> Any:
        return body

    if export.call is None:
        return await session.place.hooks.run("export", session.context, own, live.body)
    request = Request(
        verb="export",
        method=export.call.method,
        url=url_of(session.model, export.call, session.identifier, session.values),
        envelope=session.model.overlay.envelope,
        rules=session.model.overlay.errors,
    )
    return (await session.caller.call(request)).body


def _values(data: Mapping[str, str], source: Any) -> dict[str, str]:
    import jmespath

    found = {key: jmespath.search(expression, source) for key, expression in data.items()}
    return {
        key: value if isinstance(value, str) else memory.text(value)
        for key, value in found.items()
        if value is not None
    }


async def _are_there(session: Session, made: Mapping[str, Any]) -> bool:
    for target in made:
        kind, _, name = target.partition("/")
        if await session.place.client.find(Named("v1", kind), name, session.subject.namespace) is None:
            return False
    return True


async def _write(session: Session, kind: str, name: str, values: Mapping[str, str]) -> None:
    owner = owner_reference(session.object, controller=True, block=False)
    there = await session.place.client.find(Named("v1", kind), name, session.subject.namespace)
    holder = None if there is None else controller_of(there)
    if there is not None and (holder is None or holder.uid != owner.uid):
        why = f"{kind} {name} exists and is not this object's: choose another name in the definition's exports"
        session.place.events.warning(session.subject.raw, "ExportRefused", why)
        return
    data = (
        {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        if kind == "Secret"
        else dict(values)
    )
    document = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": session.subject.namespace, "ownerReferences": [plain(owner)]},
        "data": data,
    }
    try:
        await session.place.client.apply(Untyped(document), manager=MANAGER, force=True)
    except StatusError as error:
        session.place.events.warning(session.subject.raw, "ExportFailed", f"{kind} {name}: {error}")

"""Exports: values of a resource for others to use, in a Secret or a ConfigMap beside the object, which owns it.

What was exported is remembered as a digest only, so that no secret is in the status. Others' Secrets are never touched.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from trimtab.client.protocol import Client, Named
from trimtab.model.document import plain
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import uid_of, uncached
from trimtab.runtime.owners import controller_of, owner_reference
from trimtab.systems.rest.addressing import url_of
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.model import Export
from trimtab.systems.rest.reconciling import memory
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.showing import NotShown, selected

MANAGER = "trimtab-rest-export"


async def exported(session: Session, live: Live) -> None:
    """Write what changed. A call that fails, or a name that is taken, is an event, and is tried again with the next look."""
    if not session.model.exports and not session.place.hooks.has("export"):
        return
    made: dict[str, dict[str, str]] = {}
    for export in session.model.exports:
        name = export.name.replace("{name}", session.subject.raw.name)
        try:
            values = _values(export.data, await _source(session, export, live))
        except (CallError, NotShown) as error:
            session.place.events.warning(session.subject.raw, "ExportFailed", f"{export.to} {name}: {error}")
            return
        made.setdefault(f"{export.to}/{name}", {}).update(values)
    digest = hmac.new(session.place.key, memory.text(made).encode(), hashlib.sha256).hexdigest()
    if digest == session.status.sync.exported and await _are_there(session, made):
        return
    written = [await _write(session, target, values) for target, values in made.items()]
    session.remember(exported=digest if all(written) else "")


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
    """Raises NotShown."""
    found = {key: selected(expression, source) for key, expression in data.items()}
    return {
        key: value if isinstance(value, str) else memory.text(value)
        for key, value in found.items()
        if value is not None
    }


async def _are_there(session: Session, made: Mapping[str, Any]) -> bool:
    for target in made:
        kind, _, name = target.partition("/")
        if not _is_ours(session, await session.place.client.find(Named("v1", kind), name, session.subject.namespace)):
            return False
    return True


async def _write(session: Session, target: str, values: Mapping[str, str]) -> bool:
    """Whether it was written. It is created empty first and filled then, so that what appears meanwhile is never taken
    for ours, and so that one manager owns all keys."""
    kind, _, name = target.partition("/")
    client, namespace = session.place.client, session.subject.namespace
    owner = plain(owner_reference(session.object, controller=True, block=False))
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
    }
    try:
        there = await client.find(Named("v1", kind), name, namespace)
        there = there if there is not None else await _created(client, Untyped(document))
        if not _is_ours(session, there):
            why = f"{kind} {name} exists and is not this object's: choose another name in the definition's exports"
            session.place.events.warning(session.subject.raw, "ExportRefused", why)
            return False
        document["metadata"] |= {"uid": uid_of(there)}  # another one of the same name is refused
        await client.apply(Untyped(document | {"data": _data(kind, values)}), manager=MANAGER, force=True)
    except StatusError as error:
        session.place.events.warning(session.subject.raw, "ExportFailed", f"{kind} {name}: {error}")
        return False
    return True


async def _created(client: Client, document: Untyped) -> Any:
    try:
        return await client.create(document)
    except StatusError as error:
        if error.code != 409:
            raise
    return await uncached(client).get(Named(document.api_version, document.kind), document.name, document.namespace)


def _is_ours(session: Session, there: Any) -> bool:
    holder = None if there is None else controller_of(there)
    return holder is not None and holder.uid == uid_of(session.object)


def _data(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    if kind != "Secret":
        return dict(values)
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}

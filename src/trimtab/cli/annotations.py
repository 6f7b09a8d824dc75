"""Ask a controller for something by an annotation."""

from __future__ import annotations

import orjson

from trimtab.cli.access import Session
from trimtab.client.api import MERGE
from trimtab.client.transport import Call
from trimtab.model.resource import Resource


async def annotate(server: Session, obj: Resource, annotation: str, value: str | None) -> None:
    """Set one annotation, or remove it (None), whatever else changes meanwhile; of this object, not of a later one of the
    same name."""
    place = await server.client.place(type(obj))
    change = {"metadata": {"uid": obj.metadata.uid, "annotations": {annotation: value}}}
    path = place.path(obj.namespace, obj.name)
    await server.transport.call(Call(method="PATCH", path=path, body=orjson.dumps(change), content_type=MERGE))

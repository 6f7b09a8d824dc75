"""`…/<name>/versions`: the published versions of one resource, newest first. What is in one is read by `?version=`."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.hub.artifacts.naming import row_key
from trimtab.hub.storage.contract import Snapshot, Storage, StorageUnavailable
from trimtab.model.errors import StatusError, method_not_supported
from trimtab.server.http import Answer, Request, json_response
from trimtab.server.registry import Served
from trimtab.server.target import Target


class Versions:
    """The versions of one kind. `type_` is what its rows are called in the storage service."""

    def __init__(self, storage: Storage, *, organization: str, type_: str) -> None:
        self._storage = storage
        self._organization = organization
        self._type = type_

    async def __call__(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        if verb != "get":
            raise method_not_supported(served.kind.plural, served.kind.group, verb)
        _, document = await served.load(target.namespace, target.name)
        found = await self._published(target)
        items = [{"version": each.version, "created": each.created} for each in reversed(found)]
        metadata = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
        head = {"kind": "VersionList", "apiVersion": served.kind.api_version, "metadata": metadata}
        return json_response({**head, "latest": items[0]["version"] if items else "", "items": items})

    async def _published(self, target: Target) -> Sequence[Snapshot]:
        try:
            key = await row_key(self._storage, self._organization, self._type, target.namespace, target.name)
            return await self._storage.versions(key)
        except StorageUnavailable as error:
            raise StatusError(503, "ServiceUnavailable", str(error), {"retryAfterSeconds": 1}) from None

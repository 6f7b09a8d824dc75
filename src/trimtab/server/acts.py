"""What the server does by itself: seed objects, change and delete them, past authorization and as its own field manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from trimtab.model.errors import StatusError, bad_request
from trimtab.server import apply, deletes, writes
from trimtab.server.auth.bootstrap import reconciled
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.http import Request
from trimtab.server.options import DeleteOptions
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Conflict, Op

if TYPE_CHECKING:
    from trimtab.server.core import Server

SYSTEM = User("system:apiserver", groups=(MASTERS,))


class Acts:
    """The server as a writer."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def ensure(self, document: Document) -> None:
        """Create an object of the server's own unless it is there."""
        served = self._server.registry.by_kind(document["apiVersion"], document["kind"])
        if served is None:
            raise bad_request(f"{document['kind']} is not served")
        metadata = document["metadata"]
        if await served.backend.get(served.key(metadata.get("namespace", ""), metadata["name"])) is not None:
            return
        target = Target(served.kind.group, served.kind.version, metadata.get("namespace", ""), served.kind.plural)
        try:
            await writes.create(self._server, self._request("POST", document), served, target)
        except StatusError as error:
            if error.code not in (404, 409) and error.reason != "Forbidden":
                raise

    async def reconcile_policy(self, expected: Document) -> None:
        """Make a default role or binding whole again."""
        served = self._server.registry.by_kind(expected["apiVersion"], expected["kind"])
        assert served is not None  # noqa: S101 - built-in kinds
        name = expected["metadata"]["name"]
        entry = await served.backend.get(served.key("", name))
        wanted = reconciled(expected, served.decode(entry) if entry else None)
        if entry is None:
            await self.ensure(expected)
        elif wanted is not None:
            await self.modify(served, "", name, lambda live: live.update(wanted))

    async def modify(
        self, served: Served, namespace: str, name: str, change: Callable[[Document], None], subresource: str = ""
    ) -> None:
        """Change an object in place, past admission, as the server itself; gone or unchanged is no failure."""
        while True:
            entry = await served.backend.get(served.key(namespace, name))
            if entry is None:
                return
            old = served.decode(entry)
            new: Document = orjson.loads(orjson.dumps(old))
            change(new)
            if new == old:
                return
            if served.strategy.has_generation and served.strategy.bumps_generation(new, old):
                new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
            gone = new["metadata"].get("deletionTimestamp") and self._server.deletable(served, new)
            if not gone:
                self._own(served, old, new, subresource)
            try:
                write = served.write(old if gone else new, entry.revision, Op.DELETE if gone else Op.PUT)
                await served.backend.commit(write)
            except Conflict:
                continue
            return

    def _own(self, served: Served, old: Document, new: Document, subresource: str) -> None:
        managed = apply.update_managed_fields(
            old,
            new,
            manager="trimtab",
            api_version=served.kind.api_version,
            schema=served.kind.schema,
            subresource=subresource,
            now=self._server.timestamp(),
            reset={},
        )
        new["metadata"].pop("managedFields", None)
        if managed:
            new["metadata"]["managedFields"] = managed

    async def remove(self, served: Served, namespace: str, name: str, options: DeleteOptions | None = None) -> None:
        """Delete as the server itself."""
        await deletes.remove(self._server, self._request("DELETE"), served, namespace, name, options or DeleteOptions())

    def _request(self, method: str, document: Document | None = None) -> Request:
        body = orjson.dumps(document) if document is not None else b""
        headers = {b"content-type": b"application/json", b"user-agent": b"trimtab/server"}
        return Request(method=method, path="", query={}, headers=headers, body=body, user=SYSTEM, warnings=[])

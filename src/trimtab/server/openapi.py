"""OpenAPI v3, one document a group and version, made when asked for and kept until a kind comes or goes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from trimtab.model import openapi
from trimtab.model.kind import Kind
from trimtab.server.builtin.tables import descriptions
from trimtab.server.http import Request, Response, json_response

if TYPE_CHECKING:
    from trimtab.server.core import Server


class OpenAPI:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._cached: dict[str, tuple[int, bytes]] = {}

    def answer(self, request: Request, path: str) -> Response | None:
        if path == "/openapi/v3":
            return json_response({"paths": {name: self._link(name) for name in self._names()}})
        name = path.removeprefix("/openapi/v3/")
        if name not in self._names():
            return None
        body = self._document(name)
        tag = f'"{_digest(body)}"'.encode()
        if request.header(b"if-none-match").encode() == tag:
            return Response(code=304, headers=((b"etag", tag),))
        return Response(body=body, headers=((b"etag", tag), (b"vary", b"Accept")))

    def _link(self, name: str) -> dict[str, str]:
        """The address carries a hash of what is there, so that clients may keep it for ever."""
        kinds = self._names()[name]
        seed = "".join(f"{k.kind}{id(k.schema)}" for k in kinds)
        return {"serverRelativeURL": f"/openapi/v3/{name}?hash={_digest(seed.encode())}"}

    def _names(self) -> dict[str, list[Kind]]:
        found: dict[str, list[Kind]] = {}
        for served in self._server.registry:
            kind = served.kind
            prefix = f"apis/{kind.group}" if kind.group else "api"
            found.setdefault(f"{prefix}/{kind.version}", []).append(kind)
        return found

    def _document(self, name: str) -> bytes:
        cached = self._cached.get(name)
        if cached is None or cached[0] != self._server.registry.changed:
            served = self._names()
            self._cached = {known: kept for known, kept in self._cached.items() if known in served}
            made = orjson.dumps(openapi.document(self._names()[name], prose=descriptions()))
            cached = self._cached[name] = (self._server.registry.changed, made)
        return cached[1]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32].upper()

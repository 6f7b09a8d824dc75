"""OpenAPI v3, one document a group and version, and v2, one of all of them: made when asked for, and kept until a kind
comes or goes."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model import openapi
from trimtab.model.openapi_parts import Parts
from trimtab.server.aggregation.aggregator import merged
from trimtab.server.builtin.tables import descriptions
from trimtab.server.http import Request, Response, json_response
from trimtab.server.registry import Served

if TYPE_CHECKING:
    from trimtab.server.core import Server


KUBERNETES = "1.32"


class _Kept(msgspec.Struct, frozen=True):
    """A document, and what it was made of."""

    of: list[tuple[Served, Parts]]
    body: bytes
    digest: str


class _Older(msgspec.Struct, frozen=True):
    """The document of v2 in one form, and the documents of v3 that it was made of."""

    of: tuple[str, ...]
    body: bytes
    tag: bytes


class OpenAPI:
    """The index carries a hash of each document, by which clients keep them: from it alone, so that a server says the same of
    the same document after a restart, and never of another one. So the index makes all of them, each once."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kept: dict[str, _Kept] = {}
        self._older: dict[bytes, _Older] = {}

    def answer(self, request: Request, path: str) -> Response | None:
        names = self._names()
        if path == "/openapi/v3":
            self._kept = {name: self._document(name, served) for name, served in names.items()}
            links = {name: _link(name, kept.digest) for name, kept in self._kept.items()}
            for others in self._server.aggregator.schemas.values():
                links |= others
            return json_response({"paths": links})
        name = path.removeprefix("/openapi/v3/")
        if name not in names:
            return None
        kept = self._kept[name] = self._document(name, names[name])
        tag = f'"{kept.digest}"'.encode()
        if request.header(b"if-none-match").encode() == tag:
            return Response(code=304, headers=((b"etag", tag),))
        return Response(body=kept.body, headers=((b"etag", tag), (b"vary", b"Accept")))

    async def older(self, request: Request) -> Response:
        """v2, in JSON or protobuf. It takes a while when it is new, so it is made in a thread."""
        media = _older_form(request.header(b"accept"))
        if media is None:
            return Response(code=406, media=b"text/plain; charset=utf-8")
        self._kept = {name: self._document(name, served) for name, served in self._names().items()}
        aggregator = self._server.aggregator
        others = await aggregator.swagger() if aggregator.services else []
        of = (*(kept.digest for kept in self._kept.values()), *(_digest(orjson.dumps(other)) for other in others))
        kept = self._older.get(media)
        if kept is None or kept.of != of:
            bodies = [each.body for each in self._kept.values()]
            kept = self._older[media] = await asyncio.to_thread(_made, bodies, others, media, of)
        headers = ((b"etag", kept.tag), (b"vary", b"Accept"))
        asked = request.header(b"if-none-match").encode()
        if kept.tag in asked.replace(b" ", b"").split(b",") or asked == b"*":
            return Response(code=304, headers=headers)
        return Response(body=kept.body, media=media, headers=headers)

    def _names(self) -> dict[str, list[Served]]:
        found: dict[str, list[Served]] = {}
        for served in self._server.registry:
            kind = served.kind
            prefix = f"apis/{kind.group}" if kind.group else "api"
            found.setdefault(f"{prefix}/{kind.version}", []).append(served)
        return found

    def _document(self, name: str, served: list[Served]) -> _Kept:
        of = [(each, parts_of(each)) for each in served]
        kept = self._kept.get(name)
        if kept is not None and kept.of == of:
            return kept
        parts = {each.kind.plural: own for each, own in of}
        body = orjson.dumps(openapi.document([each.kind for each in served], prose=descriptions(), parts=parts))
        return _Kept(of, body, _digest(body))


def parts_of(served: Served) -> Parts:
    """What a kind has beyond status and scale."""
    own = served.strategy.subresources
    return Parts(files="artifacts" in own, versions="versions" in own, lineage=served.with_lineage is not None)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32].upper()


def _link(name: str, digest: str) -> dict[str, str]:
    return {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}


def _older_form(accept: str) -> bytes | None:
    """The media type to answer with: the first that is accepted; None when none is ours."""
    from trimtab.server.openapi2 import ACCEPTED, PROTOBUF

    for part in (accept or "*/*").split(","):
        media = part.partition(";")[0].strip()
        if media in ACCEPTED:
            return PROTOBUF
        if media in ("application/json", "application/*", "*/*"):
            return b"application/json"
    return None


def _made(bodies: list[bytes], others: list[dict[str, Any]], media: bytes, of: tuple[str, ...]) -> _Older:
    from trimtab.model import openapi2 as model
    from trimtab.server import openapi2

    document = merged(others, model.document(map(orjson.loads, bodies), version=KUBERNETES))
    body = orjson.dumps(document) if media == b"application/json" else openapi2.encoded(document)
    return _Older(of, body, b'"%s"' % hashlib.sha512(body).hexdigest().upper().encode())

"""The parts of objects that have doors of their own: status, scale, token, approval, finalize, eviction, binding; and what
others mount."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.errors import (
    FieldError,
    FieldProblem,
    StatusError,
    bad_request,
    conflict,
    invalid,
    method_not_supported,
    not_found,
    unsupported_media_type,
)
from trimtab.server import body, negotiate, patches, reads, writes
from trimtab.server.admission import parts
from trimtab.server.auth.token_requests import create_token, with_lifetime
from trimtab.server.builtin import scale
from trimtab.server.builtin.review import TOKEN_REQUEST
from trimtab.server.http import Answer, Request, Response, json_response
from trimtab.server.negotiate import Form
from trimtab.server.options import write_options
from trimtab.server.patch import json_patch, merge
from trimtab.server.pod_parts import POD_PARTS
from trimtab.server.reader import StoreReader
from trimtab.server.registry import Served
from trimtab.server.reviews import NOT_ALLOWED
from trimtab.server.settle import MODIFIED
from trimtab.server.strategy import Document
from trimtab.server.target import Target
from trimtab.store.contract import Entry

if TYPE_CHECKING:
    from trimtab.server.core import Server


Part = Callable[[Request, Served, Target, str], Awaitable[Answer]]
"""Answers requests for one part of a kind's objects. The last argument is the verb, which RBAC has allowed."""


class Subresources:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._mounted: dict[tuple[str, str, str, str], Part] = {}

    def mount(self, served: Served, name: str, part: Part) -> None:
        """Let a kind have one more part; discovery tells of it, too."""
        kind = served.kind
        self._mounted[kind.group, kind.version, kind.plural, name] = part
        served.strategy.subresources = (*served.strategy.subresources, name)

    async def handle(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        name = target.subresource
        kind = served.kind
        if (part := self._mounted.get((kind.group, kind.version, kind.plural, name))) is not None:
            return await part(request, served, target, verb)
        if name == "approval" and name in served.strategy.subresources:
            return await self._status(request, served, target, verb)
        if name == "status" and served.kind.status:
            return await self._status(request, served, target, verb)
        if name == "scale" and served.kind.scale is not None:
            return await self._scale(request, served, target, verb)
        if name == "token" and name in served.strategy.subresources:
            return await self._token(request, served, target, verb)
        if name in POD_PARTS and name in served.strategy.subresources:
            if verb != "create":
                raise method_not_supported(served.kind.plural, served.kind.group, verb)
            return await POD_PARTS[name](self._server, request, served, target)
        if name == "finalize" and name in served.strategy.subresources:
            if verb != "update":
                raise method_not_supported(served.kind.plural, served.kind.group, verb)
            return await writes.update(self._server, request, served, target)
        if not served.strategy.native:
            raise not_found(served.kind.plural, served.kind.group, target.name)
        raise StatusError(404, "NotFound", "the server could not find the requested resource", {})

    async def _status(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        form = negotiate.form(request.header(b"accept"), request.header(b"user-agent"), request.query.get("pretty"))
        name = target.subresource
        if verb == "get":
            response = await reads.get(self._server, request, served, target, form)
        elif verb == "update":
            response = await writes.update(self._server, request, served, target)
        elif verb == "patch":
            response = await patches.patch(self._server, request, served, target)
        elif name == "approval":
            raise NOT_ALLOWED
        else:
            raise method_not_supported(served.kind.plural, served.kind.group, verb)
        return self._server.shape(request, response, served, form)

    async def _scale(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        """The object's replicas as an `autoscaling/v1` Scale; a write of it is a write of the object."""
        form = negotiate.form(request.header(b"accept"), request.header(b"user-agent"), request.query.get("pretty"))
        if verb == "get":
            _, live = await self._load_scaled(served, target)
            return self._show_scale(request, served, live, form, 200)
        media = body.media_type(request.header(b"content-type"))
        if verb == "patch" and media == patches.APPLY_PATCH:
            response = await self._apply_scale(request, served, target)
        elif verb in ("update", "patch"):
            response = await self._write_scale(request, served, target, media if verb == "patch" else "")
        else:
            raise method_not_supported(served.kind.plural, served.kind.group, verb)
        return self._show_scale(request, served, orjson.loads(response.body), form, response.code)

    def _show_scale(self, request: Request, served: Served, document: Document, form: Form, code: int) -> Answer:
        strategy = scale.NATIVE if served.strategy.native else scale.CUSTOM
        shown = Served(strategy.by(self._server.clock), self._server.store)
        return self._server.shape(request, json_response(scale_of(served, document), code), shown, form)

    async def _load_scaled(self, served: Served, target: Target) -> tuple[Entry, Document]:
        try:
            return await served.load(target.namespace, target.name)
        except StatusError:
            if not served.strategy.native:
                raise
            raise not_found(f"{served.kind.plural}/scale", served.kind.group, target.name) from None

    async def _write_scale(self, request: Request, served: Served, target: Target, patch: str) -> Response:
        _, live = await served.load(target.namespace, target.name)
        wanted = _wanted_scale(request, served, scale_of(served, live), patch)
        given = (wanted.get("metadata") or {}).get("resourceVersion")
        if given and given != live["metadata"]["resourceVersion"]:
            raise conflict(served.kind.plural, served.kind.group, target.name, MODIFIED)
        assert served.kind.scale is not None  # noqa: S101 - asked before
        changed: Document = orjson.loads(orjson.dumps(live))
        _put(changed, served.kind.scale.spec_replicas, _replicas(wanted, target.name))
        return await writes.update(self._server, _inner(request, "PUT", changed, "application/json"), served, target)

    async def _apply_scale(self, request: Request, served: Served, target: Target) -> Response:
        wanted = _checked_scale(body.from_json_or_yaml(request.body, "Scale"))
        assert served.kind.scale is not None  # noqa: S101 - asked before
        config: Document = {"apiVersion": served.kind.api_version, "kind": served.kind.kind, "metadata": {}}
        _put(config, served.kind.scale.spec_replicas, _replicas(wanted, target.name))
        return await patches.patch(self._server, _inner(request, "PATCH", config, patches.APPLY_PATCH), served, target)

    async def _token(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        if verb != "create":
            raise method_not_supported(served.kind.plural, served.kind.group, verb)
        document = body.decode(request.body, request.header(b"content-type"), kind="TokenRequest", native=True)
        if not isinstance(document, dict):
            raise bad_request("the body must be a TokenRequest")
        server = self._server
        if server.token_key is None:
            raise StatusError(404, "NotFound", "this server issues no tokens", {})
        document, admit = await parts.mutated(
            server,
            request,
            served,
            target,
            with_lifetime(document),
            form=TOKEN_REQUEST.kind,
            dry_run=write_options(request.query, "CreateOptions").dry_run,
        )
        made = await create_token(
            document,
            namespace=target.namespace,
            name=target.name,
            reader=StoreReader(server.store),
            key=server.token_key,
            issuer=server.issuer,
            audiences=server.audiences,
            now=server.clock.now().timestamp(),
            admit=admit,
        )
        return json_response(made, 201)


def scale_of(served: Served, document: Document) -> Document:
    """The Scale of an object."""
    paths, metadata = served.kind.scale, document["metadata"]
    assert paths is not None  # noqa: S101
    kept = {
        f: metadata[f] for f in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if f in metadata
    }
    status: dict[str, Any] = {"replicas": _get(document, paths.status_replicas) or 0}
    selector = _get(document, paths.label_selector) if paths.label_selector else None
    if isinstance(selector, dict):
        from trimtab.model.selectors import LabelSelector

        selector = str(LabelSelector.from_document({"matchLabels": selector} if paths.plain_labels else selector))
    if selector:
        status["selector"] = selector
    replicas = _get(document, paths.spec_replicas)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status}


def _wanted_scale(request: Request, served: Served, shown: Document, patch: str) -> Document:
    if not patch:
        content_type = request.header(b"content-type")
        return _checked_scale(body.decode(request.body, content_type, kind="Scale", native=True))
    accepted = [patches.JSON_PATCH, patches.MERGE_PATCH, patches.STRATEGIC_PATCH, patches.APPLY_PATCH]
    if not served.strategy.native:
        accepted.remove(patches.STRATEGIC_PATCH)
    if patch not in accepted:
        raise unsupported_media_type(accepted)
    change = body.from_patch(request.body)
    return _checked_scale(
        json_patch.apply(shown, change) if patch == patches.JSON_PATCH else merge.apply(shown, change)
    )


def _checked_scale(document: Any) -> Document:
    if not isinstance(document, dict) or (document.get("kind") or "Scale") != "Scale":
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    if not isinstance(document.get("spec") or {}, dict) or not isinstance(document.get("metadata") or {}, dict):
        raise bad_request("Scale: spec and metadata must be objects")
    return document


def _replicas(wanted: Document, name: str) -> int:
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("Scale: spec.replicas must be an integer")
    if replicas < 0:
        detail = "must be greater than or equal to 0"
        error = FieldError("spec.replicas", FieldProblem.INVALID, replicas, detail)
        raise invalid("Scale", "autoscaling", name, [error])
    return replicas


def _inner(request: Request, method: str, document: Document, media: str) -> Request:
    """The write of the object that a write of its scale means."""
    kept = {name: value for name, value in request.query.items() if name in ("dryRun", "fieldManager", "force")}
    headers = {b"content-type": media.encode(), b"user-agent": request.headers.get(b"user-agent", b"")}
    return Request(
        method=method,
        path=request.path,
        query=kept,
        headers=headers,
        body=orjson.dumps(document),
        user=request.user,
        warnings=request.warnings,
        trail=request.trail,
    )


def _get(document: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    return document


def _put(document: Document, path: str, value: Any) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        document = document.setdefault(part, {})
    document[last] = value

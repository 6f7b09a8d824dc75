"""Paths that are not resources: health, version, discovery, OpenAPI, metrics; and what a new server is seeded with."""

from __future__ import annotations

import asyncio
import platform
from typing import TYPE_CHECKING, Any

import orjson

import trimtab
from trimtab.model.errors import StatusError
from trimtab.server import negotiate
from trimtab.server.auth import bootstrap
from trimtab.server.auth.rbac import Attributes, denial
from trimtab.server.discovery import AGGREGATED
from trimtab.server.http import Request, Response, json_response
from trimtab.server.lifecycle.namespaces import SYSTEM as SYSTEM_NAMESPACES
from trimtab.server.present import present

if TYPE_CHECKING:
    from trimtab.server.core import Server
    from trimtab.server.openapi import OpenAPI

KUBERNETES = "1.32.13"
PATHS = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version")


class Roots:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._documents: OpenAPI | None = None

    async def handle(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        attributes = Attributes(request.user, request.method.lower(), path=request.path or "/")
        decision = self._server.authorizer.authorize(attributes)
        if not decision.allowed:
            raise denial(attributes, decision.reason)
        if request.method != "GET":
            raise StatusError(
                405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
            )
        found = await self._found(request, path)
        if found is None:
            return Response(code=404, body=b"404 page not found\n", media=b"text/plain; charset=utf-8")
        return found

    async def _found(self, request: Request, path: str) -> Response | None:
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return self._health(request, path)
        if path == "/version":
            return json_response(version())
        if path == "/metrics":
            from trimtab.server.metrics import exposition

            return Response(body=exposition(self._server), media=b"text/plain; version=0.0.4; charset=utf-8")
        if path.startswith("/openapi/v3"):
            return self._openapi(request, path)
        if path == "/openapi/v2":
            return self._openapi_v2(request)
        if path == "/":
            return json_response({"paths": [*PATHS, *sorted(self._group_paths())]})
        return self._discovery(request, path)

    def _discovery(self, request: Request, path: str) -> Response | None:
        discovery = self._server.discovery
        if not path.startswith(("/api/", "/apis/")) and path not in ("/api", "/apis"):
            return None
        form = negotiate.form(request.header(b"accept"), request.header(b"user-agent"), request.query.get("pretty"))
        parts = path.split("/")[1:]
        document: dict[str, Any] | None = None
        if parts in (["api"], ["apis"]):
            if form.discovery:
                return self._aggregated(request, form.discovery, core=parts == ["api"])
            document = discovery.api_versions() if parts == ["api"] else discovery.groups()
        elif parts[0] == "api" and len(parts) == 2:
            document = discovery.resources("", parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            document = discovery.group(parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            document = discovery.resources(parts[1], parts[2])
        if document is not None:
            return present(json_response(document), form)
        if parts[0] == "api" or (len(parts) == 3 and self._native(parts[1])):
            raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
        return None

    def _native(self, group: str) -> bool:
        return any(served.kind.group == group and served.strategy.native for served in self._server.registry)

    def _aggregated(self, request: Request, version: str, *, core: bool) -> Response:
        document, tag = self._server.discovery.aggregated(version, core=core)
        headers = ((b"etag", tag.encode()), (b"vary", b"Accept"))
        if request.header(b"if-none-match") == tag:
            return Response(code=304, headers=headers)
        return Response(body=document, media=AGGREGATED.format(version=version).encode(), headers=headers)

    def _group_paths(self) -> set[str]:
        kinds = [served.kind for served in self._server.registry if served.kind.group]
        return {f"/apis/{kind.group}" for kind in kinds} | {f"/apis/{kind.api_version}" for kind in kinds}

    def _openapi(self, request: Request, path: str) -> Response | None:
        if self._documents is None:
            from trimtab.server.openapi import OpenAPI

            self._documents = OpenAPI(self._server)
        return self._documents.answer(request, path)

    def _openapi_v2(self, request: Request) -> Response:
        from trimtab.server import openapi2

        kinds = [served.kind for served in self._server.registry]
        if "proto-openapi.spec.v2" in request.header(b"accept"):
            body, media = openapi2.encoded(kinds), openapi2.PROTOBUF
        else:
            body, media = orjson.dumps(openapi2.document(kinds)), b"application/json"
        tag = openapi2.etag(body)
        if request.header(b"if-none-match").encode() == tag:
            return Response(code=304, headers=((b"etag", tag),))
        return Response(body=body, media=media, headers=((b"etag", tag), (b"vary", b"Accept")))

    def _health(self, request: Request, path: str) -> Response | None:
        checks = {"ping": True, "store": True, "started": self._server.ready}
        parts = path.split("/")
        if len(parts) > 2:
            if parts[2] not in checks:
                return None
            checks = {parts[2]: checks[parts[2]]}
        elif parts[1] == "livez":
            checks.pop("started")
        good = all(checks.values())
        if good and "verbose" not in request.query:
            return Response(body=b"ok", media=b"text/plain; charset=utf-8")
        lines = [f"[{'+' if ok else '-'}]{name} {'ok' if ok else 'failed: not ready'}" for name, ok in checks.items()]
        lines.append(f"{parts[1]} check {'passed' if good else 'failed'}")
        body = "\n".join(lines).encode() + b"\n"
        return Response(code=200 if good else 500, body=body, media=b"text/plain; charset=utf-8")

    async def seed(self) -> None:
        """What every server has. Commits that are in flight together share one sync."""
        namespaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES
        ]
        await asyncio.gather(*(self._server.acts.ensure(namespace) for namespace in namespaces))
        policies = [*bootstrap.cluster_roles(), *bootstrap.cluster_role_bindings()]
        await asyncio.gather(*(self._server.acts.reconcile_policy(policy) for policy in policies))


def version() -> dict[str, str]:
    """As kubectl reads it: a Kubernetes version, with ours as build metadata."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": "1",
        "minor": KUBERNETES.split(".")[1],
        "gitVersion": f"v{KUBERNETES}+trimtab.{trimtab.__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{machine}",
    }

"""Paths that are not resources: health, version, discovery, OpenAPI, metrics; and what a new server is seeded with."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trimtab
from trimtab.model.errors import StatusError
from trimtab.server import negotiate
from trimtab.server.auth import bootstrap
from trimtab.server.auth.deciding import decided
from trimtab.server.auth.issuing import CACHED, CONFIGURATION, KEYS, KEYS_MEDIA, OpenId
from trimtab.server.auth.rbac import Attributes, denial
from trimtab.server.builtin.scheduling import SYSTEM as SYSTEM_PRIORITIES
from trimtab.server.discovery import AGGREGATED
from trimtab.server.http import Answer, Request, Response, json_response
from trimtab.server.lifecycle.namespaces import SYSTEM as SYSTEM_NAMESPACES
from trimtab.server.present import present

if TYPE_CHECKING:
    from trimtab.server.core import Server
    from trimtab.server.openapi import OpenAPI

KUBERNETES = "1.32.13"
PATHS = (
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)


class Roots:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._documents: OpenAPI | None = None
        self.openid: OpenId | None = None
        """What strangers verify tokens by; None where nobody could find it."""
        self.public: Callable[[str], Awaitable[Response | None]] | None = None
        """Who answers paths that anyone may read, whoever asks; None leaves a path to us."""

    async def handle(self, request: Request) -> Answer:
        path = request.path.rstrip("/") or "/"
        if self.public is not None and request.method == "GET":
            answer = await self.public(path)
            if answer is not None:
                return answer
        attributes = Attributes(request.user, request.method.lower(), path=request.path or "/")
        decision = await decided(self._server.authorizer, attributes)
        if request.trail is not None:
            request.trail.decided(decision)
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

    async def _found(self, request: Request, path: str) -> Answer | None:
        if path in ("/healthz", "/livez", "/readyz") or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return self._health(request, path)
        if path == "/version":
            return json_response(version())
        if path == "/metrics":
            from trimtab.server.metrics import exposition

            return Response(body=exposition(self._server), media=b"text/plain; version=0.0.4; charset=utf-8")
        if path.startswith("/openapi/v3"):
            return await self._openapi(request, path)
        if path == "/openapi/v2":
            return await self._openapi_documents().older(request)
        if path in (CONFIGURATION, KEYS):
            return self._openid(path)
        if path == "/":
            openid = (CONFIGURATION, KEYS) if self.openid is not None else ()
            return json_response({"paths": sorted({*openid, *PATHS, *self._group_paths()})})
        return self._discovery(request, path)

    def _openid(self, path: str) -> Response | None:
        document = self.openid.document(path) if self.openid is not None else None
        if document is None:
            return None
        return Response(body=document, media=KEYS_MEDIA if path == KEYS else b"application/json", cache=CACHED)

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
        paths = {f"/apis/{kind.group}" for kind in kinds} | {f"/apis/{kind.api_version}" for kind in kinds}
        for service in self._server.aggregator.services.values():
            paths |= {f"/apis/{service.group}", service.path}
        return paths

    async def _openapi(self, request: Request, path: str) -> Answer | None:
        if self._server.aggregator.services and path.startswith("/openapi/v3/"):
            answer = await self._server.aggregator.schema(request, path.removeprefix("/openapi/v3/"))
            if answer is not None:
                return answer
        return self._openapi_documents().answer(request, path)

    def _openapi_documents(self) -> OpenAPI:
        if self._documents is None:
            from trimtab.server.openapi import OpenAPI

            self._documents = OpenAPI(self._server)
        return self._documents

    def _health(self, request: Request, path: str) -> Response | None:
        checks = {"ping": "", "store": self._server.store.trouble, "started": "" if self._server.ready else "not ready"}
        parts = path.split("/")
        if len(parts) > 2:
            if parts[2] not in checks:
                return None
            checks = {parts[2]: checks[parts[2]]}
        elif parts[1] == "livez":
            checks.pop("started")
            checks["store"] = ""  # a new start would not mend a disk
        good = not any(checks.values())
        if good and "verbose" not in request.query:
            return Response(body=b"ok", media=b"text/plain; charset=utf-8")
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in checks.items()]
        lines.append(f"{parts[1]} check {'passed' if good else 'failed'}")
        body = "\n".join(lines).encode() + b"\n"
        return Response(code=200 if good else 500, body=body, media=b"text/plain; charset=utf-8")

    async def seed(self) -> None:
        """What every server has. Commits that are in flight together share one sync."""
        namespaces: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES
        ]
        classes: list[dict[str, Any]] = [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            for name, value in SYSTEM_PRIORITIES.items()
        ]
        await asyncio.gather(*(self._server.acts.ensure(one) for one in (*namespaces, *classes)))
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

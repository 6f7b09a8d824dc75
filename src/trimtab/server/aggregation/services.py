"""An APIService as the server uses it: whom it leads to, whom to trust there, and how much it is preferred."""

from __future__ import annotations

import base64
import binascii

import msgspec

from trimtab.server.aggregation.priorities import OURS, Priority
from trimtab.server.builtin.apiregistration import available
from trimtab.server.strategy import Document

GroupVersion = tuple[str, str]


class ApiService(msgspec.Struct, frozen=True, kw_only=True):
    """One of another API server."""

    name: str
    group: str
    version: str
    namespace: str  # of the Service
    service: str
    port: int
    ca: bytes  # PEM; empty: the system's
    insecure: bool
    priority: Priority
    available: bool

    @property
    def key(self) -> GroupVersion:
        return self.group, self.version

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    @property
    def server_name(self) -> str:
        """The name that its certificate must have."""
        return f"{self.service}.{self.namespace}.svc"


def foreign(document: Document) -> ApiService | None:
    """None for what we answer ourselves: local ones, the core group, and the group of APIServices."""
    spec = document.get("spec") or {}
    service, group = spec.get("service"), spec.get("group", "")
    if service is None or group in ("", OURS):
        return None
    condition = available(document)
    return ApiService(
        name=document["metadata"]["name"],
        group=group,
        version=spec.get("version", ""),
        namespace=service.get("namespace", ""),
        service=service.get("name", ""),
        port=service.get("port", 443),
        ca=_decoded(spec.get("caBundle")),
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        priority=Priority(spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)),
        available=condition is not None and condition.get("status") == "True",
    )


def _decoded(bundle: str | None) -> bytes:
    try:
        return base64.b64decode(bundle or "")
    except binascii.Error:
        return b"?"  # no certificate is in it, so nothing is trusted by it

"""A server with the hub's kinds on it, over a storage service in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.hub.compose import Hub
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.scheme import Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.gitops.kinds import hub_kinds
from trimtab.systems.platform.hub_kinds import HUB_KINDS

KINDS = (*HUB_KINDS, *hub_kinds)
INFRA, HUB = "infra.trimtab.dev/v3", "hub.trimtab.dev/v3"


class Home:
    """A server, its hub, and someone who may do everything."""

    def __init__(self, server: Server, hub: Hub) -> None:
        self.server, self.hub = server, hub
        self.client = self.as_user("ada", MASTERS)

    def as_user(self, name: str, *groups: str) -> ApiClient:
        return local_client(self.server, User(name, groups=(*groups, "system:authenticated")))

    async def apply(self, document: dict[str, Any], **options: Any) -> dict[str, Any]:
        applied = await self.client.apply(Untyped(document), manager="test", force=True, **options)
        return dict(applied.raw)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    server = Server(MemoryStore())
    await server.start()
    hub = Hub(server, KINDS, SqliteStorage(tmp_path / "hub.db"), suffixes=("acme.io",))
    try:
        await hub.start()
        yield Home(server, hub)
    finally:
        await hub.stop()
        await server.stop()


def addon(name: str = "nginx", **spec: Any) -> dict[str, Any]:
    files = {"uploadedYAML": {"paths": [{"name": "manifests/nginx.yaml"}]}}
    return {
        "apiVersion": INFRA,
        "kind": "Addon",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"namespace": "web", "artifact": files, **spec},
    }


def blueprint(
    name: str = "base", version: str = "v1", addons: tuple[str, ...] = ("nginx",), **more: Any
) -> dict[str, Any]:
    named = [{"name": each, "version": "v1"} for each in addons]
    return {
        "apiVersion": INFRA,
        "kind": "Blueprint",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"version": version, "addons": named, **more},
    }


def project(name: str) -> dict[str, Any]:
    return {"apiVersion": HUB, "kind": "Project", "metadata": {"name": name}, "spec": {}}

"""A service that does not answer holds up its own kind, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab.hub.compose import Hub
from trimtab.hub.contract import Down
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.model.hub import HubKind, HubResource
from trimtab.runtime import System
from trimtab.runtime.prepare import prepare
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore


class Lamp(HubResource, group="harbour", version="v1"):
    """A kind of a service that is away."""


class Away:
    """An accessor whose service cannot be reached, or that is broken itself."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name not in ("get", "list", "apply", "delete", "status"):
            raise AttributeError(name)

        async def refuse(*_: Any) -> Any:
            raise self._error

        return refuse


@pytest.mark.parametrize("error", [Down("the harbour does not answer"), KeyError("HARBOUR_URL")])
async def test_controllers_are_made_ready_while_a_service_is_away(tmp_path: Path, error: Exception) -> None:
    server = Server(MemoryStore())
    await server.start()
    lamps = HubKind(cls=Lamp, accessor=lambda: Away(error))
    hub = Hub(server, (lamps,), SqliteStorage(tmp_path / "hub.db"))
    await hub.start()
    try:
        client = local_client(server, User("ada", groups=(MASTERS, "system:authenticated")))
        client.scheme.register(Lamp)
        await prepare(client, (System(name="lamps", hub=(lamps,)),), rights=False)
        assert server.registry.find("harbour.trimtab.dev", "v1", "lamps"), "the hub's, and no custom resource"
    finally:
        await hub.stop()
        await server.stop()

"""The client in the server's own process: the past that a store forgets, and rights that hold for it as for anyone."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from tests.client.conftest import ADMIN, CONFIG_MAP, config_map
from trimtab.client import api
from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Event, Listing, Query
from trimtab.client.transport import Call, Silent
from trimtab.model.errors import StatusError
from trimtab.server.auth.identity import User
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport, local_client
from trimtab.store.memory import MemoryStore

QUERY = Query(namespace="default", fields="metadata.name!=kube-root-ca.crt")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    store = MemoryStore()
    made = Server(store)
    await made.start()
    yield made
    await made.stop()
    await store.close()


class Forgetting(LocalTransport):
    """The store forgets all of its past before each call that `when` names."""

    def __init__(self, server: Server, when: str) -> None:
        super().__init__(server, ADMIN)
        self.server, self.when, self.times = server, when, 1

    async def call(self, call: Call):  # type: ignore[no-untyped-def]
        if self.when in call.query:
            await self._forget()
        return await super().call(call)

    async def stream(self, call: Call, inactivity: float):  # type: ignore[no-untyped-def]
        if self.when in call.query:
            await self._forget()
        async with contextlib.aclosing(super().stream(call, inactivity)) as lines:
            async for line in lines:
                yield line

    async def _forget(self) -> None:
        if self.times:
            self.times -= 1
            await local_client(self.server, ADMIN).create(config_map("late", "default"))
            await self.server.store.compact(self.server.store.revision)


async def test_a_watch_from_a_forgotten_revision_is_a_410(server: Server) -> None:
    client = local_client(server, ADMIN)
    await client.create(config_map("a", "default"))
    await client.create(config_map("b", "default"))
    await server.store.compact(server.store.revision)
    with pytest.raises(StatusError) as caught:
        await anext(client.watch(CONFIG_MAP, QUERY, "1"))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_follow_lists_again_when_the_store_forgot(server: Server) -> None:
    following = follow(ApiClient(Forgetting(server, "watch")), CONFIG_MAP, QUERY)
    first, second = await anext(following), await anext(following)
    assert isinstance(first, Listing)
    assert isinstance(second, Listing)
    assert [item.name for item in second.items] == ["late"]
    await local_client(server, ADMIN).create(config_map("next", "default"))
    third = await anext(following)
    assert isinstance(third, Event)
    assert third.object is not None
    assert third.object.name == "next"
    await following.aclose()


async def test_a_list_whose_revision_is_forgotten_between_chunks_starts_anew(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "CHUNK", 2)
    for name in ("a", "b", "c"):
        await local_client(server, ADMIN).create(config_map(name, "default"))
    listing = await ApiClient(Forgetting(server, "continue")).list(CONFIG_MAP, QUERY)
    assert [item.name for item in listing.items] == ["a", "b", "c", "late"]


async def test_rights_hold_in_process_too(server: Server) -> None:
    nobody = local_client(server, User("nobody", groups=("system:authenticated",)))
    with pytest.raises(StatusError) as caught:
        await nobody.list(CONFIG_MAP)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


async def test_a_quiet_watch_is_given_up_after_its_time(server: Server) -> None:
    client = ApiClient(LocalTransport(server, ADMIN), inactivity=0.05)
    listing = await client.list(CONFIG_MAP, QUERY)
    with pytest.raises(Silent):
        await anext(client.watch(CONFIG_MAP, QUERY, listing.revision))

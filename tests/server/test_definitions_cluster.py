"""Watches of a kind whose definition is deleted, asked of our server and of a real one."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from tests.server.test_definitions import BOATS, DEFINITIONS, TABLE, boat, definition
from trimtab.testing.peer import ApiServer, read_access

DEFINITION = f"{DEFINITIONS}/boats.sea.example.com"


@pytest.fixture(params=["trimtab_server", pytest.param("real_cluster", marks=pytest.mark.cluster)])
def peer(request: pytest.FixtureRequest) -> ApiServer:
    found: ApiServer = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("accept", ["application/json", TABLE])
@pytest.mark.parametrize("names", [(), ("a", "b")])
async def test_a_watch_tells_what_goes_with_a_definition_and_ends_with_it(
    peer: ApiServer, accept: str, names: tuple[str, ...]
) -> None:
    access = read_access(peer.kubeconfig)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    async with aiohttp.ClientSession(access.url, headers=headers) as session, asyncio.timeout(60):
        tls = access.tls()

        async def send(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            async with session.request(method, path, json=body, ssl=tls) as answer:
                raw = await answer.read()
                return answer.status, orjson.loads(raw) if raw.startswith(b"{") else None

        async def until(path: str, code: int) -> Any:
            while True:
                answer = await send("GET", path)
                if answer[0] == code:
                    return answer[1]
                await asyncio.sleep(0.05)

        assert (await send("POST", DEFINITIONS, definition()))[0] == 201
        await until(BOATS, 200)
        for name in names:
            assert (await send("POST", BOATS, boat(name)))[0] == 201
        since = (await until(BOATS, 200))["metadata"]["resourceVersion"]
        watched = f"{BOATS}?watch=true&resourceVersion={since}&timeoutSeconds=600"
        async with session.get(watched, headers={"Accept": accept}, ssl=tls) as stream:
            assert (await send("DELETE", DEFINITION))[0] == 200
            told = [orjson.loads(line)["type"] async for line in stream.content]
        assert told == ["DELETED"] * len(names)
        await until(DEFINITION, 404)
        await until(BOATS, 404)

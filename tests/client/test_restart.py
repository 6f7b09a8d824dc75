"""A server that goes and comes back: whoever follows misses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.client.conftest import CONFIG_MAP, config_map
from trimtab.client.connect import connect
from trimtab.client.follow import follow
from trimtab.client.protocol import Event, Listing, Query
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports


async def test_no_change_is_missed_when_the_server_restarts_or_crashes(tmp_path: Path) -> None:
    flags = ("--port", str(free_ports(1)[0]))
    server = TrimtabServer(tmp_path, flags=flags)
    try:
        kubeconfig = server.kubeconfig
        client = connect(kubeconfig)
        query = Query(namespace="default", fields="metadata.name!=kube-root-ca.crt")
        following = follow(client, CONFIG_MAP, query)
        assert isinstance(await anext(following), Listing)
        seen: list[str] = []

        async def until(name: str) -> None:
            async with asyncio.timeout(30):
                while name not in seen:
                    told = await anext(following)
                    found = told.items if isinstance(told, Listing) else [told.object]
                    seen.extend(item.name for item in found if item is not None)
                    assert isinstance(told, Event), "it went on from its revision, without a new list"

        await client.create(config_map("before", "default"))
        await until("before")
        for number, end in enumerate(("stop", "kill")):
            getattr(server, end)()
            server = TrimtabServer(tmp_path, flags=flags)
            other = connect(kubeconfig)
            await other.create(config_map(f"missed-{number}", "default"))
            await other.close()
            await until(f"missed-{number}")
        assert seen == ["before", "missed-0", "missed-1"]
        await following.aclose()
        await client.close()
    finally:
        server.stop()

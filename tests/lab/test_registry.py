"""The lab's registry as its users get it: login, tokens, a cache of another one, word of pushes."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.needs import needs
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.lab.registry_faults import Answered, Corrupted, Dropped, FaultProxy, Truncated
from trimtab.testing.pki import Pair
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import PeerFailed

APP = made.image([made.layer({"etc/os-release": b"ID=debian\n"})])


async def get(url: str) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.get(url, headers={"Accept": made.OCI_MANIFEST}) as response:
        return response.status, await response.read()


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    port, other = free_ports(2)
    with Registry(tmp_path / "a", port, address="127.0.0.3"), pytest.raises(PeerFailed, match="already"):
        Registry(tmp_path / "b", port, address="127.0.0.3")
    with pytest.raises(PeerFailed, match="no such file"):
        Registry(tmp_path / "c", other, address="127.0.0.3", tls=Pair(tmp_path / "none.crt", tmp_path / "none.key"))


async def test_a_cache_gives_what_the_other_registry_has_and_an_empty_catalogue(tmp_path: Path) -> None:
    one, two = free_ports(2)
    with Registry(tmp_path / "a", one) as origin, Registry(tmp_path / "b", two, remote=origin.url) as cache:
        async with made.Pusher(origin.url) as pusher:
            await pusher.push("team/app", "1", APP)
        assert await get(f"{cache.url}/v2/team/app/manifests/{APP.digest}") == (200, APP.manifest.content)
        assert await get(f"{cache.url}/v2/_catalog") == (200, b'{"repositories":[]}\n')


async def test_pushes_are_told_of(tmp_path: Path) -> None:
    events: asyncio.Queue[Any] = asyncio.Queue()

    async def told(request: web.Request) -> web.Response:
        for event in (await request.json())["events"]:
            events.put_nowait((event["action"], event["target"].get("repository"), event["target"].get("tag")))
        return web.Response()

    port, listening = free_ports(2)
    application = web.Application()
    application.router.add_post("/events", told)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", listening).start()
    try:
        with Registry(tmp_path, port, notify=f"http://127.0.0.1:{listening}/events") as registry:
            async with made.Pusher(registry.url) as pusher:
                await pusher.push("team/app", "1", APP)
            async with asyncio.timeout(20):
                while await events.get() != ("push", "team/app", "1"):
                    pass
    finally:
        await runner.cleanup()


async def test_skopeo_reads_the_images_that_were_made_by_hand(tmp_path: Path) -> None:
    needs("skopeo")
    (port,) = free_ports(1)
    with Registry(tmp_path / "registry", port) as registry:
        async with made.Pusher(registry.url) as pusher:
            many = [
                made.entry(APP, "linux/amd64"),
                made.entry(made.image([made.layer({"x": b"1"}, "zstd")], "linux/arm64"), "linux/arm64"),
            ]
            await pusher.push("team/app", "1", made.index(many))
        command = ["skopeo", "--insecure-policy", "copy", "--all", "--src-tls-verify=false"]
        command += [f"docker://{registry.host}/team/app:1", f"oci:{tmp_path}/layout:1"]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        assert (tmp_path / "layout" / "index.json").exists()


def test_the_same_parts_have_the_same_digest() -> None:
    assert made.image([made.layer({"a": b"1"})]).digest == made.image([made.layer({"a": b"1"})]).digest


async def test_faults_come_as_often_as_was_said_and_then_the_registry_answers(tmp_path: Path) -> None:
    port, proxy_port = free_ports(2)
    with Registry(tmp_path, port) as registry:
        async with FaultProxy(proxy_port, registry.url) as proxy:
            proxy.fault("GET", "^/v2/$", Answered(503, {"Retry-After": "1"}, b"busy"), times=1)
            assert await get(f"{proxy.url}/v2/") == (503, b"busy")
            assert await get(f"{proxy.url}/v2/") == (200, b"{}")
            proxy.fault("GET", "^/v2/$", Corrupted(), times=1)
            assert await get(f"{proxy.url}/v2/") == (200, b"z}")
            proxy.fault("GET", "^/v2/$", Truncated(after=1), times=1)
            with pytest.raises(aiohttp.ClientPayloadError):
                await get(f"{proxy.url}/v2/")
            proxy.fault("GET", "^/v2/$", Dropped(), times=1)
            async with aiohttp.ClientSession() as session:
                session._retry_connection = False
                with pytest.raises(aiohttp.ServerDisconnectedError):
                    await session.get(f"{proxy.url}/v2/")
            assert proxy.count("GET", "^/v2/$") == 5

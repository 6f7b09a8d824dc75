"""The ARM emulator as a process of its own, told what to do over HTTP, and how many resources and requests it bears."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.lab.arm_calls import DOCUMENT, GROUP, NETWORK, SET, SETS, SUBSCRIPTION, VERSION, VMSS, scale_set
from trimtab.lab.arm.__main__ import main
from trimtab.testing.processes import Process


@asynccontextmanager
async def process(tmp_path: Path, *options: str) -> AsyncIterator[aiohttp.ClientSession]:
    log = tmp_path / "arm.log"
    command = [sys.executable, "-m", "trimtab.lab.arm", str(DOCUMENT), "--group", GROUP, *options]
    started = Process(command, log=log)
    try:
        started.wait_until(lambda: log.read_text().startswith("http://"), within=20)
        async with aiohttp.ClientSession(log.read_text().strip()) as session:
            yield session
    finally:
        started.stop()


async def told(session: aiohttp.ClientSession, order: str, body: Any = None) -> Any:
    async with session.request("GET" if body is None else "POST", f"/_lab/{order}", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_a_process_serves_and_takes_orders(tmp_path: Path) -> None:
    version = {"api-version": VERSION}
    async with process(tmp_path, "--token", "t") as session:
        bearer = {"Authorization": "Bearer t"}
        async with session.put(SET, json=scale_set(), params=version, headers=bearer) as response:
            assert (response.status, "Azure-AsyncOperation" in response.headers) == (201, True)
        await told(session, "behaviour", {"type": VMSS, "behaviour": {"asynchronous": False}})
        await told(session, "put", [{"id": f"{SETS}/{number}", "body": scale_set(number)} for number in range(3)])
        await told(session, "change", {"id": f"{SETS}/1", "patch": {"sku": {"capacity": 99}}})
        await told(session, "remove", {"id": f"{SETS}/2"})
        async with session.get(f"{SETS}/1", params=version, headers=bearer) as response:
            assert (await response.json())["sku"]["capacity"] == 99
        counts = await told(session, "counts")
        assert (counts["writes"], counts["resources"]) == (1, 4)
        assert counts["verbs"] == {"create": 1, "read": 1}
        assert [each["method"] for each in await told(session, "requests")] == ["PUT", "GET"]
        assert f"{SETS}/2" not in await told(session, "resources")
        await told(session, "clear", {})
        assert (await told(session, "counts"))["verbs"] == {}
        async with session.post("/_lab/behaviour", json={"behaviour": {"put": "sometimes"}}) as response:
            assert response.status == 400


async def test_ten_thousand_resources_are_listed_in_pages(tmp_path: Path) -> None:
    async with process(tmp_path, "--instant") as session:
        await told(session, "behaviour", {"behaviour": {"page_size": 1000}})
        for start in range(0, 10_000, 2_000):
            chunk = [{"id": f"{SETS}/s{start + at}", "body": scale_set()} for at in range(2_000)]
            await told(session, "put", chunk)
        url, seen, pages = f"{SETS}?api-version={VERSION}", 0, 0
        while url:
            async with session.get(url) as response:
                page = await response.json()
            seen, pages, url = seen + len(page["value"]), pages + 1, page.get("nextLink", "")
        assert (seen, pages) == (10_000, 10)


def test_a_document_that_is_not_there_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/none.json"]) == 1
    assert "none.json" in capsys.readouterr().err
    assert main([str(DOCUMENT), "--group", NETWORK.replace("Microsoft.Network", "Microsoft.None")]) == 1
    assert SUBSCRIPTION in capsys.readouterr().err

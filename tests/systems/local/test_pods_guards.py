"""What pods may not do by the names and values that they give."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from trimtab.systems.local.pods.environment import environment_of
from trimtab.systems.local.pods.probes import ask
from trimtab.systems.local.pods.problem import CannotStart
from trimtab.systems.local.pods.volumes import _write, place_of


@pytest.mark.parametrize("name", ["../other", "a/../../other", "/etc/other"])
def test_a_file_of_a_volume_stays_in_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "volume").mkdir()
    with pytest.raises(CannotStart, match="leaves its volume"):
        _write(tmp_path / "volume", name, b"x")
    assert list(tmp_path.rglob("*")) == [tmp_path / "volume"]


@pytest.mark.parametrize("part", ["../other", "a/../../other", "/etc"])
def test_a_part_of_a_volume_is_in_it(tmp_path: Path, part: str) -> None:
    with pytest.raises(CannotStart, match="leaves its volume"):
        place_of({"name": "data", "subPath": part}, {"data": tmp_path})
    assert place_of({"name": "data", "subPath": "a/b"}, {"data": tmp_path}) == tmp_path / "a/b"


async def test_a_probe_is_one_request() -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(65536))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async def execute(*_: Any) -> str:
        return ""

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def probe(**fields: Any) -> str:
        handler = {"httpGet": {"port": port, **fields}}
        return await ask(handler, address="127.0.0.1", ports={}, execute=execute, timeout=5)

    async with server:
        assert await probe(path="/ok") == ""
        for bad in ({"path": "/a HTTP/1.1\r\nX: y"}, {"httpHeaders": [{"name": "A", "value": "b\nX: y"}]}):
            assert "line break" in await probe(**bad)
    assert all(b"X: y" not in each for each in asked)


async def test_a_value_with_a_zero_byte_is_refused_and_nothing_of_ours_is_handed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/secret")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    client: Any = None
    pod = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
    found = await environment_of(client, pod, {"env": [{"name": "A", "value": "b"}]}, "127.10.0.1")
    assert set(found) == {"PATH", "HOME", "HOSTNAME", "POD_NAME", "POD_NAMESPACE", "POD_IP", "A"}
    with pytest.raises(CannotStart, match="zero byte"):
        await environment_of(client, pod, {"env": [{"name": "A", "value": "b\0c"}]}, "127.10.0.1")

"""Files larger than what a server may hold: `trimtab up` as a process, measured from outside."""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import read_access

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MIB = 1 << 20
SIZE = 200 * MIB
URL = "/apis/letters.trimtab.dev/v1/namespaces/default/letters"
OPERATOR = Path(__file__).parents[1] / "aggregated" / "letters.py"


def high_water(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(pid)


class Caller:
    def __init__(self, server: TrimtabServer) -> None:
        self._tls: ssl.SSLContext = read_access(server.kubeconfig).tls()
        self._port = int(server.url.rpartition(":")[2])

    async def send(self, method: str, path: str, length: int, pieces: AsyncIterator[bytes]) -> bytes:
        """What comes back, whole."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=4 * MIB)
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {length}\r\n\r\n".encode())
        try:
            async for piece in pieces:
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass  # it has said why
        answer = await reader.read()
        writer.close()
        return answer

    async def digest(self, path: str) -> str:
        """Of the bytes at a path, which are not kept here either."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, limit=4 * MIB)
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        found = hashlib.sha256()
        while piece := await reader.read(MIB):
            found.update(piece)
        writer.close()
        return found.hexdigest()


async def once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def pieces(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield number.to_bytes(4, "big") * (MIB // 4)


@pytest.mark.row(27)
async def test_a_large_file_passes_through_a_small_server(tmp_path: Path) -> None:
    with TrimtabServer(tmp_path, flags=["--systems", "none", "--operator", str(OPERATOR)]) as server:
        caller = Caller(server)
        made = {
            "apiVersion": "letters.trimtab.dev/v1",
            "kind": "Letter",
            "metadata": {"name": "a"},
            "spec": {"files": [{"name": "big"}]},
        }
        body = orjson.dumps(made)
        assert (await caller.send("POST", URL, len(body), once(body))).startswith(b"HTTP/1.1 201 ")
        expected = hashlib.sha256()
        async for piece in pieces(SIZE // MIB):
            expected.update(piece)
        before = high_water(server.pids["server"])
        put = await caller.send("PUT", f"{URL}/a/artifacts/big", SIZE, pieces(SIZE // MIB))
        assert put.startswith(b"HTTP/1.1 200 "), put
        assert await caller.digest(f"{URL}/a/artifacts/big") == expected.hexdigest()
        grown = high_water(server.pids["server"]) - before
        assert grown < 64 * MIB, f"{grown / MIB:.0f} MiB for a file of {SIZE / MIB:.0f}"
        print(f"grown by {grown / MIB:.1f} MiB")
        gigabyte = await caller.send("PUT", f"{URL}/a/artifacts/big", 1 << 30, pieces(1))
        assert gigabyte.startswith(b"HTTP/1.1 413 ")
        assert b"at most 268435456 bytes" in gigabyte
        assert await caller.digest(f"{URL}/a/artifacts/big") == expected.hexdigest()

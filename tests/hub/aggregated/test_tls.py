"""The hub's side of TLS: certificates and authorities change, connections stay."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.cli.hub_serving import peer_token
from trimtab.client.api import ApiClient
from trimtab.hub.aggregated import Aggregated, Pair, Tls, hub_server, serving
from trimtab.hub.cache.caches import Question
from trimtab.hub.cache.lru import Entry
from trimtab.hub.cache.peers import Peers
from trimtab.model.scheme import Scheme
from trimtab.server.auth.identity import User
from trimtab.server.auth.request_header import FrontProxy
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport
from trimtab.store.memory import MemoryStore
from trimtab.testing.pki import Authority
from trimtab.testing.pki import Pair as Files

HOST = "trimtab-hub.trimtab-system.svc"


class World:
    """What changes around a hub: its certificate, and whom the cluster says to believe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.serving = self.authority("serving-1")
        self.proxies = self.authority("proxy-1")
        self.pair = self.serving.server("hub", hosts=(HOST,))

    def authority(self, name: str) -> Authority:
        (self._folder / name).mkdir()
        return Authority(self._folder / name, name=name)

    async def certificate(self) -> Pair:
        return Pair(self.pair.certificate.read_bytes(), self.pair.key.read_bytes())

    async def proxy(self) -> FrontProxy:
        return FrontProxy(ca=self.proxies.certificate.read_bytes(), names=("front-proxy-client",))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def hub(world: World) -> AsyncIterator[Aggregated]:
    cluster = Server(MemoryStore())
    client = ApiClient(LocalTransport(cluster, User("hub")), Scheme())
    async with serving(Aggregated(hub_server(client), client, world.certificate, proxy=world.proxy)) as running:
        yield running
    await cluster.store.close()


class Line:
    """A connection that stays."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, trusted: Authority, pair: Files | None) -> "Line":
        context = ssl.create_default_context(cafile=str(trusted.certificate))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST))

    async def ask(self) -> int:
        self._writer.write(
            b"GET /apis HTTP/1.1\r\nhost: x\r\nX-Remote-User: root\r\nX-Remote-Group: system:masters\r\n\r\n"
        )
        async with asyncio.timeout(10):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            await self._reader.readexactly(length)
        return int(head.split()[1])

    def close(self) -> None:
        self._writer.close()


async def refused(port: int, trusted: Authority, pair: Files) -> bool:
    """Whether a certificate ends the handshake, or, as TLS 1.3 has it, what comes right after."""
    line = None
    try:
        line = await Line.open(port, trusted, pair)
        await line.ask()
    except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
        return True
    finally:
        if line is not None:
            line.close()
    return False


@pytest.mark.row(21)
async def test_another_front_proxy_is_believed_at_once_and_the_old_one_no_more(world: World, hub: Aggregated) -> None:
    old = world.proxies.client("front-proxy-client")
    line = await Line.open(hub.port, world.serving, old)
    assert await line.ask() == 200
    world.proxies = world.authority("proxy-2")
    await hub.refresh()
    assert await line.ask() == 401  # the same connection
    line.close()
    fresh = await Line.open(hub.port, world.serving, world.proxies.client("front-proxy-client"))
    assert await fresh.ask() == 200
    fresh.close()
    assert await refused(hub.port, world.serving, old)


async def test_a_new_certificate_drops_no_connection(world: World, hub: Aggregated) -> None:
    proxy = world.proxies.client("front-proxy-client")
    line = await Line.open(hub.port, world.serving, proxy)
    assert await line.ask() == 200
    before, world.serving = world.serving, world.authority("serving-2")
    world.pair = world.serving.server("hub", hosts=(HOST,))
    await hub.refresh()
    assert await line.ask() == 200
    line.close()
    fresh = await Line.open(hub.port, world.serving, proxy)
    assert await fresh.ask() == 200
    fresh.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        await Line.open(hub.port, before, proxy)


async def test_what_cannot_be_used_changes_nothing(world: World, hub: Aggregated) -> None:
    good = world.pair
    world.pair = Files(good.certificate, world.serving.server("other").key)
    with pytest.raises(ssl.SSLError):
        await hub.refresh()
    line = await Line.open(hub.port, world.serving, world.proxies.client("front-proxy-client"))
    assert await line.ask() == 200
    line.close()


async def test_replicas_ask_each_other_by_the_same_certificate(world: World, hub: Aggregated) -> None:
    trusting = ssl.create_default_context(cafile=str(world.serving.certificate))
    token = peer_token(lambda: hub.pair.key)
    peers = [
        Peers(token=each, server_tls=hub.tls.context, client_tls=trusting, server_name=HOST)
        for each in (token, token, peer_token(lambda: b"another key"))
    ]
    answer = Entry(value=b"x", revision=7)

    async def serve(question: Question) -> Entry:
        return answer

    for peer in peers:
        await peer.start(serve)
    try:
        question = Question("letters.letters", "a", b"{}")
        assert peers[0].address.startswith("https://")
        assert await peers[1].ask(peers[0].address, question) == answer
        assert await peers[2].ask(peers[0].address, question) is None
    finally:
        for peer in peers:
            await peer.stop()


def test_nobody_gets_in_before_there_is_a_certificate() -> None:
    assert Tls().context.verify_mode is ssl.CERT_OPTIONAL
    assert "key" not in repr(Pair(b"c", b"key"))

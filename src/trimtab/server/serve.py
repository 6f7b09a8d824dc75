"""An API server that listens: TLS on the network, and a unix socket that only its owner can open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trimtab.model.clock import SystemClock
from trimtab.server.asgi import Application
from trimtab.server.auth.files import read_private
from trimtab.server.auth.identity import MASTERS, Authenticator, User
from trimtab.server.auth.kubeconfig import write_kubeconfig
from trimtab.server.auth.limits import Limits
from trimtab.server.auth.pki import ensure_pki, ssl_context
from trimtab.server.auth.tokens import TokenKey
from trimtab.server.core import Server
from trimtab.server.reader import StoreReader
from trimtab.store.sqlite import SqliteStore

ISSUER = "https://kubernetes.default.svc.cluster.local"
BACKLOG = 4096
OWNER = User("trimtab:owner", groups=(MASTERS, "system:authenticated"))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 7443
    extra_hosts: tuple[str, ...] = ()
    limits: Limits = Limits()


class Running(msgspec.Struct, frozen=True):
    """A server that is ready."""

    server: Server
    url: str
    kubeconfig: Path
    socket: Path


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, and the peer's certificate with each request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        self.app_state: dict[str, Any] = {"peer": certificate}


class _Listener(uvicorn.Server):
    """uvicorn without its own signal handling: who composes the process decides when it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def serve(settings: Settings) -> AsyncIterator[Running]:
    """Run a server on a data directory until the block is left."""
    directory = settings.data_dir
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    pki = ensure_pki(directory / "pki", (settings.host, *settings.extra_hosts))
    store = await SqliteStore.open(directory / "store.db")
    reader = StoreReader(store)
    admin = User("system:admin", groups=(MASTERS,))
    key = TokenKey(read_private(pki.service_account_key))
    authenticator = Authenticator(
        key,
        reader,
        issuer=ISSUER,
        audiences=(ISSUER,),
        static_tokens={read_private(pki.admin_token).decode().strip(): admin},
    )
    server = Server(
        store, clock=SystemClock(), authenticator=authenticator, token_key=key, ca=pki.ca.read_text(), issuer=ISSUER
    )
    await server.start()
    socket = directory / "trimtab.sock"
    network = _listener(Application(server, authenticator, limits=settings.limits), settings, ssl_context(pki))
    local = _unix_listener(Application(server, authenticator, local=OWNER), socket)
    tasks = [asyncio.create_task(listener.serve()) for listener in (network, local)]
    try:
        await _started(network, tasks[0])
        await _started(local, tasks[1])
        os.chmod(socket, 0o600)  # noqa: PTH101
        port = network.servers[0].sockets[0].getsockname()[1]
        url = f"https://{_bracketed(settings.host)}:{port}"
        write_kubeconfig(directory / "kubeconfig", url, pki)
        yield Running(server, url, directory / "kubeconfig", socket)
    finally:
        network.should_exit = local.should_exit = True
        network.force_exit = local.force_exit = True
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.stop()
        await store.close()
        socket.unlink(missing_ok=True)


def _listener(application: Application, settings: Settings, context: ssl.SSLContext) -> _Listener:
    config = _config(application, host=settings.host, port=settings.port)
    config.load()
    config.ssl = context
    return _Listener(config)


def _unix_listener(application: Application, path: Path) -> _Listener:
    path.unlink(missing_ok=True)
    config = _config(application, uds=str(path))
    config.load()
    return _Listener(config)


def _config(application: Application, **where: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,  # type: ignore[arg-type]
        http=_Protocol,
        loop="none",
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        backlog=BACKLOG,
        timeout_keep_alive=90,
        h11_max_incomplete_event_size=64 * 1024,
        **where,
    )


async def _started(listener: _Listener, task: asyncio.Task[None]) -> None:
    while not listener.started:
        if task.done():
            await task
            raise OSError("the server could not listen: is the port in use?")
        await asyncio.sleep(0.002)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host



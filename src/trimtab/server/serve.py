"""An API server that listens: TLS on the network, and a unix socket that only its owner can open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from trimtab.model.admission import Admission
from trimtab.model.clock import SystemClock
from trimtab.model.scheme import Scheme
from trimtab.server.auth.files import read_private
from trimtab.server.auth.identity import MASTERS, Authenticator, User
from trimtab.server.auth.kubeconfig import write_kubeconfig
from trimtab.server.auth.limits import Limits
from trimtab.server.auth.pki import ensure_pki, ssl_context
from trimtab.server.auth.tokens import TokenKey
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.reader import StoreReader
from trimtab.server.wire import Listener
from trimtab.store.sqlite import SqliteStore

ISSUER = "https://kubernetes.default.svc.cluster.local"
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


@contextlib.asynccontextmanager
async def serve(
    settings: Settings, *, admission: Sequence[Admission] = (), scheme: Scheme | None = None
) -> AsyncIterator[Running]:
    """Run a server on a data directory until the block is left. `admission` is asked about writes of `scheme`'s kinds."""
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
        store,
        clock=SystemClock(),
        authenticator=authenticator,
        token_key=key,
        ca=pki.ca.read_text(),
        issuer=ISSUER,
        admission=admission,
        scheme=scheme,
    )
    await server.start()
    socket = directory / "trimtab.sock"
    network = Listener(Door(server, authenticator, limits=settings.limits))
    local = Listener(Door(server, authenticator, local=OWNER))
    try:
        port = await network.listen(settings.host, settings.port, ssl_context(pki))
        await _listen_privately(local, socket)
        url = f"https://{_bracketed(settings.host)}:{port}"
        write_kubeconfig(directory / "kubeconfig", url, pki)
        yield Running(server, url, directory / "kubeconfig", socket)
    finally:
        await network.close()
        await local.close()
        await server.stop()
        await store.close()
        socket.unlink(missing_ok=True)


async def _listen_privately(listener: Listener, path: Path) -> None:
    """The socket is its owner's alone from the first moment on."""
    path.unlink(missing_ok=True)  # noqa: ASYNC240 - once, before anyone waits
    mask = os.umask(0o177)
    try:
        await listener.listen_unix(str(path))
    finally:
        os.umask(mask)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

"""An API server that listens: TLS on the network, and a unix socket that only its owner can open."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trimtab.model.admission import Admission
from trimtab.model.clock import SystemClock
from trimtab.model.scheme import Scheme
from trimtab.server.aggregation.remote import FrontProxyPair
from trimtab.server.auth.files import guarded_directory, read_private
from trimtab.server.auth.identity import MASTERS, Authenticator, User
from trimtab.server.auth.issuing import KEYS, Issuer, OpenId, discoverable
from trimtab.server.auth.kubeconfig import write_kubeconfig
from trimtab.server.auth.limits import Limits
from trimtab.server.auth.pki import ensure_pki, load_authority, ssl_context
from trimtab.server.auth.tokens import TokenKey
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.reader import StoreReader
from trimtab.server.wire import Listener
from trimtab.store.file import refusal
from trimtab.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from trimtab.server.audit.trail import Auditor

OWNER = User("trimtab:owner", groups=(MASTERS, "system:authenticated"))


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of requests, and where. `log` "-" is standard output; sizes are in megabytes."""

    policy: Path
    log: str
    max_size: int = 100
    max_backups: int = 10


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 7443
    extra_hosts: tuple[str, ...] = ()
    limits: Limits = Limits()
    audit: AuditSettings | None = None
    issuer: Issuer = Issuer()


class Running(msgspec.Struct, frozen=True):
    """A server that is ready."""

    server: Server
    url: str
    kubeconfig: Path
    socket: Path


@contextlib.asynccontextmanager
async def serve(
    settings: Settings,
    *,
    admission: Sequence[Admission] = (),
    scheme: Scheme | None = None,
    mount: Callable[[Server], contextlib.AbstractAsyncContextManager[None]] | None = None,
) -> AsyncIterator[Running]:
    """Run a server on a data directory until the block is left. `admission` is asked about writes of `scheme`'s kinds;
    `mount` adds kinds that others hold, before anyone can ask."""
    audit = await asyncio.to_thread(_auditor, settings.audit) if settings.audit is not None else None
    directory = settings.data_dir
    guarded_directory(directory)
    pki = ensure_pki(directory / "pki", (settings.host, *settings.extra_hosts))
    store = await SqliteStore.open(directory / "store.db")
    reader = StoreReader(store)
    admin = User("system:admin", groups=(MASTERS,))
    key = TokenKey(read_private(pki.service_account_key))
    names = settings.issuer.names
    authenticator = Authenticator(
        key,
        reader,
        issuer=names[0],
        audiences=names,
        former_issuers=names[1:],
        static_tokens={read_private(pki.admin_token).decode().strip(): admin},
    )
    server = Server(
        store,
        clock=SystemClock(),
        authenticator=authenticator,
        token_key=key,
        ca=pki.ca.read_text(),
        issuer=names[0],
        audiences=names,
        admission=admission,
        scheme=scheme,
        authority=functools.partial(load_authority, pki),
        front_proxy=FrontProxyPair(pki.proxy_client, pki.proxy_ca.read_text()),
    )
    if audit is not None:
        server.audit = audit
        server.metrics.collectors.append(audit)
    await _started(server, store, directory / "store.db")
    mounted = mount(server) if mount is not None else contextlib.nullcontext()
    socket = directory / "trimtab.sock"
    network = Listener(Door(server, authenticator, limits=settings.limits))
    local = Listener(Door(server, authenticator, local=OWNER))
    network.passed_on = local.passed_on = server.aggregator.passes
    try:
        async with mounted:
            try:
                port = await network.listen(settings.host, settings.port, ssl_context(pki))
                await _listen_privately(local, socket)
                url = f"https://{_bracketed(settings.host)}:{port}"
                if discoverable(names[0]):
                    server.roots.openid = OpenId(key, names[0], settings.issuer.jwks_uri or f"{url}{KEYS}")
                write_kubeconfig(directory / "kubeconfig", url, pki)
                yield Running(server, url, directory / "kubeconfig", socket)
            finally:
                await network.close()
                await local.close()
    finally:
        await server.stop()
        await store.close()
        if audit is not None:
            await asyncio.to_thread(audit.log.close)
        socket.unlink(missing_ok=True)


async def _started(server: Server, store: SqliteStore, path: Path) -> None:
    """A start reads much of the store: damage shows here first. Unusable."""
    try:
        await server.start()
    except Exception as error:
        await store.close()
        if said := refusal(path, error):
            raise said from error
        raise


def _auditor(settings: AuditSettings) -> Auditor:
    """Nothing of it is imported without a policy. PolicyError and OSError, before anything else is begun."""
    from trimtab.server.audit.log import AuditLog
    from trimtab.server.audit.policy import load_policy
    from trimtab.server.audit.trail import Auditor

    policy, clock = load_policy(settings.policy), SystemClock()
    written = AuditLog(settings.log, max_size=settings.max_size, max_backups=settings.max_backups, now=clock.now)
    return Auditor(policy, written, clock)


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

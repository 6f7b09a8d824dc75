"""A server that asks discovery about its objects: ours calls the functions itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.runtime.conftest import ADMIN
from tests.runtime.webhooks_gadgets import NAME, serving
from tests.systems.discovery.documents import made
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.system import System
from trimtab.runtime.webhooks.manifest import configurations
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

PROBE = made("TargetConnectionProfile", "probe", "default", timeout="0s")


@contextlib.asynccontextmanager
async def judging(system: System, scheme: Scheme, cluster: Path | None) -> AsyncIterator[ApiClient]:
    """A client of a server that knows the kinds and asks about them: of the cluster with this kubeconfig, else of ours."""
    for kind in system.kinds:
        scheme.register(kind)
    if cluster is None:
        store = MemoryStore()
        server = Server(store, admission=system.admissions, scheme=scheme)
        await server.start()
        client = local_client(server, ADMIN, scheme)
        await _define(client, system)
        yield client
        await server.stop()
        await store.close()
        return
    client = connect(cluster, scheme=scheme)
    await _define(client, system)
    async with serving(client, "default", system.admissions, ClientReader(client), scheme=scheme) as (
        url,
        certificates,
    ):
        hooks = [Untyped(document) for document in configurations(system.admissions, name=NAME, at=url, scheme=scheme)]
        try:
            for hook in hooks:
                await client.create(hook)
            await certificates.refresh()
            await _until_judged(client)
            yield client
        finally:  # what stays would be asked, in vain, about all that later tests write
            for hook in hooks:
                with contextlib.suppress(StatusError):
                    await client.delete(Ref(Named(hook.api_version, hook.kind), hook.name))
    await client.close()


async def said(client: ApiClient, obj: Untyped) -> str:
    """What is said to a creation that is only tried; "" when it would be taken."""
    try:
        await client.create(obj, dry_run=True)
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def _define(client: ApiClient, system: System) -> None:
    for kind in system.kinds:
        try:
            await client.create(Untyped(crd(kind, scheme=client.scheme)))
        except StatusError as error:
            if error.code != 409:
                raise


async def _until_judged(client: ApiClient) -> None:
    """API servers tell nobody when they have taken a configuration in, so they are asked."""
    async with asyncio.timeout(60):
        while True:
            if "must be longer than nothing" in await said(client, PROBE):
                return
            await asyncio.sleep(0.05)

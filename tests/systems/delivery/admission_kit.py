"""A server that asks delivery about its objects: ours calls the functions itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.runtime.conftest import ADMIN
from tests.runtime.webhooks_gadgets import NAME, serving
from tests.systems.delivery.problem_specs import spec
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.model import istio
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.webhooks.manifest import configurations
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.delivery.admission import ADMISSIONS
from trimtab.systems.delivery.kinds import CanaryDeployment, MetricTemplate, ReleaseGroup

VERSION = "delivery.trimtab.dev/v1alpha1"
KINDS = (CanaryDeployment, MetricTemplate, ReleaseGroup, *istio.KINDS)


def made(kind: str, name: str, namespace: str, body: dict[str, Any], version: str = VERSION) -> Untyped:
    return Untyped(
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": body}
    )


def canary(name: str, namespace: str, changes: dict[str, Any] | None = None) -> Untyped:
    """One whose pods are its own."""
    own = {"deployment.selector.matchLabels.app": name, "deployment.template.metadata.labels.app": name}
    return made("CanaryDeployment", name, namespace, spec({**own, **(changes or {})}))


@contextlib.asynccontextmanager
async def judging(scheme: Scheme, cluster: Path | None) -> AsyncIterator[ApiClient]:
    """A client of a server that knows the kinds and asks about them: of the cluster with this kubeconfig, else of ours."""
    for kind in KINDS:
        scheme.register(kind)
    if cluster is None:
        store = MemoryStore()
        server = Server(store, admission=ADMISSIONS, scheme=scheme)
        await server.start()
        client = local_client(server, ADMIN, scheme)
        await _define(client)
        yield client
        await server.stop()
        await store.close()
        return
    client = connect(cluster, scheme=scheme)
    await _define(client)
    async with serving(client, "default", ADMISSIONS, ClientReader(client), scheme=scheme) as (url, certificates):
        hooks = [Untyped(document) for document in configurations(ADMISSIONS, name=NAME, at=url, scheme=scheme)]
        for hook in hooks:
            await client.create(hook)
        await certificates.refresh()
        await _until_judged(client)
        yield client
        for hook in hooks:
            await client.delete(Ref(Named(hook.api_version, hook.kind), hook.name))
    await client.close()


async def said(client: ApiClient, obj: Untyped) -> str:
    """What is said to a creation that is only tried; "" when it would be taken."""
    try:
        await client.create(obj, dry_run=True)
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def changed(client: ApiClient, obj: Untyped, **fields: Any) -> str:
    """What is said to another value of these fields of the spec."""
    now = await client.get(Named(obj.api_version, obj.kind), obj.name, obj.namespace)
    try:
        await client.patch(now, Untyped({**now.raw, "spec": {**now.raw["spec"], **fields}}))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def _define(client: ApiClient) -> None:
    for kind in KINDS:
        try:
            await client.create(Untyped(crd(kind, scheme=client.scheme)))
        except StatusError as error:
            if error.code != 409:
                raise


async def _until_judged(client: ApiClient) -> None:
    """API servers tell nobody when they have taken a configuration in, so they are asked."""
    probe = canary("probe", "default", {"progressDeadline": "0s"})
    async with asyncio.timeout(30):
        while True:
            if "must be at least 1s" in await said(client, probe):
                return
            await asyncio.sleep(0.05)

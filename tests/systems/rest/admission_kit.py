"""Servers that ask this system about its objects: ours calls the functions itself, a kube-apiserver asks the webhook that
`generate` prints, whose authority the keeper of the certificates fills in by its label."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tests.runtime.conftest import ADMIN
from tests.systems.rest.generating_kit import define, machine
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.apply import apply
from trimtab.runtime.certificates import Certificates, Targets
from trimtab.runtime.system import NAMESPACE
from trimtab.runtime.webhooks import ClientReader, WebhookServer, configurations
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.rest.admission import ADMISSIONS
from trimtab.systems.rest.generating.cluster import PATH, WEBHOOK, webhook
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.models import config_map

SERVICE = "judged"
GROUP = f"{SERVICE}.rest.trimtab.dev"
MACHINE = Named(f"{GROUP}/v1", "Machine")
OWN = "trimtab-rest-test"


def made(**changes: Any) -> Model:
    return machine(group=GROUP, service=SERVICE, **changes)


def an_object(name: str, namespace: str, **spec: Any) -> Untyped:
    return Untyped(
        {
            "apiVersion": MACHINE.api_version,
            "kind": MACHINE.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"sku": {"tier": "Small"}, "parameters": {"group": "east"}, **spec},
        }
    )


@contextlib.asynccontextmanager
async def judging(scheme: Scheme, cluster: Path | None) -> AsyncIterator[ApiClient]:
    """A client of the cluster with this kubeconfig, else of a server of ours."""
    for kind in (RestService, RestDefinition):
        scheme.register(kind)
    if cluster is None:
        store = MemoryStore()
        server = Server(store, admission=ADMISSIONS, scheme=scheme)
        await server.start()
        client = local_client(server, ADMIN, scheme)
        await _prepare(client)
        yield client
        await server.stop()
        await store.close()
        return
    client = connect(cluster, scheme=scheme)
    await _prepare(client)
    async with _hooked(client):
        yield client
    await client.close()


async def store(client: ApiClient, model: Model) -> None:
    """Keep a Model where admission finds it."""
    await apply(client, config_map(model, "test"), manager="test", force=True)


async def forget(client: ApiClient) -> None:
    await client.delete(Ref(ConfigMap, f"rest-machines.{GROUP}", NAMESPACE))


async def said(client: ApiClient, obj: Untyped) -> str:
    """What is said to a creation that is only tried; "" when it would be taken."""
    try:
        await client.create(obj, dry_run=True)
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def changed(client: ApiClient, name: str, namespace: str, spec: Mapping[str, Any], **metadata: Any) -> str:
    """What is said to a change of an object; "" when it is taken."""
    now = (await client.get(MACHINE, name, namespace)).raw
    new = {**now, "spec": {**now["spec"], **spec}, "metadata": {**now["metadata"], **metadata}}
    try:
        await client.patch(Untyped(now), Untyped(new))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def _prepare(client: ApiClient) -> None:
    with contextlib.suppress(StatusError):
        await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    for kind in (RestService, RestDefinition):
        await apply(client, Untyped(crd(kind, scheme=client.scheme)), manager="test", force=True)
    await define(client, made())
    await store(client, made())


@contextlib.asynccontextmanager
async def _hooked(client: ApiClient) -> AsyncIterator[None]:
    targets = Targets(validating=(OWN,), labels=f"{WEBHOOK}=true")
    certificates = Certificates(client, namespace=NAMESPACE, name="rest", hosts=("127.0.0.1",), targets=targets)
    await certificates.refresh()
    server = WebhookServer(
        ADMISSIONS, tls=certificates.context, reader=ClientReader(client), scheme=client.scheme, port=0
    )
    at = f"https://127.0.0.1:{await server.start()}"
    generated = webhook([made()], SERVICE)
    generated["webhooks"][0]["clientConfig"] = {"url": at + PATH}
    hooks = [
        Untyped(generated),
        *map(Untyped, configurations(ADMISSIONS, name=OWN, at=at, scheme=client.scheme)),
    ]
    try:
        for hook in hooks:
            await client.create(hook)
        await certificates.refresh()
        await _until_judged(client)
        yield
    finally:
        for hook in hooks:
            await client.delete(Ref(Named(hook.api_version, hook.kind), hook.name))
        await server.stop()


async def _until_judged(client: ApiClient) -> None:
    """API servers tell nobody when they have taken a configuration in, so they are asked."""
    service = Untyped(
        {
            "apiVersion": "rest.trimtab.dev/v1alpha1",
            "kind": "RestService",
            "metadata": {"name": "probe"},
            "spec": {"endpoint": "ftp://a", "document": {"url": "https://a/b"}},
        }
    )
    async with asyncio.timeout(30):
        for probe, word in ((an_object("probe", "default", nope=1), "unknown field"), (service, "spec.endpoint")):
            while True:
                if word in await said(client, probe):
                    break
                await asyncio.sleep(0.05)

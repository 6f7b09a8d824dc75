"""The same declarations in every home: a real kube-apiserver and our own server that call webhooks, and our server that
calls the functions itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.kubectl import Kubectl, newest
from tests.runtime.conftest import ADMIN
from tests.runtime.webhooks_gadgets import ADMISSION, NAME, Gadget, gadget, serving
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Ref
from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.webhooks.manifest import configurations
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.testing.cluster import RealCluster

DEFINITION = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@pytest.fixture
async def hooked(client: ApiClient, scheme: Scheme, namespace: str) -> AsyncIterator[ApiClient]:
    """The kind is defined, its functions are served on loopback, and the API server knows them."""
    scheme.register(Gadget)
    definition = crd(Gadget, scheme=scheme)
    await client.create(Untyped(definition))
    async with serving(client, namespace, ADMISSION, ClientReader(client), scheme=scheme) as (url, certificates):
        made = [Untyped(document) for document in configurations(ADMISSION, name=NAME, at=url, scheme=scheme)]
        for one in made:
            await client.create(one)
        await certificates.refresh()
        await until_judged(client, namespace)
        yield client
        for one in made:
            await client.delete(Ref(Named(one.api_version, one.kind), one.name))
        name = definition["metadata"]["name"]
        await client.delete(Ref(DEFINITION, name))
        await until_gone(client, name)


async def until_gone(client: ApiClient, name: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await client.get(DEFINITION, name)
            except StatusError as error:
                if error.code == 404:
                    return
                raise
            await asyncio.sleep(0.05)


async def until_judged(client: ApiClient, namespace: str) -> None:
    """API servers tell nobody when they have taken a configuration in, so they are asked."""
    async with asyncio.timeout(30):
        while True:
            try:
                made = await client.create(of(namespace, "probe", size=1), dry_run=True)
                if made.spec.owner and await refused(client, of(namespace, "probe", size=11)):
                    return
            except StatusError as error:
                if error.code not in (404, 500):
                    raise
            await asyncio.sleep(0.05)


async def refused(client: ApiClient, obj: Untyped) -> StatusError | None:
    try:
        await client.create(obj, dry_run=True)
    except StatusError as error:
        return error
    return None


def of(namespace: str, name: str, **spec: Any) -> Untyped:
    document = gadget(name, **spec)
    return Untyped(document | {"metadata": {"name": name, "namespace": namespace}})


async def test_an_api_server_refuses_with_our_status_and_the_name_of_the_webhook(
    hooked: ApiClient, namespace: str
) -> None:
    error = await refused(hooked, of(namespace, "big", size=11, config="none"))
    assert error is not None
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == (
        'admission webhook "gadget-size.trimtab.dev" denied the request: '
        'Gadget.hooks.trimtab.dev "big" is invalid: '
        '[spec.size: Invalid value: 11: must be at most 10, spec.config: Not found: "none"]'
    )
    assert error.details == {
        "name": "big",
        "group": "hooks.trimtab.dev",
        "kind": "Gadget",
        "causes": [
            {"reason": "FieldValueInvalid", "message": "Invalid value: 11: must be at most 10", "field": "spec.size"},
            {"reason": "FieldValueNotFound", "message": 'Not found: "none"', "field": "spec.config"},
        ],
    }


async def test_an_api_server_takes_our_change(hooked: ApiClient, namespace: str) -> None:
    await hooked.create(
        Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": namespace}})
    )
    assert await hooked.get(ConfigMap, "c", namespace)
    made = await hooked.create(of(namespace, "good", size=2, config="c"))
    assert made.metadata.labels == {"hooks.dev/by": "owned"}
    assert made.spec.owner


async def test_an_api_server_asks_about_deletions(hooked: ApiClient, namespace: str) -> None:
    for name in ("one", "two"):
        await hooked.create(of(namespace, name))
    await hooked.delete(Ref(Gadget, "one", namespace))
    with pytest.raises(StatusError, match="is forbidden: the last gadget stays") as refusal:
        await hooked.delete(Ref(Gadget, "two", namespace))
    assert (refusal.value.code, refusal.value.reason) == (403, "Forbidden")


@pytest.fixture
async def embedded(scheme: Scheme, namespace: str) -> AsyncIterator[ApiClient]:
    """Our server, which calls the functions in the request."""
    scheme.register(Gadget)
    store = MemoryStore()
    server = Server(store, admission=ADMISSION, scheme=scheme)
    await server.start()
    client = local_client(server, ADMIN, scheme)
    await client.create(Untyped(crd(Gadget, scheme=scheme)))
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    await until_judged(client, namespace)
    yield client
    await server.stop()
    await store.close()


async def test_both_homes_refuse_alike_but_for_the_name_of_the_webhook(
    hooked: ApiClient, embedded: ApiClient, namespace: str
) -> None:
    prefix = 'admission webhook "gadget-size.trimtab.dev" denied the request: '
    bad: tuple[dict[str, Any], ...] = ({"size": 11}, {"config": "none"}, {"size": 12, "config": "none"})
    for spec in bad:
        theirs = await refused(hooked, of(namespace, "bad", **spec))
        ours = await refused(embedded, of(namespace, "bad", **spec))
        assert theirs is not None
        assert ours is not None
        assert theirs.status() == ours.status() | {"message": prefix + ours.message}


async def test_both_homes_change_alike(hooked: ApiClient, embedded: ApiClient, namespace: str) -> None:
    theirs = await hooked.create(of(namespace, "good", size=3))
    ours = await embedded.create(of(namespace, "good", size=3))
    assert (ours.spec, ours.metadata.labels) == (theirs.spec, theirs.metadata.labels)
    assert ours.spec.owner == "admin"


async def test_whatever_functions_say_a_terminating_object_may_let_go_of_its_finalizers(
    hooked: ApiClient, namespace: str
) -> None:
    await hooked.create(of(namespace, "other"))
    held = of(namespace, "held").raw
    held["metadata"] |= {"annotations": {"hooks.dev/frozen": "yes"}, "finalizers": ["hooks.dev/held"]}
    await hooked.create(Untyped(held))
    await hooked.delete(Ref(Gadget, "held", namespace))
    old = await hooked.get(Gadget, "held", namespace)
    with pytest.raises(StatusError, match="it is frozen"):
        await hooked.patch(old, old.replace(spec=old.spec.replace(size=2)))
    await hooked.patch(old, old.replace(metadata=msgspec.structs.replace(old.metadata, finalizers=())))
    with pytest.raises(StatusError, match="not found"):
        await hooked.get(Gadget, "held", namespace)


@pytest.mark.parametrize("client", ["local"], indirect=True)
async def test_where_there_are_both_a_function_sees_what_webhooks_left(
    client: ApiClient, scheme: Scheme, namespace: str
) -> None:
    seen: list[Any] = []

    async def look(request: AdmissionRequest[Gadget], reader: Reader) -> Allowed | Denied:
        assert request.object is not None
        seen.append(request.object.spec.owner)
        spec = request.object.spec
        return Allowed(object=request.object.replace(spec=spec.replace(size=spec.size + 2)))

    scheme.register(Gadget)
    store = MemoryStore()
    server = Server(
        store, scheme=scheme, admission=[Admission(name="l", kinds=(Gadget,), function=look, mutating=True)]
    )
    await server.start()
    both = local_client(server, ADMIN, scheme)
    await both.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    await both.create(Untyped(crd(Gadget, scheme=scheme)))
    async with serving(both, namespace, ADMISSION, ClientReader(both), scheme=scheme) as (url, certificates):
        for document in configurations(ADMISSION, name=NAME, at=url, scheme=scheme):
            await both.create(Untyped(document))
        await certificates.refresh()
        await until_judged(both, namespace)
        seen.clear()
        made = await both.create(of(namespace, "a"))
        assert (seen, made.spec.size, made.spec.owner) == (["admin"], 3, "admin")
    await server.stop()
    await store.close()


@pytest.mark.cluster
@pytest.mark.parametrize("client", ["kubernetes"], indirect=True)
async def test_kubectl_shows_our_words(
    hooked: ApiClient, namespace: str, real_cluster: RealCluster, tmp_path: Path
) -> None:
    kubectl = Kubectl(newest(), real_cluster, namespace, tmp_path)
    bad, good = json.dumps(gadget("bad", size=11)), json.dumps(gadget("good"))
    said = await asyncio.to_thread(kubectl.fails, "create", "-f", "-", stdin=bad)
    assert said == 'The Gadget "bad" is invalid: spec.size: Invalid value: 11: must be at most 10'
    assert await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=good) == "gadget.hooks.trimtab.dev/good created"
    owner = await asyncio.to_thread(kubectl, "get", "gadget", "good", "-o", "jsonpath={.spec.owner}")
    assert owner == "admin"

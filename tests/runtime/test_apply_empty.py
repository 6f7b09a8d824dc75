"""Empty maps and lists: servers keep them in the owner's set of fields, and not in the object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.systems.platform.stage import served
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.apply import changes

Document = dict[str, Any]
MANAGER = "tests.trimtab.dev"
DECLARED: list[Document] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {}},
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "binaryData": {}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"annotations": {}}, "data": {"a": "1"}},
    {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []},
]


@pytest.fixture(params=["trimtab", pytest.param("kubernetes", marks=pytest.mark.cluster)])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ApiClient]:
    if request.param == "trimtab":
        client, close = await served()
        yield client
        await close()
        return
    cluster = request.getfixturevalue("real_cluster")
    client = connect(cluster.kubeconfig, scheme=kubernetes.register(Scheme()))
    yield client
    await client.close()


def named(document: Document, name: str) -> Document:
    metadata = {"name": name, "namespace": "default", "labels": {"tests": "empty"}, **document.get("metadata", {})}
    return {**document, "metadata": metadata}


async def read(client: ApiClient, document: Document) -> Document:
    kind = Named(document["apiVersion"], document["kind"])
    found = await client.get(kind, document["metadata"]["name"], "default")
    return {**found.raw, "apiVersion": kind.api_version, "kind": kind.kind}


@pytest.mark.parametrize("declared", DECLARED, ids=[f"{number}-{each['kind']}" for number, each in enumerate(DECLARED)])
async def test_what_is_empty_and_left_out_is_no_change(
    server: ApiClient, declared: Document, request: pytest.FixtureRequest
) -> None:
    document = named(declared, f"empty-{request.node.callspec.indices['declared']}")
    await server.apply(Untyped(document), manager=MANAGER, force=True)
    before = await read(server, document)
    assert not changes(before, document, MANAGER)
    await server.apply(Untyped(document), manager=MANAGER, force=True)
    assert (await read(server, document))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_what_others_filled_and_what_we_no_longer_own_is_a_change(server: ApiClient) -> None:
    document = named({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, "filled")
    await server.apply(Untyped(document), manager=MANAGER, force=True)
    await server.apply(Untyped({**document, "data": {"x": "1"}}), manager="others", force=True)
    assert changes(await read(server, document), document, MANAGER)
    assert changes(await read(server, document), {**document, "binaryData": {}}, MANAGER), "not ours yet"


def test_an_empty_value_of_a_kind_that_we_do_not_know_is_a_change_when_it_is_not_there() -> None:
    fields = {"f:spec": {"f:map": {}, "f:word": {}}}
    entry = {"manager": MANAGER, "operation": "Apply", "apiVersion": "x.test/v1", "fieldsV1": fields}
    live = {"apiVersion": "x.test/v1", "kind": "X", "metadata": {"managedFields": [entry]}, "spec": {"word": "a"}}
    declared = {"apiVersion": "x.test/v1", "kind": "X", "spec": {"map": {}, "word": "a"}}
    assert changes(live, declared, MANAGER)
    assert changes(live, {**declared, "spec": {"map": None, "word": "a"}}, MANAGER)


def test_an_empty_value_that_is_not_there_while_somebody_owns_parts_of_it_is_a_change() -> None:
    declared = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}

    def live(ours: Document, others: Document) -> Document:
        entries = [
            {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": fields}}
            for manager, fields in ((MANAGER, ours), ("others", others))
        ]
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": entries}}

    assert not changes(live({}, {}), declared, MANAGER)
    assert changes(live({"f:x": {}}, {}), declared, MANAGER)
    assert changes(live({}, {"f:x": {}}), declared, MANAGER)

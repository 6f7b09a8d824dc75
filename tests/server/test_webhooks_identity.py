"""A mutating webhook that changes which object a write is about: the same to our server and to a real kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.server.api import Api
from tests.server.test_conversion_cluster import Ours, Real, Server
from tests.server.test_webhooks import Peer, authority, hook, patching, peer, setting
from tests.server.test_webhooks_forms import CONFIGURATIONS, MAPS, install, on
from trimtab.server.admission.webhooks import MUTATING, VALIDATING
from trimtab.testing.cluster import RealCluster

__all__ = ["authority", "peer"]  # fixtures

HERE = [{**on("", "v1", "configmaps"), "operations": ["CREATE", "UPDATE"]}]
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
NAME, NAMESPACE, PREFIX = "/metadata/name", "/metadata/namespace", "/metadata/generateName"
REQUIRED = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
FROZEN = 'ConfigMap "renamed" is invalid: metadata.name: Invalid value: "renamed": field is immutable'
ELSEWHERE = "the namespace of the provided object does not match the namespace sent on the request"


def removing(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


class Case(NamedTuple):
    """What a webhook does, and the code of the answer with the name of what was made, or why nothing was."""

    patch: tuple[dict[str, Any], ...]
    code: int
    said: str
    method: str = "POST"
    media: str = "application/json"
    given: str = "name"


CASES = {
    "another name": Case((setting(NAME, "renamed"),), 201, "renamed"),
    "another name than the generated one": Case((setting(NAME, "renamed"),), 201, "renamed", given="generateName"),
    "a name that is taken": Case((setting(NAME, "taken"),), 409, 'configmaps "taken" already exists'),
    "no name": Case((removing(NAME),), 422, REQUIRED),
    "an empty name": Case((setting(NAME, ""),), 422, REQUIRED),
    "another namespace": Case((setting(NAMESPACE, "other"),), 400, ELSEWHERE),
    "another namespace, by apply": Case((setting(NAMESPACE, "other"),), 400, ELSEWHERE, "PATCH", APPLY),
    "no namespace": Case((removing(NAMESPACE),), 201, "given"),
    "another name of one that is there": Case((setting(NAME, "renamed"),), 422, FROZEN, "PATCH", MERGE),
    "another namespace of one that is there": Case((setting(NAMESPACE, "other"),), 400, ELSEWHERE, "PATCH", MERGE),
}


async def outcome(server: Server, case: Case) -> tuple[int, str]:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {case.given: "given"}}
    if case.method == "POST":
        code, answer = await server.send("POST", MAPS, document)
    else:
        name = "taken" if case.media == MERGE else "given"
        document["metadata"] = {"name": name}
        code, answer = await server.send("PATCH", f"{MAPS}/{name}?fieldManager=a", document, case.media)
    return code, answer["message"] if answer["kind"] == "Status" else answer["metadata"]["name"]


async def found(server: Server, *names: str) -> list[int]:
    return [(await server.send("GET", f"{MAPS}/{name}"))[0] for name in names]


@pytest.mark.parametrize("name", CASES)
async def test_what_becomes_of_it(api: Api, peer: Peer, name: str) -> None:
    case = CASES[name]
    await api.post(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}})
    await install(api, peer, MUTATING, hook(peer, "/m", rules=HERE))
    peer.behaviour["/m"] = patching(*case.patch)
    assert await outcome(Ours(api), case) == (case.code, case.said)
    made = case.said if case.code == 201 else ""
    assert await found(Ours(api), "given", "renamed") == [200 if made == each else 404 for each in ("given", "renamed")]


async def test_a_name_is_made_when_a_webhook_asks_for_one(api: Api, peer: Peer) -> None:
    await install(api, peer, MUTATING, hook(peer, "/m", rules=HERE))
    peer.behaviour["/m"] = patching(setting(PREFIX, "made-"), removing(NAME))
    code, name = await outcome(Ours(api), CASES["no name"])
    assert code == 201
    assert name.startswith("made-")
    assert await found(Ours(api), name, "given") == [200, 404]


async def test_validating_webhooks_see_the_new_name_in_the_object_and_the_asked_one_beside_it(
    api: Api, peer: Peer
) -> None:
    peer.behaviour["/m"] = patching(setting(NAME, "renamed"))
    await install(api, peer, MUTATING, hook(peer, "/m", rules=HERE))
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=HERE))
    for given, asked in (("name", "given"), ("generateName", "renamed")):
        await outcome(Ours(api), Case((), 0, "", given=given))
        request = peer.asked[-1][1]["request"]
        assert (request["name"], request["object"]["metadata"]["name"]) == (asked, "renamed")
        await api.delete(f"{MAPS}/renamed")


async def test_a_namespace_has_the_label_of_its_new_name(api: Api, peer: Peer) -> None:
    peer.behaviour["/m"] = patching(setting(NAME, "renamed"))
    await install(
        api, peer, MUTATING, hook(peer, "/m", rules=[{**on("", "v1", "namespaces"), "operations": ["CREATE"]}])
    )
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "given"}}
    metadata = (await api.post("/api/v1/namespaces", space)).doc["metadata"]
    assert (metadata["name"], metadata["labels"]) == ("renamed", {"kubernetes.io/metadata.name": "renamed"})


async def test_an_applied_object_keeps_the_name_in_the_url(api: Api, peer: Peer) -> None:
    """A kube-apiserver would store it under the one name with the other in it."""
    peer.behaviour["/m"] = patching(setting(NAME, "renamed"))
    await install(api, peer, MUTATING, hook(peer, "/m", rules=HERE))
    why = "the name of the object (renamed) does not match the name on the URL (given)"
    assert await outcome(Ours(api), Case((), 0, "", "PATCH", APPLY)) == (400, why)
    assert await found(Ours(api), "given", "renamed") == [404, 404]


@pytest.fixture
async def real(real_cluster: RealCluster, peer: Peer) -> AsyncIterator[Real]:
    """One that asks the webhook."""
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "identity"},
        "webhooks": [hook(peer, "/m", rules=HERE)],
    }
    async with aiohttp.ClientSession() as session:
        server = Real(real_cluster, session)
        assert (await server.send("POST", f"{CONFIGURATIONS}/{MUTATING}", document))[0] == 201
        probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}
        async with asyncio.timeout(30):
            while not peer.asked:
                await server.send("POST", f"{MAPS}?dryRun=All", probe)
                await asyncio.sleep(0.1)
        yield server
        await server.send("DELETE", f"{CONFIGURATIONS}/{MUTATING}/identity")
    await peer.hang_up()


@pytest.mark.cluster
async def test_a_real_server_does_the_same(real: Real, peer: Peer) -> None:
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}}
    said = {}
    for name, case in CASES.items():
        peer.behaviour["/m"] = {}
        for each in ("given", "renamed"):
            await real.send("DELETE", f"{MAPS}/{each}")
        await real.send("POST", MAPS, taken)
        peer.behaviour["/m"] = patching(*case.patch)
        said[name] = await outcome(real, case)
    assert said == {name: (case.code, case.said) for name, case in CASES.items()}

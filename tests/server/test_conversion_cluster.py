"""Conversion webhooks: the same requests, with the same webhook, to our server and to a real kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest

from tests.server.api import Api, running
from tests.server.conversion_kit import DEFINITIONS, SHAPES, Webhook, boxed, converting, definition, flat
from tests.server.test_conversion import other, response
from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access

pytestmark = pytest.mark.cluster

FLAT, BOXED = SHAPES.format("v1"), SHAPES.format("v2")
DEFINITION = f"{DEFINITIONS}/shapes.shapes.example.com"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Server:
    """Either server, by one verb."""

    async def send(self, method: str, url: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        raise NotImplementedError


class Ours(Server):
    def __init__(self, api: Api) -> None:
        self._api = api

    async def send(self, method: str, url: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        answer = await self._api.send(method, url, body, media)
        return answer.code, orjson.loads(answer.raw) if answer.raw.startswith(b"{") else answer.raw


class Real(Server):
    def __init__(self, cluster: RealCluster, session: aiohttp.ClientSession) -> None:
        self._access = read_access(cluster.kubeconfig)
        self._tls = self._access.tls()
        self._session = session

    async def send(self, method: str, url: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        headers = {"Content-Type": media, "User-Agent": "test/1"}
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, self._access.url + url, data=data, headers=headers, ssl=self._tls
        ) as answer:
            raw = await answer.read()
            return answer.status, orjson.loads(raw) if raw.startswith(b"{") else raw


class Step(NamedTuple):
    method: str
    url: str
    body: Any = None
    media: str = "application/json"
    twist: Callable[[dict[str, Any]], Any] = lambda answer: answer


def apply(url: str, body: Any, manager: str, force: bool = False) -> Step:
    return Step("PATCH", f"{url}?fieldManager={manager}" + ("&force=true" if force else ""), body, APPLY)


STEPS = (
    Step("POST", FLAT, flat("a", size=1, colour="red")),
    Step("GET", f"{BOXED}/a"),
    Step("GET", f"{FLAT}/a"),
    Step("POST", BOXED, boxed("b", box={"size": 2})),
    Step("GET", f"{FLAT}/b"),
    Step("PATCH", f"{BOXED}/a", {"spec": {"box": {"size": 5}}}, MERGE),
    Step("PATCH", f"{BOXED}/a/status", {"status": {"seen": 1}}, MERGE),
    Step("GET", f"{FLAT}/a"),
    Step("GET", f"{BOXED}?labelSelector=colour%3Dred"),
    Step("GET", f"{BOXED}?fieldSelector=spec.box.size%3D2"),
    apply(f"{FLAT}/c", flat("c", size=1, note="n"), "one"),
    apply(f"{BOXED}/c", boxed("c", box={"size": 2}), "two"),
    apply(f"{BOXED}/c", boxed("c", box={"size": 2}), "two", force=True),
    apply(f"{BOXED}/c", boxed("c", box={"size": 2}, note="m"), "one", force=True),
    apply(f"{BOXED}/c", boxed("c", note="m"), "one"),
    Step("PATCH", f"{BOXED}/c?fieldManager=three", {"spec": {"box": {"size": 3}}}, MERGE),
    Step("PATCH", f"{FLAT}/c?fieldManager=four", {"spec": {"note": "o"}}, MERGE),
    *(
        Step("GET", f"{BOXED}/a", twist=twist)
        for twist in (
            lambda answer: {**answer, "response": None},
            response(convertedObjects=[]),
            response(uid=""),
            response(result={"status": "Failure"}),
            response(result={"status": "Failure", "message": "no box is left"}),
            lambda answer: {**answer, "apiVersion": "apiextensions.k8s.io/v1beta1"},
            other(apiVersion="shapes.example.com/v3"),
            other(kind="Form"),
            other(metadata__name="b"),
            other(metadata__namespace="x"),
            other(metadata__uid="x"),
            other(metadata=None),
            other(metadata__labels=[]),
            other(metadata__labels={"a": 1}),
            other(metadata__labels={"a b": "c"}),
            other(metadata__annotations={"a b": "c"}),
            other(metadata__generation=99, metadata__finalizers=["x/y"]),
            other(spec__unknown="x"),
            lambda answer: aiohttp.web.Response(status=500, text="broken"),
            lambda answer: aiohttp.web.Response(status=404, text="nothing"),
            lambda answer: aiohttp.web.Response(text="oh no", content_type="application/json"),
        )
    ),
    Step("POST", BOXED, boxed("d", box={"size": 2}), twist=response(result={"status": "Failure", "message": "no"})),
    Step("DELETE", f"{BOXED}/b"),
    Step("GET", FLAT),
)


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with converting(tmp_path) as webhook:
        yield webhook


@pytest.fixture
async def real(real_cluster: RealCluster) -> AsyncIterator[Server]:
    async with aiohttp.ClientSession() as session:
        yield Real(real_cluster, session)


async def defined(server: Server, document: dict[str, Any]) -> None:
    code, answer = await server.send("POST", DEFINITIONS, document)
    assert code == 201, answer
    async with asyncio.timeout(30):
        while (await server.send("GET", BOXED))[0] != 200 or (await server.send("GET", FLAT))[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # no watch tells when a kind is served


def plain(value: Any) -> Any:
    """Without what differs between two servers that behave alike."""
    if isinstance(value, dict):
        dropped = ("resourceVersion", "time")
        shown = {name: plain(inner) for name, inner in value.items() if name not in dropped}
        if isinstance(shown.get("managedFields"), list):
            shown["managedFields"].sort(key=lambda entry: (entry["manager"], entry["apiVersion"]))
        return shown
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return TIME.sub("<time>", UID.sub("<uid>", value)) if isinstance(value, str) else value


async def test_both_servers_answer_alike(webhook: Webhook, real: Server) -> None:
    async with running() as api:
        document = definition(webhook.conversion())
        ours = Ours(api)
        for server in (ours, real):
            await defined(server, document)
        try:
            different = []
            for step in STEPS:
                webhook.twist = step.twist
                answers = [plain(await server.send(*step[:4])) for server in (ours, real)]
                if answers[0] != answers[1]:
                    different.append((step[:3], *answers))
            webhook.twist = lambda answer: answer
            assert different == []
        finally:
            webhook.twist = lambda answer: answer
            await real.send("DELETE", DEFINITION)


@pytest.mark.parametrize("conversion", ["None", "Webhook"])
async def test_both_servers_read_what_was_stored_in_another_version(
    webhook: Webhook, real: Server, conversion: str
) -> None:
    async with running() as api:
        document = definition(webhook.conversion() if conversion == "Webhook" else None)
        seen = []
        for server in (Ours(api), real):
            await defined(server, document)
            await server.send("POST", FLAT, flat("a", size=1, note="n"))
            live = (await server.send("GET", DEFINITION))[1]
            for version in live["spec"]["versions"]:
                version["storage"] = version["name"] == "v2"
            assert (await server.send("PUT", DEFINITION, live))[0] == 200
            async with asyncio.timeout(30):
                while True:  # until it writes the new version, which it says by nothing else
                    await server.send("DELETE", f"{BOXED}/probe")
                    asked = len(webhook.asked)
                    code, _ = await server.send("POST", BOXED, boxed("probe"))
                    if code == 201 and (conversion == "None" or len(webhook.asked) == asked):
                        break
                    await asyncio.sleep(0.05)
            if conversion == "None":
                await asyncio.sleep(4.0)  # the real server takes a while, and nothing tells
            before = (await server.send("GET", f"{BOXED}/a"))[1]
            moved = (await server.send("PUT", f"{BOXED}/a", before))[1]
            again = (await server.send("PUT", f"{BOXED}/a", moved))[1]
            revisions = [each["metadata"]["resourceVersion"] for each in (before, moved, again)]
            stored = (await server.send("GET", DEFINITION))[1]["status"]["storedVersions"]
            flat_again = (await server.send("GET", f"{FLAT}/a"))[1]
            changed = (revisions[0] != revisions[1], revisions[1] != revisions[2])
            if (
                conversion == "None"
            ):  # the real server loses count of who owns what, where fields differ between versions
                for each in (before, moved, again, flat_again):
                    each["metadata"].pop("managedFields", None)
            seen.append(plain([before, moved, again, flat_again, stored, changed]))
            await server.send("DELETE", DEFINITION)
            async with asyncio.timeout(30):
                while (await server.send("GET", DEFINITION))[0] != 404:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)
        assert seen[0] == seen[1]

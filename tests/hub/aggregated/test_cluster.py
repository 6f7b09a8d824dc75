"""A hub kind behind a real API server: kubectl, roles of the cluster, namespaces of the cluster, streamed files."""

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.hub.aggregated.behind import PROXY, available, install, kubectl, uninstall
from tests.hub.artifacts.papers import Paper
from trimtab.client.api import ApiClient
from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.hub.aggregated import Aggregated, hub_server, self_made, serving
from trimtab.hub.artifacts.digests import file_paths
from trimtab.hub.artifacts.endpoint import Artifacts
from trimtab.hub.compose import as_hub_kind
from trimtab.hub.install import NAME, service_name
from trimtab.hub.strategy import HubStrategy
from trimtab.model.scheme import Scheme
from trimtab.runtime.system import NAMESPACE
from trimtab.server.registry import Served
from trimtab.storage.folder import FolderBlobs
from trimtab.testing.cluster import RealCluster
from trimtab.testing.ports import free_ports

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

KIND = as_hub_kind(Scheme().kind_of(Paper))
SERVICES = (service_name(KIND.group, KIND.version),)
LIMIT = 24 * 1024 * 1024
PAPER = {"apiVersion": "papers.trimtab.dev/v1", "kind": "Paper"}


def paper(name: str, **spec: Any) -> bytes:
    return orjson.dumps({**PAPER, "metadata": {"name": name, "description": "A test."}, "spec": spec})


@pytest.fixture
async def client(aggregator: RealCluster) -> AsyncIterator[ApiClient]:
    made = ApiClient(HttpTransport(load(aggregator.kubeconfig)), Scheme())
    yield made
    await made.close()


@contextlib.asynccontextmanager
async def hub(client: ApiClient, folder: Path, port: int) -> AsyncIterator[Aggregated]:
    """One replica, with papers in memory."""
    server = hub_server(client)
    files = file_paths(Paper)
    served = Served(HubStrategy(KIND, changed_by="hub.trimtab.dev/changed-by", files=files), server.store)
    server.registry.add(served)
    served.strategy.subresources = ()
    blobs = FolderBlobs(folder / "blobs")
    server.subresources.mount(served, "artifacts", Artifacts(server, blobs, files, limit=LIMIT))
    certificate = self_made(client, namespace=NAMESPACE, name=NAME, services=SERVICES)
    async with serving(Aggregated(server, client, certificate), port=port) as running:
        yield running


@pytest.fixture
async def behind(aggregator: RealCluster, client: ApiClient, tmp_path: Path) -> AsyncIterator[Aggregated]:
    (port,) = free_ports(1)
    await install(client, [KIND], port)
    async with hub(client, tmp_path, port) as running:
        await available(client, [KIND])
        yield running
    await uninstall(client, [KIND])


@pytest.mark.row(30)
async def test_kubectl_reads_and_writes_a_hub_kind_through_the_real_api_server(
    aggregator: RealCluster, behind: Aggregated
) -> None:
    made = await kubectl(aggregator, "apply", "--server-side", "-f", "-", stdin=paper("one", note="first"))
    assert made.code == 0, made.err
    got = await kubectl(aggregator, "get", "papers.papers.trimtab.dev", "one", "-o", "json")
    assert got.code == 0, got.err
    assert got.doc["metadata"]["project"] == "default"
    assert got.doc["metadata"]["description"] == "A test."
    assert got.doc["spec"]["note"] == "first"
    changed = await kubectl(aggregator, "patch", "paper", "one", "--type=merge", "-p", '{"spec":{"note":"second"}}')
    assert changed.code == 0, changed.err
    wrong = await kubectl(aggregator, "apply", "--server-side", "-f", "-", stdin=paper("one", notes="x"))
    assert wrong.code != 0
    assert "notes" in wrong.err
    listed = await kubectl(aggregator, "get", "papers", "-A", "-o", "jsonpath={.items[*].spec.note}")
    assert listed.out == "second"
    gone = await kubectl(aggregator, "delete", "paper", "one")
    assert gone.code == 0, gone.err


@pytest.mark.row(30)
async def test_a_watch_through_the_real_api_server_tells_of_changes(
    aggregator: RealCluster, behind: Aggregated, client: ApiClient
) -> None:
    listing = await client.list(Paper)
    watch = client.watch(Paper, _everything(), listing.revision)
    try:
        made = await kubectl(aggregator, "create", "-f", "-", stdin=paper("seen", note="x"))
        assert made.code == 0, made.err
        async with asyncio.timeout(20):
            event = await anext(watch)
            assert event.object is not None
            assert (event.type.value, event.object.name) == ("ADDED", "seen")
            await kubectl(aggregator, "delete", "paper", "seen")
            assert (await anext(watch)).type.value == "DELETED"
    finally:
        await watch.aclose()


def _everything() -> Any:
    from trimtab.client.protocol import Query

    return Query()


@pytest.mark.row(21)
async def test_the_clusters_roles_decide_about_hub_kinds(aggregator: RealCluster, behind: Aggregated) -> None:
    anna = ("--as=anna", "--as-group=system:authenticated")
    denied = await kubectl(aggregator, "get", "papers", *anna)
    assert denied.code != 0
    assert 'User "anna" cannot list resource "papers" in API group "papers.trimtab.dev"' in denied.err
    bound = await kubectl(
        aggregator, "create", "rolebinding", "anna", "--clusterrole=view", "--user=anna", "-n", "default"
    )
    assert bound.code == 0, bound.err
    try:
        async with asyncio.timeout(60):  # an answer is kept for ten seconds, and roles are gathered by a controller
            while True:
                allowed = await kubectl(aggregator, "get", "papers", *anna)
                if allowed.code == 0:
                    break
                await asyncio.sleep(0.5)
        refused = await kubectl(aggregator, "create", *anna, "-f", "-", stdin=paper("hers"))
        assert 'User "anna" cannot create resource "papers"' in refused.err
        elsewhere = await kubectl(aggregator, "get", "papers", "-n", "kube-system", *anna)
        assert elsewhere.code != 0
    finally:
        await kubectl(aggregator, "delete", "rolebinding", "anna", "-n", "default")


@pytest.mark.row(21)
async def test_only_the_front_proxy_is_believed(aggregator: RealCluster, behind: Aggregated) -> None:
    folder = aggregator.kubeconfig.parent / "proxy"
    forged = "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n"
    assert (await raw(behind.port, forged, folder / PROXY)).startswith(b"HTTP/1.1 200 ")
    assert (await raw(behind.port, forged, None)).startswith(b"HTTP/1.1 401 ")
    assert (await raw(behind.port, forged, folder / "somebody-else")).startswith(b"HTTP/1.1 401 ")
    assert (await raw(behind.port, "", folder / PROXY)).startswith(b"HTTP/1.1 401 ")
    assert await refused(behind.port, aggregator.kubeconfig.parent / "admin")  # a user's, of another authority
    token = f"Authorization: Bearer {aggregator.token}\r\n"
    assert (await raw(behind.port, token, None)).startswith(b"HTTP/1.1 200 ")
    assert (await raw(behind.port, "Authorization: Bearer nonsense\r\n", None)).startswith(b"HTTP/1.1 401 ")
    as_another = "X-Remote-User: admin\r\nImpersonate-User: x\r\n"
    assert (await raw(behind.port, as_another, folder / PROXY)).startswith(b"HTTP/1.1 400 ")
    assert (await raw(behind.port, "", None, path="/readyz")).endswith(b"ok")


async def raw(port: int, headers: str, pair: Path | None, path: str = "/apis/papers.trimtab.dev/v1/papers") -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(pair.with_name(f"{pair.name}.crt"), pair.with_name(f"{pair.name}.key"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n".encode())
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def refused(port: int, pair: Path) -> bool:
    """Whether a certificate ends the handshake, or what comes right after it."""
    try:
        return await raw(port, "X-Remote-User: admin\r\n", pair) == b""
    except (ssl.SSLError, ConnectionError):
        return True


async def test_namespaces_are_the_clusters(aggregator: RealCluster, behind: Aggregated) -> None:
    nowhere = await kubectl(aggregator, "create", "-n", "nowhere", "-f", "-", stdin=paper("one"))
    assert 'namespaces "nowhere" not found' in nowhere.err
    assert (await kubectl(aggregator, "create", "namespace", "short")).code == 0
    made = await kubectl(aggregator, "create", "-n", "short", "-f", "-", stdin=paper("one"))
    assert made.code == 0, made.err
    gone = await kubectl(aggregator, "delete", "namespace", "short", "--timeout=60s")
    assert gone.code == 0, gone.err  # the cluster's controller deleted what is in it, ours too
    assert (await kubectl(aggregator, "get", "papers", "-A", "-o", "name")).out == ""


@pytest.mark.row(27)
async def test_a_file_goes_through_the_real_api_server_in_a_stream(
    aggregator: RealCluster, behind: Aggregated, tmp_path: Path
) -> None:
    made = await kubectl(aggregator, "create", "-f", "-", stdin=paper("filed", files=[{"name": "a/b.bin"}]))
    assert made.code == 0, made.err
    data = os.urandom(20 * 1024 * 1024)
    (tmp_path / "b.bin").write_bytes(data)
    path = "/apis/papers.trimtab.dev/v1/namespaces/default/papers/filed/artifacts/a/b.bin"
    put = await kubectl(aggregator, "replace", "--raw", path, "-f", str(tmp_path / "b.bin"))
    assert put.code == 0, put.err
    assert put.doc["size"] == len(data)
    listed = await kubectl(aggregator, "get", "--raw", path.removesuffix("/a/b.bin"))
    assert [item["path"] for item in listed.doc["items"]] == ["a/b.bin"]
    (tmp_path / "c.bin").write_bytes(data + data)
    over = await kubectl(aggregator, "replace", "--raw", path, "-f", str(tmp_path / "c.bin"))
    assert over.code != 0
    assert f"at most {LIMIT} bytes" in over.err
    for wrong in ("..%2fx", "a/%2e%2e/b"):
        refused_path = await kubectl(aggregator, "get", "--raw", path.replace("a/b.bin", wrong))
        assert refused_path.code != 0
    await kubectl(aggregator, "delete", "paper", "filed")


async def test_the_clusters_garbage_collector_follows_owners_in_both_directions(
    aggregator: RealCluster, behind: Aggregated
) -> None:
    made = await kubectl(aggregator, "create", "-o", "json", "-f", "-", stdin=paper("owner"))
    assert made.code == 0, made.err
    owned = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "owned", **owner(made.doc)}}
    held = await kubectl(aggregator, "create", "-o", "json", "-f", "-", stdin=orjson.dumps(owned))
    assert held.code == 0, held.err
    document = orjson.loads(paper("last"))
    document["metadata"] |= owner(held.doc)
    assert (await kubectl(aggregator, "create", "-f", "-", stdin=orjson.dumps(document))).code == 0
    assert (await kubectl(aggregator, "delete", "paper", "owner")).code == 0
    async with asyncio.timeout(120):  # it looks for new kinds twice a minute
        for words in (("configmap", "owned"), ("paper", "last")):
            while True:
                if "NotFound" in (await kubectl(aggregator, "get", *words)).err:
                    break
                await asyncio.sleep(0.5)


def owner(document: Any) -> dict[str, Any]:
    named = {field: document[field] for field in ("apiVersion", "kind")}
    metadata = {field: document["metadata"][field] for field in ("name", "uid")}
    return {"ownerReferences": [{**named, **metadata}]}


@pytest.mark.row(30)
async def test_discovery_and_schemas_reach_clients_of_the_cluster(aggregator: RealCluster, behind: Aggregated) -> None:
    resources = await kubectl(aggregator, "api-resources", "--api-group=papers.trimtab.dev", "-o", "name")
    assert resources.out.split() == ["papers.papers.trimtab.dev"]
    async with asyncio.timeout(100):  # the API server gathers schemas now and then
        words = ("explain", "papers.spec.cover", "--api-version=papers.trimtab.dev/v1")
        await until(aggregator, "digest", *words)
        await until(aggregator, "/apis/papers.trimtab.dev/v1/", "get", "--raw", "/openapi/v2")


async def until(cluster: RealCluster, wanted: str, *words: str) -> None:
    while True:
        if wanted in (await kubectl(cluster, *words)).out:
            return
        await asyncio.sleep(0.5)

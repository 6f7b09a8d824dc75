"""One Trimtab behind another: `trimtab hub serve` as an aggregated API server of `trimtab up`, with the real kubectl."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from tests.hub.aggregated.behind import available, install
from tests.hub.aggregated.behind import kubectl as run
from tests.hub.aggregated.letters import Letter
from tests.hub.aggregated.test_replicas import Replica
from tests.needs import needs
from trimtab.client.api import ApiClient
from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.model.scheme import Scheme
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

KIND = Scheme().kind_of(Letter)
LETTERS = ("--systems", "none", "--bus", "none", "--operator")
LIST = "/apis/letters.trimtab.dev/v1/namespaces/default/letters"


class Both(NamedTuple):
    front: Any
    hub: Replica
    client: ApiClient
    folder: Path
    port: int


def letter(name: str, **spec: Any) -> bytes:
    kind = {"apiVersion": "letters.trimtab.dev/v1", "kind": "Letter"}
    return json.dumps({**kind, "metadata": {"name": name}, "spec": spec}).encode()


def started(folder: Path, kubeconfig: Path, port: int) -> Replica:
    operator = Path(__file__).parents[2] / "hub" / "aggregated" / "letters.py"
    flags = (*LETTERS, str(operator), "--port", str(port))
    return Replica(folder, "hub", kubeconfig, str(folder / "hub.db"), *flags)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    needs("kubectl")
    folder = tmp_path_factory.mktemp("both")
    (port,) = free_ports(1)
    with TrimtabServer(folder, flags=("--systems", "none")) as front:
        client = ApiClient(HttpTransport(load(front.kubeconfig)), Scheme())
        await install(client, [KIND], port)
        hub = started(folder, front.kubeconfig, port)
        try:
            await available(client, [KIND])
            yield Both(front, hub, client, folder, port)
        finally:
            await client.close()
            hub.process.stop()


async def test_a_hub_kind_is_read_and_written_through_the_server_in_front(both: Both) -> None:
    made = await run(both.front, "apply", "--server-side", "-f", "-", stdin=letter("one", text="first"))
    assert made.code == 0, made.err
    changed = await run(both.front, "patch", "letter", "one", "--type=merge", "-p", '{"spec":{"text":"second"}}')
    assert changed.code == 0, changed.err
    listed = await run(both.front, "get", "ltr", "-A", "-o", "jsonpath={.items[*].spec.text}")
    assert listed.out == "second"
    wrong = await run(both.front, "apply", "--server-side", "-f", "-", stdin=letter("one", texts="x"))
    assert "texts" in wrong.err
    table = await run(both.front, "get", "letters")
    assert table.out.split()[:1] == ["NAME"]
    gone = await run(both.front, "delete", "letter", "one")
    assert gone.code == 0, gone.err


async def test_kubectl_sees_the_service_and_the_kind(both: Both) -> None:
    shown = await run(both.front, "get", "apiservices")
    rows = {line.split()[0]: line.split()[1:3] for line in shown.out.splitlines()}
    assert rows["v1.letters.trimtab.dev"] == ["trimtab-system/trimtab-hub", "True"]
    assert rows["v1."] == rows["v1.apps"] == ["Local", "True"]
    assert "v1.apiregistration.k8s.io" not in rows
    names = await run(both.front, "api-resources", "--api-group=letters.trimtab.dev", "-o", "name")
    assert names.out.split() == ["letters.letters.trimtab.dev"]
    explained = await run(both.front, "explain", "letters.spec.text")
    assert "string" in explained.out, explained.err
    for path in ("/apis", "/openapi/v2"):
        assert "letters.trimtab.dev" in (await run(both.front, "get", "--raw", path)).out
    group = (await run(both.front, "get", "--raw", "/apis/letters.trimtab.dev")).doc
    assert group["preferredVersion"] == {"groupVersion": "letters.trimtab.dev/v1", "version": "v1"}


async def test_roles_of_the_front_decide(both: Both) -> None:
    anna = ("--as=anna", "--as-group=system:authenticated")
    denied = await run(both.front, "get", "letters", *anna)
    assert 'User "anna" cannot list resource "letters" in API group "letters.trimtab.dev"' in denied.err
    bound = await run(both.front, "create", "rolebinding", "anna", "--clusterrole=view", "--user=anna")
    assert bound.code == 0, bound.err
    async with asyncio.timeout(30):  # roles are gathered, and the hub keeps an answer for a while
        while True:
            if (await run(both.front, "get", "letters", *anna)).code == 0:
                break
    refused = await run(both.front, "create", *anna, "-f", "-", stdin=letter("hers"))
    assert 'User "anna" cannot create resource "letters"' in refused.err


async def test_a_watch_comes_through(both: Both) -> None:
    from trimtab.client.protocol import Query

    listing = await both.client.list(Letter)
    watch = both.client.watch(Letter, Query(), listing.revision)
    try:
        made = await run(both.front, "create", "-f", "-", stdin=letter("seen", text="x"))
        assert made.code == 0, made.err
        async with asyncio.timeout(20):
            event = await anext(watch)
            assert event.object is not None
            assert (event.type.value, event.object.name) == ("ADDED", "seen")
            await run(both.front, "delete", "letter", "seen")
            assert (await anext(watch)).type.value == "DELETED"
    finally:
        await watch.aclose()


async def test_a_large_file_passes_in_both_directions(both: Both, tmp_path: Path) -> None:
    made = await run(both.front, "create", "-f", "-", stdin=letter("filed", files=[{"name": "a.bin"}]))
    assert made.code == 0, made.err
    data = os.urandom(12 * 1024 * 1024)
    (tmp_path / "a.bin").write_bytes(data)
    path = f"{LIST}/filed/artifacts/a.bin"
    put = await run(both.front, "replace", "--raw", path, "-f", str(tmp_path / "a.bin"))
    assert put.code == 0, put.err
    assert put.doc["size"] == len(data)
    from trimtab.client.transport import Call

    got = await both.client.transport.call(Call(method="GET", path=path))
    assert got.body == data


async def test_a_server_that_is_away_is_told_so_and_comes_back(both: Both) -> None:
    both.hub.process.stop()
    touch = ("annotate", "service", "trimtab-hub", "-n", "trimtab-system", "--overwrite", "looked=again")
    assert (await run(both.front, *touch)).code == 0
    async with asyncio.timeout(60):
        while True:
            shown = (await run(both.front, "get", "apiservice", "v1.letters.trimtab.dev", "-o", "json")).doc
            (condition,) = shown["status"]["conditions"]
            if condition["status"] == "False":
                break
    assert condition["reason"] == "FailedDiscoveryCheck"
    assert "connect: connection refused" in condition["message"]
    refused = await run(both.front, "get", "--raw", LIST)
    assert "the server is currently unable to handle the request" in refused.err
    again = started(both.folder, both.front.kubeconfig, both.port)
    with contextlib.ExitStack() as stack:
        stack.callback(again.process.stop)
        await available(both.client, [KIND])
        listed = await run(both.front, "get", "letters")
        assert listed.code == 0, listed.err

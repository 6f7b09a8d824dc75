"""`trimtab hub serve` as three processes on one PostgreSQL, behind a real API server, with the rights that `install` gives."""

import asyncio
import contextlib
import hashlib
import json
import re
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from nats import connect

from tests.hub.aggregated.behind import available, balanced, install, kubectl, uninstall
from tests.hub.aggregated.letters import Letter
from tests.needs import lacks
from trimtab.cli.hub_serving import hub_kinds
from trimtab.cli.systems import load as load_systems
from trimtab.client.api import ApiClient
from trimtab.client.config import load
from trimtab.client.http import HttpTransport
from trimtab.hub.bus.nats import STREAM
from trimtab.hub.install import NAME
from trimtab.model.hub import own_metadata
from trimtab.model.scheme import Scheme
from trimtab.runtime.system import NAMESPACE
from trimtab.testing.cluster import RealCluster
from trimtab.testing.nats import NatsMissing, NatsServer
from trimtab.testing.ports import free_ports
from trimtab.testing.postgres import PostgresMissing, PostgresServer
from trimtab.testing.processes import Process

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

KIND = Scheme().kind_of(Letter)
URL = "/apis/letters.trimtab.dev/v1/namespaces/default/letters"
READY = re.compile(r"^the hub is ready at https://127\.0\.0\.1:(\d+)$", re.MULTILINE)


LETTERS = ("--systems", "none", "--operator", str(Path(__file__).with_name("letters.py")))


class Replica:
    """One `trimtab hub serve`."""

    def __init__(self, folder: Path, name: str, kubeconfig: Path, storage: str, *flags: str) -> None:
        (peers,) = free_ports(1)
        command = [str(Path(sys.executable).with_name("trimtab")), "hub", "serve", "--port", "0"]
        command += ["--kubeconfig", str(kubeconfig), "--peer-port", str(peers), *(flags or LETTERS)]
        self.process = Process(command, log=folder / f"{name}.log", env={"TRIMTAB_HUB_STORAGE": storage})
        try:
            self.process.wait_until(lambda: READY.search(self.log) is not None, within=60)
        except BaseException:
            self.process.kill()
            raise
        found = READY.search(self.log)
        assert found is not None
        self.port = int(found[1])

    @property
    def log(self) -> str:
        return self.process.log.read_text(errors="replace")

    async def send(self, token: str, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """A request to this very replica, by somebody with a token of the cluster."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, limit=1 << 26)
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        async with asyncio.timeout(30):
            raw = await reader.read()
        writer.close()
        answer, _, data = raw.partition(b"\r\n\r\n")
        return int(answer.split()[1]), data

    async def hits(self, token: str) -> float:
        """Reads that its cache has answered."""
        _, raw = await self.send(token, "GET", "/metrics")
        lines = raw.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("trimtab_hub_cache_hits_total{"))


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        lacks(str(missing))
    with server:
        yield server


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    """Whoever asks for it must have used it."""
    try:
        server = NatsServer(tmp_path)
    except NatsMissing as missing:
        lacks(str(missing))
    with server:
        yield server
        assert asyncio.run(told(server.url)) > 0


async def told(url: str) -> int:
    """Messages in the hub's stream."""
    async with await connect(url) as client:
        return int((await client.jetstream().stream_info(STREAM)).state.messages)


@pytest.fixture
async def replicas(
    request: pytest.FixtureRequest, aggregator: RealCluster, postgres: PostgresServer, tmp_path: Path
) -> AsyncIterator[tuple[Replica, ...]]:
    """They hear each other by the database, or as the test says."""
    bus = request.getfixturevalue(request.param).url if hasattr(request, "param") else ""
    (front,) = free_ports(1)
    client = ApiClient(HttpTransport(load(aggregator.kubeconfig)), Scheme())
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        await install(client, [KIND], front)
        stack.push_async_callback(uninstall, client, [KIND])
        kubeconfig = await account(aggregator, tmp_path)
        made = []
        for name in ("one", "two", "three"):
            made.append(Replica(tmp_path, name, kubeconfig, postgres.url, *LETTERS, *(("--bus", bus) if bus else ())))
            stack.callback(made[-1].process.stop)
        await stack.enter_async_context(balanced(front, [each.port for each in made]))
        await available(client, [KIND])
        yield tuple(made)


async def account(cluster: RealCluster, folder: Path) -> Path:
    """A kubeconfig of the hub's own account: it has what `install` gives, and no more."""
    token = await kubectl(cluster, "create", "token", NAME, "-n", NAMESPACE)
    assert token.code == 0, token.err
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.out.strip()}
    path = folder / "hub.kubeconfig"
    path.write_text(json.dumps(config))
    return path


def letter(name: str, **spec: Any) -> bytes:
    document = {"apiVersion": "letters.trimtab.dev/v1", "kind": "Letter", "metadata": {"name": name}, "spec": spec}
    return orjson.dumps(document)


@pytest.mark.row(30)
@pytest.mark.row(36)
@pytest.mark.parametrize("replicas", ["postgres", "nats"], indirect=True)
async def test_a_write_that_one_acknowledged_is_what_all_show(
    aggregator: RealCluster, replicas: tuple[Replica, ...]
) -> None:
    token = aggregator.token
    made = await kubectl(aggregator, "apply", "--server-side", "-f", "-", stdin=letter("a", text="0"))
    assert made.code == 0, made.err
    for number in range(1, 22):  # the second time from memory
        for each in (*replicas, *replicas):
            code, raw = await each.send(token, "GET", f"{URL}/a")
            document = orjson.loads(raw)
            assert (code, document["spec"]["text"]) == (200, str(number - 1))
        document["spec"]["text"] = str(number)
        code, raw = await replicas[number % len(replicas)].send(token, "PUT", f"{URL}/a", orjson.dumps(document))
        assert code == 200, raw
    assert all([await each.hits(token) > 0 for each in replicas])
    assert (await kubectl(aggregator, "get", "letter", "a", "-o", "jsonpath={.spec.text}")).out == "21"
    stale = await replicas[0].send(token, "PUT", f"{URL}/a", orjson.dumps(document))
    assert stale[0] == 409
    assert (await kubectl(aggregator, "delete", "letter", "a")).code == 0
    assert [(await each.send(token, "GET", f"{URL}/a"))[0] for each in replicas] == [404] * 3


@pytest.mark.row(27)
@pytest.mark.row(30)
async def test_files_and_versions_are_the_same_on_all_replicas(
    aggregator: RealCluster, replicas: tuple[Replica, ...]
) -> None:
    one, two, _ = replicas
    token = aggregator.token
    made = await kubectl(aggregator, "create", "-f", "-", stdin=letter("b", text="x", files=[{"name": "p/q.bin"}]))
    assert made.code == 0, made.err
    data = bytes(range(256)) * 16 * 1024
    code, raw = await one.send(token, "PUT", f"{URL}/b/artifacts/p/q.bin", data)
    assert code == 200, raw
    assert await two.send(token, "GET", f"{URL}/b/artifacts/p/q.bin") == (200, data)
    listed = await kubectl(aggregator, "get", "--raw", f"{URL}/b/artifacts")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert listed.doc["items"] == [{"path": "p/q.bin", "sensitive": False, "digest": digest, "size": len(data)}]
    published = await kubectl(aggregator, "patch", "letter", "b", "--type=merge", "-p", '{"spec":{"version":"v1"}}')
    assert published.code == 0, published.err
    changed = await kubectl(aggregator, "patch", "letter", "b", "--type=merge", "-p", '{"spec":{"text":"y"}}')
    assert changed.code != 0
    assert "v1" in changed.err
    other = await two.send(token, "PUT", f"{URL}/b/artifacts/p/q.bin", b"other")
    assert other[0] == 422
    assert await one.send(token, "GET", f"{URL}/b/artifacts/p/q.bin?version=v1") == (200, data)
    again = await kubectl(
        aggregator, "patch", "letter", "b", "--type=merge", "-p", '{"spec":{"version":"v2","text":"y"}}'
    )
    assert again.code == 0, again.err
    versions = orjson.loads((await two.send(token, "GET", f"{URL}/b/versions"))[1])
    assert [each["version"] for each in versions["items"]] == ["v2", "v1"]
    assert versions["latest"] == "v2"
    assert (await kubectl(aggregator, "delete", "letter", "b")).code == 0


async def test_a_replica_that_dies_is_not_missed(aggregator: RealCluster, replicas: tuple[Replica, ...]) -> None:
    one = replicas[0]
    assert (await kubectl(aggregator, "create", "-f", "-", stdin=letter("c", text="x"))).code == 0
    one.process.kill()
    async with asyncio.timeout(60):
        while True:
            changed = await kubectl(aggregator, "patch", "letter", "c", "--type=merge", "-p", '{"spec":{"text":"y"}}')
            if changed.code == 0:
                break
            await asyncio.sleep(0.2)
    assert (await kubectl(aggregator, "get", "letter", "c", "-o", "jsonpath={.spec.text}")).out == "y"
    assert (await kubectl(aggregator, "delete", "letter", "c")).code == 0


async def test_a_database_that_goes_and_comes_back_is_told_and_forgiven(
    aggregator: RealCluster, postgres: PostgresServer, replicas: tuple[Replica, ...]
) -> None:
    one, two, _ = replicas
    token = aggregator.token
    assert (await kubectl(aggregator, "create", "-f", "-", stdin=letter("d", files=[{"name": "f"}]))).code == 0
    postgres.kill()
    for method, path, body in (("POST", URL, letter("e")), ("PUT", f"{URL}/d/artifacts/f", b"bytes")):
        code, raw = await one.send(token, method, path, body)
        assert (code, orjson.loads(raw)["reason"]) == (503, "ServiceUnavailable")
        assert postgres.password not in raw.decode()
    assert await one.send(token, "GET", "/readyz") == (200, b"ok")
    postgres.restart()
    async with asyncio.timeout(60):
        for replica in (one, two):
            while True:
                code, raw = await replica.send(token, "PUT", f"{URL}/d/artifacts/f", b"%d" % replica.port)
                if code == 200:
                    break
                assert code == 503, raw
                await asyncio.sleep(0.2)
    assert await one.send(token, "GET", f"{URL}/d/artifacts/f") == (200, b"%d" % two.port)
    assert (await one.send(token, "GET", f"{URL}/e"))[0] == 404
    assert all(postgres.password not in replica.log for replica in replicas)
    assert (await kubectl(aggregator, "delete", "letter", "d")).code == 0


@pytest.mark.row(30)
async def test_the_kinds_that_ship_are_served_under_every_suffix_without_an_id(
    aggregator: RealCluster, postgres: PostgresServer, tmp_path: Path
) -> None:
    systems = load_systems("gitops,platform")
    kinds = hub_kinds(systems, ("example.com",))
    (front,) = free_ports(1)
    client = ApiClient(HttpTransport(load(aggregator.kubeconfig)), Scheme())
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        await install(client, kinds, front)
        stack.push_async_callback(uninstall, client, kinds)
        kubeconfig = await account(aggregator, tmp_path)
        flags = ("--systems", "gitops,platform", "--group-suffix", "example.com")
        replica = Replica(tmp_path, "all", kubeconfig, postgres.url, *flags)
        stack.callback(replica.process.stop)
        await stack.enter_async_context(balanced(front, [replica.port]))
        await available(client, kinds)
        assert (await kubectl(aggregator, "create", "namespace", "team")).code == 0
        for document in SHIPPED:
            made = await kubectl(aggregator, "apply", "--server-side", "-f", "-", stdin=orjson.dumps(document))
            assert made.code == 0, (document["kind"], made.err)
        addon = "/apis/infra.trimtab.dev/v3/namespaces/team/addons/logs"
        (tmp_path / "a.yaml").write_text("kind: ConfigMap")
        put = await kubectl(aggregator, "replace", "--raw", f"{addon}/artifacts/a.yaml", "-f", str(tmp_path / "a.yaml"))
        assert put.code == 0, put.err
        seen = await kubectl(
            aggregator, "get", "blueprints.infra.example.com,addons.infra.example.com", "-A", "-o", "json"
        )
        assert seen.code == 0, seen.err
        by_kind = {item["kind"]: item for item in seen.doc["items"]}
        assert by_kind["Blueprint"]["apiVersion"] == "infra.example.com/v3"
        assert by_kind["Blueprint"]["spec"]["addons"][0]["name"] == "logs"
        assert by_kind["Addon"]["metadata"]["project"] == "team"
        assert by_kind["Addon"]["spec"]["artifact"]["uploadedYAML"]["paths"][0]["digest"].startswith("sha256:")
        for item in by_kind.values():
            told = re.sub(r"sha256:[0-9a-f]{64}", "", json.dumps({**item, "metadata": own_metadata(item["metadata"])}))
            assert not re.search(r"[0-9a-f]{32}", told), told
        gone = await kubectl(aggregator, "delete", "namespace", "team", "--timeout=90s")
        assert gone.code == 0, gone.err
        assert (await kubectl(aggregator, "delete", "projects.hub.trimtab.dev", "team")).code == 0


SHIPPED: tuple[dict[str, Any], ...] = (
    {"apiVersion": "hub.trimtab.dev/v3", "kind": "Project", "metadata": {"name": "team"}, "spec": {}},
    {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Addon",
        "metadata": {"name": "logs", "namespace": "team", "description": "Where logs go."},
        "spec": {"namespace": "logs", "artifact": {"uploadedYAML": {"paths": [{"name": "a.yaml"}]}}},
    },
    {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Blueprint",
        "metadata": {"name": "base", "namespace": "team"},
        "spec": {"addons": [{"name": "logs"}], "sharing": {"enabled": True, "projects": [{"name": "default"}]}},
    },
)


async def test_a_start_that_cannot_be_says_why(aggregator: RealCluster, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("trimtab"))
    letters = str(Path(__file__).with_name("letters.py"))
    common = ("hub", "serve", "--systems", "none", "--operator", letters, "--kubeconfig", str(aggregator.kubeconfig))
    for words, said in (
        (("--storage", "ftp://x"), "--storage: "),
        (("--storage", "https://x", "--storage-token-file", str(tmp_path / "none")), "none"),
        (("--storage", str(tmp_path / "a.db"), "--bus", "carrier-pigeon://x"), "--bus does not know carrier-pigeon"),
        (("--storage", str(tmp_path / "a.db"), "--tls-cert", "x"), "go together"),
        (("--storage", "postgresql://127.0.0.1:1/x"), "--storage: "),
    ):
        process = await asyncio.create_subprocess_exec(
            program, *common, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(30):
            _, err = await process.communicate()
        last = err.decode().strip().splitlines()[-1]
        assert process.returncode in (1, 2), (words, last)
        assert last.startswith("error: "), (words, err)
        assert said in last

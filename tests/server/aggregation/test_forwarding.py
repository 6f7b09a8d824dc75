"""What reaches a server behind ours, and what comes back: who asks, headers, paths, bodies, refusals."""

import asyncio
import base64
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.server.aggregation.forwarding import target_of
from trimtab.server.aggregation.remote import told
from trimtab.server.audit.log import AuditLog
from trimtab.server.audit.policy import load_policy
from trimtab.server.audit.trail import Auditor
from trimtab.server.auth.identity import User
from trimtab.server.serve import Running, Settings, serve
from trimtab.store.contract import Unwritable
from trimtab.testing.pki import Authority

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
THINGS = "/apis/things.example.com/v1"
VERBS = ["deletecollection", "get", "list"]
LISTED = {
    "kind": "APIResourceList",
    "groupVersion": "things.example.com/v1",
    "resources": [
        {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": VERBS},
        {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
    ],
}


class Other:
    """An API server of somebody else's, that remembers what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[web.Request] = []
        self.bodies: list[int] = []
        self.code = 200
        self.kept = ["one", "two"]
        self.listed: Any = LISTED
        self.swagger: Any = None
        self.left: Any = None  # what it says is in a namespace, whatever was deleted

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == THINGS:
            return web.json_response(self.listed, status=self.code)
        if request.path == "/openapi/v2" and self.swagger is not None:
            return web.json_response(self.swagger)
        if not request.path.startswith(THINGS):
            return web.Response(status=404)
        self.seen.append(request)
        if request.path == f"{THINGS}/namespaces/short/things":
            if request.method == "DELETE":
                self.kept.clear()
            if self.left is not None:
                return web.json_response(self.left)
            return web.json_response({"items": [{"metadata": {"name": name}} for name in self.kept]})
        if request.path.endswith("/moved"):
            return web.Response(status=302, headers={"Location": "https://example.com/"})
        if request.path.endswith("/cut"):
            response = web.StreamResponse(headers={"Content-Length": "10000000"})
            await response.prepare(request)
            await response.write(b"x" * 500_000)
            assert request.transport is not None
            request.transport.abort()
            return response
        if request.path.endswith("/short"):
            assert request.transport is not None
            request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{}")
            await asyncio.sleep(0.05)
            request.transport.close()
            return web.Response()
        size = 0
        async for piece in request.content.iter_any():
            size += len(piece)
        self.bodies.append(size)
        if request.path.endswith("/large"):
            return web.Response(body=b"y" * 3_000_000, headers={"X-Own": "1"})
        return web.json_response(
            {"kind": "Thing"}, status=201, headers={"Warning": '299 - "old"', "Audit-Id": "theirs"}
        )


@contextlib.asynccontextmanager
async def listening(other: Other, folder: Path, proxies: str) -> AsyncIterator[bytes]:
    """The authority of its certificate. Only our front proxy may connect."""
    authority = Authority(folder)
    pair = authority.server("other", hosts=("other.default.svc",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(cadata=proxies)
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{tail:.*}", other.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    other.port = runner.addresses[0][1]
    try:
        yield authority.certificate.read_bytes()
    finally:
        await runner.cleanup()


class World:
    def __init__(self, running: Running, other: Other, session: aiohttp.ClientSession, ca: bytes) -> None:
        self.server, self.url, self.other, self.session, self.ca = running.server, running.url, other, session, ca

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, Any]:
        data = {"json": body} if isinstance(body, dict) else {"data": body}
        async with self.session.request(method, f"{self.url}{path}", headers=headers, **data) as response:
            return response.status, await response.read(), response.headers

    async def register(self, **spec: Any) -> None:
        """An APIService, a Service, and Endpoints that lead to the other server."""
        whole = {
            "group": "things.example.com",
            "version": "v1",
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "other"},
            "caBundle": base64.b64encode(self.ca).decode(),
        } | spec
        made = {"metadata": {"name": "v1.things.example.com"}, "spec": whole}
        code, body, _ = await self.send("POST", SERVICES, {**made, "kind": "APIService", "apiVersion": V1})
        assert code == 201, body

    async def lead(self) -> None:
        ports = [{"port": 443, "targetPort": 1}]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other"}, "spec": {"ports": ports}}
        assert (await self.send("POST", "/api/v1/namespaces/default/services", service))[0] == 201
        subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": self.other.port}]}
        metadata = {"name": "other", "namespace": "default", "uid": "u"}
        endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}
        # The API refuses loopback in Endpoints, as the real one does: put it where the server reads it.
        served = self.server.registry.find("", "v1", "endpoints")
        assert served is not None
        await self.server.store.commit(served.write(endpoints, None))

    async def until(self, reason: str) -> Any:
        async with asyncio.timeout(20):
            while True:
                document = await self.document()
                condition = next(iter(document.get("status", {}).get("conditions") or ()), {})
                if condition.get("reason") == reason:
                    return condition
                await asyncio.sleep(0.01)

    async def reads(self, path: str, text: bytes) -> None:
        """Wait until an answer has this in it."""
        async with asyncio.timeout(10):
            while True:
                if text in (await self.send("GET", path))[1]:
                    return
                await asyncio.sleep(0.05)

    async def document(self) -> Any:
        return json.loads((await self.send("GET", f"{SERVICES}/v1.things.example.com"))[1])


V1 = "apiregistration.k8s.io/v1"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    other = Other()
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(serve(Settings(data_dir=tmp_path / "data", port=0)))
        assert running.server.aggregator.identity is not None
        proxies = running.server.aggregator.identity.ca
        ca = await stack.enter_async_context(listening(other, tmp_path, proxies))
        tls = ssl.create_default_context(cafile=str(tmp_path / "data" / "pki" / "ca.crt"))
        token = (tmp_path / "data" / "pki" / "admin.token").read_text().strip()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls), headers={"Authorization": f"Bearer {token}"}
        )
        await stack.enter_async_context(session)
        yield World(running, other, session, ca)


@pytest.fixture
async def behind(world: World) -> World:
    await world.lead()
    await world.register()
    condition = await world.until("Passed")
    assert (condition["status"], condition["message"]) == ("True", "all checks passed")
    return world


async def test_who_asks_is_told_by_us_and_not_by_the_client(behind: World) -> None:
    forged = {"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X_Remote_Extra_a": "b", "X-Kept": "1"}
    code, _, headers = await behind.send("GET", f"{THINGS}/namespaces/a/things/x?b=1&b=2", **forged)
    assert code == 201
    assert headers["Warning"] == '299 - "old"'
    (seen,) = behind.other.seen
    assert seen.headers.getall("X-Remote-User") == ["system:admin"]
    assert seen.headers.getall("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert "Authorization" not in seen.headers
    assert not [name for name in seen.headers if "_" in name]
    assert seen.headers["X-Kept"] == "1"
    assert seen.raw_path == f"{THINGS}/namespaces/a/things/x?b=1&b=2"


async def test_impersonation_ends_here(behind: World) -> None:
    asked = {"Impersonate-User": "anna", "Impersonate-Group": "system:masters"}
    assert (await behind.send("GET", f"{THINGS}/things", **asked))[0] == 201
    (seen,) = behind.other.seen
    assert seen.headers["X-Remote-User"] == "anna"
    assert not [name for name in seen.headers if name.lower().startswith("impersonate")]


async def test_what_our_roles_do_not_allow_never_reaches_the_other_server(behind: World) -> None:
    code, body, _ = await behind.send("GET", f"{THINGS}/namespaces/a/things/x/log/more", **{"Impersonate-User": "anna"})
    assert code == 403
    assert (
        b'cannot get resource \\"things/log\\" in API group \\"things.example.com\\" in the namespace \\"a\\"' in body
    )
    assert behind.other.seen == []


async def test_bodies_of_any_size_pass(behind: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(80):
            yield b"z" * 100_000

    assert (await behind.send("POST", f"{THINGS}/namespaces/a/things", io.BytesIO(b"w" * 7_000_000)))[0] == 201
    assert (await behind.send("POST", f"{THINGS}/namespaces/a/things", pieces()))[0] == 201
    assert (await behind.send("POST", f"{THINGS}/namespaces/a/things", b"{}"))[0] == 201
    assert behind.other.bodies == [7_000_000, 8_000_000, 2]
    code, body, headers = await behind.send("GET", f"{THINGS}/namespaces/a/things/large")
    assert (code, len(body), headers["X-Own"]) == (200, 3_000_000, "1")


async def test_an_answer_that_breaks_off_is_no_whole_one(behind: World) -> None:
    with pytest.raises(aiohttp.ClientError):
        await behind.send("GET", f"{THINGS}/namespaces/a/things/cut")


async def test_a_small_answer_that_breaks_off_is_said_to_be_that(
    behind: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, body, _ = await behind.send("GET", f"{THINGS}/namespaces/a/things/short")
    assert code == 502
    assert body.startswith(b"error trying to reach service: the other server broke off: ")
    assert "Traceback" not in "".join(capsys.readouterr())


async def test_a_request_has_one_name_in_both_audit_logs(behind: World, tmp_path: Path) -> None:
    _, _, headers = await behind.send("GET", f"{THINGS}/things", **{"Audit-ID": "ours"})
    assert headers.getall("Audit-Id") == ["ours"]
    policy = tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
    log = AuditLog(str(tmp_path / "log"), max_size=1, max_backups=0, now=SystemClock().now)
    behind.server.audit = Auditor(load_policy(policy), log, SystemClock())
    _, _, headers = await behind.send("GET", f"{THINGS}/things")
    (made,) = headers.getall("Audit-Id")
    assert [seen.headers.getall("Audit-ID") for seen in behind.other.seen] == [["ours"], [made]]
    behind.server.audit = None
    log.close()


async def test_redirects_are_refused(behind: World) -> None:
    code, body, _ = await behind.send("GET", f"{THINGS}/namespaces/a/things/moved")
    assert (code, body) == (502, b"the backend attempted to redirect this request, which is not permitted")


async def test_its_kinds_are_in_our_discovery_with_their_parts(behind: World) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    listed = json.loads((await behind.send("GET", "/apis", Accept=accept))[1])
    assert listed["items"][0]["metadata"]["name"] == "apiregistration.k8s.io"
    group = next(item for item in listed["items"] if item["metadata"]["name"] == "things.example.com")
    (version,) = group["versions"]
    assert version["freshness"] == "Current"
    (resource,) = version["resources"]
    assert (resource["resource"], resource["scope"]) == ("things", "Namespaced")
    assert [part["subresource"] for part in resource["subresources"]] == ["status"]


async def test_a_certificate_of_an_unknown_authority_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "wrong").mkdir()
    world.ca = Authority(tmp_path / "wrong", name="somebody").certificate.read_bytes()
    await world.lead()
    await world.register()
    await world.until("Passed")
    code, body, _ = await world.send("GET", f"{THINGS}/things")
    assert code == 503
    assert body.startswith(
        b"error trying to reach service: tls: failed to verify certificate: x509: certificate signed by"
    )


async def test_what_is_missing_is_said_in_the_condition(world: World) -> None:
    await world.register()
    condition = await world.until("ServiceNotFound")
    assert condition["message"] == 'service/other in "default" is not present'
    assert (await world.send("GET", f"{THINGS}/things"))[:2] == (503, b"service unavailable\n")
    world.other.code = 404
    await world.lead()
    condition = await world.until("FailedDiscoveryCheck")
    url = f"https://127.0.0.1:{world.other.port}{THINGS}"
    assert condition["message"] == f"failing or missing response from {url}: bad status from {url}: 404"
    world.other.code = 200
    await world.until("Passed")
    await world.send("DELETE", f"{SERVICES}/v1.things.example.com")
    async with asyncio.timeout(10):
        while True:
            if (await world.send("GET", f"{THINGS}/things"))[0] == 404:
                break


async def test_whoever_is_behind_us_finds_whom_to_believe(world: World) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    told = json.loads((await world.send("GET", path))[1])["data"]
    assert world.server.aggregator.identity is not None
    assert told["requestheader-client-ca-file"] == world.server.aggregator.identity.ca
    assert told["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert "BEGIN CERTIFICATE" in told["client-ca-file"]
    await world.send("DELETE", path)
    async with asyncio.timeout(10):
        while True:
            if (await world.send("GET", path))[0] == 200:
                break


async def test_definitions_have_local_services_for_as_long_as_they_are_served(world: World) -> None:
    schema = {"type": "object"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": "ships", "kind": "Ship"}
    spec = {"group": "fleet.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    code, body, _ = await world.send("POST", crds, {**crd, "metadata": {"name": "ships.fleet.example.com"}})
    assert code == 201, body
    path = f"{SERVICES}/v1.fleet.example.com"
    async with asyncio.timeout(10):
        while True:
            if (await world.send("GET", path))[0] == 200:
                break
    found = json.loads((await world.send("GET", path))[1])
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found["status"]["conditions"][0]["reason"] == "Local"
    assert found["spec"] == {
        "group": "fleet.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
    }  # fmt: skip
    await world.send("DELETE", path)
    async with asyncio.timeout(10):
        while True:
            if (await world.send("GET", path))[0] == 200:
                break


async def test_a_namespace_that_ends_takes_with_it_what_is_elsewhere(behind: World) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}}
    assert (await behind.send("POST", "/api/v1/namespaces", namespace))[0] == 201
    await behind.send("DELETE", "/api/v1/namespaces/short")
    async with asyncio.timeout(10):
        while True:
            if (await behind.send("GET", "/api/v1/namespaces/short"))[0] == 404:
                break
    assert behind.other.kept == []


async def test_a_namespace_waits_for_a_server_that_is_away(world: World) -> None:
    await world.register()
    await world.until("ServiceNotFound")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}}
    assert (await world.send("POST", "/api/v1/namespaces", namespace))[0] == 201
    await world.send("DELETE", "/api/v1/namespaces/short")
    async with asyncio.timeout(10):
        while True:
            document = json.loads((await world.send("GET", "/api/v1/namespaces/short"))[1])
            if conditions := document["status"].get("conditions"):
                break
    failure = next(each for each in conditions if each["type"] == "NamespaceDeletionDiscoveryFailure")
    assert (failure["status"], failure["reason"]) == ("True", "DiscoveryFailed")
    assert "things.example.com/v1: stale GroupVersion discovery: things.example.com/v1" in failure["message"]
    await world.send("DELETE", f"{SERVICES}/v1.things.example.com")
    async with asyncio.timeout(10):
        while True:
            if (await world.send("GET", "/api/v1/namespaces/short"))[0] == 404:
                break


def test_what_is_judged_of_a_path_is_what_the_other_server_reads() -> None:
    everywhere = target_of(f"{THINGS}/namespaces//things")
    assert everywhere is not None
    assert (everywhere.namespace, everywhere.resource, everywhere.name) == ("", "things", "")
    named = target_of(f"{THINGS}/namespaces/a/things/one/")
    assert named is not None
    assert (named.namespace, named.resource, named.name) == ("a", "things", "one")
    assert target_of(THINGS + "/") is None


async def test_a_path_that_climbs_never_reaches_the_other_server(behind: World) -> None:
    url = URL(f"{behind.url}{THINGS}/namespaces/a/things/%2e%2e/%2e%2e/b/things", encoded=True)
    async with behind.session.get(url) as response:
        assert response.status == 400
        assert "segments" in (await response.json())["message"]
    assert behind.other.seen == []


@pytest.mark.parametrize("group", ["system:masters ", " system:masters", "system:masters\u00a0", "a\r\nb", "a\x00"])
def test_a_group_that_would_arrive_as_another_is_never_told(group: str) -> None:
    """Who reads a header drops the spaces around it."""
    with pytest.raises(StatusError, match="cannot be told"):
        told(User("eve", groups=(group,)))
    with pytest.raises(StatusError, match="cannot be told"):
        told(User(group))


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    "wrong",
    [{"verbs": 5}, {"verbs": [{}]}, {"kind": {}}, {"singularName": 7}, {"shortNames": 5}, {"group": 5}, {"name": []}],
)
async def test_a_word_of_a_wrong_type_never_gets_into_our_discovery(behind: World, wrong: dict[str, Any]) -> None:
    row = LISTED["resources"][0] | wrong  # type: ignore[index, operator]
    behind.other.listed = {**LISTED, "resources": [row, {"name": "fine", "kind": "Fine", "verbs": None}]}
    (service,) = behind.server.aggregator.services.values()
    assert await behind.server.aggregator._checked(service)
    document = json.loads((await behind.send("GET", "/apis", Accept=AGGREGATED))[1])
    (group,) = (each for each in document["items"] if each["metadata"]["name"] == "things.example.com")
    assert [each["resource"] for each in group["versions"][0]["resources"]] == ["fine"]


PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
OWN = f"{THINGS}/namespaces/{{namespace}}/things"


@pytest.mark.parametrize(
    "lie",
    [
        [],
        "no document",
        {"paths": []},
        {"paths": {OWN: 5}},
        {"paths": {OWN: {"get": {"parameters": [{"$ref": "#/parameters/absent"}]}}}},
        {"definitions": [1]},
        {"definitions": {"a": {"properties": 5}}},
    ],
)
async def test_a_document_that_is_none_leaves_ours_as_it_is(behind: World, lie: Any) -> None:
    behind.other.swagger = lie
    for accept in ("application/json", PROTOBUF):
        code, body, _ = await behind.send("GET", "/openapi/v2", Accept=accept)
        assert (code, b"io.k8s.api.core.v1.ConfigMap" in body) == (200, True)


async def test_parameters_that_a_server_in_go_shares_are_written_out(behind: World) -> None:
    shared = {"in": "query", "name": "pretty", "type": "string", "uniqueItems": True}
    operation = {"operationId": "listThings", "parameters": [{"$ref": "#/parameters/pretty-abc"}], "responses": {}}
    item = {"get": operation, "parameters": [{"$ref": "#/parameters/pretty-abc"}]}
    definitions = {"example.Thing": {"type": ["object", "null"]}}
    behind.other.swagger = {
        "paths": {OWN: item, "/api/v1/pods": {}},
        "parameters": {"pretty-abc": shared},
        "definitions": definitions,
    }
    code, body, _ = await behind.send("GET", "/openapi/v2")
    document = json.loads(body)
    assert code == 200
    assert document["definitions"]["example.Thing"] == definitions["example.Thing"]
    assert document["paths"][OWN] == {"get": {**operation, "parameters": [shared]}, "parameters": [shared]}
    code, body, _ = await behind.send("GET", "/openapi/v2", Accept=PROTOBUF)
    assert (code, OWN.encode() in body) == (200, True)


@pytest.mark.parametrize("lie", [[], {"items": [5]}, {"items": [{"metadata": {"name": "a", "finalizers": [{}]}}]}])
async def test_a_namespace_waits_for_a_server_that_says_nothing_sensible(behind: World, lie: Any) -> None:
    metadata = {"name": "short"}
    await behind.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    behind.other.left = lie
    await behind.send("DELETE", "/api/v1/namespaces/short")
    await behind.reads("/api/v1/namespaces/short", b"stale GroupVersion discovery")
    behind.other.left = None
    await behind.reads("/api/v1/namespaces/short", b"not found")


async def test_a_server_is_judged_again_after_the_disk_refused_to_say_so(
    behind: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: asyncio.Queue[None] = asyncio.Queue()

    async def refused(*_: Any) -> None:
        refusals.put_nowait(None)
        raise Unwritable("database or disk is full", full=True)

    behind.other.code = 500
    with monkeypatch.context() as patched:
        patched.setattr(behind.server.acts, "modify", refused)
        (wake,) = behind.server.aggregator._wakes.values()
        wake.set()
        async with asyncio.timeout(10):
            await refusals.get()
            await refusals.get()
    await behind.until("FailedDiscoveryCheck")

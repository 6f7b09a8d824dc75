"""From a RestService and a Secret to a service that is logged in: each type, renewed, and closed when it is not used."""

from __future__ import annotations

import base64
import random
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec import UNSET
from prometheus_client import CollectorRegistry

from tests.systems.rest.calling_kit import World, serving
from trimtab.client.api import ApiClient
from trimtab.model import kubernetes
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.credentials import Credentials
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.calling.contract import CallError, ErrorClass, Request
from trimtab.systems.rest.kinds import RestService, RestServiceSpec
from trimtab.systems.rest.kinds.service import Credentials as CredentialsSpec
from trimtab.systems.rest.kinds.service import Document, SecretReference
from trimtab.testing.clock import FakeClock
from trimtab.testing.pki import Authority

READ = Request(verb="read", method="GET", url="/x")
HIDDEN = "hunter2-of-the-service"


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        made = local_client(server, User("admin", groups=(MASTERS,)), kubernetes.register(Scheme()))
        for name in ("team", "other"):
            await made.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        yield made
    finally:
        await server.stop()
        await store.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def connections(client: ApiClient, clock: FakeClock) -> AsyncIterator[Connections]:
    async with (
        Credentials(client, cached=True) as credentials,
        Connections(credentials, clock=clock, chance=random.Random(1)) as made,
    ):
        yield made


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as made:
        yield made


def api(endpoint: str, generation: int = 1, namespace: str | None = None, **credentials: Any) -> RestService:
    more = credentials.pop("more", {})
    if credentials and "secret_ref" not in credentials:
        place = {} if namespace is None else {"namespace": namespace}
        credentials["secret_ref"] = SecretReference(name="login", **place)
    spec = RestServiceSpec(
        endpoint=endpoint, document=Document(inline="{}"), credentials=CredentialsSpec(**credentials), **more
    )
    return RestService(metadata=ObjectMeta(name="lab", generation=generation), spec=spec)


async def secret(client: ApiClient, namespace: str = "team", **values: str) -> Secret:
    data = {key.replace("__", "."): value for key, value in values.items()}
    return await client.create(Secret(metadata=ObjectMeta(name="login", namespace=namespace), string_data=data))


async def sent(connections: Connections, world: World, service: RestService, namespace: str = "team") -> web.Request:
    caller = await connections.caller(service, namespace)
    await caller.call(READ)
    return world.seen[-1]


async def test_no_credential_is_one_too(connections: Connections, world: World) -> None:
    assert "Authorization" not in (await sent(connections, world, api(world.url))).headers


async def test_a_bearers_token(client: ApiClient, connections: Connections, world: World) -> None:
    await secret(client, token=f"{HIDDEN}\n")
    request = await sent(connections, world, api(world.url, type="bearer"))
    assert request.headers["Authorization"] == f"Bearer {HIDDEN}"


async def test_basic(client: ApiClient, connections: Connections, world: World) -> None:
    await secret(client, username="anna", password=HIDDEN)
    request = await sent(connections, world, api(world.url, type="basic"))
    assert request.headers["Authorization"] == "Basic " + base64.b64encode(f"anna:{HIDDEN}".encode()).decode()


async def test_a_password_that_the_service_repeats_is_not_repeated(
    client: ApiClient, connections: Connections, world: World
) -> None:
    await secret(client, username="anna", password=HIDDEN)
    world.answers = [web.json_response({"message": f"anna:{HIDDEN} may not"}, status=403)]
    caller = await connections.caller(api(world.url, type="basic"), "team")
    with pytest.raises(CallError, match=r"403: anna:\[redacted\] may not"):
        await caller.call(READ)


async def test_an_api_key_in_a_header(client: ApiClient, connections: Connections, world: World) -> None:
    await secret(client, key=HIDDEN)
    request = await sent(connections, world, api(world.url, type="apiKey", header="X-API-Key", prefix="Token "))
    assert request.headers["X-API-Key"] == f"Token {HIDDEN}"


async def test_an_api_key_in_the_query(client: ApiClient, connections: Connections, world: World) -> None:
    await secret(client, key=HIDDEN)
    request = await sent(connections, world, api(world.url, type="apiKey", query="k"))
    assert request.query["k"] == HIDDEN


async def test_a_client_certificate_and_an_authority_of_ones_own(
    client: ApiClient, connections: Connections, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    mine = authority.client("anna")
    await secret(
        client,
        tls__crt=mine.certificate.read_text(),
        tls__key=mine.key.read_text(),
        ca__crt=authority.certificate.read_text(),
    )
    context = _context(authority)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    async with serving(ssl_context=context) as world:
        request = await sent(connections, world, api(world.url, type="mtls"))
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        assert (("commonName", "anna"),) in subject
        stranger = await connections.caller(api(world.url, 2), "team")
        with pytest.raises(CallError, match="certificate is not trusted") as raised:
            await stranger.call(READ)
        assert raised.value.kind is ErrorClass.AUTH


async def test_tls_is_not_verified_when_that_is_asked_for(connections: Connections, tmp_path: Path) -> None:
    async with serving(ssl_context=_context(Authority(tmp_path))) as world:
        await sent(connections, world, api(world.url, more={"skip_tls_verify": True}))


async def test_a_connection_is_known_by_its_service_and_credential_and_shows_no_secret(
    client: ApiClient, connections: Connections, world: World
) -> None:
    await secret(client, "team", token=HIDDEN)
    await secret(client, "other", token=HIDDEN)

    async def named(namespace: str, generation: int = 1) -> str:
        return (await connections.caller(api(world.url, generation, type="bearer"), namespace)).connection

    first = await named("team")
    assert await named("team") == first
    assert len({first, await named("other"), await named("team", 2)}) == 3
    assert HIDDEN not in first


async def test_the_secret_of_the_objects_namespace_counts_unless_one_is_named(
    client: ApiClient, connections: Connections, world: World
) -> None:
    await secret(client, "team", token="of-the-team")
    await secret(client, "other", token="of-the-others")
    plain, fixed = api(world.url, type="bearer"), api(world.url, type="bearer", namespace="other")
    for service, namespace, token in ((plain, "team", "team"), (plain, "other", "others"), (fixed, "team", "others")):
        request = await sent(connections, world, service, namespace)
        assert request.headers["Authorization"] == f"Bearer of-the-{token}"


@pytest.mark.parametrize(
    ("kind", "values", "says"),
    [
        ("bearer", None, "Secret team/login does not exist"),
        ("bearer", {"key": "x"}, "has no key 'token'; it has key"),
        ("basic", {"username": "x"}, "has no key 'password'"),
        ("mtls", {"tls.crt": "x"}, "has no key 'tls.key'"),
    ],
)
async def test_a_credential_that_is_not_there_is_an_error_of_its_own(
    client: ApiClient, connections: Connections, world: World, kind: str, values: dict[str, str] | None, says: str
) -> None:
    if values is not None:
        await secret(client, **values)
    with pytest.raises(CallError, match=f"RestService lab: .*{says}") as raised:
        await connections.caller(api(world.url, type=kind), "team")
    assert raised.value.kind is ErrorClass.AUTH


async def test_a_certificate_that_is_none_is_an_error_of_its_own(client: ApiClient, connections: Connections) -> None:
    await secret(client, tls__crt="x", tls__key=HIDDEN)
    caller = await connections.caller(api("https://127.0.0.1:1", type="mtls"), "team")
    with pytest.raises(CallError, match="the client certificate or its key cannot be used") as raised:
        await caller.call(READ)
    assert raised.value.kind is ErrorClass.AUTH
    assert HIDDEN not in str(raised.value)


async def test_a_type_that_needs_a_secret_says_so(connections: Connections, world: World) -> None:
    service = api(world.url, type="bearer", secret_ref=UNSET)
    with pytest.raises(CallError, match="credentials of type bearer need a secretRef"):
        await connections.caller(service, "team")


async def test_an_endpoint_that_is_none_is_terminal(connections: Connections) -> None:
    with pytest.raises(CallError) as raised:
        await connections.caller(api("gopher://x"), "team")
    assert raised.value.kind is ErrorClass.TERMINAL


# Kept, renewed, closed


async def test_one_service_is_kept_while_nothing_changes(
    client: ApiClient, connections: Connections, world: World
) -> None:
    await secret(client, token="old")
    service = api(world.url, type="bearer")
    first = await connections.caller(service, "team")
    assert await connections.caller(service, "team") is first
    current = await client.get(Secret, "login", "team")
    await client.patch(current, current.replace(data={"token": base64.b64encode(b"new").decode()}))
    assert (await sent(connections, world, service)).headers["Authorization"] == "Bearer new"
    assert await connections.caller(service, "team") is not first
    assert await connections.caller(api(world.url, 2, type="bearer"), "team") is not first
    assert connections.open == 1


async def test_a_service_that_is_replaced_finishes_what_it_began(connections: Connections, world: World) -> None:
    old = await connections.caller(api(world.url), "team")
    renewed: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        renewed.append(await connections.caller(api(world.url, 2), "team"))
        return web.json_response({})

    world.otherwise = answer
    assert (await old.call(READ)).status == 200
    assert renewed[0] is not old


async def test_a_new_password_gives_no_new_allowance(client: ApiClient, connections: Connections, world: World) -> None:
    await secret(client, token="old")
    world.answers = [web.Response(status=429, headers={"Retry-After": "60"})]
    for generation in (1, 2):
        caller = await connections.caller(api(world.url, generation, type="bearer"), "team")
        with pytest.raises(CallError) as raised:
            await caller.call(READ)
        assert raised.value.kind is ErrorClass.THROTTLED
    assert len(world.seen) == 1


async def test_a_service_that_nobody_uses_is_closed(connections: Connections, world: World, clock: FakeClock) -> None:
    await sent(connections, world, api(world.url))
    other = api(world.url, type="none", secret_ref=SecretReference(name="login", namespace="team"))
    await clock.advance(700)
    with pytest.raises(CallError):
        await connections.caller(other, "team")
    assert connections.open == 1
    await sent(connections, world, api(world.url, 2))
    assert connections.open == 1


async def test_requests_are_counted_by_service_verb_and_result(client: ApiClient, world: World) -> None:
    registry = CollectorRegistry()
    world.answers = [web.json_response({}), web.Response(status=403)]
    async with Credentials(client) as credentials, Connections(credentials, metrics=registry) as connections:
        caller = await connections.caller(api(world.url), "team")
        await caller.call(READ)
        with pytest.raises(CallError):
            await caller.call(READ)
    labels = {"service": "lab", "verb": "read"}
    assert registry.get_sample_value("rest_requests_total", {**labels, "result": "ok"}) == 1
    assert registry.get_sample_value("rest_requests_total", {**labels, "result": "auth"}) == 1
    assert registry.get_sample_value("rest_request_seconds_count", labels) == 2


# Azure


async def test_a_token_of_azure_is_fetched_once(
    client: ApiClient, connections: Connections, world: World, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    async with serving(ssl_context=_context(authority)) as entra:

        async def token(request: web.Request) -> web.StreamResponse:
            return web.json_response({"access_token": "token-one", "expires_in": 3600, "token_type": "Bearer"})

        entra.otherwise = token
        await secret(
            client,
            tenantID="00000000-0000-0000-0000-000000000001",
            clientID="me",
            clientSecret=HIDDEN,
            authorityHost=entra.url,
            ca__crt=authority.certificate.read_text(),
        )
        service = api(world.url, type="azure", scope="https://management.example/.default")
        for _ in range(2):
            request = await sent(connections, world, service)
            assert request.headers["Authorization"] == "Bearer token-one"
        assert entra.asked == ["POST /00000000-0000-0000-0000-000000000001/oauth2/v2.0/token"]
        assert b"management.example" in entra.bodies[0]


async def test_azure_that_refuses_is_an_error_without_the_secret(
    client: ApiClient, connections: Connections, world: World, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    async with serving(ssl_context=_context(authority)) as entra:

        async def refuse(request: web.Request) -> web.StreamResponse:
            said = f"AADSTS7000215: Invalid client secret provided: {HIDDEN}"
            return web.json_response({"error": "invalid_client", "error_description": said}, status=401)

        entra.otherwise = refuse
        await secret(
            client,
            tenantID="00000000-0000-0000-0000-000000000001",
            clientID="me",
            clientSecret=HIDDEN,
            authorityHost=entra.url,
            ca__crt=authority.certificate.read_text(),
        )
        caller = await connections.caller(api(world.url, type="azure"), "team")
        with pytest.raises(CallError, match=r"no token from Azure.*AADSTS7000215") as raised:
            await caller.call(READ)
        assert raised.value.kind is ErrorClass.AUTH
        assert HIDDEN not in str(raised.value)
        assert world.seen == []


async def test_without_the_extra_its_name_is_told(
    connections: Connections, world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await secret(client, tenantID="t", clientID="c", clientSecret=HIDDEN)
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    caller = await connections.caller(api(world.url, type="azure"), "team")
    with pytest.raises(CallError, match=r"pip install 'trimtab\[azure\]'") as raised:
        await caller.call(READ)
    assert raised.value.kind is ErrorClass.AUTH


def _context(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server("server"))
    return context

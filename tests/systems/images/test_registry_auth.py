"""Logins and tokens, on docker-registry with a password file and with a token server; and where they must not go."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.lab.registry_faults import Answered, FaultProxy
from trimtab.lab.registry_tokens import TokenServer
from trimtab.model.redacted import Redacted, basic
from trimtab.runtime.credentials.types import DockerConfig, RegistryLogin
from trimtab.runtime.outbound import Budget, Limits, Tls
from trimtab.systems.images.registry.auth import logins_of
from trimtab.systems.images.registry.challenges import Challenge, RealmRefused, challenges, checked_realm
from trimtab.systems.images.registry.client import Head, RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import (
    BadAnswer,
    Forbidden,
    NoCatalog,
    RegistryError,
    Unauthorized,
    Unavailable,
    Untrusted,
)
from trimtab.systems.images.registry.references import Endpoint, endpoint
from trimtab.testing.clock import FakeClock
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

SECRET = "hunter2-wrong-horse"
ALICE = RegistryLogin(username="alice", password=Redacted(SECRET))
MALLORY = RegistryLogin(username="alice", password=Redacted("not-the-password"))
IDENTITY = "an-identity-token"
APP = made.image([made.layer({"etc/os-release": b"ID=debian\n"})])


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    async with Connections() as made_once:
        yield made_once


class WithPasswords(NamedTuple):
    """A registry with TLS and a password file."""

    registry: Registry
    ca: bytes


@pytest.fixture(scope="module")
def basic_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithPasswords]:
    folder = tmp_path_factory.mktemp("basic")
    authority = Authority(folder)
    (port,) = free_ports(1)
    with Registry(folder / "registry", port, tls=authority.server("registry"), logins={"alice": SECRET}) as running:
        yield WithPasswords(running, authority.certificate.read_bytes())


def basic_client(
    connections: Connections, peer: WithPasswords, login: RegistryLogin | DockerConfig | None
) -> RegistryClient:
    return connections.client(endpoint(peer.registry.url), tls=Tls(ca=peer.ca), login=login)


async def test_a_login_opens_a_registry_with_a_password_file(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    trusted = ssl.create_default_context(cadata=basic_registry.ca.decode())
    header = {"Authorization": basic("alice", Redacted(SECRET)).reveal()}
    async with made.Pusher(basic_registry.registry.url, headers=lambda _: header, tls=trusted) as pusher:
        await pusher.push("team/app", "1.0", APP)
    client = basic_client(connections, basic_registry, ALICE)
    await client.ping()
    assert [name async for name in client.repositories()] == ["team/app"]
    assert isinstance(await client.head("team/app", "1.0"), Head)


async def test_a_registry_without_tls_is_said_to_be_so(connections: Connections) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "", Answered(200))
        with pytest.raises(Unavailable, match="plainHTTP") as refused:
            await connections.client(endpoint(f"https://{registry.host}")).ping()
    assert not isinstance(refused.value, Untrusted)
    assert "caBundle" not in str(refused.value)


async def test_a_docker_configuration_gives_the_login_of_the_registry(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    config = DockerConfig({"elsewhere.example": MALLORY, f"https://{basic_registry.registry.host}": ALICE})
    await basic_client(connections, basic_registry, config).ping()


async def test_without_a_login_it_says_where_one_is_given(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    with pytest.raises(Unauthorized, match="authSecret"):
        await basic_client(connections, basic_registry, None).ping()


async def test_a_configuration_without_the_registry_says_which_it_has_and_which_is_needed(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    written = {"https://index.docker.io/v1/": ALICE, f"alice:{SECRET}@elsewhere.example/team": ALICE}
    with pytest.raises(Unauthorized) as refused:
        await basic_client(connections, basic_registry, DockerConfig(written)).ping()
    needed = basic_registry.registry.host
    assert f"has logins for elsewhere.example, index.docker.io, and none for {needed}" in str(refused.value)
    assert SECRET not in str(refused.value)
    with pytest.raises(Unauthorized, match="has no logins"):
        await basic_client(connections, basic_registry, DockerConfig({})).ping()


async def test_a_configuration_for_another_path_says_which_repository_needs_a_login(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    config = DockerConfig({f"{basic_registry.registry.host}/team": ALICE})
    client = basic_client(connections, basic_registry, config)
    with pytest.raises(Unauthorized, match=f"none for {basic_registry.registry.host}/other/app"):
        await client.head("other/app", "1.0")


async def test_a_login_without_a_password_is_said_to_be_so(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    with pytest.raises(Unauthorized, match="no password"):
        await basic_client(connections, basic_registry, RegistryLogin(identity_token=Redacted(IDENTITY))).ping()


async def test_a_wrong_password_is_refused(connections: Connections, basic_registry: WithPasswords) -> None:
    with pytest.raises(Unauthorized, match="refuses the login") as refused:
        await basic_client(connections, basic_registry, MALLORY).ping()
    assert "not-the-password" not in str(refused.value)


async def test_a_login_that_never_worked_is_sent_once_only(connections: Connections) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": "Basic realm=x"}))
        client = connections.client(endpoint(registry.host, plain_http=True), login=MALLORY)
        for _ in range(3):
            with pytest.raises(Unauthorized, match="refuses the login"):
                await client.ping()
        assert [("authorization" in each.headers) for each in registry.requests] == [False, True]


async def test_a_login_that_worked_is_not_given_up_for_one_refusal(connections: Connections) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": "Basic realm=x"}), times=1)
        registry.fault("GET", "^/v2/$", Answered(200))
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": "Basic realm=x"}))
        client = connections.client(endpoint(registry.host, plain_http=True), login=ALICE)
        await client.ping()
        with pytest.raises(Unauthorized):
            await client.manifest("team/app", "1")
        await client.ping()


async def test_an_authority_that_is_not_known_is_not_trusted(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    with pytest.raises(Untrusted, match="caBundle"):
        await connections.client(endpoint(basic_registry.registry.url), login=ALICE).ping()
    await connections.client(endpoint(basic_registry.registry.url), tls=Tls(insecure=True), login=ALICE).ping()


async def test_a_ca_bundle_that_cannot_be_read_is_an_error(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    with pytest.raises(Untrusted, match="no certificate in PEM"):
        await connections.client(endpoint(basic_registry.registry.url), tls=Tls(ca=b"nonsense")).ping()


async def test_a_registry_with_tls_that_is_asked_without_is_a_plain_error(
    connections: Connections, basic_registry: WithPasswords
) -> None:
    with pytest.raises(RegistryError):
        await connections.client(endpoint(basic_registry.registry.host, plain_http=True)).ping()


class WithTokens(NamedTuple):
    """A registry with a token server, behind a proxy that sees all requests."""

    registry: Registry
    tokens: TokenServer
    proxy: FaultProxy

    def client(self, connections: Connections, login: RegistryLogin | None) -> RegistryClient:
        return connections.client(endpoint(self.proxy.host, plain_http=True), login=login)


@pytest.fixture
async def bearer_registry(tmp_path: Path) -> AsyncIterator[WithTokens]:
    port, token_port, proxy_port = free_ports(3)
    tokens = TokenServer(tmp_path / "tokens", token_port, logins={"alice": SECRET}, identity_tokens=(IDENTITY,))
    with Registry(tmp_path / "registry", port, tokens=tokens.settings) as registry:
        async with tokens, FaultProxy(proxy_port, registry.url) as proxy:

            def header(repository: str) -> dict[str, str]:
                return {"Authorization": "Bearer " + tokens.token("alice", (f"repository:{repository}:pull,push",))}

            async with made.Pusher(registry.url, headers=header) as pusher:
                await pusher.push("team/app", "1.0", APP)
                await pusher.push("team/other", "1.0", APP)
            yield WithTokens(registry, tokens, proxy)


async def test_tokens_are_had_by_scope_and_kept(connections: Connections, bearer_registry: WithTokens) -> None:
    client = bearer_registry.client(connections, ALICE)
    assert sorted([name async for name in client.repositories()]) == ["team/app", "team/other"]
    for repository in ("team/app", "team/other"):
        heads = await asyncio.gather(*(client.head(repository, "1.0") for _ in range(10)))
        assert {each.digest for each in heads if isinstance(each, Head)} == {APP.digest}
    assert bearer_registry.tokens.asked == [
        ("alice", ("registry:catalog:*",)),
        ("alice", ("repository:team/app:pull",)),
        ("alice", ("repository:team/other:pull",)),
    ]


async def test_ping_checks_the_login_and_needs_none_where_tokens_are_by_repository(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    await bearer_registry.client(connections, None).ping()
    assert bearer_registry.tokens.asked == []
    await bearer_registry.client(connections, ALICE).ping()
    assert bearer_registry.tokens.asked == [("alice", ())]
    with pytest.raises(Unauthorized):
        await bearer_registry.client(connections, MALLORY).ping()


async def test_ping_does_not_take_an_example_for_a_scope(connections: Connections, bearer_registry: WithTokens) -> None:
    realm = bearer_registry.tokens.settings.realm
    challenge = f'Bearer realm="{realm}",service="lab-registry",scope="repository:user/image:pull"'
    bearer_registry.proxy.fault("GET", "^/v2/$", Answered(401, {"WWW-Authenticate": challenge}))
    await bearer_registry.client(connections, ALICE).ping()
    assert bearer_registry.tokens.asked == [("alice", ())]


def test_docker_hub_has_the_login_of_any_of_its_names() -> None:
    logins = logins_of(DockerConfig({"https://index.docker.io/v1/": ALICE}), endpoint("registry-1.docker.io"))
    assert logins("library/nginx") is ALICE


async def test_a_login_never_goes_to_the_registry_itself_when_it_wants_tokens(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    await bearer_registry.client(connections, ALICE).head("team/app", "1.0")
    sent = [each.headers.get("authorization", "") for each in bearer_registry.proxy.requests]
    assert sent
    assert not any(each.startswith("Basic") for each in sent)


async def test_without_a_login_pulling_is_allowed_and_the_catalogue_is_not(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    client = bearer_registry.client(connections, None)
    assert isinstance(await client.head("team/app", "1.0"), Head)
    with pytest.raises(NoCatalog, match=r"spec\.repositories"):
        await anext(client.repositories())


async def test_an_identity_token_is_exchanged(connections: Connections, bearer_registry: WithTokens) -> None:
    client = bearer_registry.client(connections, RegistryLogin(identity_token=Redacted(IDENTITY)))
    assert isinstance(await client.head("team/app", "1.0"), Head)
    assert bearer_registry.tokens.asked == [("identity", ("repository:team/app:pull",))]
    wrong = bearer_registry.client(connections, RegistryLogin(identity_token=Redacted("another")))
    with pytest.raises(Unauthorized):
        await wrong.head("team/app", "1.0")


async def test_a_registry_token_is_sent_as_it_is(connections: Connections, bearer_registry: WithTokens) -> None:
    token = bearer_registry.tokens.token("alice", ("repository:team/app:pull",))
    client = bearer_registry.client(connections, RegistryLogin(registry_token=Redacted(token)))
    assert isinstance(await client.head("team/app", "1.0"), Head)
    assert bearer_registry.tokens.asked == []


async def test_a_wrong_password_is_asked_of_the_token_server_once_only(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    client = bearer_registry.client(connections, MALLORY)
    for repository in ("team/app", "team/other", "team/app"):
        with pytest.raises(Unauthorized, match="authSecret"):
            await client.head(repository, "1.0")
    assert bearer_registry.tokens.asked == [("refused alice", ("repository:team/app:pull",))]


async def test_a_token_that_does_not_allow_it_is_forbidden_and_not_asked_for_again_and_again(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    bearer_registry.tokens.denied.add("team/app")
    client = bearer_registry.client(connections, ALICE)
    with pytest.raises(Forbidden, match="permission"):
        await client.head("team/app", "1.0")
    assert len(bearer_registry.tokens.asked) == 1
    assert isinstance(await client.head("team/other", "1.0"), Head)


@pytest.mark.parametrize("login", [None, DockerConfig({"elsewhere.example": ALICE})])
async def test_what_tokens_for_nobody_do_not_allow_needs_a_login(
    connections: Connections, bearer_registry: WithTokens, login: DockerConfig | None
) -> None:
    bearer_registry.tokens.denied.add("team/app")
    with pytest.raises(Forbidden, match="authSecret") as refused:
        await bearer_registry.client(connections, login).head("team/app", "1.0")
    assert ("has logins for elsewhere.example" in str(refused.value)) is (login is not None)


@pytest.mark.parametrize("login", [None, DockerConfig({"elsewhere.example": ALICE})])
async def test_a_token_server_that_wants_a_login_says_which_is_needed(
    connections: Connections, login: DockerConfig | None
) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "^/token", Answered(401))
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": f'Bearer realm="{registry.url}/token"'}))
        with pytest.raises(Unauthorized, match="authSecret") as refused:
            await connections.client(endpoint(registry.host, plain_http=True), login=login).manifest("team/app", "1")
        assert ("has logins for elsewhere.example" in str(refused.value)) is (login is not None)


async def test_a_token_is_renewed_before_it_ends(bearer_registry: WithTokens) -> None:
    clock = FakeClock()
    async with Connections(clock=clock) as connections:
        client = bearer_registry.client(connections, ALICE)
        await client.head("team/app", "1.0")
        await clock.advance(49)
        await client.head("team/app", "1.0")
        assert len(bearer_registry.tokens.asked) == 1
        await clock.advance(2)
        await client.head("team/app", "1.0")
        assert len(bearer_registry.tokens.asked) == 2


async def test_a_token_that_ended_early_is_renewed_once_for_all_who_wait(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    client = bearer_registry.client(connections, ALICE)
    await client.head("team/app", "1.0")
    challenge = f'Bearer realm="{bearer_registry.tokens.settings.realm}",service="lab-registry"'
    bearer_registry.proxy.fault("HEAD", "", Answered(401, {"WWW-Authenticate": challenge}), times=5)
    heads = await asyncio.gather(*(client.head("team/app", "1.0") for _ in range(5)))
    assert all(isinstance(each, Head) for each in heads)
    assert len(bearer_registry.tokens.asked) == 2


async def test_a_registry_that_wants_another_scope_gets_a_token_for_both(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    challenge = (
        f'Bearer realm="{bearer_registry.tokens.settings.realm}",service="lab-registry",'
        'scope="repository:team/app:metadata_read"'
    )
    bearer_registry.proxy.fault("HEAD", "", Answered(401, {"WWW-Authenticate": challenge}), times=1)
    client = bearer_registry.client(connections, ALICE)
    assert isinstance(await client.head("team/app", "1.0"), Head)
    assert bearer_registry.tokens.asked[-1][1] == ("repository:team/app:pull", "repository:team/app:metadata_read")


async def test_a_redirect_to_another_host_takes_no_credentials_there(
    connections: Connections, bearer_registry: WithTokens
) -> None:
    (port,) = free_ports(1)
    layer = APP.blobs[1]
    async with FaultProxy(port, address="127.0.0.2") as store:
        store.fault("GET", "", Answered(200, {}, layer.content))
        where = {"Location": f"{store.url}/bucket/object?signature=x"}
        client = bearer_registry.client(connections, ALICE)
        await client.head("team/app", "1.0")
        bearer_registry.proxy.fault("GET", "blobs", Answered(307, where))
        pieces = [piece async for piece in client.blob("team/app", layer.digest, len(layer.content))]
        assert b"".join(pieces) == layer.content
        assert "authorization" in bearer_registry.proxy.requests[-1].headers
        assert [name for each in store.requests for name in each.headers if name in ("authorization", "cookie")] == []


async def test_a_realm_without_https_elsewhere_gets_nothing(connections: Connections) -> None:
    port, thief_port = free_ports(2)
    async with FaultProxy(port) as registry, FaultProxy(thief_port, address="127.0.0.2") as thief:
        for realm in ("http://thief.example/token", f"http://x:y@{registry.host}/token", "ftp://a/", "", "http://[::1"):
            registry.clear()
            registry.fault("GET", "", Answered(401, {"WWW-Authenticate": f'Bearer realm="{realm}"'}))
            with pytest.raises(BadAnswer, match="token server"):
                await connections.client(endpoint(registry.host, plain_http=True), login=ALICE).ping()
        assert not thief.requests


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"token": 1}', b'{"token": "a b"}', b'{"token": "a\\r\\nX: y"}', b'{"token": ""}']
)
async def test_a_token_that_is_none_is_a_bad_answer(connections: Connections, body: bytes) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "^/token", Answered(200, {}, body))
        realm = f'Bearer realm="{registry.url}/token"'
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": realm}))
        with pytest.raises(BadAnswer, match="token"):
            await connections.client(endpoint(registry.host, plain_http=True)).manifest("team/app", "1")


async def test_a_blob_that_needs_a_token_leaves_its_place_to_the_request_for_it() -> None:
    (port,) = free_ports(1)
    layer = APP.blobs[1]
    async with FaultProxy(port) as registry, Connections(Budget(concurrent=1), limits=Limits(total=5)) as connections:
        registry.fault("GET", "^/token", Answered(200, {}, b'{"token": "t"}'))
        realm = f'Bearer realm="{registry.url}/token"'
        registry.fault("GET", "blobs", Answered(401, {"WWW-Authenticate": realm}), times=1)
        registry.fault("GET", "blobs", Answered(200, {}, layer.content))
        client = connections.client(endpoint(registry.host, plain_http=True))
        pieces = [piece async for piece in client.blob("team/app", layer.digest, len(layer.content))]
        assert b"".join(pieces) == layer.content


async def test_a_401_that_does_not_say_how_is_unauthorized(connections: Connections) -> None:
    (port,) = free_ports(1)
    async with FaultProxy(port) as registry:
        registry.fault("GET", "", Answered(401, {"WWW-Authenticate": "Negotiate"}))
        with pytest.raises(Unauthorized, match="how to log in"):
            await connections.client(endpoint(registry.host, plain_http=True), login=ALICE).ping()


async def test_no_error_and_no_repr_holds_a_secret(connections: Connections, bearer_registry: WithTokens) -> None:
    client = bearer_registry.client(connections, ALICE)
    await client.head("team/app", "1.0")
    bearer_registry.proxy.fault("GET", "", Answered(401, {"WWW-Authenticate": "Bearer realm=nonsense"}))
    with pytest.raises(BadAnswer) as failed:
        await client.manifest("team/app", "1.0")
    token = bearer_registry.proxy.requests[-1].headers["authorization"].removeprefix("Bearer ")
    shown = (
        repr(failed.value)
        + str(failed.value)
        + repr(vars(client))
        + repr(vars(vars(vars(client)["_transport"])["_auth"]))
    )
    assert SECRET not in shown
    assert token not in shown


def test_challenges_are_read_from_one_header_and_from_several() -> None:
    both = 'Basic realm="a, b", Bearer realm="https://t/",service=x , scope="repository:a:pull,push"'
    expected = (
        Challenge("basic", {"realm": "a, b"}),
        Challenge("bearer", {"realm": "https://t/", "service": "x", "scope": "repository:a:pull,push"}),
    )
    assert challenges([both]) == expected
    assert (
        challenges(['Basic realm="a, b"', 'bearer REALM="https://t/",service=x,scope="repository:a:pull,push"'])
        == expected
    )
    assert challenges(["Negotiate"]) == (Challenge("negotiate", {}),)
    assert challenges(['Bearer realm="a \\"quoted\\" one"']) == (Challenge("bearer", {"realm": 'a "quoted" one'}),)


@given(st.lists(st.text(alphabet='Bearer ="\\,;realm\t', max_size=40), max_size=3))
@settings(max_examples=200)
def test_any_header_is_read_to_something(headers: list[str]) -> None:
    assert all(each.scheme for each in challenges(headers))


@pytest.mark.parametrize(
    ("realm", "registry", "good"),
    [
        ("https://auth.example/token", endpoint("registry.example"), True),
        ("https://auth.example/token", endpoint("registry.example", plain_http=True), True),
        ("http://auth.example/token", endpoint("registry.example"), False),
        ("http://auth.example/token", endpoint("registry.example", plain_http=True), False),
        ("http://registry.example:8080/token", endpoint("registry.example:5000", plain_http=True), True),
        ("http://registry.example/token", endpoint("registry.example"), False),
        ("http://127.0.0.1:5004/token", endpoint("127.0.0.1:5003", plain_http=True), True),
        ("http://localhost:5004/token", endpoint("127.0.0.1:5003"), True),
        ("http://127.0.0.1/token", endpoint("registry.example"), False),
    ],
)
def test_a_realm_is_https_or_as_near_as_the_registry(realm: str, registry: Endpoint, good: bool) -> None:
    if good:
        assert checked_realm(realm, registry) == realm
    else:
        with pytest.raises(RealmRefused):
            checked_realm(realm, registry)

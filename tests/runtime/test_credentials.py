"""Credentials from Secrets, on both servers: found, renewed, and never shown."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import json
import pickle
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted, redact
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import types
from trimtab.runtime.credentials.resolver import Credentials, KeyMissing, Malformed, SecretNotFound, SecretRef, _values
from trimtab.runtime.credentials.types import DockerConfig, RegistryLogin
from trimtab.testing.clock import FakeClock

HIDDEN = "hunter2"


@pytest.fixture
async def credentials(client: ApiClient) -> AsyncIterator[Credentials]:
    async with _credentials(client) as made:
        yield made


@contextlib.asynccontextmanager
async def _credentials(client: ApiClient, **options: Any) -> AsyncIterator[Credentials]:
    """Closed only when each watch is up: asyncio loses a socket whose TLS handshake is cancelled."""
    async with Credentials(client, **options) as made:
        yield made
        for namespace, name in tuple(made._followed):
            await _settled(made, SecretRef(name, namespace))


async def _create(
    client: ApiClient, namespace: str, name: str = "login", kind: str = "Opaque", **values: str
) -> Secret:
    data = {key.replace("__", "."): value for key, value in values.items()}
    return await client.create(Secret(metadata=ObjectMeta(name=name, namespace=namespace), type=kind, string_data=data))


async def _set(client: ApiClient, secret: Secret, **values: str) -> Secret:
    current = await client.get(Secret, secret.name, secret.namespace)
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return await client.patch(current, current.replace(data={**dict(current.data or {}), **data}))


async def _settled(credentials: Credentials, ref: SecretRef) -> None:
    """Until the Secret is followed."""
    followed = credentials._following(ref)
    while not followed.listed:
        await followed.news.wait()


# From Secrets


async def test_a_key_is_resolved(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, password=HIDDEN)
    assert (await credentials.resolve(SecretRef("login", namespace, "password"))).reveal() == HIDDEN


async def test_all_keys_are_resolved(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, one="1", two="2")
    values = await credentials.resolve_all(SecretRef("login", namespace))
    assert {key: value.reveal() for key, value in values.items()} == {"one": "1", "two": "2"}


async def test_a_secret_that_is_not_there_is_named(namespace: str, credentials: Credentials) -> None:
    with pytest.raises(SecretNotFound, match=rf"Secret {namespace}/none does not exist: create it"):
        await credentials.resolve(SecretRef("none", namespace, "password"))


async def test_it_is_named_also_when_the_watch_says_so(namespace: str, credentials: Credentials) -> None:
    ref = SecretRef("none", namespace, "password")
    await _settled(credentials, ref)
    with pytest.raises(SecretNotFound):
        await credentials.resolve(ref)


async def test_a_missing_key_is_told_with_those_that_are_there(
    client: ApiClient, namespace: str, credentials: Credentials
) -> None:
    await _create(client, namespace, user=HIDDEN, passwd=HIDDEN)
    with pytest.raises(KeyMissing, match=r"has no key 'password'; it has passwd, user$") as raised:
        await credentials.resolve(SecretRef("login", namespace, "password"))
    assert HIDDEN not in str(raised.value)


async def test_a_reference_without_a_key_is_told(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, password=HIDDEN)
    with pytest.raises(KeyMissing, match=r"without a key; it has password"):
        await credentials.resolve(SecretRef("login", namespace))


async def test_a_renewed_value_is_seen(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    secret = await _create(client, namespace, password="old")
    ref = SecretRef("login", namespace, "password")
    renewals = credentials.changed(ref, since=await credentials.resolve(ref))
    await _set(client, secret, password="new")
    renewed = await anext(renewals)
    assert renewed is not None
    assert renewed.reveal() == "new"
    assert (await credentials.resolve(ref)).reveal() == "new"
    await renewals.aclose()


async def test_a_change_between_resolve_and_changed_is_not_missed(
    client: ApiClient, namespace: str, credentials: Credentials
) -> None:
    secret = await _create(client, namespace, password="old")
    ref = SecretRef("login", namespace, "password")
    old = await credentials.resolve(ref)
    await _settled(credentials, ref)
    await _set(client, secret, password="new")
    renewals = credentials.changed(ref, since=old)
    assert await anext(renewals) == Redacted("new")
    await renewals.aclose()


async def test_only_changes_of_the_key_count(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    secret = await _create(client, namespace, password="old", other="x")
    ref = SecretRef("login", namespace, "password")
    renewals = credentials.changed(ref, since=await credentials.resolve(ref))
    await _set(client, secret, other="y")
    await _set(client, secret, password="new")
    assert await anext(renewals) == Redacted("new")
    await renewals.aclose()


async def test_a_deleted_secret_is_told_and_so_is_its_return(
    client: ApiClient, namespace: str, credentials: Credentials
) -> None:
    await _create(client, namespace, password="old")
    ref = SecretRef("login", namespace, "password")
    renewals = credentials.changed(ref, since=await credentials.resolve(ref))
    await client.delete(Ref(Secret, "login", namespace))
    assert await anext(renewals) is None
    with pytest.raises(SecretNotFound):
        await credentials.resolve(ref)
    await _create(client, namespace, password="new")
    assert await anext(renewals) == Redacted("new")
    await renewals.aclose()


async def test_many_questions_are_one_watch(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, password=HIDDEN, user="ann")
    for key in ("password", "user", "password"):
        await credentials.resolve(SecretRef("login", namespace, key))
    assert credentials.watched == 1


async def test_a_secret_that_nobody_asks_for_is_no_longer_watched(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()
    await _create(client, namespace, password=HIDDEN)
    ref = SecretRef("login", namespace, "password")
    async with _credentials(client, idle=60, clock=clock) as credentials:
        await credentials.resolve(ref)
        await clock.advance(50)
        await credentials.resolve(ref)
        await clock.advance(50)
        assert credentials.watched == 1
        await clock.advance(11)
        assert credentials.watched == 0
        assert (await credentials.resolve(ref)).reveal() == HIDDEN


async def test_a_secret_that_somebody_waits_for_stays_watched(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()
    secret = await _create(client, namespace, password="old")
    ref = SecretRef("login", namespace, "password")
    async with _credentials(client, idle=60, clock=clock) as credentials:
        renewals = credentials.changed(ref, since=Redacted("old"))
        waiting = asyncio.ensure_future(anext(renewals))
        await _settled(credentials, ref)
        await clock.advance(500)
        assert credentials.watched == 1
        await _set(client, secret, password="new")
        assert await waiting == Redacted("new")
        await renewals.aclose()


async def test_with_a_cached_client_nothing_is_kept(client: ApiClient, namespace: str) -> None:
    secret = await _create(client, namespace, password="old")
    ref = SecretRef("login", namespace, "password")
    async with _credentials(client, cached=True) as credentials:
        await credentials.resolve(ref)
        await _set(client, secret, password="new")
        assert (await credentials.resolve(ref)).reveal() == "new"
        assert credentials.watched == 0


async def test_basic_auth_makes_the_header(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, kind="kubernetes.io/basic-auth", username="ann", password="pw")
    login = await credentials.basic_auth(SecretRef("login", namespace))
    assert login.username == "ann"
    assert login.authorization.reveal() == "Basic YW5uOnB3"


async def test_a_docker_configuration_is_read(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    auth = base64.b64encode(b"ann:p:w").decode()
    document = json.dumps({"auths": {"registry.example.com": {"auth": auth}}})
    await _create(client, namespace, kind="kubernetes.io/dockerconfigjson", __dockerconfigjson=document)
    config = await credentials.docker_config(SecretRef("login", namespace))
    login = config.login_for("registry.example.com")
    assert login is not None
    assert (login.username, login.password) == ("ann", Redacted("p:w"))


async def test_a_client_certificate_is_read(client: ApiClient, namespace: str, credentials: Credentials) -> None:
    await _create(client, namespace, kind="kubernetes.io/tls", tls__crt="cert", tls__key=HIDDEN)
    tls = await credentials.tls(SecretRef("login", namespace))
    assert (tls.certificate, tls.key, tls.ca) == (b"cert", Redacted(HIDDEN), b"")
    assert HIDDEN not in repr(tls)


async def test_a_token_is_read_without_the_line_end_of_its_file(
    client: ApiClient, namespace: str, credentials: Credentials
) -> None:
    await _create(client, namespace, token="t0k\n")
    assert (await credentials.token(SecretRef("login", namespace))).reveal() == "t0k"


async def test_closing_ends_those_who_wait(client: ApiClient, namespace: str) -> None:
    await _create(client, namespace, password="x")
    credentials = Credentials(client)
    ref = SecretRef("login", namespace, "password")
    waiting = asyncio.ensure_future(anext(credentials.changed(ref)))
    await asyncio.sleep(0)
    await _settled(credentials, ref)
    await credentials.close()
    with pytest.raises(RuntimeError, match="closed"):
        await waiting


# When the server does not let us


class Forbidding:
    """A client to whom get is granted, and neither list nor watch."""

    def __init__(self) -> None:
        self.lists = 0

    async def get(self, kind: Any, name: str, namespace: str = "") -> Untyped:
        return Untyped({"metadata": {"name": name}, "data": {"password": base64.b64encode(b"pw").decode()}})

    async def list(self, kind: Any, query: Query = Query()) -> Any:  # noqa: B008
        self.lists += 1
        raise StatusError(403, "Forbidden", "no list for you")


async def test_who_may_only_get_gets() -> None:
    client: Any = Forbidding()
    clock = FakeClock()
    ref = SecretRef("login", "default", "password")
    async with Credentials(client, clock=clock) as credentials:
        for _ in range(20):
            assert (await credentials.resolve(ref)).reveal() == "pw"
            await clock.advance(1)
        assert client.lists == 6
        with pytest.raises(StatusError, match="no list for you"):
            await anext(credentials.changed(ref))
        await clock.advance(31)
        await credentials.resolve(ref)
        await clock.advance(0)
        assert client.lists == 7


# Kinds of credential


@pytest.mark.parametrize("value", ["not base64!", "YQ", "ü", 1234, ["YQ=="]])
def test_what_is_not_base64_is_told_without_showing_it(value: object) -> None:
    ref = SecretRef("login", "default", "password")
    with pytest.raises(Malformed, match=r"key 'password' that is not base64") as raised:
        _values(Untyped({"data": {"password": value}}), ref)
    assert "not base64!" not in str(raised.value)


@pytest.mark.parametrize(
    "document",
    ["", "[]", '{"auths": 1}', '{"auths": {"x": 1}}', '{"auths": {"x": {"auth": "!"}}}', '{"auths": {"x": {"auth": "YQ=="}}}'],
)  # fmt: skip
def test_a_docker_configuration_that_is_none_is_told(document: str) -> None:
    values = {".dockerconfigjson": Redacted(document)}
    with pytest.raises(Malformed, match="no Docker configuration"):
        types.docker_config(values, SecretRef("pull", "default"))


LOGINS = DockerConfig(
    {
        "https://index.docker.io/v1/": RegistryLogin("hub"),
        "registry.example.com": RegistryLogin("plain"),
        "registry.example.com/team": RegistryLogin("team"),
        "https://other.example.com:5000/v2/": RegistryLogin("port"),
        "*.azurecr.io": RegistryLogin("wild"),
        "exact.azurecr.io": RegistryLogin("exact"),
    }
)


@pytest.mark.parametrize(
    ("registry", "path", "username"),
    [
        ("docker.io", "library/nginx", "hub"),
        ("registry-1.docker.io", "", "hub"),
        ("registry.example.com", "", "plain"),
        ("registry.example.com", "teams/app", "plain"),
        ("registry.example.com", "team/app", "team"),
        ("REGISTRY.example.com", "team", "team"),
        ("other.example.com:5000", "", "port"),
        ("other.example.com", "", None),
        ("mine.azurecr.io", "", "wild"),
        ("a.b.azurecr.io", "", None),
        ("azurecr.io", "", None),
        ("exact.azurecr.io", "", "exact"),
        ("evil-registry.example.com", "", None),
    ],
)
def test_the_login_of_a_registry_is_the_closest(registry: str, path: str, username: str | None) -> None:
    login = LOGINS.login_for(registry, path)
    assert (login.username if login else None) == username


# Redacted


def _shows() -> Mapping[str, Any]:
    secret = Redacted(HIDDEN)
    return {
        "repr": repr(secret),
        "str": str(secret),
        "format": f"{secret} {secret!r} {secret!s} {secret:>20}",
        "percent": "%s %r" % (secret, secret),  # noqa: UP031
        "container": repr([{"a": secret}]),
        "struct": repr(RegistryLogin("ann", secret)),
    }


@pytest.mark.parametrize("way", _shows())
def test_a_secret_does_not_show_itself(way: str) -> None:
    text = _shows()[way]
    assert HIDDEN not in text
    assert "[redacted]" in text


@pytest.mark.parametrize(
    "encode", [json.dumps, orjson.dumps, msgspec.json.encode, msgspec.msgpack.encode, pickle.dumps]
)
def test_a_secret_is_not_encoded(encode: Any) -> None:
    with pytest.raises(TypeError) as raised:
        encode(Redacted(HIDDEN))
    assert HIDDEN not in str(raised.value)


def test_a_secret_that_is_no_text_says_so_without_showing_it() -> None:
    secret = Redacted(b"\xff" + HIDDEN.encode())
    with pytest.raises(ValueError, match="not UTF-8") as raised:
        secret.reveal()
    assert raised.value.__cause__ is None
    assert HIDDEN not in str(raised.value)
    assert secret.reveal_bytes() == b"\xff" + HIDDEN.encode()


@given(st.binary(), st.binary())
def test_secrets_are_equal_when_their_values_are(one: bytes, other: bytes) -> None:
    assert (Redacted(one) == Redacted(other)) is (one == other)


def test_a_secret_is_not_equal_to_its_text() -> None:
    assert Redacted("x") != "x"


def test_a_secret_has_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(Redacted("x"))


def test_a_copy_is_the_same_secret() -> None:
    secret = Redacted(HIDDEN)
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_a_log_event_loses_its_secrets() -> None:
    secret = Redacted(HIDDEN)
    event = {"event": "login", "password": secret, "nested": [{"deep": (secret, 1)}], "set": {1}}
    line = structlog.processors.JSONRenderer()(None, "info", redact(None, "info", event))
    assert HIDDEN not in str(line)
    assert json.loads(line)["nested"] == [{"deep": ["[redacted]", 1]}]

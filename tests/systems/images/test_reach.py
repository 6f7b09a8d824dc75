"""From a Registry to a client: which repositories, which platforms, which login, and what is refused before any request."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.systems.images.listing_kit import AMD, lab_registry
from trimtab.client.api import ApiClient
from trimtab.lab import registry_images as made
from trimtab.lab.registry_faults import Answered, FaultProxy
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.credentials import Credentials
from trimtab.systems.images.kinds import Filter, MatchCondition, PlatformFilter, Registry, RegistrySpec
from trimtab.systems.images.reach import (
    InvalidRegistry,
    SecretInvalid,
    SecretNotFound,
    client_of,
    filters_of,
    platforms_of,
    repositories_of,
)
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import NoCatalog, RegistryError, Untrusted
from trimtab.systems.images.registry.manifests import Platform
from trimtab.systems.images.registry.references import endpoint
from trimtab.testing.pki import Authority

PASSWORD = "hunter2-wrong-horse"


def registry(uri: str = "registry.example.com", namespace: str = "team", **spec: Any) -> Registry:
    return Registry(metadata=ObjectMeta(name="main", namespace=namespace), spec=RegistrySpec(uri=uri, **spec))


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    async with Connections() as made_once:
        yield made_once


@pytest.fixture
async def peer(tmp_path: Path, connections: Connections) -> AsyncIterator[tuple[RegistryClient, FaultProxy]]:
    """A registry with app and lib in it."""
    async with lab_registry(tmp_path) as (pusher, proxy):
        for repository in ("app", "lib"):
            await pusher.push(repository, "1", made.image([made.layer({"x": b"y"})]) if repository == "lib" else AMD)
        yield connections.client(endpoint(proxy.host, plain_http=True)), proxy


@pytest.mark.parametrize(
    ("kind", "named", "listed"),
    [
        ("Auto", (), None), ("Auto", ("app", "no"), ["app", "no"]), ("OCIDistribution", (), None),
        ("OCIDistribution", ("lib", "no"), ["lib"]), ("NoCatalog", ("app", "app"), ["app"]),
    ],
)  # fmt: skip
async def test_what_is_listed_follows_from_catalog_type_and_names(
    peer: tuple[RegistryClient, FaultProxy], kind: Any, named: tuple[str, ...], listed: list[str] | None
) -> None:
    assert await repositories_of(registry(catalog_type=kind, repositories=named), peer[0]) == listed


async def test_no_catalogue_and_no_names_is_an_error_without_a_request(
    peer: tuple[RegistryClient, FaultProxy],
) -> None:
    peer[1].clear()
    with pytest.raises(NoCatalog, match=r"spec\.repositories"):
        await repositories_of(registry(catalog_type="NoCatalog"), peer[0])
    assert not peer[1].requests


async def test_a_catalogue_that_is_refused_is_an_error_and_not_an_empty_one(
    peer: tuple[RegistryClient, FaultProxy],
) -> None:
    peer[1].fault("GET", "_catalog", Answered(403), times=9)
    with pytest.raises(NoCatalog):
        await repositories_of(registry(catalog_type="OCIDistribution", repositories=("app",)), peer[0])


async def test_names_of_docker_hub_are_written_in_full(connections: Connections) -> None:
    hub = connections.client(endpoint("docker.io"))
    assert await repositories_of(registry("docker.io", repositories=("nginx", "me/app")), hub) == [
        "library/nginx",
        "me/app",
    ]


async def test_a_name_that_is_no_repository_is_refused(connections: Connections) -> None:
    with pytest.raises(InvalidRegistry, match="is no repository"):
        await repositories_of(registry(repositories=("app:1",)), connections.client(endpoint("x.example")))


def test_a_platform_may_leave_things_open() -> None:
    wanted = (PlatformFilter(architecture="arm64"), PlatformFilter(os="linux", architecture="arm", variant="v7"))
    assert platforms_of(registry(platforms=wanted)) == (Platform("", "arm64"), Platform("linux", "arm", "v7"))


async def refused(
    client: ApiClient, connections: Connections, spec: dict[str, Any], namespace: str = "team"
) -> RegistryError:
    async with Credentials(client) as credentials:
        with pytest.raises(RegistryError) as error:
            await client_of(registry(namespace=namespace, **spec), connections, credentials)
    return error.value


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"uri": "https://alice:hunter2-wrong-horse@registry.example.com"}, InvalidRegistry),
        ({"uri": "http://registry.example.com"}, InvalidRegistry),
        ({"ca_bundle": "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----"}, Untrusted),
        ({"ca_bundle": "é"}, Untrusted),
        ({"auth_secret": "missing"}, SecretNotFound),
    ],
)
async def test_what_cannot_be_used_is_refused_before_any_request(
    client: ApiClient, connections: Connections, spec: dict[str, Any], kind: type[RegistryError]
) -> None:
    error = await refused(client, connections, spec)
    assert type(error) is kind
    assert PASSWORD not in f"{error} {error!r}"


@pytest.mark.parametrize(
    "values",
    [
        {}, {"token": PASSWORD}, {"username": "alice"}, {".dockerconfigjson": PASSWORD},
        {".dockerconfigjson": json.dumps({"auths": {"x": {"auth": PASSWORD}}})},
    ],
)  # fmt: skip
async def test_a_secret_without_a_login_is_refused_and_not_shown(
    client: ApiClient, namespace: str, connections: Connections, values: dict[str, str]
) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    await client.create(Secret(metadata=ObjectMeta(name="login", namespace=namespace), data=data))
    error = await refused(client, connections, {"auth_secret": "login"}, namespace)
    assert type(error) is SecretInvalid
    assert f"{namespace}/login" in str(error)
    assert PASSWORD not in f"{error} {error!r}"


@pytest.mark.parametrize(
    ("keys", "there"), [(["user", "pass"], "it has pass, user"), (["password"], "it has password"), ([], "it is empty")]
)
async def test_a_secret_with_other_keys_says_which_ones_would_do(
    client: ApiClient, namespace: str, connections: Connections, keys: list[str], there: str
) -> None:
    data = {key: base64.b64encode(PASSWORD.encode()).decode() for key in keys}
    await client.create(Secret(metadata=ObjectMeta(name="login", namespace=namespace), data=data))
    error = await refused(client, connections, {"auth_secret": "login"}, namespace)
    assert "username and password" in str(error)
    assert ".dockerconfigjson" in str(error)
    assert there in str(error)
    assert PASSWORD not in str(error)


async def test_a_good_bundle_is_taken(client: ApiClient, connections: Connections, tmp_path: Path) -> None:
    bundle = f"# Főtanúsítvány\n{Authority(tmp_path).certificate.read_text()}"
    async with Credentials(client) as credentials:
        reached = await client_of(registry("registry.example.com:5000", ca_bundle=bundle), connections, credentials)
    assert reached.registry.name == "registry.example.com:5000"


def test_a_filter_names_a_repository_as_the_registry_does() -> None:
    condition = MatchCondition(name="any", expression="true")
    filters = tuple(
        Filter(repository=name, match_conditions=(condition,)) for name in ("nginx", "team/app", "*", "team/*")
    )
    names = [
        [
            each.repository
            for each in filters_of(Registry(metadata=ObjectMeta(name="r"), spec=RegistrySpec(uri=uri, filters=filters)))
        ]
        for uri in ("docker.io", "registry.example.com")
    ]
    assert names == [["library/nginx", "team/app", "*", "team/*"], ["nginx", "team/app", "*", "team/*"]]

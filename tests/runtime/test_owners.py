"""Children belong to one incarnation of one owner, and are never stolen."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Preconditions, Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace, Secret
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.owners import (
    CrossNamespace,
    NotOurs,
    controller_of,
    create_or_adopt,
    own,
    owned_by,
    owner_reference,
)


def made(name: str = "owner", namespace: str = "n", uid: str = "1") -> ConfigMap:
    """As it comes from the API."""
    return ConfigMap(api_version="v1", kind="ConfigMap", metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


def child(namespace: str = "n", name: str = "child") -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace))


def test_a_reference_names_the_owner_by_uid() -> None:
    reference = owner_reference(made())
    assert reference == OwnerReference(
        api_version="v1", kind="ConfigMap", name="owner", uid="1", controller=True, block_owner_deletion=True
    )


def test_the_scheme_tells_the_kind_of_an_object_that_does_not(scheme: Scheme) -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="owner", uid="1"))
    assert owner_reference(owner, scheme).kind == "ConfigMap"


def test_an_owner_without_a_uid_is_refused(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match="must come from the API"):
        owner_reference(ConfigMap(metadata=ObjectMeta(name="owner")), scheme)


def test_owning_keeps_other_owners_and_is_idempotent() -> None:
    other = owner_reference(made("other", uid="2"), controller=False)
    first = own(Secret(metadata=ObjectMeta(name="c", namespace="n", owner_references=(other,))), made())
    assert first.metadata.owner_references == (other, owner_reference(made()))
    assert own(first, made()) == first
    assert controller_of(first) == owner_reference(made())
    assert owned_by(first, made("other", uid="2"))


def test_an_untyped_child_can_be_owned() -> None:
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "namespace": "n"}}
    owned = own(Untyped(document), made())
    assert controller_of(owned) == owner_reference(made())
    assert owned.raw["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    assert "ownerReferences" not in document["metadata"]


def test_a_former_incarnation_of_the_owner_is_not_the_owner() -> None:
    owned = own(child(), made(uid="1"))
    assert not owned_by(owned, made(uid="2"))
    with pytest.raises(NotOurs):
        own(owned, made(uid="2"))


@pytest.mark.parametrize("where", ["elsewhere", ""])
def test_a_namespaced_owner_owns_nothing_outside_its_namespace(where: str) -> None:
    with pytest.raises(CrossNamespace):
        own(child(namespace=where), made())


def test_an_owner_of_the_whole_cluster_owns_in_any_namespace() -> None:
    owner = Namespace(api_version="v1", kind="Namespace", metadata=ObjectMeta(name="n", uid="1"))
    assert owned_by(own(child(), owner), owner)


@pytest.fixture
async def owner(client: ApiClient, namespace: str) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace=namespace)))


async def test_a_child_is_created_once(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    first = await create_or_adopt(client, child(namespace), owner)
    again = await create_or_adopt(client, child(namespace), owner)
    assert owned_by(first, owner)
    assert again.metadata.uid == first.metadata.uid
    assert again.metadata.resource_version == first.metadata.resource_version


async def test_what_nobody_owns_is_left_alone_unless_adoption_is_allowed(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    there = await client.create(child(namespace))
    with pytest.raises(NotOurs) as refused:
        await create_or_adopt(client, child(namespace), owner)
    assert refused.value.holder is None
    adopted = await create_or_adopt(client, child(namespace), owner, adopt=True)
    assert adopted.metadata.uid == there.metadata.uid
    assert owned_by(adopted, owner)


async def test_what_another_controls_is_never_adopted(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    other = await client.create(ConfigMap(metadata=ObjectMeta(name="other", namespace=namespace)))
    await create_or_adopt(client, child(namespace), other)
    with pytest.raises(NotOurs) as refused:
        await create_or_adopt(client, child(namespace), owner, adopt=True)
    assert refused.value.holder == owner_reference(other)


async def test_an_owner_that_is_gone_adopts_nothing(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await client.create(child(namespace))
    await client.delete(Ref(ConfigMap, "owner", namespace), preconditions=Preconditions(uid=str(owner.metadata.uid)))
    await client.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace=namespace)))
    with pytest.raises(NotOurs, match="gone"):
        await create_or_adopt(client, child(namespace), owner, adopt=True)


class Meddling:
    """A client before whose patches someone else writes, a few times."""

    def __init__(self, client: ApiClient, times: int) -> None:
        self._client = client
        self.times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, old: Any, new: Any, **options: Any) -> Any:
        if self.times:
            self.times -= 1
            now = await self._client.get(Secret, old.name, old.namespace)
            await self._client.patch(now, now.replace(data={"n": f"AAA{self.times % 10}"}))
        return await self._client.patch(old, new, **options)


async def test_an_adoption_survives_writes_of_others(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await client.create(child(namespace))
    meddling: Any = Meddling(client, 2)
    adopted = await create_or_adopt(meddling, child(namespace), owner, adopt=True)
    assert owned_by(adopted, owner)
    assert adopted.data == {"n": "AAA0"}


async def test_an_adoption_that_never_gets_through_is_raised(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await client.create(child(namespace))
    meddling: Any = Meddling(client, 100)
    with pytest.raises(StatusError) as refused:
        await create_or_adopt(meddling, child(namespace), owner, adopt=True)
    assert refused.value.reason == "Conflict"


class Vanishing:
    """A client for which the object is gone when it is first read."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.vanished = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        if not self.vanished:
            self.vanished = True
            await self._client.delete(Ref(kind, name, namespace))
        return await self._client.get(kind, name, namespace)


async def test_a_child_that_goes_while_we_look_is_created(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    there = await client.create(child(namespace))
    vanishing: Any = Vanishing(client)
    fresh = await create_or_adopt(vanishing, child(namespace), owner)
    assert owned_by(fresh, owner)
    assert fresh.metadata.uid != there.metadata.uid

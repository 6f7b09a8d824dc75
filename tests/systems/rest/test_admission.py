"""Admission of generated kinds in both homes: our server calls the function itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import HOMES, scheme
from tests.systems.rest.admission_kit import (
    GROUP,
    MACHINE,
    SERVICE,
    an_object,
    changed,
    forget,
    judging,
    made,
    said,
    store,
)
from tests.systems.rest.generating_kit import BODY
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.client.transport import Call
from trimtab.model.errors import FieldError, FieldProblem, StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.rest.hooks import HookContext, Hooks
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.model import FieldClass, Model, Node, Parameter
from trimtab.systems.rest.validating import judged as judge

__all__ = ["scheme"]

THERE = {"resourceID": "/groups/east/machines/web", "sync": {"created": True}}


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    """A client of a server that asks us."""
    cluster = None if request.param == "local" else request.getfixturevalue("real_cluster").kubeconfig
    async with judging(scheme, cluster) as client:
        yield client


@pytest.fixture
async def namespace(judged: ApiClient) -> AsyncIterator[str]:
    name = f"judged-{uuid.uuid4().hex[:12]}"
    await judged.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    yield name
    for found in (await judged.list(MACHINE)).items:
        await judged.delete(Ref(MACHINE, found.name, found.namespace))


async def existing(client: ApiClient, namespace: str, **spec: Any) -> None:
    """An object whose resource is there."""
    now = (await client.create(an_object("web", namespace, **spec))).raw
    await client.patch(Untyped(now), Untyped({**now, "status": THERE}), subresource="status")


def with_capacity(field: FieldClass) -> Model:
    """The kind with another class of what is scaled."""
    sku = BODY["sku"]
    capacity = msgspec.structs.replace(sku.properties["capacity"], field=field)
    fields = {**sku.properties, "capacity": capacity}
    body = {**BODY, "sku": msgspec.structs.replace(sku, properties=fields)}
    return made(spec=Node(type="object", properties=body, required=("sku",)))


async def scaled(client: ApiClient, namespace: str, replicas: int) -> str:
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/machines/web/scale"
    body = msgspec.json.encode({"spec": {"replicas": replicas}})
    call = Call(method="PATCH", path=path, body=body, content_type="application/merge-patch+json")
    try:
        await client.transport.call(call)
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


async def test_a_good_object_is_taken(judged: ApiClient, namespace: str) -> None:
    assert await said(judged, an_object("web", namespace, tags={"team": "blue"}, location="east")) == ""


async def test_all_that_is_wrong_is_said_at_once(judged: ApiClient, namespace: str) -> None:
    text = await said(judged, an_object("web", namespace, sku={"tier": "Small", "capcity": 1}, id="x", nope=1))
    assert text.startswith("422")
    assert 'spec.sku.capcity: Forbidden: unknown field; did you mean "capacity"?' in text
    assert "spec.id: Forbidden: is read-only (built-in)" in text
    assert "spec.nope: Forbidden: unknown field" in text


PLAIN = "is a secret: give {secretRef: {name: …, key: …}}, a key of a Secret in the same namespace"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"password": "hunter2"}, f"spec.password: Forbidden: {PLAIN}"),
        ({"password": ["hunter2"]}, f"spec.password: Forbidden: {PLAIN}"),
        ({"keys": {"one": "hunter2"}}, f"spec.keys.one: Forbidden: {PLAIN}"),
        ({"password": {"value": "hunter2"}}, "spec.password.value: Forbidden: unknown field; there are secretRef"),
        ({"password": {"secretRef": "hunter2"}}, "spec.password.secretRef: "),
        ({"password": {"secretRef": {"name": "web", "key": ["hunter2"]}}}, "spec.password.secretRef.key: "),
        ({"password": {"secretRef": {"name": "web"}}}, "spec.password.secretRef.key: Required value"),
        ({"password": "hunter2", "sku": {"capacity": 1}}, "spec.sku.tier"),
        ({"password": "hunter2", "code": "NO", "sku": {}}, "spec.code"),
    ],
)
async def test_a_plain_secret_is_refused_with_what_is_right_and_without_an_echo(
    judged: ApiClient, namespace: str, spec: dict[str, Any], expected: str
) -> None:
    text = await said(judged, an_object("web", namespace, **spec))
    assert text.startswith("422")
    assert expected in text
    assert "hunter2" not in text


async def test_nor_is_it_echoed_when_an_object_is_changed(judged: ApiClient, namespace: str) -> None:
    await judged.create(an_object("web", namespace))
    text = await changed(judged, "web", namespace, {"password": "hunter2"})
    assert text.startswith("422")
    assert f"spec.password: Forbidden: {PLAIN}" in text
    assert "hunter2" not in text


async def test_a_create_only_field_may_not_change_once_the_resource_exists(judged: ApiClient, namespace: str) -> None:
    await existing(judged, namespace, location="east")
    text = await changed(judged, "web", namespace, {"location": "west"})
    assert text.startswith("422")
    assert "spec.location: Forbidden: is create-only and may not change: the resource exists" in text
    assert await changed(judged, "web", namespace, {"location": "west", "policy": {"createOnly": "recreate"}}) == ""


async def test_before_that_it_may(judged: ApiClient, namespace: str) -> None:
    await judged.create(an_object("web", namespace, location="east"))
    assert await changed(judged, "web", namespace, {"location": "west"}) == ""


async def test_an_id_may_be_given_until_the_resource_exists(judged: ApiClient, namespace: str) -> None:
    given = {"resourceID": "/groups/east/machines/web"}
    await judged.create(an_object("new", namespace))
    assert await changed(judged, "new", namespace, given) == ""
    await existing(judged, namespace)
    text = await changed(judged, "web", namespace, given)
    assert "spec.resourceID: Forbidden: may not change once the resource exists" in text


async def test_an_id_outside_of_what_the_service_manages_is_refused(judged: ApiClient, namespace: str) -> None:
    await store(judged, made(parameters=(Parameter(name="group", source="service"), *made().parameters[1:])))
    spec = {
        "endpoint": "http://127.0.0.1:1",
        "document": {"url": "http://127.0.0.1:1/a"},
        "parameters": {"group": "east"},
    }
    service = {
        "apiVersion": "rest.trimtab.dev/v1alpha1",
        "kind": "RestService",
        "metadata": {"name": SERVICE},
        "spec": spec,
    }
    await judged.create(Untyped(service))
    try:
        for group, refused in (("east", False), ("west", True)):
            given = an_object("web", namespace, parameters={}, resourceID=f"/groups/{group}/machines/web")
            text = await said(judged, given)
            assert ("spec.resourceID: Invalid value" in text and "this service manages group east" in text) is refused
    finally:
        await judged.delete(Ref(RestService, SERVICE))
        await store(judged, made())


async def test_a_kind_without_a_model_is_not_ready(judged: ApiClient, namespace: str) -> None:
    await judged.create(an_object("web", namespace))
    await forget(judged)
    text = await said(judged, an_object("other", namespace))
    assert text.startswith("503")
    assert "the kind is not ready: no RestDefinition makes machines of the service judged" in text
    assert await changed(judged, "web", namespace, {}, annotations={"a": "b"}) == ""


async def test_an_object_from_before_a_rule_keeps_its_spec_and_takes_metadata(
    judged: ApiClient, namespace: str
) -> None:
    await judged.create(an_object("web", namespace, code="abc"))
    await store(judged, made(spec=Node(type="object", properties={"sku": BODY["sku"], "tags": BODY["tags"]})))
    assert await changed(judged, "web", namespace, {}, annotations={"a": "b"}) == ""
    text = await changed(judged, "web", namespace, {"tags": {"a": "b"}})
    assert "spec.code: Forbidden: unknown field" in text


async def test_an_object_that_goes_is_left_alone(judged: ApiClient, namespace: str) -> None:
    await judged.create(an_object("web", namespace))
    assert await changed(judged, "web", namespace, {}, finalizers=["rest.trimtab.dev/resource"]) == ""
    await judged.delete(Ref(MACHINE, "web", namespace))
    await forget(judged)
    assert await changed(judged, "web", namespace, {"policy": {"deletion": "detach"}}) == ""
    assert await changed(judged, "web", namespace, {}, finalizers=[]) == ""


async def test_a_scale_of_a_writable_field_is_taken(judged: ApiClient, namespace: str) -> None:
    await existing(judged, namespace)
    assert await scaled(judged, namespace, 3) == ""
    assert (await judged.get(MACHINE, "web", namespace)).raw["spec"]["sku"]["capacity"] == 3


async def test_a_scale_of_a_create_only_field_is_refused_with_its_path(judged: ApiClient, namespace: str) -> None:
    await store(judged, with_capacity(FieldClass.CREATE_ONLY))
    await existing(judged, namespace, sku={"tier": "Small", "capacity": 2})
    text = await scaled(judged, namespace, 3)
    assert text.startswith("422")
    assert "spec.sku.capacity: Forbidden: is create-only and may not change" in text
    assert await scaled(judged, namespace, 2) == ""


async def test_a_scale_of_a_field_that_nobody_may_write_is_refused(judged: ApiClient, namespace: str) -> None:
    await store(judged, with_capacity(FieldClass.READ_ONLY))
    await existing(judged, namespace)
    assert "spec.sku.capacity: Forbidden: is read-only" in await scaled(judged, namespace, 3)


# Hooks have the last word.


class Small:
    """A hook that fills a field, and forbids another."""

    async def default(self, ctx: HookContext, spec: dict[str, Any], following: Any) -> Any:
        return {"sku": {"tier": "Small"}, **await following(spec)}

    async def validate(self, ctx: HookContext, old: Any, new: dict[str, Any], following: Any) -> list[FieldError]:
        errors: list[FieldError] = await following(old, new)
        if new.get("code") == "bad":
            errors.append(FieldError("spec.code", FieldProblem.INVALID, "bad", "not here"))
        return errors


async def test_what_a_hook_fills_counts_as_given() -> None:
    bare = Untyped({"metadata": {"name": "web"}, "spec": {"parameters": {"group": "east"}}})
    assert [error.path for error in (await judge(made(), Hooks(), bare)).errors] == ["spec.sku"]
    assert (await judge(made(), Hooks([Small()]), bare)).errors == ()


async def test_a_hook_adds_rules_of_its_own_to_ours() -> None:
    found = await judge(made(), Hooks([Small()]), an_object("web", "default", code="bad", nope=1))
    assert [error.path for error in found.errors] == ["spec.nope", "spec.code"]


async def test_a_definition_that_names_a_hook_which_is_not_there_is_not_ready(
    scheme: Scheme,
) -> None:
    async with judging(scheme, None) as client:
        model = made()
        overlay = msgspec.structs.replace(model.overlay, hooks=("none-such",))
        await store(client, msgspec.structs.replace(model, overlay=overlay))
        assert "no hook none-such is installed" in await said(client, an_object("web", "default"))


async def test_a_model_that_is_damaged_is_told_and_not_trusted(scheme: Scheme) -> None:
    from trimtab.model.kubernetes import ConfigMap
    from trimtab.model.objectmeta import ObjectMeta
    from trimtab.runtime.apply import apply
    from trimtab.runtime.system import NAMESPACE
    from trimtab.systems.rest.models import KEY

    async with judging(scheme, None) as client:
        metadata = ObjectMeta(name=f"rest-machines.{GROUP}", namespace=NAMESPACE)
        await apply(client, ConfigMap(metadata=metadata, binary_data={KEY: "AAAA"}), manager="test", force=True)
        with pytest.raises(StatusError, match="is damaged"):
            await client.create(an_object("web", "default"))

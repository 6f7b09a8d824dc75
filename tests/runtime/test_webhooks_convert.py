"""Conversion between versions of a custom resource, as a review and on a real kube-apiserver."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.model.test_conversion import berth, berths
from tests.runtime.webhooks_gadgets import serving
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Ref
from trimtab.model.conversion import ConversionFailed
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.webhooks.convert import Conversion, conversions_of, converted
from trimtab.runtime.webhooks.manifest import conversion
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.runtime.webhooks.review import BadReview

Document = dict[str, Any]


class FlatSpec(Spec):
    size: int


class Flat(Resource, group="shapes", version="v1", kind="Shape", plural="shapes"):
    spec: FlatSpec


class Box(Spec):
    size: int


class BoxedSpec(Spec):
    box: Box


class Boxed(Resource, group="shapes", version="v2", kind="Shape", plural="shapes"):
    spec: BoxedSpec


def boxed(document: Document, version: str) -> Document:
    size = document["spec"]["size"] if version == "v2" else document["spec"]["box"]["size"]
    if size == 13:
        raise ConversionFailed("13 fits in no box")
    document["metadata"] = {"name": "changed", "labels": {"converted": "yes"}}
    return {**document, "spec": {"box": {"size": size}} if version == "v2" else {"size": size}}


CONVERSIONS = (Conversion(Flat, boxed),)
TABLE = conversions_of(CONVERSIONS, Scheme())


def shape(name: str, **spec: Any) -> Document:
    metadata = {"name": name, "uid": "u", "labels": {"old": "yes"}}
    return {"apiVersion": "shapes.trimtab.dev/v1", "kind": "Shape", "metadata": metadata, "spec": spec}


def asked(*objects: Any, desired: str = "shapes.trimtab.dev/v2", **changes: Any) -> bytes:
    request = {"uid": "r", "desiredAPIVersion": desired, "objects": objects}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    return json.dumps(review | changes).encode()


def answered(*objects: Any, **options: Any) -> Any:
    review = json.loads(converted(TABLE, asked(*objects, **options)))
    assert (review["apiVersion"], review["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    return review["response"]


def test_objects_come_back_in_their_order_and_in_the_version_wanted() -> None:
    response = answered(shape("a", size=1), shape("b", size=2))
    assert (response["uid"], response["result"]) == ("r", {"status": "Success"})
    made = response["convertedObjects"]
    assert [(one["apiVersion"], one["spec"]) for one in made] == [
        ("shapes.trimtab.dev/v2", {"box": {"size": 1}}),
        ("shapes.trimtab.dev/v2", {"box": {"size": 2}}),
    ]


def test_of_the_metadata_only_labels_and_annotations_may_change() -> None:
    [made] = answered(shape("a", size=1))["convertedObjects"]
    assert made["metadata"] == {"name": "a", "uid": "u", "labels": {"converted": "yes"}}


def test_what_is_in_the_version_wanted_stays_as_it_is() -> None:
    document = shape("a", size=13)
    assert answered(document, desired="shapes.trimtab.dev/v1")["convertedObjects"] == [document]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (shape("a", size=13), "13 fits in no box"),
        (shape("a"), "the conversion of Shape from shapes.trimtab.dev/v1 to shapes.trimtab.dev/v2 failed"),
        (shape("a") | {"kind": "Other"}, "Other of shapes.trimtab.dev/v1 cannot be converted to shapes.trimtab.dev/v2"),
        (shape("a") | {"metadata": None}, "an object of shapes.trimtab.dev/v1 has no metadata"),
        (shape("a") | {"apiVersion": "x/v1"}, "Shape of x/v1 cannot be converted to shapes.trimtab.dev/v2"),
    ],
)
def test_one_object_that_cannot_be_converted_fails_them_all_and_says_why(document: Document, why: str) -> None:
    assert answered(shape("good", size=1), document) == {"uid": "r", "result": {"status": "Failure", "message": why}}


@pytest.mark.parametrize("body", [b"", b"[]", asked(kind="AdmissionReview"), asked(apiVersion="v1"), asked(1)])
def test_what_is_no_review_cannot_be_answered(body: bytes) -> None:
    with pytest.raises(BadReview):
        converted(TABLE, body)


@pytest.mark.cluster
@pytest.mark.parametrize("client", ["kubernetes"], indirect=True)
async def test_an_api_server_shows_each_version_by_our_conversion(
    client: ApiClient, scheme: Scheme, namespace: str
) -> None:
    for kind in (Flat, Boxed):
        scheme.register(kind)
    definition = crd((Flat, Boxed), scheme=scheme)
    name = definition["metadata"]["name"]
    functions = serving(
        client, namespace, (), ClientReader(client), definitions=(name,), conversions=CONVERSIONS, scheme=scheme
    )
    async with functions as (url, certificates):
        definition["spec"]["conversion"] = conversion(url)
        await client.create(Untyped(definition))
        await certificates.refresh()
        made = await created(client, Untyped(shape("a", size=1) | {"metadata": {"name": "a", "namespace": namespace}}))
        assert made.raw["spec"] == {"size": 1}
        seen = await shown(client, "a", namespace)
        assert seen.spec.box.size == 1
        await created(client, Untyped(shape("b", size=13) | {"metadata": {"name": "b", "namespace": namespace}}))
        with pytest.raises(StatusError, match="13 fits in no box"):
            await client.get(Boxed, "b", namespace)
        await client.delete(Ref(Named("apiextensions.k8s.io/v1", "CustomResourceDefinition"), name))


async def created(client: ApiClient, obj: Untyped) -> Any:
    """As soon as the kind is served. The real server may still hold the kind as it was before its definition changed,
    and says then that it shuts down."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await client.create(obj)
            except StatusError as error:
                if error.code != 404 and "shutting down" not in error.message:
                    raise
            await asyncio.sleep(0.05)


async def shown(client: ApiClient, name: str, namespace: str) -> Any:
    """As soon as the API server trusts the converter."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await client.get(Boxed, name, namespace)
            except StatusError as error:
                if error.code not in (404, 500):
                    raise
            await asyncio.sleep(0.05)


def test_convertors_of_the_scheme_are_served_too() -> None:
    table = conversions_of((), berths())
    review = converted(table, asked(berth("v1", size="2x3"), desired="ports.trimtab.dev/v3"))
    assert json.loads(review)["response"]["convertedObjects"] == [berth("v3", sides=[2, 3], note="none")]
    refused = json.loads(converted(table, asked(berth("v1", size="2"), desired="ports.trimtab.dev/v2")))
    assert refused["response"]["result"] == {"status": "Failure", "message": "spec.size: 2 is no area"}

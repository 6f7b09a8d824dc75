"""OpenAPI documents say what a real server's say."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import Annotated, Any
from urllib.parse import urlsplit

import pytest
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.crd import crd
from trimtab.model.duration import Duration
from trimtab.model.kind import Kind, Scale
from trimtab.model.markers import Immutable, Keyed
from trimtab.model.openapi import definition_name, document
from trimtab.model.resource import Resource, Spec
from trimtab.model.schema import Schema
from trimtab.model.scheme import Scheme
from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access


class Berth(Spec):
    name: str
    length: Annotated[int, Meta(ge=1)] = 10


class HarbourSpec(Spec):
    """Where ships lie."""

    berths: Annotated[tuple[Berth, ...], Keyed("name")] = ()
    country: Annotated[str, Immutable()]
    period: Duration = Duration("1h")
    replicas: int | UnsetType = UNSET
    extra: dict[str, Any] | UnsetType = UNSET


class HarbourStatus(Spec):
    replicas: int | UnsetType = UNSET


class Harbour(
    Resource,
    group="ports",
    version="v1beta1",
    scale=Scale(".spec.replicas", ".status.replicas"),
    selectable=(".spec.country",),
):
    """A harbour."""

    spec: HarbourSpec
    status: HarbourStatus | UnsetType = UNSET


class Ocean(Resource, group="ports", version="v1beta1", namespaced=False):
    depth: int


KINDS = [Scheme().kind_of(Harbour), Scheme().kind_of(Ocean)]
MADE = document(KINDS)
ROOT = "/apis/ports.trimtab.dev/v1beta1"


def test_schemas_are_named_by_the_reversed_group() -> None:
    assert definition_name(KINDS[0]) == "dev.trimtab.ports.v1beta1.Harbour"
    assert {"dev.trimtab.ports.v1beta1.Harbour", "dev.trimtab.ports.v1beta1.HarbourList"} <= set(
        MADE["components"]["schemas"]
    )


def test_every_reference_leads_to_a_schema() -> None:
    text = json.dumps(MADE)
    referred = {piece.split('"')[0] for piece in text.split('"#/components/schemas/')[1:]}
    assert referred <= set(MADE["components"]["schemas"])


def test_a_cluster_scoped_kind_has_no_namespace_in_its_paths() -> None:
    assert [path for path in MADE["paths"] if "ocean" in path] == [f"{ROOT}/oceans", f"{ROOT}/oceans/{{name}}"]
    assert MADE["paths"][f"{ROOT}/oceans"]["get"]["operationId"] == "listPortsTrimtabDevV1beta1Ocean"


def test_a_patch_tells_kubectl_that_fields_are_validated() -> None:
    patch = MADE["paths"][f"{ROOT}/oceans/{{name}}"]["patch"]
    assert [p["name"] for p in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "ports.trimtab.dev",
        "version": "v1beta1",
        "kind": "Ocean",
    }


def test_a_built_in_kind_brings_its_definitions_and_their_prose() -> None:
    definitions: dict[str, Any] = {
        "io.k8s.api.core.v1.Cup": {
            "type": "object",
            "properties": {"handle": {"$ref": "#/definitions/io.k8s.api.core.v1.Handle"}, "size": {"type": "string"}},
        },
        "io.k8s.api.core.v1.Handle": {"type": "object"},
    }
    schema = Schema(lambda: definitions["io.k8s.api.core.v1.Cup"], native=True, definitions=definitions)
    cup = Kind(group="", version="v1", kind="Cup", plural="cups", schema=schema)
    made = document(
        [cup], prose={"io.k8s.api.core.v1.Cup": {"description": "A cup.", "fields": {"handle": "To hold."}}}
    )
    assert made["components"]["schemas"]["io.k8s.api.core.v1.Cup"] == {
        "type": "object",
        "description": "A cup.",
        "properties": {
            "handle": {
                "description": "To hold.",
                "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Handle"}],
            },
            "size": {"type": "string"},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Cup"}],
    }
    assert "io.k8s.api.core.v1.Handle" in made["components"]["schemas"]
    assert made["paths"]["/api/v1/cups"]["get"]["operationId"] == "listCoreV1CupForAllNamespaces"
    assert (
        "application/strategic-merge-patch+json"
        in made["paths"]["/api/v1/namespaces/{namespace}/cups/{name}"]["patch"]["requestBody"]["content"]
    )


def without_prose(value: Any) -> Any:
    """Descriptions are ours; DeleteOptions of the real server belong to every group it has."""
    if isinstance(value, list):
        return [without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    if any(gvk.get("kind") == "DeleteOptions" for gvk in _listed(value)):
        value = {name: inner for name, inner in value.items() if name != "x-kubernetes-group-version-kind"}
    return {
        name: without_prose(inner)
        for name, inner in value.items()
        if not (name == "description" and isinstance(inner, str))
    }


def _listed(value: dict[str, Any]) -> list[dict[str, str]]:
    found = value.get("x-kubernetes-group-version-kind")
    return found if isinstance(found, list) else []


@pytest.mark.cluster
def test_the_document_is_that_of_a_real_server_but_for_its_prose(real_cluster: RealCluster) -> None:
    context = read_access(real_cluster.kubeconfig).tls()

    def asked(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        host = urlsplit(real_cluster.url).netloc
        with contextlib.closing(http.client.HTTPSConnection(host, context=context, timeout=30)) as connection:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else text

    assert asked("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(Harbour))[0] == 201
    real: Any = {}
    while "dev.trimtab.ports.v1beta1.Harbour" not in real.get("components", {}).get("schemas", {}):
        code, answer = asked("GET", f"/openapi/v3{ROOT}")  # published soon after; the test's own time-out ends it
        real = answer if code == 200 else {}
    assert without_prose(document(KINDS[:1])) == without_prose(real)

"""What is said about a RestService and a RestDefinition before they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import HOMES, scheme
from tests.systems.rest.admission_kit import judging, said
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.document import convert
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.rest.compiling.proposing import proposals
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.validating.definitions import definition_problems, rivals
from trimtab.systems.rest.validating.services import service_problems, service_warnings

__all__ = ["scheme"]

ROOT = Path(__file__).parents[3]
DOCUMENTS = ROOT.parent / "shared" / "data" / "openapi"
VERSION = "rest.trimtab.dev/v1alpha1"
PETS = "/pets/{petId}"


def service(name: str = "pets", **spec: Any) -> Untyped:
    given = {"endpoint": "https://pets.example.com/v1", "document": {"url": "https://pets.example.com/openapi.json"}}
    return Untyped(
        {"apiVersion": VERSION, "kind": "RestService", "metadata": {"name": name}, "spec": {**given, **spec}}
    )


def definition(name: str = "pets", **spec: Any) -> Untyped:
    given = {
        "serviceRef": "pets",
        "names": {"kind": "Pet", "plural": "pets"},
        "operations": {
            "create": {"method": "POST", "path": "/pets"},
            "read": {"method": "GET", "path": PETS},
            "delete": {"method": "DELETE", "path": PETS},
        },
    }
    return Untyped(
        {"apiVersion": VERSION, "kind": "RestDefinition", "metadata": {"name": name}, "spec": {**given, **spec}}
    )


def of_service(**spec: Any) -> list[str]:
    return [str(error) for error in service_problems(convert(service(**spec).raw, RestService))]


def of_definition(**spec: Any) -> list[str]:
    found = definition_problems(convert(definition(**spec).raw, RestDefinition), "rest.trimtab.dev")
    return [str(error) for error in found]


def operations(**more: Any) -> dict[str, Any]:
    given = definition().raw["spec"]["operations"]
    return {"operations": {**given, **more}}


def overlay(**spec: Any) -> dict[str, Any]:
    return {"overlay": spec}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"endpoint": "http://127.0.0.1:8081/api/v1"},
        {"endpoint": "unix:///run/lxd.socket"},
        {"document": {"inline": "openapi: 3.0.0\ninfo: {title: a, version: '1'}\npaths: {}\n"}},
        {"document": {"configMap": {"name": "docs", "namespace": "default"}}},
        {"credentials": {"type": "azure"}},
        {"credentials": {"type": "apiKey", "secretRef": {"name": "key"}, "header": "X-API-Key", "prefix": "Token "}},
        {"pollHosts": ["poll.example.com", "*.example.com", "poll.example.com:8443", "[::1]:443"]},
        {"headers": {"X-Team": "blue"}},
    ],
)
def test_a_good_service_has_no_problems(spec: dict[str, Any]) -> None:
    assert of_service(**spec) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"endpoint": "ftp://pets.example.com"}, "spec.endpoint: Invalid value"),
        ({"endpoint": "https://"}, "spec.endpoint: Invalid value"),
        ({"endpoint": "https://[::1"}, "spec.endpoint: Invalid value"),
        ({"endpoint": "unix://run/lxd.socket"}, "the absolute path of a socket"),
        ({"endpoint": "https://pets.example.com?a=b"}, "neither a user nor a query"),
        ({"document": {"url": "file:///etc/passwd"}}, "spec.document.url: Invalid value"),
        ({"document": {"inline": "{"}}, "spec.document.inline: Forbidden: is not JSON: line 1"),
        ({"document": {}}, "spec.document: Required value: give exactly one of inline, url and configMap"),
        ({"document": {"url": "https://a/b", "inline": "a: b"}}, "spec.document: Forbidden: give exactly one"),
        ({"document": {"configMap": {"name": "A b", "namespace": "default"}}}, "spec.document.configMap.name: Invalid"),
        ({"credentials": {"type": "bearer"}}, "spec.credentials.secretRef: Required value"),
        ({"credentials": {"type": "mtls"}}, "come from a Secret with tls.crt and tls.key"),
        ({"credentials": {"type": "bearer", "secretRef": {"name": "A"}}}, "spec.credentials.secretRef.name: Invalid"),
        ({"credentials": {"type": "apiKey", "secretRef": {"name": "a"}, "header": "X Key"}}, "spec.credentials.header"),
        ({"credentials": {"type": "apiKey", "secretRef": {"name": "a"}, "header": "Host"}}, "spec.credentials.header"),
        (
            {"credentials": {"type": "apiKey", "secretRef": {"name": "a"}, "header": "X-Key", "query": "key"}},
            "the key goes into a header or into the query",
        ),
        ({"credentials": {"type": "none", "prefix": "Token "}}, "spec.credentials.prefix: Forbidden"),
        ({"pollHosts": ["https://poll.example.com"]}, "spec.pollHosts[0]: Invalid value"),
        ({"pollHosts": ["poll.example.com/path"]}, "spec.pollHosts[0]: Invalid value"),
        ({"headers": {"Authorization": "Bearer hunter2"}}, "spec.headers.Authorization: Forbidden: is a credential"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "spec.headers.X-A: Forbidden: must be printable"),
        ({"notifications": {"tokenSecret": {"name": "a"}}}, "spec.notifications.tokenSecret.namespace: Required value"),
    ],
)
def test_what_is_wrong_with_a_service_is_said(spec: dict[str, Any], expected: str) -> None:
    found = of_service(**spec)
    assert len([text for text in found if expected in text]) == 1, found


@pytest.mark.parametrize(
    "spec",
    [
        {"endpoint": "https://root:hunter2@pets.example.com"},
        {"endpoint": "ftp://root:hunter2@pets.example.com"},
        {"document": {"url": "https://root:hunter2@pets.example.com/a"}},
        {"document": {"url": "ftp://root:hunter2@pets.example.com/a"}},
        {"headers": {"Authorization": "hunter2"}},
        {"pollHosts": ["https://root:hunter2@a"]},
    ],
)
def test_a_password_in_the_wrong_place_is_not_echoed(spec: dict[str, Any]) -> None:
    found = of_service(**spec)
    assert found
    assert "hunter2" not in str(found)


def test_credentials_in_the_clear_are_warned_of_unless_they_stay_here() -> None:
    login = {"type": "bearer", "secretRef": {"name": "a"}}

    def warned(endpoint: str) -> list[str]:
        return service_warnings(convert(service(endpoint=endpoint, credentials=login).raw, RestService))

    assert "in the clear" in warned("http://pets.example.com")[0]
    assert warned("http://127.0.0.1:8080") == []
    assert warned("https://pets.example.com") == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        operations(list={"method": "GET", "path": "/pets", "items": "value", "nextLink": "nextLink"}),
        overlay(fields={"rules[].port": {"class": "create-only"}, "tags.*": {}, 'tags["a.b"]': {}}),
        overlay(errors=[{"message": "^quota", "class": "throttled"}]),
        overlay(polling={"status": "body.status", "success": ["Done"], "url": "header.Location"}),
        {"identity": {"parameter": "petId", "assigned": "server", "answer": "header:Location"}},
        {"joins": [{"name": "view", "path": "view", "select": "statuses[?code=='x']"}]},
        {"exports": [{"to": "Secret", "name": "{name}-keys", "data": {"key": "keys[0].value"}}]},
        {"scale": {"specReplicasPath": ".spec.sku.capacity", "statusReplicasPath": ".status.observed.sku.capacity"}},
    ],
)
def test_a_good_definition_has_no_problems(spec: dict[str, Any]) -> None:
    assert of_definition(**spec) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (operations(read={"method": "GET", "path": "pets/{petId}"}), "spec.operations.read.path: Invalid value"),
        (operations(read={"method": "GET", "path": "/pets/{petId"}), "has a brace too many"),
        (operations(read={"method": "GET", "path": "/pets/{petId}?a=b"}), "holds a query"),
        (operations(read={"method": "GET", "path": "/a/{b}/{b}"}), "has a parameter twice"),
        (operations(delete={"method": "GET", "path": PETS}), "spec.operations.delete.method: Invalid value"),
        ({"operations": {"create": {"method": "POST", "path": "/pets"}}}, "spec.operations.read: Required value"),
        ({"identity": {"parameter": "id"}}, "is no parameter of /pets/{petId}; there are: petId"),
        ({"identity": {"find": ["a..b"]}}, "spec.identity.find[0]: Invalid value"),
        (overlay(fields={"rules[0].port": {}}), "names one item of a list; [] stands for all of them"),
        (overlay(fields={"rules[": {}}), "spec.overlay.fields: Invalid value"),
        (overlay(errors=[{"message": "(?!no)", "class": "terminal"}]), "is no regular expression of RE2"),
        (overlay(errors=[{"class": "terminal"}]), "matches every error"),
        (overlay(polling={"url": "headers.Location"}), "must be code, header.<name> or body.<path>"),
        (overlay(polling={"status": "body.status"}), "spec.overlay.polling.success: Required value"),
        ({"joins": [{"name": "view", "path": "v", "select": "a["}]}, "spec.joins[0].select: Invalid value"),
        ({"exports": [{"to": "Secret", "name": "a", "data": {"k": "a["}}]}, "spec.exports[0].data.k: Invalid value"),
        ({"exports": [{"to": "Secret", "name": "A_{name}", "data": {"k": "a"}}]}, "spec.exports[0].name: Invalid"),
        (
            {"scale": {"specReplicasPath": ".spec.a[0]", "statusReplicasPath": ".status.a"}},
            "spec.scale.specReplicasPath",
        ),
        ({"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".spec.a"}}, "spec.scale.statusReplicasPath"),
        ({"parent": "Pet"}, "a kind cannot be part of itself"),
        ({"serviceRef": "A b"}, "spec.serviceRef: Invalid value"),
    ],
)
def test_what_is_wrong_with_a_definition_is_said(spec: dict[str, Any], expected: str) -> None:
    found = of_definition(**spec)
    assert len([text for text in found if expected in text]) == 1, found


def rivalry(**spec: Any) -> list[str]:
    """Between the usual definition and another one with this in it."""
    one, other = (convert(found.raw, RestDefinition) for found in (definition(), definition("other", **spec)))
    return [error.path for error in rivals(one, [one, other])]


ELSEWHERE = operations(read={"method": "GET", "path": "/dogs/{id}"})
DOGS = {"names": {"kind": "Dog", "plural": "dogs"}}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({**DOGS, **ELSEWHERE}, []),
        ({"serviceRef": "zoo"}, []),
        (ELSEWHERE, ["spec.names.kind", "spec.names.plural"]),
        ({**DOGS, **operations(read={"method": "GET", "path": "/Pets/{id}/"})}, ["spec.operations.read.path"]),
    ],
)
def test_two_definitions_of_one_kind_or_one_path_are_rivals(spec: dict[str, Any], paths: list[str]) -> None:
    assert rivalry(**spec) == paths


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    """A client of a server that asks us."""
    cluster = None if request.param == "local" else request.getfixturevalue("real_cluster").kubeconfig
    async with judging(scheme, cluster) as client:
        yield client


async def test_both_servers_ask_about_services(judged: ApiClient) -> None:
    assert "spec.endpoint: Invalid value" in await said(judged, service("asked", endpoint="ftp://a"))
    assert await said(judged, service("asked")) == ""


async def test_a_second_definition_of_a_path_is_refused(judged: ApiClient) -> None:
    await judged.create(definition("first"))
    try:
        text = await said(judged, definition("second", **DOGS))
        assert text.startswith("422")
        assert 'spec.operations.read.path: Duplicate value: "/pets/{petId}": the RestDefinition "first"' in text
    finally:
        await judged.delete(Ref(RestDefinition, "first"))


def proposed(folder: Path) -> list[str]:
    """What would be said about the definitions that are proposed for the documents of a folder."""
    said = []
    for file in sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".yaml")):
        try:
            found = [proposal.definition for proposal in proposals(from_path(file), "pets")]
        except DocumentError:
            continue  # a part of another one
        for each in found:
            errors = [*definition_problems(each, "rest.trimtab.dev"), *rivals(each, found)]
            said += [f"{file.name}: {each.name}: {error}" for error in errors]
    return said


def test_what_is_proposed_for_a_document_is_taken() -> None:
    assert proposed(ROOT / "examples" / "rest") == []


@pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="needs ../shared/data/openapi")
def test_so_is_what_is_proposed_for_real_documents() -> None:
    assert proposed(DOCUMENTS) == []

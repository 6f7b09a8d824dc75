"""The answers in `test_schema_answers.json` are those of a real kube-apiserver."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access

pytestmark = pytest.mark.cluster

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_name("test_schema_answers.json").read_text())
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Asked:
    """A connection to the real server."""

    def __init__(self, cluster: RealCluster) -> None:
        access = read_access(cluster.kubeconfig)
        self.connection = http.client.HTTPSConnection(urlsplit(access.url).netloc, context=access.tls())

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any], list[str]]:
        self.connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read()
        warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        return response.status, json.loads(text) if text.startswith(b"{") else {}, warnings


@pytest.fixture
def ask(real_cluster: RealCluster) -> Iterator[Asked]:
    asked = Asked(real_cluster)
    yield asked
    asked.connection.close()


def definition(plural: str, schema: dict[str, Any], *, status: bool = False) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": plural, "kind": plural.title(), "listKind": f"{plural.title()}List"}
    subresources = {"subresources": {"status": {}}} if status else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [{**version, **subresources}]},
    }


def causes(status: dict[str, Any]) -> list[list[str]]:
    return [[cause["field"], cause["reason"], cause["message"]] for cause in status["details"]["causes"]]


def test_values_are_judged_by_the_real_server_as_recorded(ask: Asked) -> None:
    fields = {name: {"type": "object", "properties": {"v": part}} for name, part in ANSWERS["fields"].items()}
    assert ask("POST", CRDS, definition("cases", {"type": "object", "properties": fields}))[0] == 201
    path = "/apis/x.dev/v1/namespaces/default/cases"
    deadline = time.monotonic() + 30
    while ask("GET", path)[0] != 200:
        assert time.monotonic() < deadline
    wrong = []
    for answer in ANSWERS["answers"]:
        field = answer["field"]
        obj = {"apiVersion": "x.dev/v1", "kind": "Cases", "metadata": {"name": "a"}, field: {"v": answer["value"]}}
        code, body, warnings = ask("POST", f"{path}?dryRun=All&fieldValidation=Warn", obj)
        if "errors" in answer:
            same = code == 422 and sorted(causes(body)) == sorted(answer["errors"])
        else:
            kept = {"v": answer["result"]} if answer["kept"] else {}
            unknown = [text.removeprefix("299 - ") for text in warnings]
            same = code == 201 and body[field] == kept and sorted(unknown) == [json.dumps(u) for u in answer["unknown"]]
        if not same:
            wrong.append((answer, code, body))
    assert wrong == []


def test_schemas_are_judged_by_the_real_server_as_recorded(ask: Asked) -> None:
    wrong = []
    for answer in ANSWERS["schemas"]:
        crd = definition("bads", answer["schema"], status=answer["status"])
        code, body, _ = ask("POST", f"{CRDS}?dryRun=All", crd)
        given = [] if code == 201 else causes(body)
        if sorted(given) != sorted(answer["errors"]):
            wrong.append((answer, given))
    assert wrong == []

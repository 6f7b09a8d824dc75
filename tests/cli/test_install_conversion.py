"""What a cluster needs for a system whose kinds have several versions."""

from __future__ import annotations

from typing import Any

from tests.model.test_conversion import NEW, OLD
from trimtab.cli.install import Options, manifest
from trimtab.cli.systems import scheme_of
from trimtab.runtime.system import System

SYSTEM = System(name="harbour", convertors=(OLD, NEW))


def test_an_install_lets_the_cluster_ask_the_system_for_conversions() -> None:
    made = manifest((SYSTEM,), scheme_of((SYSTEM,)), Options())
    (definition,) = (document for document in made if document["kind"] == "CustomResourceDefinition")
    service = {"namespace": "trimtab-system", "name": "harbour", "port": 443, "path": "/convert"}
    assert definition["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    }
    assert any(port["name"] == "webhooks" for port in one(made, "Service")["spec"]["ports"])
    arguments = one(made, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--webhook-port" in arguments
    assert one(made, "Secret")["metadata"]["name"] == "harbour-webhook-certs"
    rules = one(made, "ClusterRole")["rules"]
    assert {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": ["berths.ports.trimtab.dev"],
        "verbs": ["get", "patch"],
    } in rules


def one(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(document for document in documents if document["kind"] == kind)

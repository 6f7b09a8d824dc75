"""What a cluster is given to have a hub: taken by a real one, and no more than is needed."""

import re
from typing import Any

import orjson
import pytest

from tests.hub.aggregated.behind import kubectl
from tests.hub.aggregated.letters import Letter
from tests.hub.artifacts.papers import Paper
from trimtab.hub.install import NAME, Settings, api_services, documents, rights
from trimtab.model.scheme import Scheme
from trimtab.runtime.system import NAMESPACE
from trimtab.testing.cluster import RealCluster

KINDS = [Scheme().kind_of(Paper), Scheme().kind_of(Letter)]
SETTINGS = Settings(image="trimtab:1", storage="postgresql://db/hub", bus="nats://nats:4222", suffixes=("example.com",))


def of(kind: str, name: str = "") -> list[dict[str, Any]]:
    found = [document for document in documents(KINDS, SETTINGS) if document["kind"] == kind]
    return [document for document in found if not name or document["metadata"]["name"] == name]


def test_every_group_and_version_is_registered_once() -> None:
    assert [service["spec"]["group"] for service in api_services([*KINDS, *KINDS])] == [
        "letters.trimtab.dev",
        "papers.trimtab.dev",
    ]
    assert all("caBundle" not in service["spec"] for service in api_services(KINDS))
    assert all("insecureSkipTLSVerify" not in service["spec"] for service in api_services(KINDS))


def test_two_replicas_run_without_rights_on_their_machine() -> None:
    (deployment,) = of("Deployment")
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["hub", "serve"]
    assert "--group-suffix" in container["args"]
    (service,) = of("Service")
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_the_hubs_account_may_only_ask_and_keep_its_own_certificate() -> None:
    granted = [
        (rule["resources"], rule["verbs"], rule.get("resourceNames"))
        for document in rights(KINDS)
        if document["kind"] in ("Role", "ClusterRole") and "rules" in document
        for rule in document["rules"]
        if document["metadata"]["name"] == "trimtab:trimtab-hub"
    ]
    assert (["namespaces"], ["get", "list", "watch"], None) in granted
    assert (["secrets"], ["get", "patch"], ["trimtab-hub-webhook-certs"]) in granted
    services = ["v1.letters.trimtab.dev", "v1.papers.trimtab.dev"]
    assert (["apiservices"], ["get", "patch"], services) in granted
    assert len(granted) == 3


def test_no_secret_is_in_a_manifest() -> None:
    assert not re.search(r"password|BEGIN [A-Z ]*KEY", orjson.dumps(documents(KINDS, SETTINGS)).decode(), re.IGNORECASE)


@pytest.mark.cluster
async def test_a_real_cluster_takes_all_of_it(aggregator: RealCluster) -> None:
    namespace = orjson.dumps(documents(KINDS, SETTINGS)[0])  # a dry run makes none for what is in it
    assert (await kubectl(aggregator, "apply", "--server-side", "-f", "-", stdin=namespace)).code == 0
    await kubectl(aggregator, "delete", "service", NAME, "-n", NAMESPACE, "--ignore-not-found")  # another test's
    items = {"apiVersion": "v1", "kind": "List", "items": documents(KINDS, SETTINGS)}
    words = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-")
    applied = await kubectl(aggregator, *words, stdin=orjson.dumps(items))
    assert applied.code == 0, applied.err
    assert applied.out.count("serverside-applied") == len(items["items"])

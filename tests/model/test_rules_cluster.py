"""The answers in `test_rules_answers.json` are those of a real kube-apiserver."""

import http.client
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from trimtab.testing.peer import read_access

pytestmark = pytest.mark.cluster
CHECKS = json.loads(Path(__file__).with_name("test_rules_answers.json").read_text())["checks"]
DRY = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"


@pytest.fixture
def post(real_cluster):
    access = read_access(real_cluster.kubeconfig)
    connection = http.client.HTTPSConnection(urlsplit(access.url).netloc, context=access.tls())

    def post(path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())

    yield post
    connection.close()


@pytest.mark.parametrize("name", CHECKS)
def test_the_real_server_says_so_of_the_schema(post, name):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": CHECKS[name]["schema"]}}
    names = {"plural": "widgets", "kind": "Widget"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.rules.example.com"},
        "spec": {"group": "rules.example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    found = (post(DRY, definition).get("details") or {}).get("causes", [])
    assert sorted([c["field"], c["reason"], _stable(c["message"])] for c in found) == CHECKS[name]["causes"]


def _stable(message):
    """Without what changes from one request to the next: addresses and made-up type names."""
    return re.sub(r"selfType\d+", "selfType0", re.sub(r"0xc[0-9a-f]+", "0xc000000000", message))

"""What a cluster needs for the kinds of a service: rights and a webhook, as both servers take them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.rest.generating_kit import GROUP, disk, machine
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.generating.cluster import cluster


@pytest.fixture
def made() -> dict[str, dict[str, Any]]:
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in cluster([machine(), disk()], "zoo")}


def test_the_controllers_may_do_what_a_reconcile_does_and_no_more(made: dict[str, dict[str, Any]]) -> None:
    assert made["ClusterRole/trimtab:rest:zoo"]["rules"] == [
        {
            "apiGroups": [GROUP],
            "resources": ["disks", "machines"],
            "verbs": ["get", "list", "watch", "patch", "delete"],
        },
        {"apiGroups": [GROUP], "resources": ["disks/status", "machines/status"], "verbs": ["patch"]},
        {"apiGroups": [GROUP], "resources": ["disks/finalizers", "machines/finalizers"], "verbs": ["update"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "verbs": ["get", "patch"],
            "resourceNames": ["trimtab-rest-zoo"],
        },
    ]
    bound = made["ClusterRoleBinding/trimtab:rest:zoo"]
    assert bound["subjects"] == [{"kind": "ServiceAccount", "name": "rest", "namespace": "trimtab-system"}]
    assert bound["roleRef"]["name"] == "trimtab:rest:zoo"


def test_people_get_the_kinds_by_the_roles_that_they_have(made: dict[str, dict[str, Any]]) -> None:
    view, edit = made["ClusterRole/trimtab:rest:zoo:view"], made["ClusterRole/trimtab:rest:zoo:edit"]
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
    assert not {"create", "update", "patch", "delete"} & {verb for rule in view["rules"] for verb in rule["verbs"]}
    scaled = [rule for rule in edit["rules"] if rule["resources"] == ["machines/scale"]]
    assert scaled == [{"apiGroups": [GROUP], "resources": ["machines/scale"], "verbs": ["update", "patch"]}]


def test_the_webhook_judges_these_kinds_and_their_scale(made: dict[str, dict[str, Any]]) -> None:
    hook = made["ValidatingWebhookConfiguration/trimtab-rest-zoo"]
    assert hook["metadata"]["labels"]["rest.trimtab.dev/webhook"] == "true"
    (one,) = hook["webhooks"]
    assert one["clientConfig"]["service"]["path"] == "/validate/rest-objects"
    assert "caBundle" not in one["clientConfig"]
    (rule,) = one["rules"]
    assert rule["resources"] == ["disks", "machines", "machines/scale"]
    assert rule["operations"] == ["CREATE", "UPDATE"]


def test_a_service_without_kinds_needs_nothing() -> None:
    assert cluster([], "zoo") == []


async def test_servers_take_it(client: ApiClient, made: dict[str, dict[str, Any]]) -> None:
    for document in made.values():
        await client.create(Untyped(document), dry_run=True)

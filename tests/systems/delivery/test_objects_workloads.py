"""The Deployments and Services of a CanaryDeployment."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from tests.systems.delivery.objects_kit import REVISION, TEMPLATE, canary
from trimtab.model.document import convert
from trimtab.systems.delivery.kinds import Analysis
from trimtab.systems.delivery.objects.services import canary_service, stable_service
from trimtab.systems.delivery.objects.workloads import canary_deployment, canary_replicas, stable_deployment

ROLE, REV = "delivery.trimtab.dev/role", "delivery.trimtab.dev/revision"


def test_selectors_of_the_two_are_disjoint_and_select_their_own_pods() -> None:
    stable = stable_deployment(canary(), TEMPLATE, REVISION)
    other = canary_deployment(canary(), TEMPLATE, REVISION, 1)
    for document, role in ((stable, "stable"), (other, "canary")):
        selector = document["spec"]["selector"]["matchLabels"]
        assert selector == {"app": "web", ROLE: role}
        assert selector.items() <= document["spec"]["template"]["metadata"]["labels"].items()
        assert document["metadata"]["labels"] == {"delivery.trimtab.dev/canary": "web", ROLE: role}
    assert (stable["metadata"]["name"], other["metadata"]["name"]) == ("web", "web-canary")


def test_the_revision_is_a_label_of_pods_alone() -> None:
    document = stable_deployment(canary(), TEMPLATE, REVISION)
    assert document["spec"]["template"]["metadata"]["labels"][REV] == "0123456789ab"
    assert REV not in document["spec"]["selector"]["matchLabels"]
    assert REV not in document["metadata"]["labels"]


def test_the_template_is_the_one_that_was_given() -> None:
    given = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "old", "image": "old:1"}]}}
    document = stable_deployment(canary(), given, REVISION)
    assert document["spec"]["template"]["spec"] == given["spec"]
    assert given["metadata"] == {"labels": {"app": "web"}}, "and it is not touched"


def test_nulls_say_nothing() -> None:
    metadata = stable_deployment(canary(deployment={"minReadySeconds": None}), TEMPLATE, REVISION)["spec"]
    assert "minReadySeconds" not in metadata
    assert "creationTimestamp" not in metadata["template"]["metadata"]
    assert metadata["template"]["spec"]["volumes"] == [{"name": "tmp", "emptyDir": {}}], "empty ones do"


@pytest.mark.parametrize(
    ("strategy", "surge"),
    [
        (None, "25%"),
        ({"type": "Recreate"}, "25%"),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}, "25%"),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "50%"}}, 2),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 1),
    ],
)
def test_stable_always_rolls_without_a_gap(strategy: Any, surge: Any) -> None:
    document = stable_deployment(canary(deployment={"strategy": strategy}), TEMPLATE, REVISION)
    assert document["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": surge},
    }


def test_replicas_are_left_to_an_autoscaler() -> None:
    assert stable_deployment(canary(), TEMPLATE, REVISION)["spec"]["replicas"] == 4
    scaled = canary(autoscalerRef={"name": "web"})
    assert "replicas" not in stable_deployment(scaled, TEMPLATE, REVISION)["spec"]
    assert canary_deployment(scaled, TEMPLATE, REVISION, 3)["spec"]["replicas"] == 3


def test_the_deadline_is_longer_than_pods_must_be_ready() -> None:
    def deadline(**deployment: Any) -> int:
        made = stable_deployment(canary(deployment=deployment, progressDeadline="90s"), TEMPLATE, REVISION)
        seconds: int = made["spec"]["progressDeadlineSeconds"]
        return seconds

    assert deadline() == 90
    assert deadline(minReadySeconds=120) == 121
    assert deadline(progressDeadlineSeconds=33) == 33


@pytest.mark.parametrize(
    ("analysis", "replicas"),
    [
        ({"stepWeight": 10, "maxWeight": 30}, 3),
        ({"stepWeight": 10}, 5),
        ({"stepWeight": 1, "maxWeight": 1}, 1),
        ({"stepWeights": [1, 2, 81]}, 9),
        ({"stepWeight": 10, "maxWeight": 30, "mirror": True}, 10),
        ({"stepWeight": 10, "maxWeight": 30, "mirror": True, "mirrorWeight": 40}, 4),
        ({"iterations": 3}, 10),
        ({"iterations": 3, "match": [{"headers": {"x": {"exact": "y"}}}]}, 10),
        ({"stepWeight": 10, "canaryReplicas": 7}, 7),
    ],
)
def test_the_canary_has_the_pods_that_its_largest_share_needs(analysis: dict[str, Any], replicas: int) -> None:
    assert canary_replicas(canary(), convert(analysis, Analysis), 10) == replicas


def test_the_canary_has_a_pod_at_least() -> None:
    assert canary_replicas(canary(), convert({"stepWeight": 10}, Analysis), 0) == 1
    assert canary_replicas(canary(), UNSET, 5) == 5


def test_each_service_selects_its_role() -> None:
    assert stable_service(canary())["spec"]["selector"] == {"app": "web", ROLE: "stable"}
    assert canary_service(canary())["spec"]["selector"] == {"app": "web", ROLE: "canary"}
    chosen = canary(service={"selector": {"tier": "front"}})
    assert stable_service(chosen)["spec"]["selector"] == {"tier": "front", ROLE: "stable"}


def test_what_reaches_in_from_outside_is_stables_alone() -> None:
    given = {
        "type": "LoadBalancer",
        "clusterIP": "10.0.0.7",
        "clusterIPs": ["10.0.0.7"],
        "externalIPs": ["192.0.2.1"],
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30001,
        "loadBalancerIP": "192.0.2.2",
        "loadBalancerClass": "x",
        "loadBalancerSourceRanges": ["192.0.2.0/24"],
        "allocateLoadBalancerNodePorts": True,
        "sessionAffinity": "ClientIP",
        "ports": [{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080}],
    }
    stable = stable_service(canary(service=given))["spec"]
    assert stable == {**given, "selector": {"app": "web", ROLE: "stable"}}
    assert canary_service(canary(service=given))["spec"] == {
        "type": "ClusterIP",
        "sessionAffinity": "ClientIP",
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        "selector": {"app": "web", ROLE: "canary"},
    }


def test_a_headless_service_has_a_headless_canary() -> None:
    made = canary_service(canary(service={"clusterIP": "None"}))["spec"]
    assert (made["clusterIP"], made["type"]) == ("None", "ClusterIP")

"""A Scale as a table, of built-in and of custom kinds; and an autoscaler in both its versions, through the server."""

from typing import Any

import pytest

from tests.server.api import Api
from tests.server.builtin_samples import TEMPLATE

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGET = {
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
                },
            }
        ],
    },
}


@pytest.fixture
async def deployment(api: Api) -> str:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
    await api.post(
        DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    )
    return f"{DEPLOYMENTS}/d/scale"


@pytest.fixture
async def gadget(api: Api) -> str:
    await api.post(CRDS, GADGET)
    await api.until(GADGETS, lambda answer: answer.code == 200)
    document = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"replicas": 2}}
    await api.post(GADGETS, document)
    return f"{GADGETS}/g/scale"


def columns(table: Any) -> list[tuple[str, str, str]]:
    return [(column["name"], column["type"], column["format"]) for column in table["columnDefinitions"]]


async def test_the_scale_of_a_deployment_as_a_table(api: Api, deployment: str) -> None:
    table = (await api.get(deployment, accept=TABLE)).doc
    assert columns(table) == [
        ("Name", "string", ""),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "string", ""),
    ]
    assert table["rows"][0]["cells"][:3] == ["d", 2, 0]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_the_scale_of_a_custom_resource_as_a_table(api: Api, gadget: str) -> None:
    table = (await api.get(gadget, accept=TABLE)).doc
    assert columns(table) == [
        ("Name", "string", "name"),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "date", ""),
    ]
    assert table["rows"][0]["cells"][:3] == ["g", 2, 0]


async def test_a_table_of_a_scale_carries_the_scale_when_asked(api: Api, deployment: str) -> None:
    table = (await api.get(f"{deployment}?includeObject=Object", accept=TABLE)).doc
    assert table["rows"][0]["object"]["kind"] == "Scale"


async def test_the_scale_of_an_object_that_is_not_there_is_a_404(api: Api) -> None:
    assert (await api.get(f"{DEPLOYMENTS}/absent/scale", accept=TABLE)).code == 404


AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
OLDER = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}


async def test_an_autoscaler_made_in_the_older_version_is_read_in_the_newer(api: Api) -> None:
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": OLDER}
    made = await api.post(AUTOSCALERS.format("v1"), body)
    assert (made.code, made.doc["apiVersion"]) == (201, "autoscaling/v1")
    read = (await api.get(f"{AUTOSCALERS.format('v2')}/h")).doc
    assert read["apiVersion"] == "autoscaling/v2"
    assert read["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


async def test_a_status_written_in_the_older_version_leaves_the_metrics_alone(api: Api) -> None:
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}},
    }
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [metric]}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    await api.post(AUTOSCALERS.format("v2"), body)
    old = (await api.get(f"{AUTOSCALERS.format('v1')}/h")).doc
    old["status"] = {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 40}
    old["metadata"].pop("annotations")
    await api.put(f"{AUTOSCALERS.format('v1')}/h/status", old)
    new = (await api.get(f"{AUTOSCALERS.format('v2')}/h")).doc
    assert new["spec"]["metrics"] == [metric]
    assert new["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 40


async def test_the_newer_version_of_autoscaling_is_preferred(api: Api) -> None:
    group = (await api.get("/apis/autoscaling")).doc
    assert [version["version"] for version in group["versions"]] == ["v2", "v1"]
    assert group["preferredVersion"]["version"] == "v2"

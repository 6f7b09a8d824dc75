"""What webhooks of a running server are shown, and what becomes of their patches. Compared with kube-apiserver 1.32."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.server.api import Api, config_map
from tests.server.test_webhooks import Peer, authority, hook, patching, peer, setting
from trimtab.server.admission.webhooks import MUTATING, VALIDATING
from trimtab.server.auth.pki import ensure_pki
from trimtab.server.auth.tokens import TokenKey

__all__ = ["authority", "peer"]  # fixtures

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
SCALER_V1 = {
    "apiVersion": "autoscaling/v1",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 50,
    },
}
EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingController": "demo.dev/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    "note": "n",
}


def on(group: str, version: str, resource: str) -> dict[str, Any]:
    return {"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]}


async def install(api: Api, peer: Peer, resource: str, *hooks: dict[str, Any]) -> None:
    """Returns when the webhooks are asked: one more of the same configuration is shown Leases until it answers."""
    probe = hook(peer, "/probe", rules=[on("coordination.k8s.io", "v1", "leases")])
    kind = "MutatingWebhookConfiguration" if resource == MUTATING else "ValidatingWebhookConfiguration"
    document = {"metadata": {"name": f"c{len(peer.behaviour)}"}, "kind": kind, "webhooks": [*hooks, probe]}
    answer = await api.post(
        f"{CONFIGURATIONS}/{resource}", document | {"apiVersion": "admissionregistration.k8s.io/v1"}
    )
    assert answer.code == 201, answer.doc
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "probe"}}
    async with asyncio.timeout(10):
        while not peer.asked:
            await api.post("/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All", lease)
            await asyncio.sleep(0.001)
    peer.asked.clear()


def shown(peer: Peer) -> dict[str, Any]:
    """The request of the last review."""
    request: dict[str, Any] = peer.asked[-1][1]["request"]
    return request


async def test_a_write_of_the_scale_is_shown_as_a_scale(api: Api, peer: Peer) -> None:
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=[on("apps", "v1", "deployments/scale")]))
    assert (await api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}})).code == 200
    request = shown(peer)
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (request["kind"], request["requestKind"]) == (scale, scale)
    assert (request["resource"]["resource"], request["subResource"]) == ("deployments", "scale")
    assert (request["object"]["kind"], request["object"]["spec"]) == ("Scale", {"replicas": 2})
    assert (request["oldObject"]["kind"], request["oldObject"]["spec"]) == ("Scale", {"replicas": 1})


async def test_a_patch_of_the_scale_sets_the_replicas_of_the_object(api: Api, peer: Peer) -> None:
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    peer.behaviour["/m"] = patching(setting("/spec/replicas", 7))
    await install(api, peer, MUTATING, hook(peer, "/m", rules=[on("apps", "v1", "deployments/scale")]))
    answer = await api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}})
    assert (answer.doc["kind"], answer.doc["spec"]) == ("Scale", {"replicas": 7})
    assert (await api.get(f"{DEPLOYMENTS}/d")).doc["spec"]["replicas"] == 7


async def test_a_request_for_a_token_is_shown_and_changed(api: Api, peer: Peer, tmp_path: Path) -> None:
    api.server.token_key = TokenKey(ensure_pki(tmp_path).service_account_key.read_bytes())
    peer.behaviour["/m"] = patching(setting("/spec/expirationSeconds", 700))
    await install(api, peer, MUTATING, hook(peer, "/m", rules=[on("", "v1", "serviceaccounts/token")]))
    answer = await api.post("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
    assert (answer.code, answer.doc["spec"]["expirationSeconds"]) == (201, 700)
    request = shown(peer)
    assert request["kind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    assert (request["resource"]["resource"], request["subResource"]) == ("serviceaccounts", "token")
    assert (request["object"]["kind"], request["object"]["spec"]) == ("TokenRequest", {"expirationSeconds": 3600})


async def test_an_equivalent_version_is_converted_for_the_webhook(api: Api, peer: Peer) -> None:
    rules = [on("autoscaling", "v2", "horizontalpodautoscalers")]
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=rules))
    await api.post(SCALERS.format("v1"), SCALER_V1)
    request = shown(peer)
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
    assert request["object"]["apiVersion"] == "autoscaling/v2"
    target = {"averageUtilization": 50, "type": "Utilization"}
    assert request["object"]["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}},
    ]
    assert "targetCPUUtilizationPercentage" not in request["object"]["spec"]


async def test_what_a_webhook_makes_of_an_equivalent_version_is_converted_back(api: Api, peer: Peer) -> None:
    peer.behaviour["/m"] = patching(setting("/spec/metrics/0/resource/target/averageUtilization", 33))
    rules = [on("autoscaling", "v2", "horizontalpodautoscalers")]
    await install(api, peer, MUTATING, hook(peer, "/m", rules=rules))
    answer = await api.post(SCALERS.format("v1"), SCALER_V1)
    assert (answer.code, answer.doc["apiVersion"]) == (201, "autoscaling/v1")
    assert answer.doc["spec"]["targetCPUUtilizationPercentage"] == 33
    assert "metrics" not in answer.doc["spec"]


async def test_an_event_of_one_group_is_shown_to_a_webhook_of_the_other(api: Api, peer: Peer) -> None:
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=[on("", "v1", "events")]))
    await api.post(EVENTS, EVENT)
    request = shown(peer)
    assert (request["kind"]["group"], request["requestKind"]["group"]) == ("", "events.k8s.io")
    assert (request["object"]["apiVersion"], request["object"]["message"]) == ("v1", "n")


ALL_MAPS = [on("", "v1", "configmaps")]


@pytest.mark.parametrize(
    ("method", "query", "body", "media", "options"),
    [
        (
            "POST",
            "?fieldManager=me&fieldValidation=Strict",
            config_map("b"),
            "application/json",
            {"kind": "CreateOptions", "fieldManager": "me", "fieldValidation": "Strict"},
        ),
        (
            "PUT",
            "/a?fieldManager=me",
            config_map("a", labels={"x": "y"}),
            "application/json",
            {"kind": "UpdateOptions", "fieldManager": "me"},
        ),
        (
            "PATCH",
            "/a?fieldManager=me&force=true",
            config_map("a"),
            "application/apply-patch+yaml",
            {"kind": "UpdateOptions", "fieldManager": "me"},
        ),
        (
            "PATCH",
            "/new?fieldManager=me",
            config_map("new"),
            "application/apply-patch+yaml",
            {"kind": "CreateOptions", "fieldManager": "me"},
        ),
        (
            "DELETE",
            "/a?propagationPolicy=Foreground&gracePeriodSeconds=3",
            None,
            "application/json",
            {"kind": "DeleteOptions", "propagationPolicy": "Foreground", "gracePeriodSeconds": 3},
        ),
        (
            "DELETE",
            "/a",
            {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], "gracePeriodSeconds": 0},
            "application/json",
            {"kind": "DeleteOptions", "dryRun": ["All"], "gracePeriodSeconds": 0},
        ),
    ],
)
async def test_the_options_of_the_request_are_shown(
    api: Api, peer: Peer, method: str, query: str, body: Any, media: str, options: dict[str, Any]
) -> None:
    await api.post(MAPS, config_map("a"))
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=ALL_MAPS))
    answer = await api.send(method, MAPS + query, body, media)
    assert answer.code in (200, 201), answer.doc
    assert shown(peer)["options"] == {"apiVersion": "meta.k8s.io/v1", **options}


async def test_mutating_webhooks_see_a_creation_without_what_the_server_will_set(api: Api, peer: Peer) -> None:
    peer.behaviour["/m"] = patching(setting("/data", {"k": "v"}))
    await install(api, peer, MUTATING, hook(peer, "/m", rules=ALL_MAPS))
    answer = await api.post(MAPS, config_map("a"))
    assert not {"uid", "creationTimestamp", "generation"} & shown(peer)["object"]["metadata"].keys()
    assert answer.doc["data"] == {"k": "v"}
    assert {"uid", "creationTimestamp"} <= answer.doc["metadata"].keys()


async def test_validating_webhooks_see_a_creation_as_it_will_be(api: Api, peer: Peer) -> None:
    await install(api, peer, VALIDATING, hook(peer, "/v", rules=ALL_MAPS))
    answer = await api.post(MAPS, config_map("a"))
    assert shown(peer)["object"]["metadata"]["uid"] == answer.doc["metadata"]["uid"]


async def test_a_mutating_webhook_may_refuse_a_deletion(api: Api, peer: Peer) -> None:
    await api.post(MAPS, config_map("a"))
    peer.behaviour["/m"] = {"allowed": False, "status": {"message": "no", "code": 403}}
    await install(api, peer, MUTATING, hook(peer, "/m", rules=ALL_MAPS))
    answer = await api.delete(f"{MAPS}/a")
    assert (answer.code, answer.doc["message"]) == (403, 'admission webhook "m.demo.dev" denied the request: no')
    assert (await api.get(f"{MAPS}/a")).code == 200


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (
            '[{"op":"remove","path":"/data/none"}]',
            'remove operation does not apply: doc is missing path: "/data/none": missing value',
        ),
        (
            '[{"op":"remove","path":"/none"}]',
            "error in remove for path: '/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            '[{"op":"add","path":"/data","value":{}},{"op":"test","path":"/metadata/name","value":"z"}]',
            "testing value /metadata/name failed: test failed",
        ),
        ('[{"op":"nope","path":"/a"}]', "Unexpected kind: nope"),
        ("[null]", "Unexpected kind: unknown"),
        ('{"a":1}', "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("[1]", "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        ("x", "invalid character 'x' looking for beginning of value"),
        (
            '[{"op":"replace","path":"/none/x","value":1}]',
            "replace operation does not apply: doc is missing path: /none/x: missing value",
        ),
        (
            '[{"op":"move","from":"/q","path":"/data"}]',
            "error in move for path: 'q': Unable to remove nonexistent key: q: missing value",
        ),
        (
            '[{"op":"copy","path":"/data"}]',
            "copy operation failed to decode from: operation, missing from field: missing value",
        ),
        ('[{"op":"remove"}]', "remove operation failed to decode path: missing value"),
        (
            '[{"op":"add","path":"/metadata/managedFields/x","value":{}}]',
            (
                "error in add for path: '/metadata/managedFields/x': value was not a proper array index: 'x': "
                'strconv.Atoi: parsing "x": invalid syntax'
            ),
        ),
        (
            '[{"op":"remove","path":"/metadata/managedFields/9"}]',
            (
                "error in remove for path: '/metadata/managedFields/9': "
                "Unable to access invalid index: 9: invalid index referenced"
            ),
        ),
        (
            '[{"op":"add","path":"/data","value":"x"}]',
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            '[{"op":"replace","path":"/kind","value":"X"}]',
            'no kind "X" is registered for version "v1" in scheme "pkg/runtime/scheme.go:100"',
        ),
    ],
)
async def test_a_patch_that_cannot_be_applied_is_an_internal_error_with_its_cause(
    api: Api, peer: Peer, patch: str, problem: str
) -> None:
    peer.behaviour["/m"] = {"patchType": "JSONPatch", "patch": b64encode(patch.encode()).decode()}
    await install(api, peer, MUTATING, hook(peer, "/m", rules=ALL_MAPS))
    answer = await api.post(MAPS, config_map("a", labels={"l": "1"}))
    assert (answer.code, answer.doc["message"]) == (500, f"Internal error occurred: {problem}")


async def test_the_first_of_many_operations_that_fails_is_named(api: Api, peer: Peer) -> None:
    operations = [setting(f"/metadata/annotations/k{index}", "v") for index in range(50)]
    operations[37] = {"op": "remove", "path": "/gone"}
    peer.behaviour["/m"] = patching(
        setting("/metadata/annotations", {}), *operations, {"op": "remove", "path": "/later"}
    )
    await install(api, peer, MUTATING, hook(peer, "/m", rules=ALL_MAPS))
    assert "'/gone'" in json.dumps((await api.post(MAPS, config_map("a"))).doc["message"])


def _service(peer: Peer, port: int) -> dict[str, Any]:
    client = {"service": {"namespace": "default", "name": "none", "port": port}}
    return hook(peer, "/v", rules=ALL_MAPS, clientConfig=client)


async def test_a_webhook_at_a_service_that_does_not_exist_says_so(api: Api, peer: Peer) -> None:
    await install(api, peer, VALIDATING, _service(peer, 443))
    answer = await api.post(MAPS, config_map("a"))
    assert (answer.code, answer.doc["message"]) == (
        500,
        (
            'Internal error occurred: failed calling webhook "v.demo.dev": failed to call webhook: '
            'Post "https://none.default.svc:443/?timeout=5s": service "none" not found'
        ),
    )


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        (444, 'no service port 444 found for service "none"'),
        (443, 'no endpoints available for service "none"'),
    ],
)
async def test_a_service_that_does_not_serve_the_port_is_named(api: Api, peer: Peer, port: int, problem: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "none"}, "spec": {"ports": [{"port": 443}]}}
    assert (await api.post("/api/v1/namespaces/default/services", service)).code == 201
    await install(api, peer, VALIDATING, _service(peer, port))
    assert (await api.post(MAPS, config_map("a"))).doc["message"].endswith(problem)

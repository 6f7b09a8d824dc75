"""The official Python client: typed and dynamic, watches, pages, apply, leader election."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

from tests.e2e.kubectl import EXAMPLES
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.processes import Process


@pytest.fixture
def api(ground: TrimtabServer, namespace: str) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(ground.kubeconfig)) as api:
        client.CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
        yield api


def test_objects_are_created_read_changed_and_deleted(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": "words"}, data={"a": "1"}))
    made.data = {"a": "2"}
    core.replace_namespaced_config_map("words", namespace, made)
    core.patch_namespaced_config_map("words", namespace, {"data": {"b": "3"}})
    assert core.read_namespaced_config_map("words", namespace).data == {"a": "2", "b": "3"}
    core.delete_namespaced_config_map("words", namespace)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("words", namespace)
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")


def test_a_stale_replace_is_a_conflict(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    stale = core.create_namespaced_config_map(namespace, {"metadata": {"name": "words"}})
    core.patch_namespaced_config_map("words", namespace, {"data": {"b": "3"}})
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("words", namespace, stale)
    assert conflict.value.status == 409


def test_a_list_comes_in_pages_of_one_revision(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_secret(namespace, {"metadata": {"name": f"s{number}"}})
    first = core.list_namespaced_secret(namespace, limit=2)
    core.create_namespaced_secret(namespace, {"metadata": {"name": "s9"}})
    names, token, revisions = [item.metadata.name for item in first.items], first.metadata._continue, set()
    while token:
        page = core.list_namespaced_secret(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        revisions.add(page.metadata.resource_version)
        token = page.metadata._continue
    assert names == ["s0", "s1", "s2", "s3", "s4"]
    assert revisions == {first.metadata.resource_version}


def test_a_watch_resumes_from_a_revision(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "old", "labels": {"seen": "yes"}}})
    since = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "new", "labels": {"seen": "yes"}}})
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "hidden"}})
    core.delete_namespaced_config_map("old", namespace)
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version=since, label_selector="seen=yes", timeout_seconds=1
    )
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [
        ("ADDED", "new"),
        ("DELETED", "old"),
    ]


def test_the_dynamic_client_knows_custom_kinds(api: client.ApiClient, namespace: str) -> None:
    beacons = dynamic.DynamicClient(api).resources.get(api_version="ground.example.com/v1", kind="Beacon")
    north = {"metadata": {"name": "north"}, "spec": {"site": "cape"}}
    beacons.create({"apiVersion": "ground.example.com/v1", "kind": "Beacon", **north}, namespace)
    beacons.patch(
        {"metadata": {"name": "north"}, "spec": {"color": "red"}},
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    beacons.status.patch({"status": {"replicas": 1}}, "north", namespace, content_type="application/merge-patch+json")
    north = beacons.get("north", namespace)
    assert (north.spec.color, north.spec.dim, north.status.replicas) == ("red", 10, 1)
    beacons.delete("north", namespace)
    assert beacons.get(namespace=namespace).items == []


def test_server_side_apply_owns_fields(api: client.ApiClient, namespace: str) -> None:
    maps = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"a": "1"}}
    maps.server_side_apply(body, "words", namespace, field_manager="ann")
    with pytest.raises(ApiException) as conflict:
        maps.server_side_apply({**body, "data": {"a": "2"}}, "words", namespace, field_manager="bob")
    assert conflict.value.status == 409
    applied = maps.server_side_apply(
        {**body, "data": {"a": "2"}}, "words", namespace, field_manager="bob", force_conflicts=True
    )
    assert applied.data.a == "2"


def test_another_candidate_leads_when_the_leader_dies(
    ground: TrimtabServer, api: client.ApiClient, namespace: str, tmp_path: Path
) -> None:
    def candidate(name: str) -> Process:
        command = [
            sys.executable,
            str(Path(__file__).with_name("candidate.py")),
            str(ground.kubeconfig),
            namespace,
            name,
        ]
        return Process(command, log=tmp_path / name)

    def leads(process: Process) -> bool:
        return f"{process.log.name} leads" in process.tail()

    with candidate("ann") as ann, candidate("bob") as bob:
        ann.wait_until(lambda: leads(ann) or leads(bob), within=20)
        leader, follower = (ann, bob) if leads(ann) else (bob, ann)
        assert not leads(follower)
        leader.kill()
        follower.wait_until(lambda: leads(follower), within=20)
    lease = client.CoordinationV1Api(api).read_namespaced_lease("leader", namespace)
    assert lease.spec.holder_identity == follower.log.name


def test_tokens_reviews_and_scale_work_by_typed_calls(api: client.ApiClient, namespace: str) -> None:
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    core.create_namespaced_service_account(namespace, {"metadata": {"name": "robot"}})
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = core.create_namespaced_service_account_token("robot", namespace, request).status.token
    review = client.AuthenticationV1Api(api).create_token_review(client.V1TokenReview(spec={"token": token}))
    assert review.status.user.username == f"system:serviceaccount:{namespace}:robot"
    container = {"name": "web", "image": "web:1"}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    apps.create_namespaced_deployment(namespace, {"metadata": {"name": "web"}, "spec": spec})
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 4


def test_yaml_of_several_documents_is_created(api: client.ApiClient, namespace: str) -> None:
    utils.create_from_yaml(api, str(EXAMPLES / "deployment.yaml"), namespace=namespace)
    assert client.AppsV1Api(api).read_namespaced_deployment("web", namespace).spec.replicas == 2

"""lightkube, the typed client: objects, patches, apply and watches."""

import contextlib
from collections.abc import Iterator

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace
from lightkube.types import CascadeType, PatchType

from trimtab.testing.embedded import TrimtabServer

Beacon = create_namespaced_resource("ground.example.com", "v1", "Beacon", "beacons")


@pytest.fixture
def client(ground: TrimtabServer, namespace: str) -> Iterator[Client]:
    access = KubeConfig.from_file(ground.kubeconfig)
    with Client(access, namespace=namespace, field_manager="lightkube") as client:
        client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield client


def test_objects_are_created_replaced_patched_and_deleted(client: Client) -> None:
    made = client.create(ConfigMap(metadata=ObjectMeta(name="words"), data={"a": "1"}))
    made.data = {"a": "2"}
    client.replace(made)
    client.patch(ConfigMap, "words", {"data": {"b": "3"}}, patch_type=PatchType.MERGE)
    assert client.get(ConfigMap, "words").data == {"a": "2", "b": "3"}
    client.delete(ConfigMap, "words", cascade=CascadeType.BACKGROUND)
    with pytest.raises(ApiError) as missing:
        client.get(ConfigMap, "words")
    assert missing.value.status.reason == "NotFound"


def test_a_strategic_patch_merges_containers_by_name(client: Client) -> None:
    labels = {"app": "web"}
    containers = [Container(name="web", image="web:1"), Container(name="side", image="side:1")]
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=containers))
    spec = DeploymentSpec(selector=LabelSelector(matchLabels=labels), template=template)
    client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:2"}]}}}}
    client.patch(Deployment, "web", change)
    after = client.get(Deployment, "web").spec.template.spec.containers
    assert [(each.name, each.image) for each in after] == [("web", "web:1"), ("side", "side:2")]
    scale = client.get(Deployment.Scale, "web")
    scale.spec.replicas = 3
    client.replace(scale, "web")
    assert client.get(Deployment, "web").spec.replicas == 3


def test_apply_conflicts_until_forced(client: Client) -> None:
    client.apply(ConfigMap(metadata=ObjectMeta(name="words"), data={"a": "1"}))
    with pytest.raises(ApiError) as conflict:
        client.apply(ConfigMap(metadata=ObjectMeta(name="words"), data={"a": "2"}), field_manager="bob")
    assert conflict.value.status.reason == "Conflict"
    applied = client.apply(
        ConfigMap(metadata=ObjectMeta(name="words"), data={"a": "2"}), field_manager="bob", force=True
    )
    assert applied.data == {"a": "2"}


def test_custom_kinds_have_a_status_of_their_own(client: Client) -> None:
    client.create(Beacon(metadata=ObjectMeta(name="north"), spec={"site": "cape"}))
    client.patch(Beacon.Status, "north", {"status": {"replicas": 1}}, patch_type=PatchType.MERGE)
    client.patch(Beacon, "north", {"status": {"replicas": 7}}, patch_type=PatchType.MERGE)
    assert client.get(Beacon, "north")["status"] == {"replicas": 1}


def test_a_list_in_pages_has_everything_once(client: Client) -> None:
    for number in range(5):
        client.create(ConfigMap(metadata=ObjectMeta(name=f"c{number}", labels={"page": "yes"})))
    found = client.list(ConfigMap, chunk_size=2, labels={"page": "yes"})
    assert [each.metadata.name for each in found] == ["c0", "c1", "c2", "c3", "c4"]


def test_a_watch_begins_with_what_there_is(client: Client) -> None:
    client.create(ConfigMap(metadata=ObjectMeta(name="old", labels={"w": "1"})))
    seen = []
    with contextlib.closing(client.watch(ConfigMap, labels={"w": "1"}, server_timeout=10)) as events:
        for event, item in events:
            seen.append((event, item.metadata.name))
            if len(seen) == 1:
                client.patch(ConfigMap, "old", {"data": {"a": "1"}})
                client.delete(ConfigMap, "old")
            if event == "DELETED":
                break
    assert seen == [("ADDED", "old"), ("MODIFIED", "old"), ("DELETED", "old")]


def test_wait_ends_when_the_condition_holds(client: Client) -> None:
    client.create(Beacon(metadata=ObjectMeta(name="north"), spec={"site": "cape"}))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    client.patch(Beacon.Status, "north", ready, patch_type=PatchType.MERGE)
    client.wait(Beacon, "north", for_conditions=["Ready"])

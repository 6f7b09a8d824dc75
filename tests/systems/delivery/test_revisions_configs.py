"""Which ConfigMaps and Secrets a template refers to, and templates that refer to copies of them."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.kinds.fields import OWNER, TRACK
from trimtab.systems.delivery.revisions.configs import ConfigReference, Tracked, checksum, is_tracked, references
from trimtab.systems.delivery.revisions.pinning import COPY_OF, copies, copy_name, pinned, unpinned

TEMPLATE: dict[str, Any] = {
    "spec": {
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"name": "init", "envFrom": [{"secretRef": {"name": "early", "optional": True}}]}],
        "containers": [
            {
                "name": "web",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "both", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "both", "key": "b", "optional": True}}},
                    {"name": "C", "value": "both"},
                ],
                "envFrom": [{"configMapRef": {"name": "env", "optional": True}}],
            }
        ],
        "volumes": [
            {"name": "a", "configMap": {"name": "both", "optional": True}},
            {"name": "b", "secret": {"secretName": "files"}},
            {
                "name": "c",
                "projected": {
                    "sources": [
                        {"configMap": {"name": "projected"}},
                        {"secret": {"name": "projected"}},
                        {"serviceAccountToken": {"path": "token"}},
                    ]
                },
            },
            {"name": "d", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "storage"}}},
        ],
    }
}


def test_references_are_found_everywhere() -> None:
    assert references(TEMPLATE) == (
        ConfigReference("ConfigMap", "both"),
        ConfigReference("ConfigMap", "env", True),
        ConfigReference("ConfigMap", "projected"),
        ConfigReference("Secret", "both", True),
        ConfigReference("Secret", "early", True),
        ConfigReference("Secret", "files"),
        ConfigReference("Secret", "projected"),
    )


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"spec": None},
        {"spec": {"volumes": "x", "containers": [None, {"env": {}, "envFrom": [1, {"configMapRef": "x"}]}]}},
        {"spec": {"volumes": [{"configMap": {"name": 3}}, {"secret": {"secretName": ""}}, {"projected": []}]}},
    ],
)
def test_odd_templates_refer_to_nothing(template: dict[str, Any]) -> None:
    assert references(template) == ()
    assert pinned(template, (), "web") == template


def configmap(name: str = "settings", **fields: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="shop", labels={"app": "web"}), **fields)


def test_a_checksum_is_of_the_content_alone() -> None:
    one = configmap(data={"a": "1", "b": "2"})
    assert checksum(one) == checksum(configmap("other", data={"b": "2", "a": "1"}, binary_data={}, immutable=True))
    assert checksum(one) != checksum(configmap(data={"a": "1"}))
    assert checksum(configmap(data={"a": "MQ=="})) != checksum(configmap(binary_data={"a": "MQ=="}))
    assert checksum(configmap()) == checksum(configmap(data={}))
    text = '{"binaryData":{},"data":{"a":"1","b":"2"}}'
    assert checksum(one) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_an_annotation_leaves_a_config_out() -> None:
    assert is_tracked(ConfigMap(metadata=ObjectMeta(name="a", annotations={TRACK: "true"})))
    assert not is_tracked(ConfigMap(metadata=ObjectMeta(name="a", annotations={TRACK: "false"})))


def tracked(*objects: ConfigMap | Secret) -> Tracked:
    return Tracked(
        configs=tuple(
            TrackedConfig(
                kind="ConfigMap" if isinstance(obj, ConfigMap) else "Secret", name=obj.name, checksum=checksum(obj)
            )
            for obj in objects
        ),
        objects=objects,
    )


def test_a_copy_has_the_content_and_never_changes() -> None:
    [made] = copies(tracked(configmap(data={"a": "1"}, binary_data={"b": "MQ=="})), "web")
    assert isinstance(made, ConfigMap)
    assert (made.data, made.binary_data, made.immutable) == ({"a": "1"}, {"b": "MQ=="}, True)
    assert (made.name[:9], len(made.name), made.namespace) == ("settings-", 17, "shop")
    assert made.metadata.labels == {OWNER: "web"}
    assert made.metadata.annotations == {COPY_OF: "settings"}


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [
        ("Opaque", "Opaque"),
        ("kubernetes.io/tls", "kubernetes.io/tls"),
        ("kubernetes.io/service-account-token", "Opaque"),
    ],
)
def test_a_copy_of_a_secret_has_its_type_unless_the_cluster_would_fill_it(given_type: str, kept: str) -> None:
    secret = Secret(metadata=ObjectMeta(name="keys", namespace="shop"), type=given_type, data={"tls.key": "MQ=="})
    [made] = copies(tracked(secret), "web")
    assert isinstance(made, Secret)
    assert (made.type, made.data, made.immutable) == (kept, {"tls.key": "MQ=="}, True)
    assert "MQ==" not in repr(made)


def test_copies_are_told_apart_by_content_original_and_owner() -> None:
    config = TrackedConfig(kind="ConfigMap", name="a" * 253, checksum="sha256:1")
    others = [config.replace(checksum="sha256:2"), config.replace(name="a" * 252 + "b")]
    names = {copy_name(config, "web"), copy_name(config, "api"), *(copy_name(other, "web") for other in others)}
    assert len(names) == 4
    assert {len(name) for name in names} == {253}


def test_a_pinned_template_refers_to_copies_and_only_there() -> None:
    before = copy.deepcopy(TEMPLATE)
    both = TrackedConfig(kind="ConfigMap", name="both", checksum="sha256:1")
    secret = TrackedConfig(kind="Secret", name="both", checksum="sha256:2")
    files = TrackedConfig(kind="Secret", name="files", checksum="sha256:3")
    made = pinned(TEMPLATE, (both, secret, files), "web")
    assert before == TEMPLATE
    assert {(r.kind, r.name) for r in references(made)} == {
        ("ConfigMap", copy_name(both, "web")),
        ("ConfigMap", "env"),
        ("ConfigMap", "projected"),
        ("Secret", copy_name(secret, "web")),
        ("Secret", "early"),
        ("Secret", copy_name(files, "web")),
        ("Secret", "projected"),
    }
    assert made["spec"]["containers"][0]["env"][2] == {"name": "C", "value": "both"}
    assert made["spec"]["imagePullSecrets"] == [{"name": "pull"}]


@given(st.sets(st.sampled_from(references(TEMPLATE))))
def test_pinning_can_be_undone(chosen: set[ConfigReference]) -> None:
    configs = [TrackedConfig(kind=r.kind, name=r.name, checksum=f"sha256:{r.kind}{r.name}") for r in chosen]
    made = pinned(TEMPLATE, configs, "web")
    assert unpinned(made, configs, "web") == TEMPLATE
    assert (made == TEMPLATE) is (not chosen)

"""What Kubernetes never lets change: the plan says that a new object is needed, and only where it surely is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.definition import Shape
from trimtab.terraform.kinds.freezing import FREE, FROZEN, SEALABLE, frozen
from trimtab.terraform.kinds.snapshot import Snapshot

pytestmark = pytest.mark.slow

Block = dict[str, Any]


def pods(image: str = "one", label: str = "a", **more: Any) -> Block:
    return {"metadata": {"labels": {"app": label}}, "spec": {"containers": {"c": {"image": image}}, **more}}


def deployment(image: str, label: str) -> Block:
    return {"spec": {"selector": {"match_labels": {"app": label}}, "template": pods(image, label)}}


def job(image: str, **spec: Any) -> Block:
    return {"spec": {"template": {"spec": pods(image, restart_policy="Never")["spec"]}, **spec}}


def binding(role: str, user: str) -> Block:
    subject = {"kind": "User", "name": user, "api_group": "rbac.authorization.k8s.io"}
    reference = {"api_group": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
    return {"role_ref": reference, "subjects": [subject]}


def stateful(**spec: Any) -> Block:
    return {"spec": {"selector": {"match_labels": {"app": "a"}}, "service_name": "s", "template": pods(), **spec}}


@pytest.mark.row(68)
@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("apps_deployment", deployment("one", "a"), deployment("one", "b")),
        ("apps_stateful_set", stateful(), stateful(service_name="other")),
        ("batch_job", job("one"), job("two")),
        ("rbac_role_binding", binding("reader", "ann"), binding("writer", "ann")),
        ("core_secret", {"type": "a.b/c"}, {"type": "a.b/d"}),
        ("core_secret", {"string_data": {"k": "1"}, "immutable": True}, {"string_data": {"k": "2"}, "immutable": True}),
        ("core_config_map", {"data": {"k": "1"}, "immutable": True}, {"data": {"k": "2"}, "immutable": True}),
        ("core_config_map", {"data": {"k": "1"}, "immutable": True}, {"data": {"k": "1"}}),
    ],
)
def test_what_never_changes_needs_a_new_object(tf: Terraform, kind: str, before: Block, after: Block) -> None:
    given = {"metadata": {"name": "it"}, "wait": False}
    tf.apply({f"trimtab_{kind}": {"it": {**given, **before}}})
    uid = tf.state(f"trimtab_{kind}.it")["metadata"]["uid"]
    tf.write({f"trimtab_{kind}": {"it": {**given, **after}}})
    assert "must be replaced" in tf.plan()
    tf.apply()
    assert tf.state(f"trimtab_{kind}.it")["metadata"]["uid"] != uid
    tf.unchanged()


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("apps_deployment", deployment("one", "a"), deployment("two", "a")),
        ("apps_stateful_set", stateful(), stateful(pod_management_policy="OrderedReady")),
        ("batch_job", job("one", suspend=True), job("one", suspend=False)),
        ("rbac_role_binding", binding("reader", "ann"), binding("reader", "bob")),
        ("core_secret", {"type": "Opaque"}, {}),
        ("core_config_map", {"data": {"k": "1"}}, {"data": {"k": "2"}, "immutable": True}),
    ],
)
def test_what_may_change_is_changed_in_place(tf: Terraform, kind: str, before: Block, after: Block) -> None:
    given = {"metadata": {"name": "it"}, "wait": False}
    tf.apply({f"trimtab_{kind}": {"it": {**given, **before}}})
    uid = tf.state(f"trimtab_{kind}.it")["metadata"]["uid"]
    tf.apply({f"trimtab_{kind}": {"it": {**given, **after}}})
    assert tf.state(f"trimtab_{kind}.it")["metadata"]["uid"] == uid
    tf.unchanged()


def test_what_is_not_known_yet_may_need_a_new_object(tf: Terraform) -> None:
    def written(label: str) -> Block:
        it = {"metadata": {"name": "it"}, "wait": False, **deployment("one", "${terraform_data.label.output}")}
        return {"terraform_data": {"label": {"input": label}}, "trimtab_apps_deployment": {"it": it}}

    tf.apply(written("a"))
    assert "must be replaced" in tf.plan(written("b"))
    tf.apply()
    tf.unchanged()


def test_a_refusal_that_nobody_foresaw_tells_how_to_replace(tf: Terraform, api: Api, project: str) -> None:
    it = {"metadata": {"name": "it"}, "wait": False}
    tf.apply({"trimtab_apps_stateful_set": {"it": {**it, **stateful()}}})
    policy = stateful(pod_management_policy="Parallel")
    told = tf.apply({"trimtab_apps_stateful_set": {"it": {**it, **policy}}}, fails=True)
    assert "terraform apply -replace=<address>" in told
    tf.run("apply", "-auto-approve", "-no-color", "-replace=trimtab_apps_stateful_set.it")
    path = f"/apis/apps/v1/namespaces/{project}/statefulsets/it"
    assert api.get(path)["spec"]["podManagementPolicy"] == "Parallel"


def test_a_rule_of_our_own_that_no_plan_foresees_tells_how_to_replace(tf: Terraform) -> None:
    def rule(**spec: Any) -> Block:
        kind = {"group": "discovery.trimtab.dev", "version": "v1alpha1", "kind": "DiscoveryRuleIPRange", "name": "n"}
        profile = {"credentials": "c", "connection_profiles": ["p"]}
        targets = [{"connection_profile": "p", "credentials": "c"}]
        whole = {"rule_ref": kind, "discovery_profile": profile, "target_connection_profiles": targets, **spec}
        it = {"metadata": {"name": "it"}, "wait": False, "spec": {"suspend": True, **whole}}
        return {"trimtab_discovery_discovery_rule": {"it": it}}

    tf.apply(rule())
    told = tf.apply(rule(target_template={"name_template": "{{ ip }}"}), fails=True)
    assert "may be neither set nor removed later. `terraform apply -replace=<address>`" in told


def test_every_field_that_is_said_never_to_change_is_there(snapshot: Snapshot) -> None:
    kinds = {(head["group"], head["kind"]): name for name, head in snapshot.heads.items()}
    for table in (FROZEN, FREE, SEALABLE):
        for kind in table.keys() & kinds.keys():
            root = snapshot.definition(kinds[kind]).root
            assert [words for words in table[kind].split() if _missing(root, words.split("."))] == []


def _missing(shape: Shape, wires: list[str]) -> bool:
    for wire in wires:
        inner = shape.items if wire == "*" else (field.shape if (field := shape.field(wire)) else None)
        if inner is None:
            return True
        shape = inner
    return False


@pytest.mark.parametrize(
    ("prior", "planned", "paths"),
    [
        ({"containers": {"c": {"image": "one"}}}, {"containers": {"c": {"image": "two"}}}, []),
        ({"containers": {"c": {"image": "one"}}}, {"containers": {"c": {"image": UNKNOWN}}}, []),
        ({"containers": {"c": {}}}, {"containers": {"c": {}, "d": {}}}, ["spec.containers"]),
        ({"containers": {"c": {}}}, {"containers": {"c": {}, "d": None}}, []),
        (
            {"containers": {"c": {"command": ["a"]}}},
            {"containers": {"c": {"command": ["b"]}}},
            ['spec.containers["c"].command[0]'],
        ),
        (
            {"containers": {"c": {"resources": {"limits": {"cpu": "1"}}}}},
            {"containers": {"c": {"resources": {"limits": {"cpu": "1000m"}}}}},
            [],
        ),
        ({"hostname": "a"}, {"hostname": "b"}, ["spec.hostname"]),
        ({"hostname": "a"}, {"hostname": None}, []),
        ({"hostname": None}, {"hostname": UNKNOWN}, []),
        ({"hostname": "a"}, {"hostname": UNKNOWN}, ["spec.hostname"]),
        ({"node_selector": None}, {"node_selector": {"a": "b"}}, ["spec.node_selector"]),
        ({"node_selector": None}, {"node_selector": UNKNOWN}, ["spec.node_selector"]),
        ({"node_selector": None}, {"node_selector": {}}, []),
        ({"tolerations": None}, {"tolerations": [{"key": "a"}]}, []),
    ],
)
def test_of_a_pod_nearly_nothing_changes(snapshot: Snapshot, prior: Block, planned: Block, paths: list[str]) -> None:
    found = frozen(snapshot.definition("core_pod"), {"spec": prior}, {"spec": planned})
    assert [str(path) for path in found] == paths

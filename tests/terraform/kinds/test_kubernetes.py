"""The same provider on a real Kubernetes: nothing of it depends on our own server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.terraform.kinds.others import changed
from tests.terraform.kinds.samples import beginning
from tests.terraform.kinds.story import PROJECT, lived
from tests.terraform.kinds.terraforming import attached
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import Api, ApiError, object_path
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.reading import owned_by
from trimtab.terraform.kinds.snapshot import Snapshot, write_snapshot
from trimtab.testing.cluster import RealCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

LEFT_OUT = frozenset({"apiregistration_api_service", "core_node", "core_replication_controller"})
"""What breaks a server for others, or is reconciled by nobody here."""
UNOWNED = {"certificates_certificate_signing_request"}
"""A request never changes, so nobody is noted as the owner of its fields, and an import cannot know who wrote them."""
AT_LEAST = frozenset(
    {
        "apiextensions_custom_resource_definition",
        "apps_daemon_set",
        "apps_deployment",
        "apps_stateful_set",
        "core_config_map",
        "core_namespace",
        "core_pod",
        "core_secret",
        "core_service",
        "rbac_role",
        "rbac_role_binding",
    }
)


@pytest.mark.row(64)
@pytest.mark.row(61)
def test_kinds_of_kubernetes_live_without_a_needless_diff(real_cluster: RealCluster, tmp_path: Path) -> None:
    api = Api(access(Settings(kubeconfig=str(real_cluster.kubeconfig)), {}))
    try:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROJECT}}
        api.apply(f"/api/v1/namespaces/{PROJECT}", body)
        write_snapshot(tmp_path / "kinds", taken(api.get))
        snapshot = Snapshot(tmp_path / "kinds")
        names = [
            name for name in snapshot.heads if name not in LEFT_OUT and _can_be_made(api, snapshot.definition(name))
        ]
        assert set(names) >= AT_LEAST
        folder = tmp_path / "work"
        folder.mkdir()
        lives = lived(api, snapshot, real_cluster.kubeconfig, folder, names)
    finally:
        api.close()
    assert lives.made == lives.imported == set(names)
    assert (lives.after_apply, lives.after_reordering) == ({}, {})
    assert set(lives.after_import) == UNOWNED
    assert lives.left == []


@pytest.mark.row(68)
def test_a_secret_of_kubernetes_that_somebody_changed_is_seen(real_cluster: RealCluster, tmp_path: Path) -> None:
    api = Api(access(Settings(kubeconfig=str(real_cluster.kubeconfig)), {}))
    path = "/api/v1/namespaces/default/secrets/it"
    it = {"metadata": {"name": "it"}, "string_data": {"word": "xyzzy", "other": "plugh"}}
    try:
        write_snapshot(tmp_path / "kinds", taken(api.get))
        with attached(tmp_path, Snapshot(tmp_path / "kinds"), real_cluster.kubeconfig, "default") as tf:
            tf.apply({"trimtab_core_secret": {"it": it}})
            changed(api, path, {"metadata": {"labels": {"theirs": "x"}}})
            tf.unchanged()
            changed(api, path, {"data": {"word": "c3RvbGVu"}})
            assert "Somebody else changed" in tf.plan()
            tf.apply()
            assert api.get(path)["data"] == {"word": "eHl6enk=", "other": "cGx1Z2g="}
            tf.unchanged()
            tf.apply({"trimtab_core_secret": {"it": {**it, "string_data": {"word": "xyzzy"}}}})
            assert api.get(path)["data"] == {"word": "eHl6enk="}
            tf.destroy()
    finally:
        api.close()


def test_what_is_ignored_on_kubernetes_stays(real_cluster: RealCluster, tmp_path: Path) -> None:
    api = Api(access(Settings(kubeconfig=str(real_cluster.kubeconfig)), {}))
    path = "/apis/apps/v1/namespaces/default/deployments/ignored"
    ignored = ["spec.replicas", 'spec.template.spec.containers["c"].ports', "spec.template.spec.tolerations"]

    def deployment(image: str, port: str, toleration: str, **spec: int) -> dict[str, Any]:
        ports = [{"container_port": int(port), "name": "p"}]
        inside = {"containers": {"c": {"image": image, "ports": ports}}, "tolerations": [{"key": toleration}]}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": inside}
        whole = {"selector": {"match_labels": {"a": "b"}}, "template": template, **spec}
        it = {"metadata": {"name": "ignored"}, "spec": whole, "wait": False, "lifecycle": {"ignore_changes": ignored}}
        return {"trimtab_apps_deployment": {"it": it}}

    try:
        write_snapshot(tmp_path / "kinds", taken(api.get))
        with attached(tmp_path, Snapshot(tmp_path / "kinds"), real_cluster.kubeconfig, "default") as tf:
            tf.apply(deployment("one", "80", "t", replicas=2))
            tf.apply(deployment("two", "81", "u"))
            assert api.get(path)["spec"]["replicas"] == 2
            changed(api, path, {"spec": {"replicas": 7}}, manager="kubectl")
            tf.apply(deployment("three", "81", "u", replicas=2))
            live = api.get(path)["spec"]
            inside = live["template"]["spec"]
            container = inside["containers"][0]
            assert (live["replicas"], container["image"]) == (7, "three")
            assert (container["ports"][0]["containerPort"], inside["tolerations"][0]["key"]) == (80, "t")
            assert "f:replicas" not in (owned_by(api.get(path)) or {})["f:spec"]
            tf.unchanged()
            tf.destroy()
    finally:
        api.close()


@pytest.mark.row(68)
def test_what_kubernetes_refuses_to_change_is_made_anew(real_cluster: RealCluster, tmp_path: Path) -> None:
    def pods(label: str, image: str) -> dict[str, Any]:
        return {"metadata": {"labels": {"a": label}}, "spec": {"containers": {"c": {"image": image}}}}

    def job(image: str) -> dict[str, Any]:
        return {"template": {"spec": {"containers": {"c": {"image": image}}, "restart_policy": "Never"}}}

    def given(word: str) -> dict[str, Any]:
        chosen = {"selector": {"match_labels": {"a": word}}, "template": pods(word, "i")}
        kinds: dict[str, dict[str, Any]] = {
            "apps/DaemonSet": {"spec": chosen},
            "apps/Deployment": {"spec": chosen},
            "apps/ReplicaSet": {"spec": chosen},
            "apps/StatefulSet": {"spec": {**chosen, "service_name": "s"}},
            "batch/Job": {"spec": job(word)},
            "/ConfigMap": {"data": {"a": word}, "immutable": True},
            "/Pod": {"spec": {**pods("a", "i")["spec"], "hostname": word}},
            "/Secret": {"type": f"example.com/{word}"},
            "discovery.k8s.io/EndpointSlice": {"address_type": {"x": "IPv4", "y": "IPv6"}[word], "endpoints": []},
            "networking.k8s.io/IngressClass": {"spec": {"controller": f"example.com/{word}"}},
            "node.k8s.io/RuntimeClass": {"handler": word},
            "scheduling.k8s.io/PriorityClass": {"value": {"x": 1, "y": 2}[word]},
            "storage.k8s.io/StorageClass": {"provisioner_": f"example.com/{word}"},
        }
        return {types[kind]: {"it": {"metadata": {"name": "frozen"}, **body}} for kind, body in kinds.items()}

    api = Api(access(Settings(kubeconfig=str(real_cluster.kubeconfig)), {}))
    try:
        write_snapshot(tmp_path / "kinds", taken(api.get))
    finally:
        api.close()
    snapshot = Snapshot(tmp_path / "kinds")
    # Other kinds of the server, which other tests leave there, decide how much of a group is in a type's name.
    types = {f"{head['group']}/{head['kind']}": f"trimtab_{name}" for name, head in snapshot.heads.items()}
    with attached(tmp_path, snapshot, real_cluster.kubeconfig, "default", wait=False) as tf:
        tf.apply(given("x"))
        told = tf.plan(given("y"))
        assert f"Plan: {len(given('y'))} to add, 0 to change, {len(given('y'))} to destroy." in told
        tf.apply()
        tf.unchanged()
        tf.destroy()


def _can_be_made(api: Api, definition: Definition) -> bool:
    place = PROJECT if definition.namespaced else ""
    least = beginning(definition, "it", PROJECT)
    path = object_path(definition.group, definition.version, definition.plural, least["metadata"]["name"], place)
    try:
        api.apply(path, least, dry_run=True)
    except ApiError:
        return False
    return True

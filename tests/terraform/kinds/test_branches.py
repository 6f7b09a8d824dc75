"""Kinds of which each branch is a resource of its own: an object is managed under the type of its branch, or of all."""

from __future__ import annotations

from typing import Any

from tests.terraform.kinds.others import applied
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.api import Api

IMPORTED = {"kubeconfig_secret_ref": {"name": "absent"}}


def cluster(**config: Any) -> dict[str, Any]:
    return {"metadata": {"name": "it"}, "spec": {"config": config}, "wait": False}


def cluster_path(project: str) -> str:
    return f"/apis/infra.trimtab.dev/v3/namespaces/{project}/clusters/it"


def test_an_object_of_another_branch_is_not_imported(tf: Terraform, api: Api, project: str) -> None:
    body = {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Cluster",
        "metadata": {"name": "it", "namespace": project},
        "spec": {"config": {"imported": {"kubeconfigSecretRef": {"name": "absent"}}}},
    }
    applied(api, cluster_path(project), body, manager="somebody")
    tf.write({"trimtab_aks_cluster": {"it": cluster(aks="{}")}})
    told = tf.run("import", "trimtab_aks_cluster.it", f"{project}/it", fails=True)
    assert f"Cluster {project}/it cannot be imported" in told
    assert "has spec.config.imported, and a trimtab_aks_cluster has spec.config.aks." in told
    assert "Manage it as a trimtab_imported_cluster." in told
    tf.write({"trimtab_imported_cluster": {"it": cluster(imported=IMPORTED)}})
    tf.run("import", "trimtab_imported_cluster.it", f"{project}/it")


def test_an_object_that_became_one_of_another_branch_is_neither_read_nor_updated(
    tf: Terraform, api: Api, project: str
) -> None:
    tf.apply({"trimtab_imported_cluster": {"it": cluster(imported=IMPORTED)}})
    state = tf.folder / "terraform.tfstate"
    state.write_text(state.read_text().replace('"trimtab_imported_cluster"', '"trimtab_aks_cluster"'))
    tf.write({"trimtab_aks_cluster": {"it": cluster(aks="{}")}})
    assert f"Cluster {project}/it cannot be read" in tf.plan(fails=True)
    told = tf.run("apply", "-auto-approve", "-refresh=false", fails=True)
    assert f"Cluster {project}/it cannot be updated" in told
    assert "Manage it as a trimtab_imported_cluster." in told
    assert "imported" in api.get(cluster_path(project))["spec"]["config"]


def test_an_object_moves_between_the_types_of_its_kind(tf: Terraform, api: Api, project: str) -> None:
    tf.apply({"trimtab_infra_cluster": {"it": cluster(imported=IMPORTED)}})
    uid = api.get(cluster_path(project))["metadata"]["uid"]
    for before, after in (("infra", "imported"), ("imported", "infra")):
        moved = [{"from": f"trimtab_{before}_cluster.it", "to": f"trimtab_{after}_cluster.it"}]
        tf.apply({f"trimtab_{after}_cluster": {"it": cluster(imported=IMPORTED)}}, moved=moved)
        assert tf.addresses() == [f"trimtab_{after}_cluster.it"]
        tf.unchanged()
    assert api.get(cluster_path(project))["metadata"]["uid"] == uid


def test_an_object_does_not_move_to_another_kind_or_branch(tf: Terraform) -> None:
    tf.apply({"trimtab_infra_cluster": {"it": cluster(imported=IMPORTED)}})
    for after, whole in (("aks_cluster", cluster(aks="{}")), ("core_config_map", {"metadata": {"name": "it"}})):
        tf.write(
            {f"trimtab_{after}": {"it": whole}},
            moved=[{"from": "trimtab_infra_cluster.it", "to": f"trimtab_{after}.it"}],
        )
        told = tf.plan(fails=True)
        assert "Move not supported" in told or "Manage it as a trimtab_imported_cluster." in told

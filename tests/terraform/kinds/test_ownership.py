"""Whose a field is: what Terraform shows as drift, takes back, leaves to others, and refuses to touch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.kinds.others import applied, changed, config_map, config_map_path
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.resource import Import
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.client import Client
from trimtab.terraform.kinds.kind_resource import KindResource
from trimtab.terraform.kinds.snapshot import Snapshot

pytestmark = pytest.mark.slow

IT = "trimtab_core_config_map.it"


def maps(**data: str) -> dict[str, Any]:
    return {"trimtab_core_config_map": {"it": {"metadata": {"name": "it"}, "data": data}}}


@pytest.mark.row(64)
def test_a_field_of_ours_that_somebody_changed_is_shown_and_taken_back(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="ours"))
    changed(api, config_map_path("it", project), {"data": {"a": "theirs"}})
    assert '"a" = "theirs" -> "ours"' in tf.plan()
    tf.apply()
    assert api.get(config_map_path("it", project))["data"] == {"a": "ours"}
    tf.unchanged()


def test_a_field_of_ours_that_somebody_took_away_is_shown_and_put_back(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1", b="2"))
    changed(api, config_map_path("it", project), {"data": {"b": None}})
    assert '+ "b" = "2"' in tf.plan()
    tf.apply()
    assert api.get(config_map_path("it", project))["data"] == {"a": "1", "b": "2"}


def test_a_key_with_dots_is_taken_back_too(tf: Terraform, api: Api, project: str) -> None:
    path = config_map_path("it", project)
    tf.apply(maps(**{"app.name": "shop", "app": "1"}))
    changed(api, path, {"data": {"app.name": "theirs"}})
    tf.apply()
    assert api.get(path)["data"] == {"app.name": "shop", "app": "1"}
    tf.unchanged()


def test_what_others_set_beside_ours_is_neither_shown_nor_taken_away(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    path = config_map_path("it", project)
    changed(api, path, {"data": {"theirs": "x"}, "metadata": {"labels": {"l": "x"}, "annotations": {"n": "x"}}})
    tf.unchanged()
    tf.apply(maps(a="2"))
    assert api.get(path)["data"] == {"a": "2", "theirs": "x"}
    assert api.get(path)["metadata"]["labels"] == {"l": "x"}


def test_what_leaves_the_configuration_leaves_the_object(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1", b="2"))
    assert '- "b" = "2"' in tf.plan(maps(a="1"))
    tf.apply()
    assert api.get(config_map_path("it", project))["data"] == {"a": "1"}
    tf.unchanged()


def test_a_field_that_others_manage_is_a_conflict_that_names_them(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, b="theirs"), manager="the-autoscaler")
    told = tf.apply(maps(a="1", b="ours"), fails=True)
    assert 'data.b is managed by "the-autoscaler"' in told
    assert "force_conflicts = true" in told
    assert api.get(path)["data"]["b"] == "theirs"
    forced = maps(a="1", b="ours")
    forced["trimtab_core_config_map"]["it"]["force_conflicts"] = True
    tf.apply(forced)
    assert api.get(path)["data"]["b"] == "ours"
    tf.unchanged()


@pytest.mark.row(60)
def test_an_object_that_exists_is_not_taken_over_but_to_be_imported(tf: Terraform, api: Api, project: str) -> None:
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, theirs="x"), manager="somebody")
    told = tf.apply(maps(a="1"), fails=True)
    assert f"ConfigMap {project}/it already exists" in told
    assert f"terraform import <address> {project}/it" in told
    assert api.get(path)["data"] == {"theirs": "x"}
    assert tf.addresses() == []


@pytest.mark.row(61)
def test_an_object_that_somebody_made_is_imported_with_all_that_he_set(tf: Terraform, api: Api, project: str) -> None:
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, a="1"), manager="somebody")
    tf.write(maps(a="1"))
    tf.run("import", IT, f"{project}/it")
    tf.unchanged()
    tf.apply(maps(a="2"))
    assert api.get(path)["data"] == {"a": "2"}


def test_the_project_of_the_provider_is_meant_when_an_import_names_none(tf: Terraform, api: Api, project: str) -> None:
    applied(api, config_map_path("it", project), config_map("it", project, a="1"), manager="somebody")
    tf.write(maps(a="1"))
    tf.run("import", IT, "it")
    assert tf.state(IT)["metadata"]["namespace"] == project


@pytest.mark.row(61)
def test_an_object_is_imported_by_its_identity(api: Api, snapshot: Snapshot, project: str) -> None:
    applied(api, config_map_path("it", project), config_map("it", project, a="1"), manager="somebody")
    resource = KindResource(snapshot.definition("core_config_map"))
    identity = {"namespace": project, "name": "it"}
    assert set(identity) == set(resource.identity)
    state = resource.import_state(Import("", identity, {}, Context(client=Client(api))))
    assert state.get("data") == {"a": "1"}
    assert (state.get("metadata.namespace"), state.get("metadata.name")) == (project, "it")


@pytest.mark.row(57)
def test_a_provider_that_is_not_configured_says_so(snapshot: Snapshot) -> None:
    resource = KindResource(snapshot.definition("core_config_map"))
    with pytest.raises(Failed, match="The provider is not configured"):
        resource.import_state(Import("it", None, {}, Context()))


@pytest.mark.row(63)
def test_a_branch_is_a_resource_of_its_own_where_the_kind_asks(tf: Terraform, api: Api, project: str) -> None:
    imported = {"kubeconfig_secret_ref": {"name": "absent"}}
    cluster = {"metadata": {"name": "it"}, "spec": {"config": {"imported": imported}}, "wait": False}
    tf.apply({"trimtab_imported_cluster": {"it": cluster}})
    tf.unchanged()
    live = api.get(f"/apis/infra.trimtab.dev/v3/namespaces/{project}/clusters/it")
    assert live["spec"]["config"] == {"imported": {"kubeconfigSecretRef": {"name": "absent", "key": "kubeconfig"}}}
    tf.write({"trimtab_mks_cluster": {"it": cluster}})
    told = tf.run("validate", fails=True)
    assert 'attribute "mks" is required' in told


@pytest.mark.parametrize("identifier", ["a/b/c", "/it", "it/"])
def test_what_is_no_id_is_said_to_be_none(tf: Terraform, identifier: str) -> None:
    tf.write(maps(a="1"))
    told = tf.run("import", IT, identifier, fails=True)
    assert f"A ConfigMap is imported by namespace/name or name, not by '{identifier}'." in told


@pytest.mark.row(61)
def test_what_does_not_exist_cannot_be_imported(tf: Terraform, project: str) -> None:
    tf.write(maps(a="1"))
    assert f"ConfigMap {project}/absent does not exist" in tf.run("import", IT, f"{project}/absent", fails=True)


@pytest.mark.row(60)
def test_an_object_that_vanished_leaves_the_state_and_is_made_again(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    api.delete(config_map_path("it", project))
    assert "1 to add" in tf.plan()
    tf.apply()
    assert api.get(config_map_path("it", project))["data"] == {"a": "1"}


def test_an_object_of_git_is_not_taken_over(tf: Terraform, api: Api, project: str) -> None:
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, a="1"), manager="gitops")
    assert "is synced from Git" in tf.apply(maps(a="2"), fails=True)
    assert "is synced from Git" in tf.run("import", IT, f"{project}/it", fails=True)
    assert api.get(path)["data"] == {"a": "1"}


def test_an_object_that_git_took_is_neither_changed_nor_deleted(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, a="git"), manager="gitops")
    assert "is synced from Git" in tf.apply(maps(a="2"), fails=True)
    assert "is synced from Git" in tf.run("destroy", "-auto-approve", fails=True)
    assert api.get(path)["data"] == {"a": "git"}


def test_lineage_of_a_hub_object_tells_that_it_is_of_git(tf: Terraform, api: Api, project: str) -> None:
    path = f"/apis/hub.trimtab.dev/v3/namespaces/{project}/repositories/it"
    body = {
        "apiVersion": "hub.trimtab.dev/v3",
        "kind": "Repository",
        "metadata": {
            "name": "it",
            "namespace": project,
            "annotations": {"hub.trimtab.dev/lineage": f"{project}/fleet@1"},
        },
        "spec": {"type": "git", "endpoint": "https://localhost:1/x.git"},
    }
    applied(api, path, body, manager="a-sync", includeLineage="true")
    spec = {"type": "git", "endpoint": "https://localhost:1/x.git"}
    tf.write({"trimtab_hub_repository": {"it": {"metadata": {"name": "it"}, "spec": spec}}})
    told = tf.run("import", "trimtab_hub_repository.it", f"{project}/it", fails=True)
    assert f"is synced from Git ({project}/fleet@1)" in told


def test_an_object_made_anew_by_others_is_not_deleted_in_place_of_ours(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    path = config_map_path("it", project)
    api.delete(path)
    applied(api, path, config_map("it", project, a="1"), manager="somebody")
    tf.run("destroy", "-auto-approve", "-refresh=false")
    assert api.get(path)["data"] == {"a": "1"}


@pytest.mark.row(60)
def test_an_object_made_anew_by_others_is_not_taken_for_ours(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1"))
    path = config_map_path("it", project)
    api.delete(path)
    applied(api, path, config_map("it", project, a="theirs"), manager="somebody")
    told = tf.plan()
    assert "1 to add" in told
    assert f"ConfigMap {project}/it is another object now" in told
    assert f"ConfigMap {project}/it already exists" in tf.apply(fails=True)
    tf.destroy()
    assert api.get(path)["data"] == {"a": "theirs"}
    tf.run("import", IT, f"{project}/it")
    assert tf.state(IT)["metadata"]["uid"] == api.get(path)["metadata"]["uid"]


def test_a_plan_for_an_object_that_was_made_anew_since_is_not_carried_out(
    tf: Terraform, api: Api, project: str
) -> None:
    tf.apply(maps(a="1"))
    tf.write(maps(a="2"))
    tf.run("plan", "-out=planned")
    path = config_map_path("it", project)
    api.delete(path)
    applied(api, path, config_map("it", project, a="theirs"), manager="somebody")
    assert f"ConfigMap {project}/it is gone" in tf.run("apply", "planned", fails=True)
    assert api.get(path)["data"] == {"a": "theirs"}


def test_what_somebody_changed_after_the_plan_is_not_taken_back_by_it(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(maps(a="1", b="1"))
    path = config_map_path("it", project)
    changed(api, path, {"data": {"a": "shown"}})
    tf.write(maps(a="1", b="2"))
    tf.run("plan", "-out=planned")
    changed(api, path, {"data": {"a": "later"}})
    told = tf.run("apply", "planned", fails=True)
    assert f"ConfigMap {project}/it has changed since the plan was made" in told
    assert 'data.a is managed by "somebody" now, and is another. Plan again.' in told
    assert api.get(path)["data"] == {"a": "later", "b": "1"}
    tf.apply()
    assert api.get(path)["data"] == {"a": "1", "b": "2"}

"""Values whose spelling, order or absence is not what it seems, against the real server by the real Terraform."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.terraform.binary import can
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.api import Api

pytestmark = pytest.mark.slow


def deployment(**container: Any) -> dict[str, Any]:
    spec = {
        "selector": {"match_labels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": {
                    "web": {"image": "example.com/web", **container},
                    "proxy": {"image": "example.com/proxy"},
                }
            },
        },
    }
    return {"trimtab_apps_deployment": {"it": {"metadata": {"name": "it"}, "spec": spec, "wait": False}}}


@pytest.mark.row(64)
def test_two_spellings_of_a_quantity_are_no_difference(tf: Terraform) -> None:
    tf.apply(deployment(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}}))
    tf.unchanged()
    tf.unchanged(deployment(resources={"limits": {"cpu": "1", "memory": "1024Mi"}}))


def test_a_number_or_a_name_is_one_attribute(tf: Terraform, api: Api, project: str) -> None:
    ports = {"http_get": {"path": "/", "port": "8080"}}
    tf.apply(deployment(liveness_probe=ports, readiness_probe={"http_get": {"path": "/", "port": "http"}}))
    tf.unchanged()
    live = api.get(f"/apis/apps/v1/namespaces/{project}/deployments/it")
    web = next(one for one in live["spec"]["template"]["spec"]["containers"] if one["name"] == "web")
    assert web["livenessProbe"]["httpGet"]["port"] == 8080
    assert web["readinessProbe"]["httpGet"]["port"] == "http"


@pytest.mark.row(64)
def test_a_keyed_list_that_somebody_reordered_is_no_difference(tf: Terraform, api: Api, project: str) -> None:
    tf.apply(deployment())
    path = f"/apis/apps/v1/namespaces/{project}/deployments/it"
    containers = api.get(path)["spec"]["template"]["spec"]["containers"]
    changed(api, path, {"spec": {"template": {"spec": {"containers": containers[::-1]}}}})
    assert [one["name"] for one in api.get(path)["spec"]["template"]["spec"]["containers"]] == [
        one["name"] for one in containers[::-1]
    ]
    tf.unchanged()


def test_a_list_of_several_keys_keeps_the_order_of_the_configuration(tf: Terraform, api: Api, project: str) -> None:
    ports = [
        {"name": "https", "port": 443},
        {"name": "tcp", "port": 53},
        {"name": "udp", "port": 53, "protocol": "UDP"},
    ]
    service = {"it": {"metadata": {"name": "it"}, "spec": {"ports": ports}}}
    tf.apply({"trimtab_core_service": service})
    path = f"/api/v1/namespaces/{project}/services/it"
    changed(api, path, {"spec": {"ports": api.get(path)["spec"]["ports"][::-1]}})
    tf.unchanged()


@pytest.mark.row(64)
def test_another_order_of_a_list_of_several_keys_is_no_difference(tf: Terraform, api: Api, project: str) -> None:
    def service(*ports: dict[str, Any], **labels: str) -> dict[str, Any]:
        meta = {"name": "it", "labels": labels}
        return {"trimtab_core_service": {"it": {"metadata": meta, "spec": {"ports": ports}}}}

    tcp: dict[str, Any] = {"name": "tcp", "port": 53}
    udp = {"name": "udp", "port": 53, "protocol": "UDP", "app_protocol": "example.com/dns"}
    web = {"name": "web", "port": 80, "target_port": "8080"}
    tf.apply(service(udp, tcp, web))
    tf.unchanged(service(web, tcp, udp))
    tf.unchanged(service(tcp, udp, web))
    assert "did not keep" not in tf.apply(service(tcp, web, udp, tier="front"))
    tf.unchanged()
    assert "will be updated in-place" in tf.plan(service(tcp, web, {**udp, "port": 54}, tier="front"))
    assert "did not keep" not in tf.apply(service(web, tcp, {**udp, "target_port": "5353"}, tier="front"))
    tf.unchanged()
    live = api.get(f"/api/v1/namespaces/{project}/services/it")["spec"]["ports"]
    assert {one["name"]: (one["protocol"], one["targetPort"]) for one in live} == {
        "tcp": ("TCP", 53),
        "udp": ("UDP", 5353),
        "web": ("TCP", 8080),
    }


def test_the_order_of_a_list_that_means_something_is_a_difference(tf: Terraform) -> None:
    one, two = {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}
    tf.apply(deployment(env=[one, two]))
    assert "will be updated in-place" in tf.plan(deployment(env=[two, one]))


@pytest.mark.row(64)
def test_two_spellings_of_a_duration_are_no_difference(tf: Terraform) -> None:
    def repository(interval: str) -> dict[str, Any]:
        spec = {"type": "git", "endpoint": "https://localhost:1/x.git", "interval": interval}
        return {"trimtab_hub_repository": {"it": {"metadata": {"name": "it"}, "spec": spec, "wait": False}}}

    tf.apply(repository("90s"))
    tf.unchanged(repository("1m30s"))


@pytest.mark.row(64)
def test_two_spellings_of_json_are_no_difference_and_what_others_add_in_it_is_theirs(
    tf: Terraform, api: Api, project: str
) -> None:
    def revision(data: str) -> dict[str, Any]:
        one = {"metadata": {"name": "it"}, "revision": 1, "spec": data}
        return {"trimtab_networking_istio_virtual_service": {"it": {k: v for k, v in one.items() if k != "revision"}}}

    tf.apply(revision('{"hosts": ["a"], "http": [{"name": "x"}]}'))
    tf.unchanged(revision('{"http":[{"name":"x"}],"hosts":["a"]}'))
    path = f"/apis/networking.istio.io/v1/namespaces/{project}/virtualservices/it"
    changed(api, path, {"spec": {"gateways": ["mesh"]}})
    tf.unchanged()
    changed(api, path, {"spec": {"hosts": ["b"]}})
    assert "will be updated in-place" in tf.plan()


@pytest.mark.row(68)
def test_a_default_is_planned_and_comes_back_when_the_attribute_goes(tf: Terraform, api: Api, project: str) -> None:
    def repository(**spec: Any) -> dict[str, Any]:
        whole = {"type": "git", "endpoint": "https://localhost:1/x.git", **spec}
        return {"trimtab_hub_repository": {"it": {"metadata": {"name": "it"}, "spec": whole, "wait": False}}}

    assert re.search(r'\+ interval +=  *"10m"', tf.plan(repository()))
    tf.apply(repository(interval="7m"))
    assert '"7m" -> "10m"' in tf.plan(repository())
    tf.apply()
    path = f"/apis/hub.trimtab.dev/v3/namespaces/{project}/repositories/it"
    assert api.get(path)["spec"]["interval"] == "10m"
    tf.unchanged()
    changed(api, path, {"spec": {"interval": "9m"}})
    assert '"9m" -> "10m"' in tf.plan()
    tf.apply(repository())
    assert api.get(path)["spec"]["interval"] == "10m"
    tf.unchanged()


@pytest.mark.row(68)
def test_what_is_immutable_is_replaced(tf: Terraform, api: Api, project: str) -> None:
    def profile(port: int) -> dict[str, Any]:
        spec = {"protocol": "ssh", "port": port}
        return {"trimtab_discovery_target_connection_profile": {"it": {"metadata": {"name": "it"}, "spec": spec}}}

    tf.apply(profile(22))
    assert "must be replaced" in tf.plan(profile(2222))
    tf.apply()
    path = f"/apis/discovery.trimtab.dev/v1alpha1/namespaces/{project}/targetconnectionprofiles/it"
    assert api.get(path)["spec"]["port"] == 2222
    tf.unchanged()


def test_another_name_or_place_is_another_object(tf: Terraform, api: Api, project: str) -> None:
    def named(name: str, **meta: str) -> dict[str, Any]:
        return {"trimtab_core_config_map": {"it": {"metadata": {"name": name, **meta}, "data": {"a": "1"}}}}

    tf.apply(named("one"))
    assert "must be replaced" in tf.plan(named("two"))
    assert "must be replaced" in tf.plan(named("one", namespace="default"))
    tf.apply(named("two"))
    assert api.find(f"/api/v1/namespaces/{project}/configmaps/one") is None
    assert api.get(f"/api/v1/namespaces/{project}/configmaps/two")["data"] == {"a": "1"}


@pytest.mark.row(68)
def test_what_is_only_written_is_in_no_state_and_its_change_is_seen(tf: Terraform, api: Api, project: str) -> None:
    can("write-only attributes")

    def secret(word: str) -> dict[str, Any]:
        return {"trimtab_core_secret": {"it": {"metadata": {"name": "it"}, "string_data": {"word": word}}}}

    path = f"/api/v1/namespaces/{project}/secrets/it"
    tf.apply(secret("xyzzy"))
    assert api.get(path)["data"] == {"word": "eHl6enk="}
    tf.unchanged()
    for file in tf.folder.glob("terraform.tfstate*"):
        assert "xyzzy" not in file.read_text()
        assert "eHl6enk" not in file.read_text()
    assert "will be updated in-place" in tf.plan(secret("plugh"))
    tf.apply()
    assert api.get(path)["data"] == {"word": "cGx1Z2g="}
    tf.unchanged()


def test_what_is_only_written_is_taken_for_data_by_an_import_until_the_next_apply(
    tf: Terraform, api: Api, project: str
) -> None:
    can("write-only attributes")
    tf.apply({"trimtab_core_secret": {"it": {"metadata": {"name": "it"}, "string_data": {"word": "xyzzy"}}}})
    tf.run("state", "rm", "trimtab_core_secret.it")
    tf.run("import", "trimtab_core_secret.it", f"{project}/it")
    told = tf.plan()
    assert "- data " in told
    assert "eHl6enk" not in told
    tf.apply()
    tf.unchanged()
    assert tf.state("trimtab_core_secret.it")["data"] is None
    assert api.get(f"/api/v1/namespaces/{project}/secrets/it")["data"] == {"word": "eHl6enk="}


def test_secrets_are_not_shown(tf: Terraform) -> None:
    secret = {"trimtab_core_secret": {"it": {"metadata": {"name": "it"}, "data": {"word": "eHl6enk="}}}}
    told = tf.apply(secret)
    assert "(sensitive value)" in told
    assert "eHl6enk" not in told


def test_empty_is_not_null_and_makes_no_difference(tf: Terraform) -> None:
    empty: dict[str, Any] = {"metadata": {"name": "it", "labels": {}, "annotations": {}}, "data": {}, "binary_data": {}}
    tf.apply({"trimtab_core_config_map": {"it": empty}})
    tf.unchanged()
    account = {"metadata": {"name": "it"}, "image_pull_secrets": [], "secrets": {}}
    tf.apply({"trimtab_core_service_account": {"it": account}})
    tf.unchanged()


def test_what_the_server_does_not_keep_is_told(tf: Terraform) -> None:
    lease = {"metadata": {"name": "it"}, "spec": {"holder_identity": "me", "strategy": "OldestEmulationVersion"}}
    told = tf.apply({"trimtab_coordination_lease": {"it": lease}})
    assert "The server did not keep spec.strategy" in told


@pytest.mark.row(63)
@pytest.mark.row(59)
@pytest.mark.parametrize("document", [{}, {"inline": "{}", "url": "https://localhost:1"}])
def test_exactly_one_branch_is_to_be_given(tf: Terraform, document: dict[str, Any]) -> None:
    service = {"metadata": {"name": "it"}, "spec": {"endpoint": "http://127.0.0.1:1", "document": document}}
    tf.write({"trimtab_rest_rest_service": {"it": service}})
    told = tf.run("validate", fails=True)
    assert "spec.document.inline, spec.document.url, spec.document.config_map" in told


def test_a_refusal_of_the_server_names_the_attribute(tf: Terraform) -> None:
    spec = {"type": "git", "endpoint": "nonsense", "interval": "1 parsec"}
    told = tf.apply({"trimtab_hub_repository": {"it": {"metadata": {"name": "it"}, "spec": spec}}}, fails=True)
    assert "spec.interval" in told
    assert "main.tf.json line" in told


def test_wrong_types_and_attributes_that_do_not_exist_are_named(tf: Terraform) -> None:
    bad = {"metadata": {"name": "it"}, "data": "text", "nonsense": 1}
    tf.write({"trimtab_core_config_map": {"it": bad}})
    told = tf.run("validate", fails=True)
    assert 'No argument or block type is named "nonsense"' in told
    tf.write({"trimtab_core_config_map": {"it": {"metadata": {"name": "it"}, "data": "text"}}})
    assert 'attribute "data"' in tf.run("validate", fails=True)


def test_text_that_is_no_json_is_refused_before_it_is_sent(tf: Terraform) -> None:
    tf.write({"trimtab_networking_istio_virtual_service": {"it": {"metadata": {"name": "it"}, "spec": "{"}}})
    assert "must be JSON" in tf.run("validate", fails=True)

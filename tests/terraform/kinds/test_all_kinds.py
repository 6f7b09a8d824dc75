"""One life for every kind that the server serves: made, planned again, reordered, imported, and gone.

What is made has every field that the server takes (see samples), so that this covers forms of fields too. All kinds are
in one configuration, since Terraform is quick with many; each test looks at its own.
"""

from __future__ import annotations

import pytest

from tests.terraform.kinds.conftest import make_project
from tests.terraform.kinds.story import PROJECT, Lives, lived
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.snapshot import Snapshot
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

KINDS = [
    "aks_cluster",
    "eks_cluster",
    "gke_cluster",
    "imported_cluster",
    "mks_cluster",
    "admissionregistration_mutating_webhook_configuration",
    "admissionregistration_validating_admission_policy",
    "admissionregistration_validating_admission_policy_binding",
    "admissionregistration_validating_webhook_configuration",
    "apiextensions_custom_resource_definition",
    "apiregistration_api_service",
    "apps_controller_revision",
    "apps_daemon_set",
    "apps_deployment",
    "apps_replica_set",
    "apps_stateful_set",
    "apps_trimtab_workload",
    "autoscaling_horizontal_pod_autoscaler",
    "batch_cron_job",
    "batch_job",
    "certificates_certificate_signing_request",
    "coordination_lease",
    "core_config_map",
    "core_endpoints",
    "core_limit_range",
    "core_namespace",
    "core_node",
    "core_pod",
    "core_replication_controller",
    "core_resource_quota",
    "core_secret",
    "core_service",
    "core_service_account",
    "delivery_canary_deployment",
    "delivery_metric_template",
    "delivery_release_group",
    "discovery_discovery_rule",
    "discovery_discovery_rule_ip_range",
    "discovery_discovery_vendor_profile",
    "discovery_target",
    "discovery_target_connection_profile",
    "discovery_target_sync_profile",
    "hub_git_sync",
    "hub_project",
    "hub_repository",
    "hub_sync_conflict",
    "images_discovery_job",
    "images_image",
    "images_registry",
    "images_sbom",
    "images_vex_source",
    "images_vulnerability_report",
    "infra_addon",
    "infra_blueprint",
    "infra_cluster",
    "networking_ingress",
    "networking_istio_destination_rule",
    "networking_istio_virtual_service",
    "policy_pod_disruption_budget",
    "rbac_cluster_role",
    "rbac_cluster_role_binding",
    "rbac_role",
    "rbac_role_binding",
    "rest_rest_definition",
    "rest_rest_service",
    "scheduling_priority_class",
]

UNOWNED = {"certificates_certificate_signing_request"}
"""A request never changes, so nobody is noted as the owner of its fields, and an import cannot know who wrote them."""


@pytest.fixture(scope="module")
def lives(
    api: Api, snapshot: Snapshot, trimtab_server: TrimtabServer, tmp_path_factory: pytest.TempPathFactory
) -> Lives:
    make_project(api, PROJECT)
    return lived(api, snapshot, trimtab_server.kubeconfig, tmp_path_factory.mktemp("lives"), snapshot.heads)


def test_every_kind_of_the_server_is_here(snapshot: Snapshot) -> None:
    assert sorted(snapshot.heads) == sorted(KINDS)


@pytest.mark.row(64)
@pytest.mark.parametrize("name", KINDS)
def test_after_apply_the_plan_is_empty(name: str, lives: Lives) -> None:
    assert name in lives.made
    assert lives.after_apply.get(name) is None


@pytest.mark.row(64)
@pytest.mark.parametrize("name", KINDS)
def test_after_reordering_the_plan_is_empty(name: str, lives: Lives) -> None:
    assert name in lives.made
    assert lives.after_reordering.get(name) is None


@pytest.mark.row(61)
@pytest.mark.parametrize("name", sorted(set(KINDS) - UNOWNED))
def test_after_import_the_plan_is_empty(name: str, lives: Lives) -> None:
    assert name in lives.imported
    assert lives.after_import.get(name) is None


@pytest.mark.parametrize("name", KINDS)
def test_after_destroy_the_object_is_gone(name: str, lives: Lives) -> None:
    assert name in lives.wanted
    assert name not in lives.left

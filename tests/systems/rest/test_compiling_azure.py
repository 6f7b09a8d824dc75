"""What becomes of Azure's own documents, and of a small one that is built as they are."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import msgspec
import pytest

from tests.systems.rest.compiling_kit import TEXT, arm, compiled, node, obj, ref, rows
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.fields import fields
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.kinds import RestServiceSpec
from trimtab.systems.rest.model import DECODER, ENCODER, Comparator, FieldClass, Model, Writer
from trimtab.systems.rest.openapi import Document
from trimtab.systems.rest.openapi.loading import from_path

SPECS = Path(__file__).parents[4] / "shared" / "data" / "azure-specs" / "specification"
SERVICE = msgspec.convert({"endpoint": "https://127.0.0.1", "document": {"inline": "{}"}}, RestServiceSpec)
CREATED = Writer.CREATE | Writer.UPDATE


def documents() -> list[Path]:
    if not SPECS.exists():
        pytest.skip("Azure's documents are not at hand")
    return sorted(path for path in SPECS.rglob("*.json") if "examples" not in path.parts)


def find(name: str) -> Path:
    return next(path for path in documents() if path.name == name)


@functools.cache
def document(name: str) -> Document:
    return from_path(find(name))


def models(of: Document) -> dict[str, Model]:
    return {
        each.spec.names.kind: compile_model(
            of, each, service=SERVICE, service_name="azure", group="azure.rest.trimtab.dev"
        )
        for each in propose(of, "azure")
    }


@functools.cache
def model(name: str, path: str) -> Model:
    """Of the resource whose path ends so."""
    of = document(name)
    (chosen,) = [each for each in propose(of, "azure") if each.spec.operations.create.path.endswith(path)]
    return compile_model(of, chosen, service=SERVICE, service_name="azure", group="azure.rest.trimtab.dev")


class TestScaleSets:
    @functools.cached_property
    def model(self) -> Model:
        return model("virtualMachineScaleSet.json", "/virtualMachineScaleSets/{vmScaleSetName}")

    def test_the_capacity_is_writable_and_patched(self) -> None:
        row = rows(self.model)["sku.capacity"]
        assert (row.cls, row.writers) == (FieldClass.WRITABLE, Writer.ALL)

    def test_the_location_is_create_only_though_the_document_does_not_say_so(self) -> None:
        row = rows(self.model)["location"]
        assert (row.cls, row.why) == (FieldClass.CREATE_ONLY, "built-in: ARM never moves a resource")
        assert row.compare is Comparator.LOCATION

    def test_a_patch_takes_most_and_not_all(self) -> None:
        found = rows(self.model)
        assert found["properties.virtualMachineProfile.osProfile.customData"].writers is Writer.ALL
        assert found["properties.virtualMachineProfile.osProfile.adminUsername"].writers == CREATED

    def test_the_password_is_a_secret(self) -> None:
        path = "properties.virtualMachineProfile.osProfile.adminPassword"
        assert rows(self.model)[path].cls is FieldClass.SECRET

    def test_each_call_names_the_version_and_may_take_long(self) -> None:
        create, patch = self.model.calls.create, self.model.calls.patch
        assert create.query == {"api-version": "2024-07-01"}
        assert create.long_running
        assert patch is not None
        assert patch.long_running
        assert self.model.calls.list is not None
        assert (self.model.calls.list.items, self.model.calls.list.next_link) == ("value", "nextLink")

    def test_the_parameters_have_their_sources(self) -> None:
        sources = {each.name: each.source for each in self.model.parameters}
        assert sources == {"subscriptionId": "service", "resourceGroupName": "object", "vmScaleSetName": "identity"}


class TestFleets:
    """The same on a document of our own."""

    @functools.cached_property
    def model(self) -> Model:
        profile = obj(user=TEXT, data=TEXT, adminPassword={"type": "string", "x-ms-secret": True})
        sku = ref("Sku")
        put = obj(
            location_=TEXT, sku=sku, tags={"type": "object", "additionalProperties": TEXT}, properties=obj(os=profile)
        )
        patch = obj(sku=sku, properties=obj(os=obj(data=TEXT)))
        return compiled(arm(put, patch, definitions={"Sku": obj(name=TEXT, capacity={"type": "integer"})}))

    def test_the_capacity_is_writable_and_patched(self) -> None:
        row = rows(self.model)["sku.capacity"]
        assert (row.cls, row.writers) == (FieldClass.WRITABLE, Writer.ALL)

    def test_the_location_is_create_only_and_required(self) -> None:
        assert rows(self.model)["location"].cls is FieldClass.CREATE_ONLY
        assert self.model.spec.required == ("location",)

    def test_a_patch_takes_what_its_own_type_has(self) -> None:
        found = rows(self.model)
        assert found["properties.os.data"].writers is Writer.ALL
        assert found["properties.os.user"].writers == CREATED
        assert found["properties.os.adminPassword"].cls is FieldClass.SECRET


class TestOthers:
    def test_a_network_has_its_subnets_by_name_and_its_patch_takes_tags_alone(self) -> None:
        found = model("virtualNetwork.json", "/virtualNetworks/{virtualNetworkName}")
        assert node(found, "properties.subnets").keys == ("name",)
        patched = [row.path for row in rows(found).values() if Writer.PATCH in row.writers]
        assert patched == ["tags"]
        assert "properties.subnets[].properties.privateEndpoints" in found.read_only

    def test_what_a_subnet_names_is_a_reference(self) -> None:
        found = model("virtualNetwork.json", "/virtualNetworks/{virtualNetworkName}")
        group = node(found, "properties.subnets[].properties.networkSecurityGroup.id")
        assert (group.compare, group.reference) == (Comparator.ARM_ID, "*")

    def test_a_cluster_has_its_pools_by_name_and_hides_its_secrets(self) -> None:
        found = model("managedClusters.json", "/managedClusters/{resourceName}")
        assert node(found, "properties.agentPoolProfiles").keys == ("name",)
        assert rows(found)["properties.servicePrincipalProfile.secret"].cls is FieldClass.SECRET
        assert rows(found)["properties.windowsProfile.adminPassword"].cls is FieldClass.SECRET

    def test_the_keys_of_a_cache_are_not_shown(self) -> None:
        found = model("redis.json", "/redis/{name}")
        keys = found.observed.properties["properties"].properties["accessKeys"]
        assert {name for name, each in keys.properties.items() if each.field is FieldClass.SECRET} == {
            "primaryKey",
            "secondaryKey",
        }

    def test_a_storage_account_is_patched_nearly_whole(self) -> None:
        found = rows(model("storage.json", "/storageAccounts/{accountName}"))
        leaves = [row for row in found.values() if row.type not in ("object", "") and row.cls is FieldClass.WRITABLE]
        patched = [row for row in leaves if Writer.PATCH in row.writers]
        assert len(patched) > 0.85 * len(leaves)

    def test_a_vault_has_its_access_policies(self) -> None:
        found = model("keyvault.json", "/vaults/{vaultName}")
        assert node(found, "properties.accessPolicies").type == "array"
        assert "properties" in found.spec.required

    def test_the_activities_of_a_pipeline_are_told_apart_by_their_type(self) -> None:
        found = model("datafactory.json", "/pipelines/{pipelineName}")
        activity = node(found, "properties.activities[]")
        assert activity.discriminator == "type"
        assert {"Copy", "ForEach", "IfCondition"} <= set(activity.variants)
        copy = found.variant(activity, {"type": "Copy"})
        assert "source" in found.node(copy.properties["typeProperties"]).properties
        assert any(row.path == "properties.activities[].typeProperties.activities[]" for row in fields(found))

    def test_what_a_linked_service_has_written_in_its_place_is_a_secret(self) -> None:
        found = model("datafactory.json", "/linkedservices/{linkedServiceName}")
        secure = [row for row in fields(found) if row.cls is FieldClass.SECRET]
        assert {"built-in: named as secrets are"} == {row.why for row in secure}
        assert len(secure) > 50

    def test_a_management_group_is_read_with_its_children_and_written_without(self) -> None:
        found = model("management.json", "/managementGroups/{groupId}")
        assert found.read_only["properties.children"] == "readOnly"
        assert list(found.spec.properties) == ["properties"]

    def test_a_site_has_marks_of_all_sorts(self) -> None:
        found = rows(model("WebApps.json", "/Microsoft.Web/sites/{name}"))
        assert found["properties.reserved"].why == "x-ms-mutability: create, read"
        assert found["properties.siteConfig.metadata"].cls is FieldClass.WRITE_ONLY
        assert found["properties.siteConfig.azureStorageAccounts.*.accessKey"].cls is FieldClass.SECRET

    def test_all_identities_of_a_resource_can_be_given(self) -> None:
        found = model("WebApps.json", "/Microsoft.Web/sites/{name}")
        assert node(found, "identity.userAssignedIdentities").type == "map"


def test_all_documents_become_models_in_little_time() -> None:
    began = time.process_time()
    kinds = 0
    for path in documents():
        for found in models(from_path(path)).values():
            kinds += 1
            encoded = ENCODER.encode(found)
            assert len(encoded) < 600_000
            assert DECODER.decode(encoded).kind == found.kind
    assert kinds > 150
    assert time.process_time() - began < 10

"""Which kinds are proposed for a document: their paths, parents, names and identities."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from tests.systems.rest.compiling_kit import TEXT, obj, operation, swagger
from tests.systems.rest.openapi_kit import DOCUMENTS, FLEET, azure, real
from trimtab.systems.rest.compiling.kind_names import kind_name, plural, singular, unique, words
from trimtab.systems.rest.compiling.proposing import NoSuchKind, conflicts, proposals, propose
from trimtab.systems.rest.kinds.definition import Operation, RestDefinition, RestDefinitionSpec
from trimtab.systems.rest.openapi import from_path

GROUP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Acme.Fleet"
SHIP = f"{GROUP}/ships/{{shipName}}"


def kinds(path: Path, *only: str) -> dict[str, RestDefinitionSpec]:
    return {found.spec.names.kind: found.spec for found in propose(from_path(path), "test", only=only)}


def own(name: str) -> dict[str, RestDefinitionSpec]:
    return kinds(DOCUMENTS / f"{name}.yaml")


def said(operation: Operation | UnsetType) -> str:
    return "" if isinstance(operation, UnsetType) else f"{operation.method} {operation.path}"


def parents(found: dict[str, RestDefinitionSpec]) -> dict[str, str]:
    return {kind: spec.parent for kind, spec in found.items()}


class TestArm:
    def test_every_path_of_one_resource_is_a_kind_and_the_one_above_is_its_parent(self) -> None:
        assert parents(kinds(FLEET)) == {
            "Ship": "",
            "Deck": "Ship",
            "DeckLamp": "Deck",
            "LogService": "Ship",
            "Book": "LogService",  # its path has logServices/default, one of the parent's names
            "Setting": "Ship",
            "ConfigWeb": "Ship",
            "Lamp": "",
            "Berth": "",
            "Flag": "",
        }

    def test_a_kind_has_all_its_operations_with_the_version_of_the_api(self) -> None:
        ship = kinds(FLEET)["Ship"].operations
        assert said(ship.create) == said(ship.update) == f"PUT {SHIP}"
        assert (said(ship.read), said(ship.patch)) == (f"GET {SHIP}", f"PATCH {SHIP}")
        assert said(ship.delete) == f"DELETE {SHIP}"
        assert ship.create.query == {"api-version": "2026-01-01"}

    def test_resources_are_listed_in_their_group_page_by_page(self) -> None:
        ships, decks = (kinds(FLEET)[kind].operations.list for kind in ("Ship", "Deck"))
        assert not isinstance(ships, UnsetType)
        assert not isinstance(decks, UnsetType)
        assert (ships.path, ships.items, ships.next_link, ships.whole) == (f"{GROUP}/ships", "value", "nextLink", True)
        assert decks.next_link == '["@odata.nextLink"]'

    def test_the_name_is_the_clients_and_in_the_path_only(self) -> None:
        ship = kinds(FLEET)["Ship"].identity
        assert (ship.parameter, ship.field, ship.assigned) == ("shipName", "", "client")

    def test_the_only_one_of_its_kind_has_no_name(self) -> None:
        assert kinds(FLEET)["Setting"].identity.parameter == ""

    def test_a_list_that_can_be_replaced_is_no_resource(self) -> None:
        assert all(spec.operations.create.path != f"{SHIP}/lamps" for spec in kinds(FLEET).values())

    def test_a_path_of_any_resource_is_no_kind(self) -> None:
        assert all(spec.operations.create.path != "/{resourceId}" for spec in kinds(FLEET).values())

    def test_further_reads_of_one_resource_are_candidates_for_joins(self) -> None:
        ship = next(each for each in proposals(from_path(FLEET), "test") if each.path == SHIP)
        assert [(join.name, join.path, join.query) for join in ship.candidates] == [
            ("instanceView", "instanceView", {"api-version": "2026-01-01"}),
            ("cargo", "cargo", {"all": "", "api-version": "2026-01-01"}),
        ]
        assert ship.definition.spec.joins == ()


class TestPlain:
    def test_a_collection_takes_what_is_new_by_post(self) -> None:
        profile = own("machines")["Profile"]
        assert said(profile.operations.create) == "POST /1.0/profiles"
        assert said(profile.operations.update) == "PUT /1.0/profiles/{name}"
        assert (profile.identity.parameter, profile.identity.field, profile.identity.assigned) == (
            "name", "name", "client",
        )  # fmt: skip

    def test_answers_that_hold_the_resource_in_a_property_have_an_envelope(self) -> None:
        assert {spec.overlay.envelope for spec in own("machines").values()} == {"metadata"}
        assert {spec.overlay.envelope for spec in own("names").values()} == {""}
        assert {spec.overlay.envelope for spec in own("engine").values()} == {""}

    def test_of_several_lists_the_one_with_whole_resources_is_taken(self) -> None:
        listing = own("machines")["Profile"].operations.list
        assert not isinstance(listing, UnsetType)
        assert (listing.path, listing.query, listing.whole) == ("/1.0/profiles", {"recursion": "1"}, True)
        urls = own("machines")["StoragePool"].operations.list
        assert not isinstance(urls, UnsetType)
        assert not urls.whole

    def test_parents_are_found_whatever_their_parameters_are_called(self) -> None:
        assert parents(own("machines")) == {
            "Certificate": "",
            "NetworkZone": "",
            "Record": "NetworkZone",
            "Profile": "",
            "StoragePool": "",
            "Volume": "StoragePool",
        }

    def test_what_only_the_server_makes_is_no_kind(self) -> None:
        assert "Warning" not in own("machines")

    def test_a_sort_between_the_collection_and_the_name_does_not_name_the_kind(self) -> None:
        paths = {}
        for collection, parameter in [
            ("/pools/{pool}/volumes/custom", "volumeName"),
            ("/users/{user}/keys/public", "id"),
        ]:
            paths[collection] = {"post": operation(body=obj(size=TEXT), status=201)}
            paths[f"{collection}/{{{parameter}}}"] = {"get": operation(answer=obj(size=TEXT)), "delete": operation()}
        found = propose(swagger(paths), "test")
        assert [each.spec.names.kind for each in found] == ["Volume", "Public"]

    def test_an_id_that_the_body_does_not_have_is_the_servers(self) -> None:
        certificate = own("machines")["Certificate"].identity
        assert (certificate.assigned, certificate.answer, certificate.find) == ("server", "header:Location", ("name",))

    def test_an_id_beside_a_name_is_the_servers_and_the_name_finds_it(self) -> None:
        zone = own("names")["Zone"].identity
        assert (zone.parameter, zone.assigned, zone.answer) == ("zone_id", "server", "id")
        assert (zone.field, zone.find) == ("name", ("name",))

    def test_a_number_is_the_servers(self) -> None:
        key = own("names")["Key"].identity
        assert (key.assigned, key.answer, key.field) == ("server", "id", "")

    def test_a_name_may_be_called_otherwise_in_the_body(self) -> None:
        metadata = own("names")["Metadata"].identity
        assert (metadata.parameter, metadata.field, metadata.assigned) == ("metadata_kind", "kind", "client")

    def test_what_is_above_all_kinds_is_no_parent(self) -> None:
        assert parents(own("names")) == {"Zone": "", "Key": "Zone", "Metadata": "Zone"}

    def test_creation_may_have_a_path_of_its_own(self) -> None:
        volume, network = (own("engine")[kind] for kind in ("Volume", "Network"))
        assert said(volume.operations.create) == "POST /volumes/create"
        assert said(volume.operations.update) == said(volume.operations.patch) == ""
        assert (volume.identity.field, volume.identity.assigned) == ("Name", "client")
        assert (network.identity.field, network.identity.assigned, network.identity.answer) == ("Name", "server", "Id")

    def test_items_may_be_in_a_property_of_the_list(self) -> None:
        listing = own("engine")["Volume"].operations.list
        assert not isinstance(listing, UnsetType)
        assert listing.items == "Volumes"

    def test_reads_and_changes_may_have_paths_of_their_own(self) -> None:
        container = own("engine")["Container"].operations
        assert (said(container.read), said(container.list)) == ("GET /containers/{id}/json", "GET /containers/json")
        assert (said(container.update), said(container.patch)) == ("", "POST /containers/{id}/update")

    def test_a_creation_that_takes_an_id_changes_what_has_it(self) -> None:
        silence = own("engine")["Silence"]
        assert silence.overlay.upsert
        assert said(silence.operations.create) == said(silence.operations.update) == "POST /silences"
        assert (silence.identity.assigned, silence.identity.answer, silence.identity.field) == (
            "server", "silenceID", "id",
        )  # fmt: skip
        assert said(silence.operations.list) == "GET /silences"

    def test_a_change_that_needs_to_know_a_version_is_left_out(self) -> None:
        secret = own("engine")["Secret"].operations
        assert (said(secret.update), said(secret.patch)) == ("", "")

    def test_what_is_created_by_a_form_is_no_kind(self) -> None:
        assert "Asset" not in own("engine")

    def test_what_is_created_by_no_object_is_no_kind(self) -> None:
        assert "Image" not in own("engine")

    def test_a_patch_is_a_merge_where_there_is_a_choice(self) -> None:
        patch = own("zoo-3.1")["Animal"].operations.patch
        assert not isinstance(patch, UnsetType)
        assert patch.content_type == "application/merge-patch+json"


class TestChoice:
    @pytest.mark.parametrize("only", ["Deck", "decks", "DECKS", "*/decks/{deckName}"])
    def test_kinds_are_chosen_by_name_plural_or_path(self, only: str) -> None:
        assert list(kinds(FLEET, only)) == ["Deck"]

    def test_a_parent_that_is_not_chosen_is_none(self) -> None:
        assert parents(kinds(FLEET, "Deck", "DeckLamp")) == {"Deck": "", "DeckLamp": "Deck"}

    def test_names_do_not_change_with_the_choice(self) -> None:
        assert list(kinds(FLEET, "*/decks/*/lamps/*")) == ["DeckLamp"]

    def test_a_name_that_is_not_there_is_told_with_those_that_are(self) -> None:
        with pytest.raises(NoSuchKind, match=r"no resource Boat; it has: Berth, Book"):
            propose(from_path(FLEET), "test", only=["Boat"])

    def test_definitions_are_named_by_plural_and_service_and_are_valid(self) -> None:
        for definition in propose(from_path(FLEET), "test"):
            assert definition.metadata.name == f"{definition.spec.names.plural}.test"
            assert msgspec.convert(msgspec.to_builtins(definition), RestDefinition) == definition


class TestConflicts:
    def test_proposals_do_not_conflict(self) -> None:
        assert conflicts(propose(from_path(FLEET), "test")) == []

    def test_two_definitions_of_one_path_are_named_whatever_its_parameters_are_called(self) -> None:
        ship = propose(from_path(FLEET), "test", only=["Ship"])[0]
        assert not isinstance(ship.spec.operations.read, UnsetType)
        path = SHIP.replace("{shipName}", "{name}").replace("/ships/", "/Ships/")
        read = msgspec.structs.replace(ship.spec.operations.read, path=path)
        boat = msgspec.structs.replace(
            ship,
            metadata=msgspec.structs.replace(ship.metadata, name="boats.test"),
            spec=msgspec.structs.replace(
                ship.spec,
                names=msgspec.structs.replace(ship.spec.names, kind="Boat", plural="boats"),
                operations=msgspec.structs.replace(ship.spec.operations, read=read),
            ),
        )
        assert conflicts([ship, boat]) == [
            f"ships.test and boats.test both have the path {path}; change one of them or remove it"
        ]

    def test_two_definitions_of_one_name_are_named(self) -> None:
        ship, deck = propose(from_path(FLEET), "test", only=["Ship", "Deck"])
        same = msgspec.structs.replace(deck, spec=msgspec.structs.replace(deck.spec, names=ship.spec.names))
        assert [line.split("; ")[0] for line in conflicts([ship, same])] == [
            "ships.test and decks.test both have the kind Ship",
            "ships.test and decks.test both have the plural ships",
        ]

    def test_the_same_names_in_two_services_are_no_conflict(self) -> None:
        document = from_path(FLEET)
        assert conflicts([*propose(document, "one"), *propose(document, "two")]) == []


class TestNames:
    @pytest.mark.parametrize(
        ("many", "one"),
        [
            ("virtualMachineScaleSets", "virtualMachineScaleSet"), ("policies", "policy"), ("addresses", "address"),
            ("aliases", "alias"), ("statuses", "status"), ("databases", "database"), ("switches", "switch"),
            ("caches", "cache"), ("houses", "house"), ("gateways", "gateway"), ("redis", "redis"), ("dns", "dns"),
            ("boxes", "box"), ("leases", "lease"), ("silences", "silence"), ("metadata", "metadata"),
        ],
    )  # fmt: skip
    def test_english_is_known_well_enough(self, many: str, one: str) -> None:
        assert singular(many) == one
        assert plural(one) == many
        assert (singular(one), plural(many)) == (one, many)

    def test_a_kind_is_camel_case_and_the_parameter_tells_where_words_begin(self) -> None:
        assert kind_name("storage-pools") == "StoragePool"
        assert kind_name("resourcegroups", "resourceGroupName") == "ResourceGroup"
        assert kind_name("2fa") == "Resource2fa"

    def test_words_are_found_however_they_are_written_together(self) -> None:
        assert words("silenceID") == words("silence_id") == words("SilenceId") == ["silence", "id"]

    def test_a_name_that_is_taken_gets_more_in_front_and_at_last_a_number(self) -> None:
        wanted = [
            ("Lamp", ("Port",)),
            ("Lamp", ("Deck", "Ship")),
            ("Lamp", ("Deck", "Ship")),
            ("Lamp", ("Deck", "Ship")),
        ]
        assert unique(wanted) == ["Lamp", "DeckLamp", "ShipDeckLamp", "Lamp2"]

    def test_no_name_is_longer_than_a_label(self) -> None:
        long = "A" + "b" * 80
        assert all(len(plural(name)) <= 63 for name in unique([(long, ()), (long, ()), (long, ("C" * 80,))]))


class TestRealDocuments:
    def test_azures_documents_have_kinds_without_conflicts(self) -> None:
        count = 0
        for path in azure():
            found = propose(from_path(path), "azure")
            assert conflicts(found) == [], path.name
            count += len(found)
        assert count == 214

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            (
                "compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2024-07-01/virtualMachineScaleSet.json",
                {"VirtualMachineScaleSet": "", "Extension": "VirtualMachineScaleSet"},
            ),
            (
                "network/resource-manager/Microsoft.Network/stable/2024-03-01/virtualNetwork.json",
                {"VirtualNetwork": "", "Subnet": "VirtualNetwork", "VirtualNetworkPeering": "VirtualNetwork"},
            ),
            (
                "storage/resource-manager/Microsoft.Storage/stable/2023-05-01/storage.json",
                {"StorageAccount": "", "ManagementPolicy": "StorageAccount"},
            ),
            (
                "storage/resource-manager/Microsoft.Storage/stable/2023-05-01/blob.json",
                {"BlobService": "", "Container": "BlobService", "ImmutabilityPolicy": "Container"},
            ),
            (
                "dns/resource-manager/Microsoft.Network/stable/2018-05-01/dns.json",
                {"DnsZone": "", "RecordSet": "DnsZone"},
            ),
            (
                "resources/resource-manager/Microsoft.Resources/stable/2024-07-01/resources.json",
                {"ResourceGroup": "", "Deployment": "ResourceGroup", "SubscriptionDeployment": ""},
            ),
        ],
        ids=lambda value: Path(value).stem if isinstance(value, str) else "",
    )
    def test_azures_kinds_have_the_right_parents(self, path: str, expected: dict[str, str]) -> None:
        assert parents(kinds(real(f"azure-specs/specification/{path}"))).items() >= expected.items()

    def test_the_scale_set_offers_its_instance_view(self) -> None:
        path = "compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2024-07-01/virtualMachineScaleSet.json"
        found = proposals(
            from_path(real(f"azure-specs/specification/{path}")), "azure", only=["VirtualMachineScaleSet"]
        )
        assert [join.path for join in found[0].candidates] == ["instanceView"]

    def test_lxd_has_profiles_projects_pools_and_volumes(self) -> None:
        found = kinds(real("openapi/lxd/rest-api-5.0.2.yaml"))
        assert len(found) == 20
        assert (
            parents(found).items() >= {"Profile": "", "Project": "", "StoragePool": "", "Volume": "StoragePool"}.items()
        )
        assert {spec.overlay.envelope for spec in found.values()} == {"metadata"}
        listing = found["Profile"].operations.list
        assert not isinstance(listing, UnsetType)
        assert (listing.query, listing.whole) == ({"recursion": "1"}, True)

    @pytest.mark.parametrize(
        "name", ["authoritative-api-swagger-4.7.3.yaml", "authoritative-api-openapi-master-2026-08.yaml"]
    )
    def test_powerdns_has_zones_with_keys_and_metadata(self, name: str) -> None:
        found = kinds(real(f"openapi/powerdns/{name}"))
        assert parents(found).items() >= {"Zone": "", "Cryptokey": "Zone", "Metadata": "Zone", "Tsigkey": ""}.items()
        assert said(found["Zone"].operations.create) == "POST /servers/{server_id}/zones"

    @pytest.mark.parametrize("name", ["openapi-v0.25.0.yaml", "openapi-main-2026-08.yaml"])
    def test_alertmanager_has_silences_that_a_post_changes(self, name: str) -> None:
        found = kinds(real(f"openapi/alertmanager/{name}"))
        assert list(found) == ["Silence"]
        assert found["Silence"].overlay.upsert
        assert found["Silence"].identity.answer == "silenceID"

    @pytest.mark.parametrize("name", ["v1.40.yaml", "v1.41.yaml", "v1.43.yaml"])
    def test_docker_has_volumes_and_networks_without_updates(self, name: str) -> None:
        found = kinds(real(f"openapi/docker-engine/{name}"))
        assert {"Volume", "Network", "Container", "Secret", "Config", "Service"} == set(found)
        for kind in ("Volume", "Network"):
            assert found[kind].operations.update is UNSET
            assert found[kind].operations.patch is UNSET

    def test_gitea_is_the_same_in_both_versions_of_its_document(self) -> None:
        two = kinds(real("openapi/gitea/v1-swagger.generated.json"))
        three = kinds(real("openapi/gitea/v1-openapi3.generated.json"))
        assert parents(two) == parents(three)
        assert parents(two).items() >= {"Org": "", "OrgHook": "Org", "Label": "Org", "RepoLabel": ""}.items()

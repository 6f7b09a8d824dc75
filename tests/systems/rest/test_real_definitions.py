"""What is made of the documents of real servers: the small ones of the examples, and the whole ones where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.systems.rest.real_examples import DATA, SERVERS, definitions, documents, models, openapi, service
from trimtab.systems.rest import validating
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.proposing import conflicts, propose
from trimtab.systems.rest.generating.crd import crd
from trimtab.systems.rest.kinds import RestDefinition, RestServiceSpec
from trimtab.systems.rest.kinds.service import Document as DocumentSource
from trimtab.systems.rest.model import Comparator, FieldClass, Model, Writer
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.state import Policy
from trimtab.systems.rest.validating.definitions import definition_problems

WHOLE = {
    "lxd": "lxd/rest-api-5.0.2.yaml",
    "powerdns": "powerdns/authoritative-api-swagger-4.7.3.yaml",
    "alertmanager": "alertmanager/openapi-v0.25.0.yaml",
    "docker": "docker-engine/v1.41.yaml",
}
KINDS = {
    "lxd": {"Profile", "Project", "StoragePool", "Snapshot"},
    "powerdns": {"Zone", "Metadata"},
    "alertmanager": {"Silence"},
    "docker": {"Network", "Secret", "Volume"},
}
"""What every document of the server must give. The volume of LXD is `Custom` in ours, by its path."""


def whole(server: str) -> Path:
    path = DATA / WHOLE[server]
    if not path.exists():
        pytest.skip(f"the whole document of {server} is not at hand")
    return path


def proposed(document: Any) -> dict[str, RestDefinition]:
    return {each.spec.names.kind: each for each in propose(document, "x")}


def compiled(document: Any, definition: RestDefinition) -> Model:
    spec = RestServiceSpec(endpoint="http://127.0.0.1:1", document=DocumentSource(inline="{}"))
    return compile_model(document, definition, service=spec, service_name="x", group="x.rest.trimtab.dev")


@pytest.mark.parametrize("server", SERVERS)
def test_every_definition_of_an_example_compiles(server: str) -> None:
    assert set(models(server)) == set(definitions(server))


@pytest.mark.parametrize("server", SERVERS)
def test_every_object_of_an_example_is_valid(server: str) -> None:
    for each in documents(server, "object.yaml"):
        if each["apiVersion"].startswith(f"{server}."):
            model = models(server)[each["kind"]]
            assert validating.problems(model, each["spec"], None, exists=False, policy=Policy()) == []


@pytest.mark.parametrize("server", SERVERS)
def test_every_kind_of_an_example_has_a_definition_for_the_cluster(server: str) -> None:
    for model in models(server).values():
        assert crd(model)["metadata"]["name"] == f"{model.plural}.{server}.rest.trimtab.dev"


@pytest.mark.parametrize("server", SERVERS)
def test_admission_takes_every_definition_of_an_example(server: str) -> None:
    for definition in definitions(server).values():
        assert definition_problems(definition, "rest.trimtab.dev") == []


@pytest.mark.parametrize("server", SERVERS)
def test_definitions_of_an_example_share_no_path_and_no_name(server: str) -> None:
    assert conflicts(definitions(server).values()) == []


@pytest.mark.parametrize("server", SERVERS)
def test_the_small_document_gives_the_kinds_by_itself(server: str) -> None:
    assert KINDS[server] <= set(proposed(openapi(server)))


@pytest.mark.parametrize("server", SERVERS)
def test_the_whole_document_gives_the_kinds_by_itself_and_each_compiles(server: str) -> None:
    document = from_path(whole(server))
    found = proposed(document)
    names = {"Snapshot": "VolumeSnapshot"} if server == "lxd" else {}
    assert {names.get(kind, kind) for kind in KINDS[server]} <= set(found)
    for definition in found.values():
        assert compiled(document, definition).calls.create is not None


@pytest.mark.parametrize("size", ["small", "whole"])
def test_a_proposal_for_lxd_knows_its_envelope(size: str) -> None:
    document = openapi("lxd") if size == "small" else from_path(whole("lxd"))
    assert proposed(document)["Profile"].spec.overlay.envelope == "metadata"


@pytest.mark.parametrize("size", ["small", "whole"])
def test_a_proposal_for_alertmanager_knows_that_the_server_chooses_the_id(size: str) -> None:
    document = openapi("alertmanager") if size == "small" else from_path(whole("alertmanager"))
    identity = proposed(document)["Silence"].spec.identity
    assert (identity.assigned, identity.answer, identity.field) == ("server", "silenceID", "id")


def test_a_profile_is_read_without_its_envelope_and_its_devices_are_never_patched() -> None:
    spec = models("lxd")["Profile"].spec
    assert set(spec.properties) == {"description", "config", "devices"}
    assert Writer.PATCH in spec.properties["config"].writers
    assert Writer.PATCH not in spec.properties["devices"].writers


def test_a_volume_takes_its_pool_from_its_parent_and_is_guarded_by_its_etag() -> None:
    model = models("lxd")["Volume"]
    assert {each.name: each.source for each in model.parameters} == {"pool": "parent", "volume": "identity"}
    assert model.calls.update is not None
    assert model.calls.update.conditional
    assert model.calls.patch is None


def test_a_zone_takes_its_server_from_the_service() -> None:
    model = models("powerdns")["Zone"]
    assert {each.name: each.source for each in model.parameters} == {"server": "service", "zone": "identity"}


def test_a_zone_gives_name_servers_at_creation_only_and_leaves_records_to_their_own_kind() -> None:
    model = models("powerdns")["Zone"]
    assert model.spec.properties["nameservers"].field is FieldClass.CREATE_ONLY
    assert "rrsets" in model.read_only


def test_a_silence_starts_at_creation_and_its_times_are_compared_as_times() -> None:
    fields = models("alertmanager")["Silence"].spec.properties
    assert fields["startsAt"].field is FieldClass.INITIAL
    assert fields["endsAt"].compare is Comparator.DATE_TIME


def test_what_docker_cannot_update_is_create_only() -> None:
    for kind in ("Volume", "Network"):
        fields = models("docker")[kind].spec.properties
        assert {each.field for each in fields.values()} == {FieldClass.CREATE_ONLY}


def test_the_data_of_a_secret_is_secret() -> None:
    assert models("docker")["Secret"].spec.properties["Data"].field is FieldClass.SECRET


def test_the_base_path_of_a_document_is_there_once() -> None:
    assert models("docker")["Volume"].calls.create.path == "/v1.41/volumes/create"
    assert service("powerdns").endpoint.endswith("/api/v1")
    assert models("powerdns")["Zone"].calls.create.path == "/servers/{server}/zones"

"""Facts about kinds of real servers: by the examples' own documents, and by the servers' whole ones where they are at
hand."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from tests.systems.rest.compiling_kit import node, rows
from tests.systems.rest.real_examples import DATA, definitions, models, service
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.model import Comparator, FieldClass, Model, Writer
from trimtab.systems.rest.openapi.loading import from_path

ModelOf = Callable[[str, str], Model]

WHOLE = {
    "lxd": "lxd/rest-api-5.0.2.yaml",
    "powerdns": "powerdns/authoritative-api-swagger-4.7.3.yaml",
    "alertmanager": "alertmanager/openapi-v0.25.0.yaml",
    "docker": "docker-engine/v1.41.yaml",
}


@functools.cache
def of_whole(server: str, kind: str) -> Model:
    """The definition of the example, on all that the server says of itself."""
    path = DATA / WHOLE[server]
    if not path.exists():
        pytest.skip(f"the whole document of {server} is not at hand")
    return compile_model(
        from_path(path),
        definitions(server)[kind],
        service=service(server),
        service_name=server,
        group=f"{server}.rest.trimtab.dev",
    )


def of_example(server: str, kind: str) -> Model:
    return models(server)[kind]


either = pytest.mark.parametrize("model_of", [of_example, of_whole], ids=["example", "whole"])


@either
class TestServers:
    def test_a_profile_of_lxd_is_named_by_us_and_tells_who_uses_it(self, model_of: ModelOf) -> None:
        model = model_of("lxd", "Profile")
        assert {"config", "description", "devices"} == set(model.spec.properties)
        assert node(model, "config").type == "map"
        assert model.read_only["used_by"] == "readOnly"
        assert {each.name: each.source for each in model.parameters} == {"profile": "identity"}

    def test_a_project_of_lxd_is_changed_by_put(self, model_of: ModelOf) -> None:
        model = model_of("lxd", "Project")
        assert Writer.CREATE | Writer.UPDATE in rows(model)["description"].writers

    def test_a_volume_of_lxd_is_found_below_its_pool(self, model_of: ModelOf) -> None:
        model = model_of("lxd", "Volume")
        assert {each.name: each.source for each in model.parameters} == {"pool": "parent", "volume": "identity"}
        assert rows(model)["content_type"].cls is FieldClass.CREATE_ONLY
        assert "used_by" in model.read_only

    def test_a_zone_of_powerdns_has_its_name_from_us(self, model_of: ModelOf) -> None:
        model = model_of("powerdns", "Zone")
        assert "name" not in model.spec.properties
        assert rows(model)["nameservers"].cls is FieldClass.CREATE_ONLY
        assert {"rrsets", "url"} & set(model.read_only) != set()
        assert model.calls.create.path == "/servers/{server}/zones"

    def test_a_silence_of_alertmanager_is_changed_by_creating_it_again(self, model_of: ModelOf) -> None:
        model = model_of("alertmanager", "Silence")
        assert model.calls.update == model.calls.create
        assert node(model, "endsAt").compare is Comparator.DATE_TIME
        assert {"status", "updatedAt"} <= set(model.read_only)

    @pytest.mark.parametrize("kind", ["Volume", "Network"])
    def test_what_docker_cannot_change_is_create_only(self, model_of: ModelOf, kind: str) -> None:
        model = model_of("docker", kind)
        assert {row.cls for row in rows(model).values()} == {FieldClass.CREATE_ONLY, FieldClass.READ_ONLY}
        assert model.overlay.update == "none"

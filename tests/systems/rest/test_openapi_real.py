"""Real documents: all of them load, everything in them resolves, and soon."""

from __future__ import annotations

import time

import pytest

from tests.systems.rest.openapi_kit import FLEET, azure, others, reached, real
from trimtab.systems.rest.openapi import from_path

WEB_APPS = "azure-specs/specification/web/resource-manager/Microsoft.Web/stable/2024-04-01/WebApps.json"


def test_everything_in_our_own_document_resolves() -> None:
    document = from_path(FLEET)
    assert {"Ship", "Cargo", "Oil", "Crew", "State"} <= {schema.name for schema in reached(document)}


def test_everything_in_azures_documents_resolves() -> None:
    for path in azure():
        document = from_path(path)
        assert document.spec == "2.0"
        count = sum(1 for _ in reached(document))
        assert (count > 0) == bool(document.operations), path.name


def test_everything_in_other_documents_resolves() -> None:
    specs = set()
    for path in others():
        document = from_path(path)
        specs.add(document.spec)
        assert not document.is_arm or path.parent.name == "autorest-testserver", path.name
        for schema in reached(document):
            assert schema.key
    assert specs == {"2.0", "3.0", "3.1"}


def test_the_largest_document_resolves_in_well_under_a_second() -> None:
    path = real(WEB_APPS)
    started = time.process_time()
    count = sum(1 for _ in reached(from_path(path)))
    assert time.process_time() - started < 2.0  # a fifth of a second on a quiet machine
    assert count > 2000


@pytest.mark.parametrize("name", ["lxd/rest-api-5.0.2.yaml", "docker-engine/v1.43.yaml"])
def test_documents_in_yaml_are_read_in_seconds_at_most(name: str) -> None:
    path = real(f"openapi/{name}")
    started = time.process_time()
    assert len(from_path(path).operations) > 100
    assert time.process_time() - started < 10.0

"""What a service took, admission takes: bodies that were recorded with ARM, and those of a small document of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from tests.systems.rest.test_recordings import RECORDED, ROOT, SPECIFICATIONS, recordings
from trimtab.model.errors import FieldError
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.proposing import proposals
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.validating import problems

__all__ = ["recordings"]


def judged(model: Model, path: str, body: Mapping[str, Any]) -> list[FieldError]:
    """A body as the spec of an object that adopts what is there: nulls say nothing in a spec."""
    names = {of_body: of_spec for of_spec, of_body in model.renamed.items()}
    spec = {names.get(name, name): value for name, value in _told(body).items() if name != model.identity.field}
    return problems(model, {"resourceID": path, **spec})


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(inner) for name, inner in value.items() if inner is not None}
    return [_told(inner) for inner in value] if isinstance(value, list) else value


def taken(recordings: ModuleType) -> Iterator[tuple[Model, str, str, dict[str, Any]]]:
    """Each PUT that ARM took and that a document describes: the kind, the path, the API version, the body."""
    model_for = recordings.compiled(SPECIFICATIONS)
    for file in sorted(RECORDED.glob("*.yaml")):
        for seen in recordings.interactions(file):
            path, _, version = seen.url.partition("?")
            if seen.method == "PUT" and seen.code < 300 and isinstance(seen.sent, dict):
                model = model_for(path)
                if model is not recordings.ANYTHING:
                    yield model, path, version, seen.sent


@pytest.mark.skipif(not (RECORDED.is_dir() and SPECIFICATIONS.is_dir()), reason="needs ../shared/data")
def test_what_arm_took_is_refused_only_for_plain_secrets_and_fields_of_later_versions(recordings: ModuleType) -> None:
    refused, count = [], 0
    for model, path, version, body in taken(recordings):
        count += 1
        for error in judged(model, path, body):
            newer = version > model.api_version and "unknown field" in error.detail
            if not newer and "is a secret" not in error.detail:
                refused.append(f"{model.kind} {version}: {error}")
    assert count > 100
    assert refused == []


@pytest.fixture(scope="module")
def kinds(recordings: ModuleType) -> dict[str, Model]:
    """Of the example that the guide walks through."""
    document = from_path(ROOT / "examples" / "rest" / "compute.json")
    return {
        found.definition.spec.names.kind: compile_model(
            document, found.definition, service=recordings.SERVICE, service_name="compute", group="compute.rest.trimtab.dev"
        )
        for found in proposals(document, "compute")
    }  # fmt: skip


SCALE_SET = {
    "location": "westeurope",
    "tags": {"team": "blue"},
    "sku": {"name": "Standard_B2s", "capacity": 3},
}


def test_a_body_of_the_example_is_taken(kinds: dict[str, Model]) -> None:
    model = kinds["VirtualMachineScaleSet"]
    path = "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web"
    assert judged(model, path, SCALE_SET) == []
    wrong = {**SCALE_SET, "sku": {"name": "Standard_B2s", "capcity": 3}, "id": path}
    assert [str(error) for error in judged(model, path, wrong)] == [
        'spec.sku.capcity: Forbidden: unknown field; did you mean "capacity"?',
        "spec.id: Forbidden: is read-only (readOnly): the service sets it, see status.observed",
    ]

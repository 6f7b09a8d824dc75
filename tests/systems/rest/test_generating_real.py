"""What is generated from whole documents: those of the project, and real ones where they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.systems.rest.test_generating_structs import imported
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.generating.crd import LARGEST, crd
from trimtab.systems.rest.generating.docs import docs
from trimtab.systems.rest.generating.example import example
from trimtab.systems.rest.kinds.service import Document, RestServiceSpec
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.openapi import from_path

ROOT = Path(__file__).parents[3]
OWN = Path(__file__).parent / "documents"
REAL = ROOT.parent / "shared" / "data" / "azure-specs"
LARGE = (
    "WebApps.json",
    "managedClusters.json",
    "datafactory.json",
    "networkInterface.json",
    "virtualMachineScaleSet.json",
)
SERVICE = RestServiceSpec(endpoint="https://api.example.com", document=Document(inline="{}"))


def models_of(path: Path) -> list[Model]:
    document = from_path(path)
    return [
        compile_model(document, each, service=SERVICE, service_name="it", group="it.rest.trimtab.dev")
        for each in propose(document, "it")
    ]


def documents() -> Iterator[object]:
    yield pytest.param(ROOT / "examples/rest/compute.json", id="compute")
    yield pytest.param(OWN / "specification/fleet/2026-01-01/fleet.json", id="fleet")
    yield pytest.param(OWN / "zoo-3.1.yaml", id="zoo")
    here = pytest.mark.skipif(
        not REAL.is_dir(), reason="the documents of ARM are not here (../shared/data/azure-specs)"
    )
    for name in LARGE:
        yield pytest.param(name, id=name, marks=here)


@pytest.fixture(params=documents())
def models(request: pytest.FixtureRequest) -> Sequence[Model]:
    path = request.param
    found = models_of(next(REAL.rglob(path)) if isinstance(path, str) else path)
    assert found
    return found


async def test_servers_take_the_definitions(client: ApiClient, models: Sequence[Model]) -> None:
    for model in models:
        made = crd(model)
        assert len(msgspec.json.encode(made)) <= LARGEST
        await client.create(Untyped(made), dry_run=True)


def test_the_structs_read_the_examples(models: Sequence[Model], tmp_path: Path) -> None:
    module = imported(tmp_path, *models)
    for model in models:
        made = msgspec.convert(example(model), getattr(module, model.kind))
        assert made.metadata.name == f"my-{model.kind.lower()}"
    del sys.modules[module.__name__]


def test_each_kind_has_its_section(models: Sequence[Model]) -> None:
    lines = docs(models).splitlines()
    assert all(f"## {model.kind}" in lines for model in models)

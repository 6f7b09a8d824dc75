"""What is emitted keeps the rules of the format, and says the same when it is read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.terraform.spec.documents import fleet, mks
from tests.terraform.spec.schemas import schemas
from trimtab.terraform.framework.attributes import Attribute
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import DYNAMIC, STRING, ListOf
from trimtab.terraform.spec.checking import problems
from trimtab.terraform.spec.emitting import emit
from trimtab.terraform.spec.reading import Spec, read
from trimtab.terraform.spec.writing import schema_code


def same(one: Spec, other: Spec) -> bool:
    """By their code: validators have no equality of their own."""
    return written(one) == written(other)


def written(spec: Spec) -> list[object]:
    return [
        spec.name,
        schema_code(spec.provider),
        {name: schema_code(schema) for name, schema in spec.resources.items()},
        {name: schema_code(schema) for name, schema in spec.data_sources.items()},
    ]


@pytest.mark.slow
@pytest.mark.row(66)
@given(schemas("provider"), schemas("resource"), schemas("datasource"))
def test_emitting_then_reading_gives_the_same_schemas(provider: Schema, resource: Schema, data: Schema) -> None:
    emitted = emit("own", provider, {"thing": resource}, {"thing": data})
    document = json.loads(json.dumps(emitted.document))
    assert problems(document) == []
    assert emitted.losses == ()
    again = read(document)
    assert again.notes == ()
    empty = Schema({}, description="") if not (provider.attributes or provider.blocks) else provider
    assert written(again) == written(Spec("own", empty, {"thing": resource}, {"thing": data}))


@pytest.mark.parametrize("document", [fleet, mks])
def test_reading_then_emitting_loses_nothing_that_is_understood(document: object) -> None:
    assert callable(document)
    spec = read(document())
    emitted = emit(spec.name, spec.provider, spec.resources, spec.data_sources)
    assert problems(emitted.document) == []
    assert same(read(emitted.document), spec)


def test_two_emissions_of_one_provider_are_the_same_text() -> None:
    spec = read(fleet())
    texts = {json.dumps(emit(spec.name, spec.provider, spec.resources, {}).document) for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("attribute", "loss"),
    [
        (Attribute(STRING, optional=True, write_only=True), "write-only"),
        (Attribute(STRING, optional=True, equal=lambda a, b: a == b), "of one meaning"),
        (Attribute(ListOf(STRING), default=["a"]), "only be told as Go code"),
        (Attribute(ListOf(DYNAMIC), optional=True), "told as text"),
    ],
)
def test_what_a_document_cannot_say_is_named(attribute: Attribute, loss: str) -> None:
    emitted = emit("own", Schema({}), {"thing": Schema({"a": attribute})}, {})
    assert problems(emitted.document) == []
    assert [each for each in emitted.losses if loss in each and each.startswith("thing.a:")]

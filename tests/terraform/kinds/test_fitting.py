"""Documents and the shapes that they should have: whatever a server answers can be read as far as it fits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.terraform.kinds.shapes import FREE, documents, objects
from trimtab.terraform.framework.paths import path
from trimtab.terraform.kinds.converting import from_document, to_document
from trimtab.terraform.kinds.definition import INTEGER, KEYED, LIST, OBJECT, STRING, Field, Shape
from trimtab.terraform.kinds.fitting import Unfit, fitting, value_of
from trimtab.terraform.kinds.reading import EVERYTHING, shown

PAIRS = objects(3).flatmap(lambda shape: st.tuples(st.just(shape), documents(shape)))
WIRES = st.sampled_from(["a", "fooBar", "foo_bar", "IPs", "count", "x-y"])
STRANGERS = st.dictionaries(WIRES, FREE | st.dictionaries(WIRES, FREE) | st.lists(st.dictionaries(WIRES, FREE)))


@given(PAIRS)
def test_what_fits_is_as_it_was(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    unfit: list[Unfit] = []
    assert from_document(shape, fitting(shape, document, unfit)) == from_document(shape, document)
    assert unfit == []


@given(objects(3), STRANGERS)
def test_whatever_a_document_is_it_can_be_read(shape: Shape, document: Any) -> None:
    unfit: list[Unfit] = []
    value = value_of(shape, document, unfit)
    to_document(shape, value)
    assert set(shown(shape, fitting(shape, document, []), EVERYTHING, value)) == {field.name for field in shape.fields}


def test_what_does_not_fit_is_absent_and_told_by_the_name_that_it_has_in_terraform() -> None:
    items = Shape(OBJECT, fields=(Field("size", "size", Shape(INTEGER)),))
    shape = Shape(
        OBJECT,
        fields=(
            Field("max_size", "maxSize", Shape(INTEGER)),
            Field("pools", "pools", Shape(KEYED, items=items, keys=("name",))),
            Field("tags", "tags", Shape(LIST, items=Shape(STRING))),
        ),
    )
    unfit: list[Unfit] = []
    document = {"maxSize": "five", "pools": [{"name": "a", "size": []}, 3], "tags": {"a": 1}}
    assert value_of(shape, document, unfit) == {"max_size": None, "pools": {"a": {"size": None}}, "tags": None}
    assert unfit == [
        (path("max_size"), "expected a number, not a string"),
        (path('pools["a"].size'), "expected a number, not a list"),
        (path("pools[1]"), "expected an object, not a number"),
        (path("tags"), "expected a list, not an object"),
    ]

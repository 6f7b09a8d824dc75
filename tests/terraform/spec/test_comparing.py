"""What a change of a schema means for its users."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.terraform.spec.documents import fleet, mks
from tests.terraform.spec.schemas import schemas
from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.modifiers import RequiresReplace
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import BOOL, NUMBER, STRING, ListOf, SetOf
from trimtab.terraform.framework.validators import OneOf
from trimtab.terraform.spec.comparing import Change, Level, compare, level
from trimtab.terraform.spec.reading import Spec, read

pytestmark = pytest.mark.row(71)


def spec(**attributes: Attribute) -> Spec:
    return Spec("own", Schema({}), {"thing": Schema(attributes)}, {})


def one(old: Attribute, new: Attribute) -> Change:
    (change,) = compare(spec(a=old), spec(a=new))
    assert change.where == "own_thing.a"
    return change


TEXT = Attribute(STRING, optional=True)
BREAKS: list[tuple[Any, Any]] = [
    (TEXT, Attribute(NUMBER, optional=True)),
    (Attribute(ListOf(STRING), optional=True), Attribute(SetOf(STRING), optional=True)),
    (TEXT, Attribute(STRING, required=True)),
    (Attribute(STRING, default="a"), Attribute(STRING, default="b")),
    (TEXT, Attribute(STRING, optional=True, modifiers=(RequiresReplace(),))),
    (
        Attribute(STRING, optional=True, validators=(OneOf("a", "b"),)),
        Attribute(STRING, optional=True, validators=(OneOf("a"),)),
    ),
    (TEXT, Attribute(STRING, optional=True, validators=(OneOf("a"),))),
    (Attribute(STRING, optional=True, computed=True), TEXT),
    (Attribute(Nested({"b": TEXT}, "list"), optional=True), Attribute(Nested({"b": TEXT}, "set"), optional=True)),
]


@pytest.mark.parametrize(("old", "new"), BREAKS)
def test_what_breaks_configurations_is_major_and_unwarned(old: Attribute, new: Attribute) -> None:
    change = one(old, new)
    assert (change.level, change.warned) == (Level.MAJOR, False)


EXTENDS: list[tuple[Any, Any]] = [
    (Attribute(STRING, required=True), TEXT),
    (TEXT, Attribute(STRING, optional=True, sensitive=True)),
    (TEXT, Attribute(STRING, optional=True, deprecated="Say b.")),
    (
        Attribute(STRING, optional=True, validators=(OneOf("a"),)),
        Attribute(STRING, optional=True, validators=(OneOf("a", "b"),)),
    ),
]


@pytest.mark.parametrize(("old", "new"), EXTENDS)
def test_what_may_be_ignored_is_minor(old: Attribute, new: Attribute) -> None:
    assert one(old, new).level is Level.MINOR


def test_words_are_a_patch() -> None:
    assert one(TEXT, Attribute(STRING, optional=True, description="It is.")).level is Level.PATCH


def test_what_was_deprecated_may_go() -> None:
    (change,) = compare(spec(a=Attribute(STRING, optional=True, deprecated="Say b.")), spec())
    assert (change.level, change.warned) == (Level.MAJOR, True)
    (change,) = compare(spec(a=TEXT), spec())
    assert (change.level, change.warned) == (Level.MAJOR, False)


def test_types_come_and_go() -> None:
    old, new = spec(), Spec("own", Schema({}), {}, {"thing": Schema({})})
    gone, came = compare(old, new)
    assert (gone.where, gone.level, gone.warned) == ("own_thing", Level.MAJOR, False)
    assert (came.where, came.level) == ("data.own_thing", Level.MINOR)


def test_places_inside_objects_and_blocks_are_named() -> None:
    old = Schema({"spec": Attribute(Nested({"a": TEXT}), optional=True)}, {"port": Block({"a": TEXT})})
    new = Schema({"spec": Attribute(Nested({"a": Attribute(BOOL, optional=True)}), optional=True)}, {"port": Block({})})
    found = compare(Spec("own", Schema({}), {"t": old}, {}), Spec("own", Schema({}), {"t": new}, {}))
    assert [each.where for each in found] == ["own_t.spec.a", "own_t.port.a"]


@given(schemas())
def test_a_schema_is_the_same_as_itself(schema: Schema) -> None:
    same = Spec("own", Schema({}), {"thing": schema}, {})
    assert compare(same, same) == []
    assert level([]) is None


@pytest.mark.parametrize("document", [fleet, mks])
def test_a_document_read_twice_has_not_changed(document: Any) -> None:
    assert compare(read(document()), read(document())) == []

"""Schemas, paths into them, and what is wrong with a provider's own."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import Default
from trimtab.terraform.framework.describing import schema_message
from trimtab.terraform.framework.paths import ROOT, find, path
from trimtab.terraform.framework.placing import source_path
from trimtab.terraform.framework.schema import Schema, SchemaError, check, clipped, leads
from trimtab.terraform.framework.timeouts import seconds, timeouts
from trimtab.terraform.framework.types import DYNAMIC, STRING, ListOf
from trimtab.terraform.framework.values import UNKNOWN

TEXT = Attribute(STRING, optional=True)
DEEP = Schema(
    {
        "one": Attribute(
            Nested({"x": TEXT, "many": Attribute(Nested({"y": TEXT}, "list"), optional=True)}), optional=True
        ),
        "few": Attribute(Nested({"z": TEXT}, "set"), optional=True),
        "by": Attribute(Nested({"w": TEXT}, "map"), optional=True),
    },
    {
        "outer": Block(
            {"a": TEXT}, {"inner": Block({"b": Attribute(Nested({"c": TEXT}), optional=True)}, nesting="single")}
        )
    },
)


@pytest.mark.parametrize("text", ["a", "a.b", "a[0].b", 'a["k e y"]', "a[*].b", 'a[0][1]["x"].c'])
def test_a_path_is_read_as_it_is_written(text: str) -> None:
    assert str(path(text)) == text


@pytest.mark.parametrize("text", [".a", "a.", "a..b", "[0]", "a[x]", "a[0]b", "a b", "a[-1]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        path(text)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("a.b[1]", 2),
        ("a.b[9]", None),
        ("a.x.y", None),
        ("n.x", None),
        ("u.x.y", UNKNOWN),
        ('m["k"]', 5),
        ('m["z"]', None),
    ],
)
def test_a_path_finds_what_is_there(at: str, value: Any) -> None:
    assert find({"a": {"b": [1, 2]}, "n": None, "u": UNKNOWN, "m": {"k": 5}}, path(at)) is value


@pytest.mark.parametrize(
    ("at", "there", "cut"),
    [
        ("one.many[3].y", True, "one.many[3].y"),
        ("few[0].z", True, "few"),
        ('by["k"].w', True, 'by["k"].w'),
        ("by[0].w", False, "by"),
        ("one.nowhere.y", False, "one"),
        ("outer[0].inner.b.c", True, "outer[0].inner.b.c"),
    ],
)
def test_a_path_leads_as_far_as_the_schema_goes_and_ends_at_a_set(at: str, there: bool, cut: str) -> None:
    assert leads(path(at), DEEP.value_type()) is there
    assert str(clipped(path(at), DEEP.value_type())) == cut


@pytest.mark.parametrize(
    ("at", "steps"),
    [
        ("one.many[3].y", [{"attribute_name": "one"}, {"element_key_string": "many"}]),
        ('by["k"].w', [{"attribute_name": "by"}, {"element_key_string": "k"}]),
        ("few[1].z", [{"attribute_name": "few"}]),
        ("outer[2].a", [{"attribute_name": "outer"}, {"element_key_int": 2}, {"attribute_name": "a"}]),
        (
            "outer[2].inner.b.c",
            [
                {"attribute_name": "outer"},
                {"element_key_int": 2},
                {"attribute_name": "inner"},
                {"attribute_name": "b"},
                {"element_key_string": "c"},
            ],
        ),
    ],
)
def test_a_diagnostic_points_where_every_terraform_can_follow(at: str, steps: list[Any]) -> None:
    assert source_path(DEEP, path(at)) == {"steps": steps}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (Schema({"count": TEXT}), "count: Terraform keeps this name for itself"),
        (Schema({"camelCase": TEXT}), "camelCase: a name is made of"),
        (Schema({"x": Attribute(STRING)}), "x: must be required, optional or computed"),
        (Schema({"x": Attribute(STRING, required=True, computed=True)}), "x: what is required is neither"),
        (Schema({"x": Attribute(STRING, optional=True, computed=True, write_only=True)}), "x: what is write-only"),
        (Schema({"x": Attribute(ListOf(DYNAMIC), optional=True)}), "x: a collection cannot hold dynamic"),
        (
            Schema({"x": Attribute(Nested({"y": Attribute(DYNAMIC, optional=True)}, "set"), optional=True)}),
            "cannot hold dynamic",
        ),
        (Schema({"x": Attribute(Nested({"y": TEXT}), computed=True)}), "x.y: must be computed"),
        (Schema({"x": Attribute(Nested({"y": TEXT}), optional=True, write_only=True)}), "x.y: is write-only, or not"),
        (Schema({"x": TEXT}, {"x": Block({})}), "x: is an attribute and a block"),
        (Schema({}, {"b": Block({"y": Attribute(STRING)})}), "b.y: must be required"),
    ],
)
def test_a_wrong_schema_is_told_with_its_place(schema: Schema, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        check(schema)


def test_an_attribute_with_a_default_is_computed() -> None:
    attribute = Attribute(STRING, default="x")
    assert attribute.optional
    assert attribute.computed
    assert Attribute(STRING, default=Default(lambda: "now")).computed


def test_a_schema_s_message_says_what_differs_from_nothing() -> None:
    message = schema_message(Schema({"b": Attribute(STRING, required=True, sensitive=True), "a": TEXT}, version=3))
    assert message == {
        "version": 3,
        "block": {
            "attributes": [
                {"name": "a", "type": b'"string"', "optional": True},
                {"name": "b", "type": b'"string"', "required": True, "sensitive": True},
            ]
        },
    }


@pytest.mark.parametrize(
    ("text", "value"), [("30s", 30), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400)]
)
def test_durations_are_read(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5d", "5m!"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        seconds(text)


def test_timeouts_are_for_operations_that_exist() -> None:
    with pytest.raises(ValueError, match="not for import"):
        timeouts("create", "import")
    with pytest.raises(ValueError, match="not for none"):
        timeouts()
    assert str(ROOT) == ""

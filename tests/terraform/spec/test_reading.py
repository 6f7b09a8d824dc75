"""Provider code specifications are read whole, and what is wrong with one is said at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.spec.documents import FLEET, fleet, mks
from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.modifiers import KeepState, RequiresReplace
from trimtab.terraform.framework.types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, ObjectOf, SetOf
from trimtab.terraform.framework.validators import Between, Length
from trimtab.terraform.spec import forms
from trimtab.terraform.spec.checking import problems
from trimtab.terraform.spec.reading import SpecError, load, read


def ship(name: str) -> Attribute:
    return read(fleet()).resources["ship"].attributes[name]


@pytest.mark.row(66)
def test_every_type_of_attribute_becomes_one_of_the_framework() -> None:
    assert len(forms.ATTRIBUTES) == 14
    types = {
        "name": STRING,
        "afloat": BOOL,
        "crew": NUMBER,
        "length": NUMBER,
        "tonnage": NUMBER,
        "cargo": DYNAMIC,
        "flags": SetOf(STRING),
        "log": ListOf(ListOf(NUMBER)),
        "labels": MapOf(STRING),
        "home": ObjectOf({"port": STRING, "berth": NUMBER}),
        "masts": ListOf(ObjectOf({"height": NUMBER, "sails": NUMBER})),
        "boats": SetOf(ObjectOf({"name": STRING})),
        "officers": MapOf(ObjectOf({"rank": STRING})),
    }
    assert {name: ship(name).value_type() for name in types} == types
    assert isinstance(ship("spec").type, Nested)


def test_who_sets_an_attribute_is_kept() -> None:
    assert (ship("name").required, ship("name").optional, ship("name").computed) == (True, False, False)
    assert (ship("id").required, ship("id").optional, ship("id").computed) == (False, False, True)
    assert (ship("class").optional, ship("class").computed, ship("class").default) == (True, True, "sloop")


def test_rules_that_all_know_are_understood() -> None:
    assert ship("name").modifiers == (RequiresReplace(),)
    assert ship("id").modifiers == (KeepState(),)
    assert ship("name").validators == (Length(1, 20),)
    assert ship("crew").validators[1] == Between(1, None)
    assert ship("crew").validators[0].fault(1.5).startswith("must be a whole number")
    (one_of,) = ship("class").validators
    assert str(one_of.fault("raft")).startswith('must be one of "sloop", "brig"')


def test_a_rule_that_nobody_knows_is_named_rather_than_forgotten() -> None:
    document = fleet()
    name = next(each for each in document["resources"][0]["schema"]["attributes"] if each["name"] == "name")
    name["string"]["validators"] = [{"custom": {"schema_definition": "own.IsShip(context.Background())"}}]
    name["string"]["default"] = {"custom": {"schema_definition": "stringdefault.Own()"}}
    notes = read(document).notes
    assert [note for note in notes if "own.IsShip(context.Background())" in note and note.startswith("ship.name:")]
    assert [note for note in notes if "stringdefault.Own()" in note]


def test_blocks_are_read_with_blocks_in_them() -> None:
    voyage = read(fleet()).resources["ship"].blocks["voyage"]
    assert (voyage.nesting, voyage.description, voyage.blocks["stop"].nesting) == ("list", "Where it goes.", "single")


def test_the_configuration_of_the_provider_is_read() -> None:
    attributes = read(fleet()).provider.attributes
    assert attributes["folder"].required
    assert attributes["token"].sensitive


@pytest.mark.row(66)
def test_a_large_document_of_another_provider_is_read_without_a_loss() -> None:
    spec = read(mks())
    schema = spec.resources["mks_cluster"]
    assert (spec.name, spec.notes) == ("rafay", ())
    config = schema.attributes["spec"].type
    assert isinstance(config, Nested)
    nodes = config.attributes["config"].type
    assert isinstance(nodes, Nested)
    assert nodes.attributes["installer_ttl"].default == 365
    assert schema.attributes["kind"].default == "Cluster"


def wrong(change: Callable[[dict[str, Any]], Any]) -> list[str]:
    document = fleet()
    change(document)
    return problems(document)


def _first(document: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = document["resources"][0]["schema"]["attributes"][0]
    return first


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("version"), "version: it must be there"),
        (lambda d: d.update(version="9"), "'9' is not known"),
        (lambda d: d.pop("provider"), "provider: it must be there"),
        (lambda d: d["provider"].update(name="Fleet"), "provider.name: 'Fleet' is no name"),
        (lambda d: d["resources"].append({"name": "x"}), "resources[1].schema: it must be there"),
        (lambda d: d["resources"].append(d["resources"][0]), "'ship' is there twice"),
        (lambda d: d.update(resources={}), "resources: it must be a list"),
        (lambda d: _first(d).update(bool={}), "resources[ship].id: one type is needed"),
        (lambda d: _first(d).update(string=1), "resources[ship].id.string: it must be an object"),
        (lambda d: _first(d)["string"].update(optional=True), "'optional' has no meaning here"),
        (lambda d: _first(d)["string"].update(computed_optional_required="yes"), "it must be one of computed"),
        (lambda d: _first(d)["string"].update(default={"static": 1}), "default.static: 1 is no string"),
        (lambda d: _first(d)["string"].update(default={}), "either static or custom"),
        (lambda d: _first(d)["string"].update(validators=[{}]), "validators[0]: it must be custom code"),
        (lambda d: _first(d)["string"].update(sensitive="no"), "sensitive: it must be true or false"),
        (lambda d: d["datasources"][0]["schema"]["attributes"][0]["string"].update(default={}), "has no meaning here"),
        (
            lambda d: d["provider"]["schema"]["attributes"][0]["string"].update(optional_required="computed"),
            "it must be one of optional, required",
        ),
        (
            lambda d: d["resources"][0]["schema"]["attributes"].append({"name": "l", "list": _LIST}),
            "resources[ship].l.element_type: one type is needed",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: Callable[[dict[str, Any]], Any], said: str) -> None:
    found = wrong(change)
    assert [line for line in found if said in line], found


_LIST = {"computed_optional_required": "optional", "element_type": {"dynamic": {}}}


def test_all_faults_are_told_at_once() -> None:
    document = fleet()
    _first(document)["string"]["computed_optional_required"] = "no"
    document["provider"]["name"] = "9"
    with pytest.raises(SpecError) as error:
        read(document)
    assert len(error.value.faults) == 2


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"version": "0.1", "provider": {"name": "a", "schema": []}}']
)
def test_what_is_no_document_is_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)
    with pytest.raises(SpecError):
        load(path)


def test_a_document_that_nests_without_end_is_refused() -> None:
    document = fleet()
    inner = _first(document)
    for _ in range(100):
        deeper: dict[str, Any] = {"name": "a", "string": {"computed_optional_required": "optional"}}
        inner.pop("string", None)
        inner["single_nested"] = {"computed_optional_required": "optional", "attributes": [deeper]}
        inner = deeper
    assert [line for line in problems(document) if "nested too deeply" in line]


def test_a_file_is_loaded() -> None:
    assert load(FLEET).name == "fleet"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(tmp_path: Path, constant: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(fleet()).replace('"0.1"', f'"0.1", "odd": {constant}', 1))
    with pytest.raises(SpecError, match=f"{constant} is not a number that JSON has"):
        load(path)

"""Rules of schemas. `test_rules_answers.json` is what a real kube-apiserver said of each schema and each object."""

import copy
import json
import timeit
from pathlib import Path

import pytest

from trimtab.model.errors import FieldProblem
from trimtab.model.schema.rules import Rules

ANSWERS = json.loads(Path(__file__).with_name("test_rules_answers.json").read_text())
SCHEMA = "spec.validation.openAPIV3Schema"


def causes(errors):
    return sorted([error.path, error.problem.value[1], error.body] for error in errors)


@pytest.mark.parametrize("name", ANSWERS["checks"])
def test_a_schema_is_accepted_or_refused_in_the_words_of_the_real_server(name):
    answer = ANSWERS["checks"][name]
    assert causes(Rules(answer["schema"]).check(SCHEMA)) == answer["causes"]


@pytest.mark.parametrize("name", ANSWERS["evaluations"])
def test_an_object_is_accepted_or_refused_in_the_words_of_the_real_server(name):
    answer = ANSWERS["evaluations"][name]
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}
    old = {**resource, **answer["old"]} if "old" in answer else None
    errors = Rules(answer["schema"]).evaluate({**resource, **answer["object"]}, old)
    assert causes(errors) == answer["causes"]


def test_a_schema_without_rules_says_nothing():
    rules = Rules({"type": "object", "properties": {"spec": {"type": "object"}}})
    assert not rules
    assert rules.evaluate({"spec": {}}) == []


def test_the_object_is_not_changed():
    answer = ANSWERS["evaluations"]["rules fail with their messages"]
    obj = copy.deepcopy(answer["object"])
    Rules(answer["schema"]).evaluate(obj)
    assert obj == answer["object"]


def with_rule(properties, *rules):
    declared = [{"rule": rule} for rule in rules]
    return Rules({"type": "object", "properties": properties, "x-kubernetes-validations": declared}, root=False)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("set", "self.l == ['b', 'a']"),
        ("set", "self.l + ['b', 'c'] == ['c', 'a', 'b']"),
        ("atomic", "self.l != ['b', 'a']"),
        ("atomic", "self.l + ['b'] == ['a', 'b', 'b']"),
    ],
)
def test_lists_compare_and_add_by_their_type(kind, rule):
    listed = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind}
    assert with_rule({"l": listed}, rule).evaluate({"l": ["a", "b"]}) == []


KEYED = {
    "type": "array",
    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
}


@pytest.mark.parametrize(
    "rule",
    [
        "oldSelf.l == self.l",
        "(self.l + oldSelf.l).size() == 2",
        "(self.l + oldSelf.l).all(x, x.k != 'a' || x.v == 1)",
    ],
)
def test_lists_of_type_map_are_compared_and_merged_by_their_keys(rule):
    new = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    old = {"l": [{"k": "b", "v": 2}, {"k": "a", "v": 1}]}
    assert with_rule({"l": KEYED}, rule).evaluate(new, old) == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a-b", "a__dash__b"),
        ("a.b", "a__dot__b"),
        ("a/b", "a__slash__b"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("namespace", "namespace"),
        ("plain_name", "plain_name"),
    ],
)
def test_field_names_are_escaped(name, written):
    assert with_rule({name: {"type": "string"}}, f"self.{written} == 'x'").evaluate({name: "x"}) == []


def test_rules_of_all_of_are_evaluated_on_the_value_they_stand_by():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "allOf": [{"properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 1"}]}}}],
    }
    (error,) = Rules(schema, root=False).evaluate({"a": 1})
    assert (error.path, error.detail) == ("a", "failed rule: self > 1")


def test_a_rule_that_no_longer_compiles_is_reported_for_the_object():
    (error,) = with_rule({"a": {"type": "integer"}}, "self.b == 1").evaluate({"a": 1})
    assert error.problem is FieldProblem.INVALID
    assert error.detail.startswith("rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'b'")


def test_a_simple_rule_costs_microseconds():
    properties = {"min": {"type": "integer"}, "max": {"type": "integer"}, "filler": {"type": "string"}}
    rules = with_rule(properties, "self.min <= self.max")
    obj = {"min": 1, "max": 2, "filler": "x" * 1000}
    rules.evaluate(obj)
    best = min(timeit.repeat(lambda: rules.evaluate(obj), number=200, repeat=20)) / 200
    assert best < 20e-6  # five on a quiet machine

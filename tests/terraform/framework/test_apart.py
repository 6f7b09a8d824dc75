"""One concept a module, and in each operation just the data that exist for it."""

from __future__ import annotations

import dataclasses

import pytest

from trimtab.terraform.framework import data_source, ephemeral, function, provider, resource
from trimtab.terraform.framework.trees import Config, Plan, State


@pytest.mark.row(56)
@pytest.mark.parametrize(
    ("operation", "data"),
    [
        (resource.PlanCreate, {"config", "plan"}),
        (resource.PlanUpdate, {"config", "plan", "state"}),
        (resource.PlanDelete, {"state"}),
        (resource.Create, {"config", "plan"}),
        (resource.Read, {"state"}),
        (resource.Update, {"config", "plan", "state"}),
        (resource.Delete, {"state"}),
        (resource.Import, {"id", "identity"}),
        (data_source.ReadData, {"config"}),
        (ephemeral.Open, {"config"}),
        (ephemeral.Renew, set()),
        (ephemeral.Close, set()),
    ],
)
def test_an_operation_has_what_exists_for_it_and_nothing_else(operation: type, data: set[str]) -> None:
    names = {field.name for field in dataclasses.fields(operation)}
    assert names & {"config", "plan", "state", "id", "identity"} == data
    assert "context" in names


@pytest.mark.row(56)
def test_config_plan_and_state_are_not_each_other() -> None:
    value = {"x": 1}
    assert Config(value) != Plan(value)
    assert Plan(value) != State(value)
    assert State(value) == State({"x": 1})
    assert not issubclass(Plan, State)
    assert not issubclass(State, Plan)


def test_a_tree_does_not_show_its_values() -> None:
    assert repr(State({"password": "hunter2"})) == "State(password)"


@pytest.mark.row(55)
def test_each_concept_is_a_module_with_a_base_class_of_its_own() -> None:
    bases = {
        resource.Resource,
        data_source.DataSource,
        function.Function,
        ephemeral.Ephemeral,
        provider.Provider,
    }
    assert len({base.__module__ for base in bases}) == 5
    for base in bases:
        assert not any(issubclass(base, other) for other in bases - {base})

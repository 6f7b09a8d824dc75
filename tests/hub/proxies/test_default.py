"""What is applied is completed, in one spelling; twice is once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.kit import Plan, Service, plan
from trimtab.hub.contract import ApplyOptions, Hub, Refused
from trimtab.hub.proxies.default import Default, defaulted
from trimtab.hub.proxies.validate import Validate
from trimtab.hub.sharing import canonical
from trimtab.model.schema.shape import copied
from trimtab.model.scheme import Scheme

KIND = Scheme().kind_of(Plan)


def projects(*names: str) -> list[Hub]:
    return [{"name": name} for name in names]


@pytest.mark.row(9)
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, {"enabled": False}),
        ({}, {"enabled": False}),
        ({"enabled": False}, {"enabled": False}),
        ({"enabled": False, "projects": []}, {"enabled": False}),
        ({"enabled": False, "projects": projects("blue")}, {"enabled": False}),
        ({"enabled": True, "projects": projects("red")}, {"enabled": False}),
        ({"enabled": True, "projects": projects("*")}, {"enabled": True, "projects": projects("*")}),
        ({"enabled": True, "projects": projects("*", "*", "red")}, {"enabled": True, "projects": projects("*")}),
        (
            {"enabled": True, "projects": projects("green", "blue", "red", "blue")},
            {"enabled": True, "projects": projects("blue", "green")},
        ),
    ],
)
def test_sharing_has_one_spelling(said: Any, meant: Hub) -> None:
    assert canonical(said, "red") == meant


@pytest.mark.row(9)
@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"enabled": True}, "spec.sharing.projects"),
        ({"enabled": True, "projects": []}, "spec.sharing.projects"),
        ({"enabled": True, "projects": projects("*", "blue")}, "spec.sharing.projects"),
        ({"enabled": True, "projects": [{}]}, "spec.sharing.projects[0].name"),
        ({"enabled": True, "projects": "blue"}, "spec.sharing.projects"),
        ({"enabled": "true"}, "spec.sharing.enabled"),
        ("*", "spec.sharing"),
    ],
)
def test_sharing_that_says_two_things_is_refused_by_field(said: Any, field: str) -> None:
    with pytest.raises(Refused) as refused:
        canonical(said, "red")
    assert [path for path, _ in refused.value.problems] == [field]


sharings = st.none() | st.fixed_dictionaries(
    {"enabled": st.booleans()},
    optional={"projects": st.lists(st.sampled_from(["red", "blue", "green", "*"]).map(lambda name: {"name": name}))},
)
specs = st.fixed_dictionaries(
    {}, optional={"sharing": sharings, "replicas": st.integers(0, 9), "version": st.sampled_from(["", "v1"])}
)


def doubling(hub: Hub) -> None:
    hub["spec"].setdefault("places", ["west"])
    hub["spec"]["places"].sort()


@pytest.mark.row(8)
@pytest.mark.row(9)
@given(spec=specs)
def test_defaulting_twice_is_defaulting_once(spec: Hub) -> None:
    try:
        once = defaulted(plan(spec=spec), KIND, doubling)
    except Refused:
        return
    assert defaulted(once, KIND, doubling) == once


@pytest.mark.row(7)
@pytest.mark.row(8)
async def test_an_applied_document_gets_project_sharing_schema_defaults_and_its_own() -> None:
    service = Service()
    document = {"metadata": {"name": "a"}, "spec": {"parts": [{"name": "x"}]}}
    answer = await Default(service, KIND, doubling).apply(document, ApplyOptions(project="red"))
    assert answer["metadata"]["project"] == answer["metadata"]["namespace"] == "red"
    assert answer["apiVersion"] == "infra.trimtab.dev/v3"
    assert answer["spec"] == {
        "version": "",
        "parts": [{"name": "x", "enabled": True}],
        "replicas": 1,
        "places": ["west"],
        "sharing": {"enabled": False},
    }
    assert document == {"metadata": {"name": "a"}, "spec": {"parts": [{"name": "x"}]}}, "what was given is as it was"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"parts": [{"name": "x"}], "replicas": 3},
        {"sharing": {"enabled": True, "projects": projects("green", "blue", "red")}},
        {"sharing": {"enabled": True}},
        {"replicas": "many", "unknown": 1},
    ],
)
async def test_behind_the_server_the_same_comes_of_a_document_that_was_given_away(spec: Any) -> None:
    outcomes: list[Any] = []
    for served in (False, True):
        service = Service()
        chain = Validate(Default(service, KIND, doubling, served=served), KIND, served=served)
        try:
            await chain.apply(plan(spec=copied(spec)), ApplyOptions(project="red"))
            outcomes.append(service.rows)
        except Refused as refused:
            outcomes.append(refused.problems)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]


@pytest.mark.row(3)
def test_namespace_and_project_are_one_word() -> None:
    document = plan()
    document["metadata"]["namespace"] = "blue"
    with pytest.raises(Refused, match="one project"):
        defaulted(document, KIND)
    del document["metadata"]["project"]
    assert defaulted(document, KIND)["metadata"]["project"] == "blue"

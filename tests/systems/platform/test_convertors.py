"""A resource that is stored and read again is the one that was said, in its canonical form."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.platform.kinds_kit import Document, documents, sharings, words
from trimtab.model.document import convert, to_document
from trimtab.model.hub import HubKind, StorageSnapshot, Stored
from trimtab.systems.platform.convertors import IncompleteSpoke
from trimtab.systems.platform.hub_kinds import HUB_KINDS
from trimtab.systems.platform.sharing import canonical, gathered, reaches, spread

KINDS = {kind.cls.__name__: kind for kind in HUB_KINDS}
VERSIONED = ("Addon", "Blueprint", "Workload")


def completed(kind: HubKind, document: Document) -> Document:
    document = copy.deepcopy(document)
    assert kind.defaulter is not None
    kind.defaulter(document)
    return document


@pytest.mark.row(14)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_what_is_stored_comes_back_as_it_was_said(name: str, data: Any) -> None:
    kind = KINDS[name]
    document = completed(kind, data.draw(documents(name)))
    hub = convert(document, kind.cls)
    stored = kind.convertor.convert_from(hub)
    again = kind.convertor.convert_to(stored)
    assert to_document(again) == document
    assert kind.convertor.convert_from(again) == stored


@pytest.mark.row(14)
@pytest.mark.row(9)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_what_was_not_completed_comes_back_with_its_sharing_in_the_one_form(name: str, data: Any) -> None:
    kind = KINDS[name]
    document = data.draw(documents(name))
    back = to_document(kind.convertor.convert_to(kind.convertor.convert_from(convert(document, kind.cls))))
    expected = copy.deepcopy(document)
    if name != "Project":
        expected["spec"]["sharing"] = canonical(document["spec"].get("sharing"), document["metadata"]["project"])
    assert back == expected


@pytest.mark.row(8)
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=12)
@given(data=st.data())
def test_defaulting_twice_is_defaulting_once(name: str, data: Any) -> None:
    once = completed(KINDS[name], data.draw(documents(name)))
    assert completed(KINDS[name], once) == once


@pytest.mark.row(8)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "odd", [{}, {"spec": None}, {"spec": []}, {"spec": {"sharing": 1, "artifact": 3, "config": []}}]
)
def test_defaulting_leaves_what_is_no_document_to_validation(name: str, odd: Document) -> None:
    completed(KINDS[name], odd)


@pytest.mark.row(15)
@pytest.mark.parametrize("name", VERSIONED)
@settings(max_examples=12)
@given(data=st.data())
def test_a_published_version_is_a_resource_and_its_snapshot(name: str, data: Any) -> None:
    kind = KINDS[name]
    document = data.draw(documents(name))
    stored = kind.convertor.convert_from(convert(document, kind.cls))
    version = document["spec"].get("version")
    if not version:
        assert stored.snapshot is None
        return
    assert stored.snapshot is not None
    assert stored.snapshot.version == version
    assert "sharing" not in stored.snapshot.body
    assert stored.snapshot.body == stored.resource.body


@pytest.mark.row(15)
def test_a_version_without_its_snapshot_is_an_error_and_not_a_default() -> None:
    kind = KINDS["Blueprint"]
    hub = convert({"metadata": {"name": "b", "project": "p"}, "spec": {"version": "v1"}}, kind.cls)
    stored = kind.convertor.convert_from(hub)
    with pytest.raises(IncompleteSpoke, match="snapshot is missing"):
        kind.convertor.convert_to(Stored(resource=stored.resource))
    torn = StorageSnapshot(version="v1", body={"version": "v1", "addons": [{"name": "x"}]})
    with pytest.raises(IncompleteSpoke, match="not what was published"):
        kind.convertor.convert_to(Stored(resource=stored.resource, snapshot=torn))


@pytest.mark.row(15)
def test_a_body_of_another_shape_is_an_error() -> None:
    kind = KINDS["Addon"]
    stored = kind.convertor.convert_from(
        convert(
            {"metadata": {"name": "a", "project": "p"}, "spec": {"namespace": "n", "artifact": {"uploadedYAML": {
                "paths": [{"name": "a.yaml"}]}}}}, kind.cls)
    )  # fmt: skip
    broken = {"namespace": "n"}
    with pytest.raises(IncompleteSpoke, match="artifact"):
        kind.convertor.convert_to(Stored(resource=type(stored.resource)(name="a", project="p", body=broken)))


@pytest.mark.row(9)
@given(sharing=sharings, owner=words)
def test_sharing_has_one_form_and_the_table_says_the_same(sharing: Document, owner: str) -> None:
    once = canonical(sharing, owner)
    assert canonical(once, owner) == once
    assert gathered(*spread(sharing, owner)) == once
    assert once["enabled"] is ("projects" in once)


@pytest.mark.row(9)
@pytest.mark.parametrize(
    ("said", "form"),
    [
        (None, {"enabled": False}),
        ({}, {"enabled": False}),
        ({"enabled": False, "projects": [{"name": "b"}]}, {"enabled": False}),
        ({"enabled": True, "projects": [{"name": "*"}]}, {"enabled": True, "projects": [{"name": "*"}]}),
        (
            {"enabled": True, "projects": [{"name": "c"}, {"name": "b"}, {"name": "c"}, {"name": "own"}]},
            {"enabled": True, "projects": [{"name": "b"}, {"name": "c"}]},
        ),
        ({"enabled": True, "projects": [{"name": "own"}]}, {"enabled": False}),
    ],
)
def test_sharing_is_written_in_one_way(said: Document | None, form: Document) -> None:
    assert canonical(said, "own") == form


@pytest.mark.row(9)
def test_sharing_reaches_the_owner_the_named_and_with_a_star_everybody() -> None:
    some = {"enabled": True, "projects": [{"name": "b"}]}
    assert reaches(None, "a", "a")
    assert reaches(some, "a", "b")
    assert not reaches(some, "a", "c")
    assert not reaches(None, "a", "b")
    assert reaches({"enabled": True, "projects": [{"name": "*"}]}, "a", "c")

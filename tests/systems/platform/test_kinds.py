"""What the kinds take and refuse, and what they can do."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.platform.kinds_kit import Document, documents
from trimtab.model.document import convert
from trimtab.model.hub import ArtifactAccessor, HubVersioner, InternalTriggerable
from trimtab.model.scheme import Scheme
from trimtab.systems.platform.hub_kinds import HUB_KINDS
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, Workload

KINDS = {kind.cls.__name__: kind for kind in HUB_KINDS}
SCHEME = Scheme()
YAML = {"uploadedYAML": {"paths": [{"name": "a.yaml"}]}}


def problems(cls: Any, spec: Document, name: str = "x") -> list[str]:
    document = {"metadata": {"name": name}, "spec": copy.deepcopy(spec)}
    schema = SCHEME.kind_of(cls).schema
    walk = schema.walk(document)
    return [str(error) for error in (*walk.errors, *schema.rules(document, None, walk.errors))]


def workload(**changes: Any) -> Document:
    return {"namespace": "web", "placement": {"labels": "env=prod"}, "artifact": YAML, **changes}


@pytest.mark.row(5)
@settings(max_examples=12)
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_a_document_is_complete_in_itself_and_valid_before_and_after_defaulting(name: str, data: Any) -> None:
    kind = KINDS[name]
    document = data.draw(documents(name))
    assert problems(kind.cls, document["spec"]) == []
    assert kind.defaulter is not None
    kind.defaulter(document)
    assert problems(kind.cls, document["spec"]) == []
    convert(document, kind.cls)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../secret", "a/../../b", "..", "a/..", "./a", "a/./b", "a\\b", "..\\b", "C:\\x"]
)
def test_a_path_that_leads_out_of_the_document_s_folder_is_refused(path: str) -> None:
    for artifact in (
        {"uploadedYAML": {"paths": [{"name": path}]}},
        {"uploadedHelm": {"chartPath": {"name": path}}},
        {"uploadedHelm": {"chartPath": {"name": "c.tgz"}, "valuesPaths": [{"name": path}]}},
        {"helmInRepo": {"repository": "r", "chart": "c", "valuesPaths": [{"name": path}]}},
    ):
        assert any("relative to the document" in told for told in problems(Workload, workload(artifact=artifact)))


@pytest.mark.parametrize("path", ["a", "a.yaml", "deep/er/a.yaml", "..a", "a..b/c", "...", "a/.hidden"])
def test_a_path_below_the_document_is_fine(path: str) -> None:
    assert problems(Workload, workload(artifact={"uploadedYAML": {"paths": [{"name": path}]}})) == []


@pytest.mark.row(9)
@pytest.mark.parametrize(
    ("sharing", "says"),
    [
        ({"enabled": True}, "with nobody"),
        ({"enabled": True, "projects": []}, "with nobody"),
        ({"enabled": True, "projects": [{"name": "*"}, {"name": "b"}]}, "alone"),
    ],
)
def test_sharing_that_says_two_things_is_refused(sharing: Document, says: str) -> None:
    spec = workload(sharing=sharing)
    assert any(says in told for told in problems(Workload, spec))
    document = {"metadata": {"name": "x", "project": "p"}, "spec": spec}
    defaulter = KINDS["Workload"].defaulter
    assert defaulter is not None
    defaulter(document)
    assert any(says in told for told in problems(Workload, document["spec"])), "defaulting hides no mistake"


@pytest.mark.parametrize(
    ("cls", "spec", "says"),
    [
        (Workload, workload(artifact={}), "exactly one of uploadedYAML"),
        (Workload, workload(artifact={**YAML, "yamlInRepo": {"repository": "r", "paths": ["a"]}}), "exactly one of"),
        (Workload, workload(placement={}), "exactly one of clusters, labels"),
        (Workload, workload(version="latest"), "latest is how readers ask"),
        (Workload, workload(artifact={"helmInRepo": {"repository": "r"}}), "give chart"),
        (
            Workload,
            workload(artifact={"helmInRepo": {"repository": "r", "path": "c", "version": "1"}}),
            "give chart too",
        ),
        (Workload, workload(artifact={"yamlInRepo": {"repository": "r", "paths": ["../x"]}}), "without .."),
        (Cluster, {"config": {}}, "exactly one of imported, mks"),
        (Cluster, {"config": {"eks": {}, "gke": {}}}, "exactly one of imported, mks"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_would_be_right(cls: Any, spec: Document, says: str) -> None:
    assert any(says in told for told in problems(cls, spec))


@pytest.mark.parametrize("name", ["a.b", "a" * 64])
def test_a_project_must_have_a_name_that_a_namespace_can_have(name: str) -> None:
    assert any("namespace of its name" in told for told in problems(Project, {}, name))


def test_data_of_clouds_is_kept_whole() -> None:
    spec = {"config": {"eks": {"region": "eu-1", "nodegroups": [{"size": 3, "x": None}]}}}
    document = {"metadata": {"name": "c"}, "spec": copy.deepcopy(spec)}
    SCHEME.kind_of(Cluster).schema.walk(document)
    assert document["spec"]["config"] == spec["config"]


def test_the_groups_are_the_hub_s_own_and_follow_a_white_label() -> None:
    assert SCHEME.kind_of(Workload).resource == "workloads.apps.trimtab.dev"
    assert Scheme("acme.io").kind_of(Workload).resource == "workloads.apps.acme.io"
    assert Scheme("acme.io").kind_of(Cluster).api_version == "infra.acme.io/v3"


@pytest.mark.row(28)
def test_capabilities_are_told_by_the_classes() -> None:
    versioned = {name for name, kind in KINDS.items() if issubclass(kind.cls, HubVersioner)}
    assert versioned == {"Addon", "Blueprint", "Workload"}
    assert {name for name, kind in KINDS.items() if issubclass(kind.cls, ArtifactAccessor)} == {"Addon", "Workload"}
    assert all(issubclass(kind.cls, InternalTriggerable) for kind in HUB_KINDS)
    helm = {"uploadedHelm": {"chartPath": {"name": "c.tgz"}, "valuesPaths": [{"name": "v.yaml", "sensitive": True}]}}
    made = convert({"metadata": {"name": "w"}, "spec": workload(artifact=helm, version="v2")}, Workload)
    assert made.version() == "v2"
    assert [file.name for file in made.files()] == ["c.tgz", "v.yaml"]
    assert convert({"metadata": {"name": "b"}, "spec": {}}, Blueprint).version() == ""
    assert Addon.version is not None


@pytest.mark.row(4)
@pytest.mark.parametrize("name", KINDS)
def test_no_field_of_a_spec_is_an_id(name: str) -> None:
    def fields(schema: Any) -> Iterator[str]:
        for field, inner in (schema.get("properties") or {}).items():
            yield field
            yield from fields(inner)
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), dict):
                yield from fields(schema[word])

    spec = SCHEME.kind_of(KINDS[name].cls).schema.document["properties"]["spec"]
    assert [field for field in fields(spec) if re.search(r"(I[dD]s?|^ids?)$", field)] == []

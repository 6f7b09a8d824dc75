"""Where new documents and their files are written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.gitops.layout import path_for, safe_name
from trimtab.systems.gitops.parsing import Identity, PathError, artifact_path

BLUEPRINT = Identity("infra.trimtab.dev", "Blueprint", "shop", "web")


@pytest.mark.row(49)
def test_a_new_document_is_found_by_project_kind_and_name() -> None:
    assert path_for(BLUEPRINT) == "shop/blueprint/web.yaml"
    assert path_for(BLUEPRINT, root="/clusters/eu/", plural=lambda group, kind: "blueprints") == (
        "clusters/eu/shop/blueprints/web.yaml"
    )
    assert path_for(Identity("hub.trimtab.dev", "Project", "", "shop")) == "project/shop.yaml"


def test_a_path_that_is_taken_gets_a_number_also_where_case_does_not_count() -> None:
    taken = {"shop/blueprint/web.yaml", "shop/Blueprint/WEB-2.yaml"}
    assert path_for(BLUEPRINT, taken=taken) == "shop/blueprint/web-3.yaml"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("web", "web"),
        ("system:node", "system%3anode"),
        (".hidden", "%2ehidden"),
        ("..", "%2e."),
        ("con", "%63on"),
        ("a b", "a%20b"),
        ("é", "%c3%a9"),
        ("web.v1", "web.v1"),
    ],
)
def test_names_become_names_of_files(name: str, file: str) -> None:
    assert safe_name(name) == file


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_no_two_names_are_one_file(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) is (one == other)
    assert len(safe_name(one)) <= 200
    assert "/" not in safe_name(one)


def test_a_root_outside_of_the_repository_is_refused() -> None:
    with pytest.raises(PathError, match="leaves the repository"):
        path_for(BLUEPRINT, root="../other")


@pytest.mark.row(27)
def test_files_of_a_document_are_beside_it() -> None:
    assert artifact_path("shop/workload/web.yaml", "web/values.yaml") == "shop/workload/web/values.yaml"
    assert artifact_path("web.yaml", "./web//values.yaml") == "web/values.yaml"


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "name",
    [
        *("", "..", "../x", "a/../../x", "/etc/passwd", "a\\..\\b", ".git/config", "a/.GIT/x", "a\0"),
        *(".github/workflows/ci.yml", ".trimtabignore", "a/.gitattributes"),
    ],
)
def test_files_outside_of_the_documents_folder_and_hidden_ones_are_refused(name: str) -> None:
    with pytest.raises(PathError):
        artifact_path("shop/web.yaml", name)


def test_a_document_with_files_has_a_folder_that_nobody_else_has() -> None:
    assert path_for(BLUEPRINT, files=["notes.txt"]) == "shop/blueprint/web/web.yaml"
    taken = {"shop/blueprint/Web/notes.txt", "shop/blueprint/web-2/x"}
    assert path_for(BLUEPRINT, files=["notes.txt"], taken=taken) == "shop/blueprint/web-3/web.yaml"


@pytest.mark.row(49)
@pytest.mark.parametrize(
    ("files", "document"),
    [
        (["web.yaml"], "web-2.yaml"),
        (["./WEB.yaml", "web-2.yaml"], "web-3.yaml"),
        (["web.yaml/notes.txt"], "web-2.yaml"),
        (["in/web.yaml", "../web.yaml"], "web.yaml"),
    ],
)
def test_a_document_has_another_name_than_its_own_files(files: list[str], document: str) -> None:
    assert path_for(BLUEPRINT, files=files) == f"shop/blueprint/web/{document}"

"""Documents keep the line they begin at, and nothing odd in a file does harm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.cli.manifests import Bad, Manifest, documents

ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


def places(text: str) -> list[str]:
    return [each.where for each in documents(text, "f")]


def problem(text: str) -> str:
    (found,) = documents(text, "f")
    assert isinstance(found, Bad)
    return found.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE, ["f:1"]),
        (f"---\n{ONE}", ["f:2"]),
        (f"\n# why\n\n{ONE}---\n{ONE}", ["f:4", "f:8"]),
        (f"{ONE}...\n---\n# nothing\n---\n\n{ONE}---\n", ["f:1", "f:9"]),
        (f"--- # a remark\n{ONE}", ["f:2"]),
        (f"{ONE}data:\n  text: |\n    ---\n    not a marker\n", ["f:1"]),
        (f"{ONE}data: {{a: '---'}}\n", ["f:1"]),
        ("--- {apiVersion: v1, kind: A, metadata: {name: a}}\n", ["f:1"]),
        ("", []),
        ("---\n---\n", []),
    ],
)
def test_each_document_has_its_line(text: str, expected: list[str]) -> None:
    assert places(text) == expected


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6))
def test_lines_are_right_whatever_stands_between(gaps: list[tuple[int, int]]) -> None:
    text, expected = "", []
    for number, (blanks, remarks) in enumerate(gaps):
        text += "---\n" + "\n" * blanks + "# remark\n" * remarks
        expected.append((f"f:{text.count(chr(10)) + 1}", f"n{number}"))
        text += ONE.replace("NAME", f"n{number}")
    found = [(each.where, each.metadata["name"]) for each in documents(text, "f") if isinstance(each, Manifest)]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: b: c", "is no YAML: line 1: "),
        ("{", "is no YAML: line "),
        ("just text", "is no object"),
        ("kind: A", "apiVersion is missing"),
        ("apiVersion: v1\nkind: 5", "kind is missing"),
        ("apiVersion: v1\nkind: A", "metadata.name is missing"),
        ("apiVersion: v1\nkind: A\nmetadata: []", "metadata.name is missing"),
        ("[" * 3000, "is no YAML"),
    ],
)
def test_what_is_no_object_is_told(text: str, told: str) -> None:
    assert told in problem(text)


def test_aliases_that_explode_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert problem("\n".join(lines)) == "its aliases make it too large"


def test_yaml_means_what_it_means_to_kubernetes() -> None:
    (found,) = documents(ONE + "data: {time: 2020-01-01, octal: '010', yes: yes}\n", "f")
    assert isinstance(found, Manifest)
    assert found.document["data"]["time"] == "2020-01-01"

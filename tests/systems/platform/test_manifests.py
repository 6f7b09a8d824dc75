"""Documents out of files: everything is read or refused with its place; nothing is without bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.systems.platform.stage import config_map
from trimtab.model.yaml import dump
from trimtab.systems.platform.rendering import manifests
from trimtab.systems.platform.rendering.manifests import Unfit, defined, placed, read

names = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)


def cm(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


@settings(max_examples=50)
@given(st.lists(names, min_size=1, max_size=8, unique=True), st.integers(0, 3))
def test_lists_are_unfolded_and_files_are_read_in_order(found: list[str], depth: int) -> None:
    document: Any = {"apiVersion": "v1", "kind": "List", "items": [cm(name) for name in found]}
    for _ in range(depth):
        document = {"apiVersion": "v1", "kind": "List", "items": [document]}
    folded = read({"a.yaml": dump(document).encode()})
    plain = read({"a.json": json.dumps(cm(found[0])).encode(),
                  "b.yaml": "---\n".join(dump(cm(name)) for name in found[1:]).encode()})  # fmt: skip
    assert [each["metadata"]["name"] for each in folded.documents] == found
    assert folded.digest == plain.digest


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        read({"a.yaml": content})
    except Unfit as error:
        assert "a.yaml" in str(error)  # noqa: PT017 - both ends are right


def test_an_object_whose_kind_only_sounds_like_a_list_is_one_object() -> None:
    (document,) = read({"a": dump({**cm("mine"), "kind": "AllowList", "items": [1]}).encode()}).documents
    assert document["items"] == [1]


def test_what_only_a_server_may_say_is_left_out() -> None:
    exported = cm("a", uid="1", resourceVersion="9", creationTimestamp=None, managedFields=[], labels={"x": "y"})
    (document,) = read({"a": dump({**exported, "status": {"ready": True}}).encode()}).documents
    assert document == cm("a", labels={"x": "y"})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("just text", "document 1: is no object"),
        ("- 1\n- 2", "is no object"),
        ("kind: ConfigMap\nmetadata: {name: a}", "apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: a}", "kind is missing"),
        ("apiVersion: v1\nkind: ConfigMap", "metadata.name is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}", "another object each time"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}", "metadata.name is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: 1}}", "quote numbers"),
        (config_map("a") + config_map("a"), "declared already in a.yaml, document 1"),
        ("a: 1\na: 2", "duplicate key"),
        ("a: &x [*x]", "a.yaml"),
        ("[" * 500, "nested"),
        ("{", "a.yaml"),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_place(content: str, says: str) -> None:
    with pytest.raises(Unfit, match=r"^a\.yaml") as refused:
        read({"a.yaml": content.encode()})
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (".nan", "nan is not a number in JSON"),
        ("-.inf", "-inf is not a number in JSON"),
        ("1e400", "inf is not a number in JSON"),
        ("18446744073709551616", "larger than 64 bits can say: quote it"),
        ("-9223372036854775809", "larger than 64 bits can say: quote it"),
        ("!!binary aGVsbG8=", "of type bytes cannot be said in JSON: quote it"),
        ("!!timestamp 2020-01-01", "of type date cannot be said in JSON: quote it"),
        ("!!set {hello}", "of type set cannot be said in JSON"),
        ("!!pairs [hello: 1]", "of type tuple cannot be said in JSON"),
    ],
)
def test_a_value_that_json_cannot_say_is_refused_with_its_place_and_field(value: str, says: str) -> None:
    odd = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\ndata: {{list: [1, {{x: {value}}}]}}\n"
    with pytest.raises(Unfit, match=r"^a\.yaml, document 2: data\.list\[1\]\.x") as refused:
        read({"a.yaml": (config_map("a") + odd).encode()})
    assert says in str(refused.value)
    assert "hello" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("18446744073709551615", 18446744073709551615),
        ("-9223372036854775808", -9223372036854775808),
        ("2020-01-01", "2020-01-01"),
        ("{1: x, yes: z}", {"1": "x", "true": "z"}),
        ("1.5", 1.5),
    ],
)
def test_values_are_read_as_kubectl_reads_them(value: str, meant: Any) -> None:
    (found,) = read({"a": f"apiVersion: v1\nkind: X\nmetadata: {{name: b}}\nspec: {value}\n".encode()}).documents
    assert found["spec"] == meant


def test_size_number_and_depth_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unfit, match="larger than 4 MiB"):
        read({"a": b" " * (manifests.MAX_FILE + 1)})
    with pytest.raises(Unfit, match="16 MiB together"):
        read({str(n): b" " * manifests.MAX_FILE for n in range(5)})
    monkeypatch.setattr(manifests, "MAX_DOCUMENTS", 3)
    with pytest.raises(Unfit, match="more than 3 documents"):
        read({"a": "".join(config_map(f"c{n}") for n in range(4)).encode()})
    deep: Any = cm("a")
    for _ in range(manifests.MAX_LISTS + 1):
        deep = {"apiVersion": "v1", "kind": "List", "items": [deep]}
    with pytest.raises(Unfit, match="lists in lists"):
        read({"a": json.dumps(deep).encode()})


def test_anchors_that_unfold_to_a_thousand_times_their_size_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(Unfit):
        read({"bomb.yaml": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + "\n".join(lines)).encode()})


def test_documents_get_the_namespace_where_one_belongs() -> None:
    documents = [
        cm("a"),
        cm("b", namespace="own"),
        {**cm("c"), "kind": "Node"},
        {**cm("d", namespace="x"), "kind": "Node"},
    ]
    documents.append({**cm("e"), "kind": "Strange"})
    scope = {"ConfigMap": True, "Node": False}
    found = placed(documents, "web", lambda document: scope.get(document["kind"]))
    assert [each["metadata"].get("namespace") for each in found] == ["web", "own", None, None, None]
    with pytest.raises(Unfit, match="declared twice"):
        placed([cm("a"), cm("a", namespace="web")], "web", lambda document: True)


def test_kinds_that_the_documents_define_are_known() -> None:
    crd = {**cm("cups.x"), "kind": "CustomResourceDefinition",
           "spec": {"group": "x", "scope": "Cluster", "names": {"kind": "Cup"}}}  # fmt: skip
    assert defined([crd, {**crd, "spec": "odd"}]) == {("x", "Cup"): False}


def test_manifests_do_not_show_themselves() -> None:
    made = read({"a": config_map("a", password="hush").encode()})
    assert "hush" not in repr(made)

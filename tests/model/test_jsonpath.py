"""JSONPath finds what kubectl finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.jsonpath import JSONPathError, Template
from trimtab.model.jsonpath import compile as compile_path

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "shop", "a": "b"}},
    "spec": {"nodes": [{"n": 1, "up": True}, {"n": 2, "up": False}, {"n": 3}], "nothing": None},
    "status": {
        "conditions": [
            {"type": "Scheduled", "status": "True"},
            {"type": "Ready", "status": "False", "message": "a (b) 'c'"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".kind", ["Pod"]),
        ("kind", ["Pod"]),
        ("{.kind}", ["Pod"]),
        ("$.kind", ["Pod"]),
        ("{@.kind}", ["Pod"]),
        (".metadata.name", ["web"]),
        (".metadata['name']", ["web"]),
        ("['metadata']['name']", ["web"]),
        ("['metadata.name']", ["web"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["shop"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["shop"]),
        (".metadata.absent", []),
        (".kind.deeper", []),
        (".spec.nothing", [None]),
        (".spec.nothing.deeper", []),
        (".spec.nodes[0].n", [1]),
        (".spec.nodes[-1].n", [3]),
        (".spec.nodes[].n", [1]),
        (".spec.", []),
        ("{@}", [POD]),
        (".spec.nodes[9].n", []),
        (".spec.nodes[*].n", [1, 2, 3]),
        (".spec.nodes[0:2].n", [1, 2]),
        (".spec.nodes[1:].n", [2, 3]),
        (".spec.nodes[:-1].n", [1, 2]),
        (".spec.nodes[::2].n", [1, 3]),
        (".spec.nodes[0,2].n", [1, 3]),
        (".spec.nodes[*]['n','up']", [1, 2, 3, True, False]),
        (".spec.nodes[?(@.n>1)].n", [2, 3]),
        (".spec.nodes[?(@.n>=2)].n", [2, 3]),
        (".spec.nodes[?(@.n<2)].n", [1]),
        (".spec.nodes[?(@.n<=2)].n", [1, 2]),
        (".spec.nodes[?(@.n!=2)].n", [1, 3]),
        (".spec.nodes[?(@.up)].n", [1, 2]),
        (".spec.nodes[?(@.up==true)].n", [1]),
        (".spec.nodes[?( @.n == 2 )].n", [2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["False"]),
        (".status.conditions[?(@.type=='Ready')].status", ["False"]),
        (r".status.conditions[?(@.message=='a (b) \'c\'')].type", ["Ready"]),
        (".status.absent[?(@.type=='Ready')].status", []),
        (".kind[?(@.x)]", []),
        ("..n", [1, 2, 3]),
        (".spec..up", [True, False]),
        (".metadata.labels.*", ["shop", "b"]),
    ],
)
def test_a_path_finds(path: str, found: list[Any]) -> None:
    assert compile_path(path).find(POD) == found


@pytest.mark.parametrize(
    "path",
    [
        ".a[",
        ".a[?(@.b",
        ".a[?(@.b)",
        ".a[x]",
        ".a[0:1:0]",
        '.a["b"]',
        ".a....b",
        ".a[?(@.b=='x)]",
        ".a[?(@.b=~'x')]",
        "$range .a",
        "$#",
        ".a" * 20_000,
        ".a[1,2" * 40,
    ],
)
def test_what_is_not_a_path_is_refused(path: str) -> None:
    with pytest.raises(JSONPathError):
        compile_path(path)


def test_the_first_value_of_a_missing_path_is_none() -> None:
    assert compile_path(".metadata.absent.x").first(POD) is None
    assert compile_path(".spec.nodes[?(@.n==7)].n").first(POD) is None
    assert compile_path(".spec.nodes[1].n").first(POD) == 2


def test_a_plain_path_tells_its_keys() -> None:
    assert compile_path(r".metadata.labels['a\.b']").keys == ("metadata", "labels", "a.b")
    assert compile_path(".spec.nodes[0]").keys is None


LIST = {"items": [{"metadata": {"name": "a"}, "n": [1, 2]}, {"metadata": {"name": "b"}, "n": []}]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{.items[*].metadata.name}", "a b"),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', "a\nb\n"),
        ("{range .items[*]}{.metadata.name}:{range .n[*]}<{@}>{end};{end}done", "a:<1><2>;b:;done"),
        ("{range .items[*]}{.metadata.name}", "ab"),
        ("x={.items[0].metadata.name} y={.items[1].absent}", "x=a y="),
        ("{.items[0]}", '{"metadata":{"name":"a"},"n":[1,2]}'),
        ("{range .absent[*]}{.x}{end}!", "!"),
        ("{'it\\'s'}", "it's"),
        ("{true}{1}", "true1"),
    ],
)
def test_a_template_renders_as_kubectl_prints(template: str, text: str) -> None:
    assert Template.parse(template).render(LIST) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (1.5, "1.5"), (2.0, "2"), (7, "7"), ({"a": "<b>"}, '{"a":"\\u003cb\\u003e"}')],
)
def test_values_print_as_go_prints_them(value: object, text: str) -> None:
    assert Template.parse("{.v}").render({"v": value}) == text


def test_a_template_tells_when_the_object_has_another_shape() -> None:
    with pytest.raises(JSONPathError, match="array index out of bounds: index 5, length 2"):
        Template.parse("{.items[5]}").render(LIST)


@pytest.mark.parametrize("template", ["{.a", "{end}", "{range .a}" * 40, "{nonsense}"])
def test_what_is_not_a_template_is_refused(template: str) -> None:
    with pytest.raises(JSONPathError):
        Template.parse(template)


@settings(max_examples=150)
@given(st.text(alphabet=".[]()?@'\"*:,-0a{}= \\", max_size=25))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        compile_path(text).find(POD)
        Template.parse(text).render(POD)
    except JSONPathError:
        pass

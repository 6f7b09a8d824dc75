"""Selectors choose the objects that Kubernetes would choose, and refuse what it refuses in the same words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.model.selectors import FieldRequirement, FieldSelector, LabelSelector, Requirement

LABELS = {"app": "web", "tier": "front", "weight": "10", "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier = front", True),
        ("app=db", False),
        ("app!=db", True),
        ("absent!=db", True),
        ("absent=", False),
        ("empty=", True),
        ("empty", True),
        ("app in (db,web)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("absent notin (db)", True),
        ("absent in (db)", False),
        ("app", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("weight>9", True),
        ("weight<10", False),
        ("app>1", False),
        ("absent>1", False),
        ("app=web,!absent,tier in (front,back)", True),
        ("in in (in)", False),
        ("x in ()", False),
    ],
)
def test_a_label_selector_matches_as_kubernetes_does(text: str, expected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x=a||y=b",
            'unable to parse requirement: values[0][x]: Invalid value: "a||y": a valid label must be an empty',
        ),
        ("x==a==b", "found '==', expected: ',' or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        (
            "x<a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be",
        ),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a/b/c=d", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a qualified name must consist of'),
        ("-a=d", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric'),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_a_bad_label_selector_is_refused_in_the_words_of_apimachinery(text: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        LabelSelector.parse(text)
    assert refused.value.code == 400
    assert refused.value.message.startswith(message)


def test_a_selector_longer_than_the_bound_is_refused() -> None:
    with pytest.raises(StatusError, match="longer than"):
        LabelSelector.parse("a" * 100_000)


@pytest.mark.parametrize(
    ("text", "printed"),
    [("b=1,a in (z,y),!c", "a in (y,z),b=1,!c"), ("x>1", "x>1"), ("b,a", "a,b"), ("x notin ()", "x notin ()")],
)
def test_a_label_selector_prints_sorted_by_key(text: str, printed: str) -> None:
    assert str(LabelSelector.parse(text)) == printed


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_selector_document_matches_as_kubernetes_does(document: dict[str, object] | None, expected: bool) -> None:
    assert LabelSelector.from_document(document).matches(LABELS) is expected


def test_a_selector_document_with_an_unknown_operator_is_refused() -> None:
    with pytest.raises(StatusError, match='"Like" is not a valid label selector operator'):
        LabelSelector.from_document({"matchExpressions": [{"key": "a", "operator": "Like"}]})


names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
requirements = st.one_of(
    st.builds(lambda k, v: Requirement(k, "=", (v,)), names, names),
    st.builds(lambda k, v: Requirement(k, "!=", (v,)), names, names),
    st.builds(lambda k, v: Requirement(k, "in", tuple(sorted(v))), names, st.sets(names, min_size=1, max_size=3)),
    st.builds(lambda k: Requirement(k, "exists"), names),
    st.builds(lambda k: Requirement(k, "!"), names),
)


@settings(max_examples=60)
@given(st.lists(requirements, max_size=4))
def test_a_printed_label_selector_reads_back_as_itself(found: list[Requirement]) -> None:
    selector = LabelSelector(tuple(sorted(found, key=lambda r: r.key)))
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.name!=web", False),
        ("metadata.name=web,status.phase=Running", False),
        ("status.phase=", True),
        ("status.phase!=Running", True),
    ],
)
def test_a_field_selector_matches_as_kubernetes_does(text: str, expected: bool) -> None:
    assert FieldSelector.parse(text).matches({"metadata.name": "web", "metadata.namespace": "default"}) is expected


def test_a_field_selector_tells_its_requirements() -> None:
    selector = FieldSelector.parse(r"spec.b!=x,spec.a==a\,b\=c")
    assert selector.requirements == (FieldRequirement("spec.a", "=", "a,b=c"), FieldRequirement("spec.b", "!=", "x"))
    assert selector.exact("spec.a") == "a,b=c"
    assert selector.exact("spec.b") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name", "invalid selector: 'name'; can't understand 'name'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_is_refused_in_the_words_of_apimachinery(text: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        FieldSelector.parse(text)
    assert (refused.value.code, refused.value.message) == (400, message)


@settings(max_examples=60)
@given(st.text(max_size=20))
def test_any_field_value_survives_printing_and_parsing(value: str) -> None:
    selector = FieldSelector((FieldRequirement("spec.a", "=", value),))
    assert FieldSelector.parse(str(selector)) == selector

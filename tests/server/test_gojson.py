"""Bodies that are not JSON are refused in the words of Go's decoder."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.server.gojson import complaint, unrecognized


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'{"a": "b', "unexpected end of JSON input"),
        (b"hello", "invalid character 'h' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"{} {}", "invalid character '{' after top-level value"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b'"\\q"', "invalid character 'q' in string escape code"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b"-a", "invalid character 'a' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"[" * 5000, "exceeded max depth"),
    ],
)
def test_the_first_mistake_is_named(body: bytes, words: str) -> None:
    assert complaint(body) == words


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_what_is_json_gets_no_complaint(value: object) -> None:
    assert complaint(json.dumps(value).encode()) == "invalid JSON"


@given(st.binary(max_size=60))
def test_no_body_does_more_than_be_refused(body: bytes) -> None:
    assert complaint(body)


def test_a_summary_shows_objects_as_text_and_the_rest_in_hexadecimal() -> None:
    assert unrecognized("Pod", "why", b'{"a":1}').endswith('why ({"a":1})')
    assert unrecognized("Pod", "why", b"hello").endswith("why (68656c6c6f)")
    assert unrecognized("Pod", "why", b"").endswith("why (<empty>)")

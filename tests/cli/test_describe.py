"""Any document can be shown, line by line, whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.cli.describe import tree

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
)


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"a": 1, "b": {"c": True}}, ["a: 1", "b:", "  c: true"]),
        ({"a": ["x", "y"]}, ["a:", "  - x", "  - y"]),
        ({"a": [{"b": 1, "c": 2}]}, ["a:", "  - b: 1", "    c: 2"]),
        ({"a": "one\ntwo\n"}, ["a:", "  one", "  two"]),
        ({"a": {}, "b": [], "c": None, "d": {"e": {}}}, []),
        ({"a": ""}, ["a: "]),
        ([[1], [2, 3]], ["- - 1", "- - 2", "  - 3"]),
    ],
)
def test_values_are_indented_as_in_yaml(value: Any, lines: list[str]) -> None:
    assert list(tree(value, 0)) == lines


@settings(max_examples=100)
@given(VALUES)
def test_every_value_becomes_printable_lines(value: Any) -> None:
    assert all(line.isprintable() for line in tree(value, 2))

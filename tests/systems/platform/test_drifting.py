"""What was declared is there, or it is not: the judgement for clusters that cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.systems.platform.kinds_kit import json_values
from trimtab.systems.platform.drifting import within


@settings(max_examples=60)
@given(json_values)
def test_everything_is_within_itself(value: Any) -> None:
    assert within(value, value)


@pytest.mark.parametrize(
    ("declared", "live", "is_so"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": {}}, {}, True),
        ({"a": []}, {"b": 1}, True),
        ({"a": {"x": 1}}, {}, False),
        ([{"name": "x"}], [{"name": "y"}, {"name": "x", "port": 1}], True),
        ([1, 2], [1], False),
        ({"a": None}, {}, True),
    ],
)
def test_more_may_be_there_and_nothing_may_lack(declared: Any, live: Any, is_so: bool) -> None:
    assert within(declared, live) is is_so

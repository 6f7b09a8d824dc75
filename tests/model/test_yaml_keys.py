"""Keys of YAML that are no text: JSON has none, so they are read as kubectl reads them."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.yaml import YamlError, load


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{y: 1, n: 2}", {"true": 1, "false": 2}),
        ("{1: a, y: b, 007: c, 1.5: d, 2.0: e}", {"1": "a", "true": "b", "7": "c", "1.5": "d", "2": "e"}),
        ("{'y': 1, '1': 2, =: 3, 2026-01-01: 4}", {"y": 1, "1": 2, "=": 3, "2026-01-01": 4}),
        ("{<<: {y: 1, n: 2}, y: 3}", {"true": 3, "false": 2}),
        ("{a: &word y, *word : 1}", {"a": True, "true": 1}),
    ],
)
def test_words_and_numbers_are_keys_by_what_they_mean(text: str, read: Any) -> None:
    assert load(text) == read


@pytest.mark.parametrize("key", ["null", "[a]", "{a: b}", "!!binary aGk="])
def test_a_key_that_is_neither_is_refused_with_its_line(key: str) -> None:
    with pytest.raises(YamlError, match="line 2: found a key that is no text"):
        load(f"a: 1\n? {key}\n: 2\n")


def test_two_keys_of_one_meaning_are_one_key_twice() -> None:
    with pytest.raises(YamlError, match='line 2: found duplicate key "true"'):
        load("y: 1\non: 2\n")

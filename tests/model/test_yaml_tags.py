"""Tags that say of a value what it cannot be, and words that look like numbers."""

from __future__ import annotations

import pytest

from trimtab.model.yaml import YamlError, load, load_each


@pytest.mark.parametrize(
    "value",
    [
        "!!bool x",
        "!!timestamp x",
        "!!timestamp 2026-13-99",
        '!!int ""',
        '!!float ""',
        "!!int x",
        "!!int 1:x",
        "!!map ab",
        "!!map [[a, b]]",
        "!!set x",
        "!!seq x",
        "!!str [a]",
        "!!omap x",
        "!!binary é",
        "!!null [a]",
    ],
)
def test_a_tag_that_its_value_cannot_bear_is_an_error_with_its_line(value: str) -> None:
    for read in (load, lambda text: list(load_each(text, nodes=100))):
        with pytest.raises(YamlError, match="line 2: "):
            read(f"a: 1\nb: {value}\n")


def test_a_list_for_a_key_beside_a_merge_is_an_error_with_its_line() -> None:
    with pytest.raises(YamlError, match="line 2: "):
        list(load_each("<<: {a: 1}\n? [b]\n: 1\n", nodes=100))


@pytest.mark.parametrize("word", ["0o", "0x", "0b", "0x_", "0b_", "0o_"])
def test_a_base_without_a_digit_is_text(word: str) -> None:
    assert load(word) == word


@pytest.mark.parametrize(("word", "number"), [("0", 0), ("0o17", 15), ("017", 15), ("0x_1f", 31), ("-0b1_0", -2)])
def test_numbers_to_a_base_are_read(word: str, number: int) -> None:
    assert load(word) == number

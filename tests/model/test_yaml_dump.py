"""Documents as YAML: what is written is read as the same by kubectl, whichever version of YAML it speaks."""

from __future__ import annotations

import pytest

from trimtab.model.yaml import dump


@pytest.mark.parametrize(
    "text", ["y", "N", "0o17", "1e3", "1_000", "0x1f", ".5", "010", "true", "null", "~", "2026-11-16", ""]
)
def test_what_a_reader_would_take_for_something_else_is_quoted(text: str) -> None:
    assert dump({text: text}) in (f"'{text}': '{text}'\n", f"? '{text}'\n: '{text}'\n")


@pytest.mark.parametrize("text", ["10.0.0.1", "v1", "1234abcd", "yes-sir", "e3"])
def test_what_is_text_to_everyone_is_not(text: str) -> None:
    assert dump({"a": text}) == f"a: {text}\n"

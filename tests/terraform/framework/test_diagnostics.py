"""What is told to a user: on his terminal, so that nothing in it is obeyed there."""

from __future__ import annotations

import pytest

from trimtab.terraform.framework.diagnostics import ERROR, Diagnostic


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\x00\x07\x7f\x9b", "a\\x00\\x07\\x7f\\x9b"),
        ("over\rwritten", "over\\x0dwritten"),
        ("two\nlines, schön", "two\nlines, schön"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(text: str, seen: str) -> None:
    message = Diagnostic(ERROR, text, text).message()
    assert (message["summary"], message["detail"]) == (seen, seen)

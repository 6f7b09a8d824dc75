"""What a terminal shows: prompts, pagers, and text that was overwritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.discovery.identify import ssh_screen as screen


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("sw1#\r\nsw1#", "sw1#"),
        ("Welcome\r\n\r\nsw1# \r\nsw1# ", "sw1#"),
        ("\x1b[1msw1>\x1b[0m\r\nsw1>", None),
        ("sw1#", None),
        ("sw1#\r\nsw", None),
        ("****\r\n****\r\n", None),
        ("-- More --\r\n-- More --", None),
        ("", None),
    ],
)
def test_a_prompt_is_known_once_it_was_shown_twice(text: str, prompt: str | None) -> None:
    assert screen.prompt(text) == prompt


@pytest.mark.parametrize(
    "line",
    [
        " --More-- ",
        "--More--",
        "---(more)---",
        "---(more 42%)---",
        "<--- More --->",
        "-- MORE --, next page: Space, next line: Enter, quit: Control-C",
        "Press any key to continue (Q to quit)",
        "lines 1-23 ",
        "\x1b[7m--More--\x1b[27m",
    ],
)
def test_pagers_are_known(line: str) -> None:
    assert screen.asks_for_more(line)


@pytest.mark.parametrize("line", ["sw1#", "More information is at example.com", "48 more ports", ""])
def test_other_lines_are_no_pagers(line: str) -> None:
    assert not screen.asks_for_more(line)


@pytest.mark.parametrize(
    "line", ["Password:", "New password: ", "login: ", "User:", "Username: ", "(current) UNIX password: "]
)
def test_questions_for_a_login_are_known(line: str) -> None:
    assert screen.asks_who(line)


@pytest.mark.parametrize("line", ["sw1#", "user@host:~$ ", "login-node:~ # ", "admin@password-vault:~$"])
def test_prompts_are_no_questions_for_a_login(line: str) -> None:
    assert not screen.asks_who(line)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("abc", "abc"),
        ("abc\r", "abc"),
        (" --More-- \r          \rnext", "next      "),
        ("--More--\b\b\b\b\b\b\b\b        \b\b\b\b\b\b\b\bnext", "next    "),
        ("\x1b[32mgreen\x1b[0m", "green"),
        ("\x1b]0;title\x07text", "text"),
        ("\b\ba", "a"),
    ],
)
def test_a_line_is_as_it_stands_in_the_end(line: str, shown: str) -> None:
    assert screen.shown(line) == shown


def test_the_output_is_between_the_echo_and_the_prompt() -> None:
    text = "sw1#\r\nsw1#show clock\r\n12:00\r\n\r\nUTC\r\nsw1#"
    assert screen.output(text, "show clock") == "12:00\n\nUTC"


def test_without_an_echo_the_output_is_all_before_the_prompt() -> None:
    assert screen.output("12:00\r\nsw1#", "show clock") == "12:00"


@given(st.text(alphabet="ab\r\b\n\x1b[0m", max_size=40))
def test_any_text_can_be_shown(text: str) -> None:
    for line in text.split("\n"):
        assert "\r" not in screen.shown(line)
        assert "\b" not in screen.shown(line)

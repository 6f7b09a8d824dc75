"""How events are logged: for people with colours on a terminal alone, for machines as JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

LINE = "from trimtab.model import logs; logs.as_json = {}; logs.log.warning('it is so', why='because')"


def logged(as_json: bool | None) -> str:
    """What comes out of a standard error that is no terminal."""
    command = [sys.executable, "-c", LINE.format(as_json)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_text_in_a_file_has_no_colours() -> None:
    said = logged(False)
    assert "\x1b" not in said
    assert "it is so" in said
    assert "why=because" in said


@pytest.mark.parametrize("as_json", [None, True])
def test_a_file_gets_json_unless_text_is_asked_for(as_json: bool | None) -> None:
    said = json.loads(logged(as_json))
    assert (said["event"], said["why"], said["level"]) == ("it is so", "because", "warning")


def test_text_on_a_terminal_has_colours() -> None:
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", LINE.format(None)], stderr=theirs, check=True)
        assert b"\x1b[" in os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)

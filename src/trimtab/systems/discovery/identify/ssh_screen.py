"""What a terminal shows, as pure functions: escapes removed, overwritten text gone, prompts and pagers known.

A prompt is known by being repeated: a line without an end that is there again after an empty line was typed.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78DEHMNOZc])|[\x00\x07]"
)
_PAGER = re.compile(
    r"(?:-+\s*\(?more\b.*|<-+\s*more\s*-+>|\[\s*more\s*\]|press (?:any key|<?space>?|<?enter>?).*|lines \d+-\d+.*)\s*$",
    re.IGNORECASE,
)
_WHO = re.compile(r"(?:password|passphrase|passcode|login|user(?:\s?name)?)\b[^\n]{0,40}[:?]\s*$", re.IGNORECASE)


def prompt(text: str) -> str | None:
    """The prompt, once it was shown twice; None while that is not sure."""
    finished, _, last = _plain(text).rpartition("\n")
    last = last.strip()
    if not last or asks_for_more(last):
        return None
    before = [line.strip() for line in finished.split("\n") if line.strip()]
    return last if before and before[-1] == last else None


def ends_with(text: str, prompt: str) -> bool:
    """Whether the device waits at its prompt."""
    return shown(last_line(text)).strip() == prompt


def asks_for_more(line: str) -> bool:
    """Whether the line is a pager's, waiting for a key."""
    return _PAGER.search(shown(line)) is not None


def asks_who(line: str) -> bool:
    """Whether the line asks for a name or a password, into which no command may be typed."""
    return _WHO.search(shown(line)) is not None


def last_line(text: str) -> str:
    """What comes after the last line's end."""
    return text[text.rfind("\n") + 1 :]


def output(text: str, command: str) -> str:
    """What a command printed: without its echo before and the prompt after."""
    lines = [shown(line) for line in _plain(text).split("\n")][:-1]
    echo = next((at for at, line in enumerate(lines) if line.endswith(command)), None)
    if echo is not None:
        lines = lines[echo + 1 :]
    return "\n".join(line.rstrip() for line in lines)


def shown(line: str) -> str:
    """A line as it stands in the end, after carriage returns and backspaces."""
    line = _ESCAPES.sub("", line).rstrip("\r")
    if "\r" not in line and "\b" not in line:
        return line
    cells: list[str] = []
    at = 0
    for character in line:
        if character == "\r":
            at = 0
        elif character == "\b":
            at = max(0, at - 1)
        else:
            cells[at : at + 1] = [character]
            at += 1
    return "".join(cells)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")

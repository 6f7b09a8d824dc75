"""Which paths may name an artifact. Pure; what is not plainly a relative path below the document is refused, not mended."""

from __future__ import annotations

import re

from trimtab.model.errors import StatusError, bad_request

MAX_PATH = 1024
MAX_SEGMENT = 255
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_DRIVE = re.compile(r"[A-Za-z]:")


def checked_path(path: str) -> str:
    """The same path. StatusError 400, which says what is wrong, for anything that could lead elsewhere."""
    why = problem(path)
    if why:
        raise refused_path(path, why)
    return path


def problem(path: str) -> str:
    """Why a path names no artifact; "" when it may."""
    if not path:
        return "it is empty"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
        return f"it has more than {MAX_PATH} bytes"
    if path.startswith("/") or _DRIVE.match(path):
        return "it is absolute"
    if "\\" in path:
        return "it has a backslash"
    if _ESCAPED.search(path):
        return "it is escaped twice"
    if not path.isprintable():
        return "it has a character that cannot be printed"
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            return f'it has the segment "{segment}"'
        if segment.startswith("."):
            return f'its segment "{segment}" is hidden'
        if len(segment.encode("utf-8", "surrogatepass")) > MAX_SEGMENT:
            return f"a segment has more than {MAX_SEGMENT} bytes"
    return ""


def refused_path(path: str, why: str) -> StatusError:
    shown = "".join(char if char.isprintable() else "?" for char in path[:80])
    return bad_request(
        f'"{shown}" names no artifact: {why}; it must be a path below the document, as in "charts/a.tgz"'
    )

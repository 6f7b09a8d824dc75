"""Bodies: JSON within bounds, and the envelopes that some APIs put around what is meant. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

DEEPEST = 128


class BodyError(ValueError):
    """A body that cannot be what was asked for. The text never holds it."""


def decoded(content: bytes, content_type: str, *, strict: bool) -> Any:
    """The document, None when there is none. BodyError for HTML, and for what should be JSON and is not.

    What is another plain type is None unless `strict`: an error may be a line of text, and so may the answer to a delete.
    """
    content = content.removeprefix(b"\xef\xbb\xbf").strip()
    if not content:
        return None
    media = content_type.partition(";")[0].strip().lower()
    if media in ("text/html", "application/xhtml+xml") or content[:15].lower().startswith((b"<!doctype", b"<html")):
        raise BodyError(f"answered {media or 'text/html'}, not JSON")
    promised = media in ("application/json", "text/json", "") or media.endswith("+json")
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        if not promised and not strict:
            if content == _NO_ROUTE:
                raise BodyError("answered that there is no such route, as a proxy without the service does") from None
            return None
        what = f"answered {media}, not JSON" if not promised else "the answer is no JSON"
        raise BodyError(what) from None
    if deeper_than(document, DEEPEST):
        raise BodyError(f"the answer is nested more than {DEEPEST} levels deep")
    return document


def deeper_than(document: Any, levels: int) -> bool:
    level = [document]
    for _ in range(levels + 1):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def at(document: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none. "" is the document itself. A key that has dots of its own
    (`@odata.nextLink`) is found too."""
    while path:
        if isinstance(document, Mapping) and path in document:
            return document[path]
        name, _, path = path.partition(".")
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def unwrapped(document: Any, envelope: str) -> Any:
    """What is meant, without what is around it. An answer without the envelope is what is meant itself."""
    if not envelope or document is None:
        return document
    outer, _, last = envelope.rpartition(".")
    around = at(document, outer)
    return around[last] if isinstance(around, Mapping) and last in around else document


def wrapped(body: Any, wrap: str) -> Any:
    for name in reversed(wrap.split(".") if wrap else ()):
        body = {name: body}
    return body


_NO_ROUTE = b"404 page not found"
"""What routers written in Go say of a path that nobody serves. A resource that is gone is told of otherwise."""

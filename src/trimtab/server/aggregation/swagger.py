"""The OpenAPI v2 document of another server, as far as it goes into ours: its own paths and its definitions.

Parameters that it shares by reference, as servers in Go do, are written out, since ours has nothing to refer to. A document
that could not be served in both of our forms is refused as a whole: it would take ours from all clients.
"""

from __future__ import annotations

from typing import Any

from trimtab.server import openapi2
from trimtab.server.strategy import Document

_REFERENCE = "#/parameters/"
_FRAME: Document = {"swagger": "2.0", "info": {}, "securityDefinitions": {}, "security": []}


def part_of(document: Any, path: str) -> Document:
    """What it says of the paths below `path`. ValueError when it is no such document. Slow: not for the loop."""
    try:
        shared = document.get("parameters") or {}
        paths = {
            name: _item(item, shared)
            for name, item in (document.get("paths") or {}).items()
            if name.startswith(path + "/")
        }
        part = {"paths": paths, "definitions": dict(document.get("definitions") or {})}
        openapi2.encoded({**_FRAME, **part})
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it has not the form of an OpenAPI v2 document: {type(error).__name__}: {error}") from None
    return part


def _item(item: Document, shared: Document) -> Document:
    """A path, with the parameters of it and of its operations written out."""
    made = _written_out(item, shared)
    return {word: value if word == "parameters" else _written_out(value, shared) for word, value in made.items()}


def _written_out(said: Document, shared: Document) -> Document:
    if not said.get("parameters"):
        return said
    return {**said, "parameters": [_parameter(one, shared) for one in said["parameters"]]}


def _parameter(one: Document, shared: Document) -> Document:
    reference = one.get("$ref")
    return one if reference is None else shared[reference.removeprefix(_REFERENCE)]

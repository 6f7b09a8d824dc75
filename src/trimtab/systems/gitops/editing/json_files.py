"""Documents in JSON files: one in each (or a list of them), written again with the indentation that the file has."""

from __future__ import annotations

import json
import re
from typing import Any

from trimtab.systems.gitops.editing.yaml_files import EditError, changed


def edit(text: str, item: int, before: dict[str, Any], after: dict[str, Any]) -> str:
    document = _read(text, item)
    if item < 0:
        return _written(changed(document, before, after), text)
    document["items"][item] = changed(document["items"][item], before, after)
    return _written(document, text)


def delete(text: str, item: int) -> str | None:
    document = _read(text, item)
    if item < 0 or len(document["items"]) < 2:
        return None
    del document["items"][item]
    return _written(document, text)


def new(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _read(text: str, item: int) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EditError(f"is not JSON: {error}") from None
    if not isinstance(document, dict) or (item >= 0 and item >= len(document.get("items") or ())):
        raise EditError("has no such document: it changed since it was read")
    return document


def _written(document: Any, like: str) -> str:
    """As `like` is written: its indentation or none, spaces behind signs, escapes, the last newline."""
    indented = re.search(r"[{\[]\r?\n([ \t]+)\S", like)
    if indented:
        text = json.dumps(document, indent=indented.group(1), ensure_ascii=like.isascii() and "\\u" in like)
    else:
        spaced = '": ' in like
        separators = (", ", ": ") if spaced else (",", ":")
        text = json.dumps(document, separators=separators, ensure_ascii=like.isascii() and "\\u" in like)
    return text + like[len(like.rstrip()) :]

"""Documents in JSON files: one in each (or a list of them), written again with the indentation that the file has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from trimtab.systems.gitops.editing.yaml_files import Change, EditError, changed


def edit(text: str, changes: Iterable[Change]) -> str | None:
    """All changes of a file; None when no document is left."""
    document = _read(text)
    gone: set[int] = set()
    for change in changes:
        items = document.get("items") if change.item >= 0 else None
        if change.item >= 0 and change.item >= len(items or ()):
            raise EditError("has no such document: it changed since it was read")
        if change.after is None:
            gone.add(change.item)
        elif items is None:
            document = changed(document, change.before, change.after)
        else:
            items[change.item] = changed(items[change.item], change.before, change.after)
    if -1 in gone or (gone and len(gone) >= len(document["items"])):
        return None
    if gone:
        document["items"] = [item for number, item in enumerate(document["items"]) if number not in gone]
    return _written(document, text)


def new(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _read(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EditError(f"is not JSON: {error}") from None
    if not isinstance(document, dict):
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

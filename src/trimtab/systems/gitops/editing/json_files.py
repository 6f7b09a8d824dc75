"""Documents in JSON files: one in each (or a list of them). Where only values change, only they are written; else all of it is,
with the indentation that the file has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from trimtab.systems.gitops.editing.tree import Node, spans
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
    return _spliced(text, document) or _written(document, text)


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


Places = list[tuple[int, int, str]]


def _spliced(text: str, document: Any) -> str | None:
    """The text with other values in their places, and new keys behind the last; None when more than that is another."""
    import yaml

    places: Places = []
    try:
        [span] = spans(text)  # JSON is YAML, mostly; what comes out is read again
        _differ(text, span.root, json.loads(text), document, places)
    except (ValueError, LookupError, yaml.YAMLError, RecursionError):
        return None
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text if _is(text, document) else None


def _differ(text: str, node: Node, before: Any, after: Any, places: Places) -> None:
    """ValueError for what cannot be told in places."""
    if before == after and type(before) is type(after) and not isinstance(before, (dict, list)):
        return
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() <= after.keys():
        for key, value in node.pairs:
            _differ(text, value, before[key.text], after[key.text], places)
        new = {name: value for name, value in after.items() if name not in before}
        if new:
            key, value = node.pairs[-1]
            line = text.rfind("\n", 0, key.start) + 1
            between = f",\n{text[line : key.start]}" if not text[line : key.start].strip() and line else ", "
            said = (f"{between}{_said(name, text)}: {_said(inner, text)}" for name, inner in new.items())
            places.append((value.end, value.end, "".join(said)))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for item, one, other in zip(node.items, before, after, strict=True):
            _differ(text, item, one, other, places)
    elif isinstance(before, (dict, list)) or isinstance(after, (dict, list)):
        raise EditError("is another thing now")
    else:
        places.append((node.start, node.end, _said(after, text)))


def _said(value: Any, like: str) -> str:
    return json.dumps(value, ensure_ascii=like.isascii() and "\\u" in like)


def _is(text: str, document: Any) -> bool:
    try:
        return bool(json.dumps(json.loads(text)) == json.dumps(document))
    except ValueError:
        return False


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

"""Documents in YAML files. Every change is read back: what comes out says what was meant, or the document is written anew."""

from __future__ import annotations

from typing import Any

from trimtab.model import yaml
from trimtab.systems.gitops.editing.dumping import block
from trimtab.systems.gitops.editing.surgery import Replace, Surgery, Unable
from trimtab.systems.gitops.editing.tree import DocumentSpan, Node, spans
from trimtab.systems.gitops.merging import normal, same

NODES = 200_000


class EditError(ValueError):
    """A file cannot be changed: it is not what was read from it."""


def edit(text: str, index: int, item: int, before: dict[str, Any], after: dict[str, Any]) -> str:
    """One document changed from `before` to `after`, both normalised."""
    documents = _placed(text, index, item)
    wanted = list(documents)
    wanted[index] = _with(documents[index], item, before, after)
    span = _span(text, index)
    try:
        surgery = Surgery(text, span.root)
        node = span.root if item < 0 else _items(span.root)[item]
        surgery.change(node, before, after)
        found = surgery.result()
        for ended in (found, f"{found}\n"):  # a text of several lines at the end may need the last newline
            if _says(ended, wanted):
                return ended
    except (Replace, Unable, ValueError, IndexError):
        pass
    found = _rewritten(text, index, wanted[index])
    if not _says(found, wanted):
        raise EditError("the change cannot be written into this file")
    return found


def delete(text: str, index: int, item: int) -> str | None:
    """One document taken out; None when no other is left."""
    documents = _placed(text, index, item)
    if item >= 0 and isinstance(documents[index], dict) and len(documents[index].get("items") or ()) > 1:
        return _delete_item(text, documents, index, item)
    if all(value is None for number, value in enumerate(documents) if number != index):
        return None
    found = spans(text)
    start = found[index].start
    end = found[index + 1].start if index + 1 < len(found) else len(text)
    changed = text[:start] + text[end:]
    wanted = [value for number, value in enumerate(documents) if number != index]
    if not _says(changed, wanted):
        raise EditError("the document cannot be taken out of this file")
    return changed


def _delete_item(text: str, documents: list[Any], index: int, item: int) -> str:
    wanted = list(documents)
    items = [value for number, value in enumerate(documents[index]["items"]) if number != item]
    wanted[index] = {**documents[index], "items": items}
    span = _span(text, index)
    pair = span.root.own("items")
    try:
        if pair is not None:
            surgery = Surgery(text, span.root)
            surgery.delete_item(pair[1], item)
            found = surgery.result()
            if _says(found, wanted):
                return found
    except (Unable, ValueError, IndexError):
        pass
    return _rewritten(text, index, wanted[index])


def _rewritten(text: str, index: int, document: Any) -> str:
    """The document anew, in its place. Comments before its first line stay; those in it cannot."""
    found = spans(text)
    root = found[index].root
    start = text.rfind("\n", 0, root.start) + 1
    head = text[start : root.start]
    if head.strip():  # content on the line of the dashes
        start = root.start
    end = found[index + 1].start if index + 1 < len(found) else len(text)
    lines = block(document)
    return text[:start] + ("\n" if head.strip() else "") + lines + text[end:]


def _with(document: Any, item: int, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if item < 0:
        return changed(document, before, after)
    items = list(document["items"])
    items[item] = changed(items[item], before, after)
    return {**document, "items": items}


def changed(document: Any, before: Any, after: Any) -> Any:
    """A document as it was read, with the change between its normal forms made in it: what these do not show stays."""
    if isinstance(document, dict) and isinstance(before, dict) and isinstance(after, dict):
        found = {name: value for name, value in document.items() if name not in before or name in after}
        for name, value in after.items():
            if name not in before or not same(before[name], value):
                found[name] = changed(document[name], before[name], value) if _in(name, document, before) else value
        return found
    if isinstance(document, list) and isinstance(before, list) and isinstance(after, list):
        return [before_or(document, before, number, value) for number, value in enumerate(after)]
    return after


def before_or(document: list[Any], before: list[Any], number: int, value: Any) -> Any:
    """An item that did not move and did not change, as it was read."""
    if number < len(document) and number < len(before) and same(before[number], value):
        return document[number]
    return value


def _in(name: str, document: dict[str, Any], before: dict[str, Any]) -> bool:
    return name in document and name in before


def _says(text: str, wanted: list[Any]) -> bool:
    """Whether a text reads as these documents; nulls in mappings do not count."""
    try:
        found = _read(text)
    except EditError:
        return False
    return len(found) == len(wanted) and all(
        same(_plain(one), _plain(other)) for one, other in zip(found, wanted, strict=True)
    )


def _plain(value: Any) -> Any:
    return normal({"document": value})


def _read(text: str) -> list[Any]:
    try:
        return [value for _, value in yaml.load_each(text, nodes=NODES)]
    except yaml.YamlError as error:
        raise EditError(f"is not YAML: {error}") from None


def _placed(text: str, index: int, item: int) -> list[Any]:
    """All documents, when there is something at the place that is meant."""
    documents = _read(text)
    if index >= len(documents) or not isinstance(documents[index], dict):
        raise EditError(f"has no document {index}: it changed since it was read")
    if item >= 0 and item >= len(documents[index].get("items") or ()):
        raise EditError(f"document {index} has no item {item}: it changed since it was read")
    return documents


def _span(text: str, index: int) -> DocumentSpan:
    return spans(text)[index]


def _items(root: Node) -> list[Node]:
    pair = root.own("items")
    return pair[1].items if pair is not None else []

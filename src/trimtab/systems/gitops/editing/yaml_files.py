"""Documents in YAML files. Every change is read back: what comes out says what was meant, or the document is written anew."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.model import yaml
from trimtab.systems.gitops.editing.dumping import block
from trimtab.systems.gitops.editing.surgery import Replace, Surgery, Unable
from trimtab.systems.gitops.editing.tree import Node, spans
from trimtab.systems.gitops.merging import normal, same

NODES = 200_000
_ANCHOR = re.compile(r"&([^\s,\[\]{}]+)")


class EditError(ValueError):
    """A file cannot be changed: it is not what was read from it."""


class Change(msgspec.Struct, frozen=True):
    """Of one document in a file: the `index`th, or the `item`th of a list there. Both forms are normalised; without `after` it
    is taken out."""

    index: int
    item: int
    before: dict[str, Any]
    after: dict[str, Any] | None


def edit(text: str, changes: Iterable[Change]) -> str | None:
    """All changes of a file; None when no document is left. Each document is read by itself, so that many changes take no
    longer than the file is long."""
    found, by_document = spans(text), dict[int, list[Change]]()
    for change in changes:
        by_document.setdefault(change.index, []).append(change)
    starts = [span.start for span in found]
    ends = [*starts[1:], len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    for index, its in by_document.items():
        if index >= len(parts):
            raise EditError(f"has no document {index}: it changed since it was read")
        parts[index] = _edited(parts[index], index, its)
        if parts[index] and index + 1 < len(parts) and not parts[index].endswith("\n"):
            parts[index] += "\n"
    left = "".join(parts)
    if not left or all(value is None for value in _read(left)):
        return None
    return text[: starts[0]] + left


def _edited(text: str, index: int, changes: list[Change]) -> str:
    """The text of one document with all of its changes; "" when it is taken out."""
    document = _placed(text, index, changes)
    items = document.get("items") if changes[0].item >= 0 else None
    gone = {change.item for change in changes if change.after is None}
    if gone and (items is None or len(gone) >= len(items)):
        return ""
    wanted = _wanted(document, items, changes, gone)
    for attempt in (_beside_aliases, _in_place, _with_aliases_written_out):
        try:
            found = attempt(text, document, changes, gone)
            for ended in (found, f"{found}\n"):  # a text of several lines at the end may need the last newline
                if _says(ended, wanted):
                    return ended
        except (Replace, Unable, ValueError, IndexError):
            pass
    [span] = spans(text)
    found = _rewritten(text, span.root, wanted)
    if not _says(found, wanted):
        raise EditError("the change cannot be written into this file")
    return found


def _beside_aliases(text: str, document: Any, changes: list[Change], gone: set[int]) -> str:
    """With aliases that go on to stand for what their anchor says."""
    [span] = spans(text)
    if "*" not in text or not any(node.kind == "alias" for node in span.root.within()):
        raise Unable("it has none")
    return _operated(text, changes, gone, keep_aliases=True).result()


def _in_place(text: str, document: Any, changes: list[Change], gone: set[int]) -> str:
    return _operated(text, changes, gone).result()


def _with_aliases_written_out(text: str, document: Any, changes: list[Change], gone: set[int]) -> str:
    """With what aliases stand for in the place of those whose anchor is about to say something else."""
    [span] = spans(text)
    touched = _operated(text, changes, set()).touched()
    anchors = (_ANCHOR.match(text, node.start) for node in span.root.within() if _holds(node, touched))
    names = {anchor[1] for anchor in anchors if anchor is not None}
    if not names:
        raise Unable("no alias is in the way")
    surgery = Surgery(text, span.root)
    surgery.write_out(span.root, document, names)
    return _operated(surgery.result(), changes, gone).result()


def _operated(text: str, changes: list[Change], gone: set[int], *, keep_aliases: bool = False) -> Surgery:
    """All changes of one document, as replacements."""
    [span] = spans(text)
    surgery = Surgery(text, span.root, keep_aliases=keep_aliases)
    for change in changes:
        if change.after is not None:
            node = span.root if change.item < 0 else _items(span.root)[change.item]
            surgery.change(node, change.before, change.after)
    if gone:
        surgery.delete_items(span.root, gone)
    return surgery


def _holds(node: Node, touched: list[tuple[int, int]]) -> bool:
    return node.anchored and node.kind != "alias" and any(node.start <= at <= node.end for at, _ in touched)


def _wanted(document: Any, items: Any, changes: list[Change], gone: set[int]) -> Any:
    """What the document is to say."""
    if items is None:
        [change] = changes
        return changed(document, change.before, change.after)
    after = {change.item: change for change in changes}
    kept = [
        changed(value, after[number].before, after[number].after) if number in after else value
        for number, value in enumerate(items)
        if number not in gone
    ]
    return {**document, "items": kept}


def _rewritten(text: str, root: Node, document: Any) -> str:
    """The document anew. Comments before its first line stay; those in it cannot."""
    start = text.rfind("\n", 0, root.start) + 1
    head = text[start : root.start]
    if head.strip():  # content on the line of the dashes
        start = root.start
    return text[:start] + ("\n" if head.strip() else "") + block(document)


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


def _says(text: str, wanted: Any) -> bool:
    """Whether a text reads as this document; nulls in mappings do not count."""
    try:
        found = _read(text)
    except EditError:
        return False
    return len(found) == 1 and same(_plain(found[0]), _plain(wanted))


def _plain(value: Any) -> Any:
    return normal({"document": value})


def _read(text: str) -> list[Any]:
    try:
        return [value for _, value in yaml.load_each(text, nodes=NODES)]
    except yaml.YamlError as error:
        raise EditError(f"is not YAML: {error}") from None


def _placed(text: str, index: int, changes: Iterable[Change]) -> Any:
    """The document, when there is something at the places that are meant."""
    documents = _read(text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise EditError(f"has no document {index}: it changed since it was read")
    for change in changes:
        if change.item >= 0 and change.item >= len(documents[0].get("items") or ()):
            raise EditError(f"document {index} has no item {change.item}: it changed since it was read")
    return documents[0]


def _items(root: Node) -> list[Node]:
    pair = root.own("items")
    return pair[1].items if pair is not None else []

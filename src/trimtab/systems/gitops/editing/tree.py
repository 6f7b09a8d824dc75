"""Where the parts of a YAML text are: a tree with offsets into the text, made from the parser's events.

Composed nodes would not do: they forget where an alias stands, and where a block ends before the comments behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class Node(msgspec.Struct):
    """A value in the text, from `start` to `end`. Of a block collection `end` is the end of its last part."""

    kind: str  # scalar, mapping, sequence, alias
    start: int
    end: int
    column: int
    flow: bool = False
    style: str = ""
    text: str = ""
    anchored: bool = False
    pairs: list[tuple[Node, Node]] = []
    items: list[Node] = []

    def within(self) -> Iterator[Node]:
        """This one, and all in it."""
        yield self
        for part in (*(each for pair in self.pairs for each in pair), *self.items):
            yield from part.within()

    @property
    def is_empty(self) -> bool:
        """A value that is not written at all."""
        return self.start == self.end and self.kind == "scalar"

    def own(self, name: str) -> tuple[Node, Node] | None:
        """The pair that this mapping itself writes under a name."""
        return next((pair for pair in self.pairs if pair[0].kind == "scalar" and pair[0].text == name), None)

    def by_name(self) -> dict[str, tuple[Node, Node]]:
        """All that it writes itself: a mapping may have very many."""
        return {pair[0].text: pair for pair in reversed(self.pairs) if pair[0].kind == "scalar"}


class DocumentSpan(msgspec.Struct):
    """One document: `start` is where its `---` is, or its content when it has none."""

    start: int
    root: Node
    explicit: bool


def spans(text: str) -> list[DocumentSpan]:
    """The documents of a text that is known to be good YAML."""
    import yaml

    events: Iterator[Any] = iter(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    found = []
    for event in events:
        if type(event).__name__ == "DocumentStartEvent":
            root = _node(next(events), events, text)
            found.append(DocumentSpan(event.start_mark.index, root, bool(event.explicit)))
    return found


def _node(event: Any, events: Iterator[Any], text: str) -> Node:
    name = type(event).__name__
    start, end, column = event.start_mark.index, event.end_mark.index, event.start_mark.column
    anchored = getattr(event, "anchor", None) is not None
    if name == "AliasEvent":
        return Node("alias", start, end, column, anchored=True)
    if name == "ScalarEvent":
        style = event.style or ""
        if style in ("|", ">") and not _keeps_blanks(text[start:end]):
            end = start + len(text[start:end].rstrip())
        return Node("scalar", start, end, column, style=style, text=event.value, anchored=anchored)
    mapping = name == "MappingStartEvent"
    node = Node(
        "mapping" if mapping else "sequence", start, end, column, flow=bool(event.flow_style), anchored=anchored
    )
    parts: list[Node] = []
    for inner in events:
        if type(inner).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
            if node.flow:
                node.end = inner.end_mark.index
            break
        parts.append(_node(inner, events, text))
    if mapping:
        node.pairs = list(zip(parts[::2], parts[1::2], strict=True))
        if parts and not node.flow and text[start] in "&!":  # its anchor is behind the key
            node.column = parts[0].column
    else:
        node.items = parts
    if not node.flow:
        node.end = max([node.end, *(part.end for part in parts if not part.is_empty)])
        if mapping and node.pairs and node.pairs[-1][1].is_empty:
            node.end = text.index(":", node.pairs[-1][0].end) + 1
    return node


def _keeps_blanks(text: str) -> bool:
    return "+" in text.split("\n", 1)[0]

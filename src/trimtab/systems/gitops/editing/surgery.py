"""A change of one document, as replacements in its text: only what changed is written, all else keeps its bytes.

Not everything can be done so (anchors that others refer to, complex keys): then `Unable` is raised, or the result does not
read as it should, which the caller checks in any case.
"""

from __future__ import annotations

import re
from typing import Any

from trimtab.systems.gitops.editing.aligning import alignment
from trimtab.systems.gitops.editing.dumping import block, flowing, is_inline, literal, scalar
from trimtab.systems.gitops.editing.habits import habits_of
from trimtab.systems.gitops.editing.tree import Node
from trimtab.systems.gitops.merging import same

_SIGN = re.compile(r"[|>][-+0-9]*([ \t]+#.*)")
_ALONE = re.compile(r"[ \t]*,?[ \t]*(#.*)?\n")
_COMMA = re.compile(r"[ \t]*,")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+[ \t]+")


MOST_MOVED = 100
"""Items of a list that are looked for in another place."""


class Unable(Exception):  # noqa: N818
    """This change cannot be made in place."""


class Surgery:
    """Replacements in one text. `style` of new lines follows the document's own: its step, and whether dashes are set in."""

    def __init__(self, text: str, root: Node, *, keep_aliases: bool = False) -> None:
        """`keep_aliases`: what they stand for changes where it is written, or not at all."""
        self._text, self._keep_aliases = text, keep_aliases
        self._replacements: list[tuple[int, int, str]] = []
        self._habits = habits_of(root)

    def result(self) -> str:
        """The text with all replacements made. They do not overlap; those at one place keep their order."""
        found = []
        position = 0
        for start, end, new in sorted(self._replacements, key=lambda r: r[:2]):
            if start < position:
                raise Unable("two changes meet in one place")
            found += [self._text[position:start], new]
            position = end
        found.append(self._text[position:])
        return "".join(found)

    def change(self, node: Node, before: Any, after: Any) -> None:
        """Make the value at a node say `after` where it differs from `before`."""
        if same(before, after) or (self._keep_aliases and node.kind == "alias"):
            return
        if node.kind == "mapping" and isinstance(before, dict) and isinstance(after, dict) and after:
            if node.flow:
                self._flow_mapping(node, before, after)
            else:
                self._mapping(node, before, after)
        elif node.kind == "sequence" and isinstance(before, list) and isinstance(after, list) and after:
            if node.flow:
                self._flow_sequence(node, before, after)
            else:
                self._sequence(node, before, after)
        else:
            raise Replace

    def touched(self) -> list[tuple[int, int]]:
        """What is replaced, by its places in the text."""
        return [(start, end) for start, end, _ in self._replacements]

    def write_out(self, node: Node, value: Any, names: set[str]) -> None:
        """Say at each alias of these anchors what it stands for. `value` is what the node says."""
        for key, inner in node.pairs if isinstance(value, dict) else ():
            if key.kind != "scalar" or key.text not in value:
                continue  # a merge, or a key that is no text
            if inner.kind == "alias" and self._text[inner.start + 1 : inner.end] in names:
                if node.flow:
                    self._put(inner.start, inner.end, flowing(value[key.text]))
                else:
                    self._replace(node, key, inner, value[key.text])
            else:
                self.write_out(inner, value[key.text], names)
        for item, inside in zip(node.items, value, strict=True) if isinstance(value, list) else ():
            if item.kind == "alias" and self._text[item.start + 1 : item.end] in names:
                self._put(item.start, item.end, flowing(inside))
            else:
                self.write_out(item, inside, names)

    def delete_items(self, root: Node, numbers: set[int]) -> None:
        """Take some of the items out of a block list, which is under that name."""
        pair = root.own("items")
        if pair is None or pair[1].flow:
            raise Unable("not a list in lines")
        self._remove_items(pair[1], numbers)

    def _mapping(self, node: Node, before: dict[str, Any], after: dict[str, Any]) -> None:
        gone = []
        new: dict[str, Any] = {}
        own = node.by_name()
        for name in before:
            pair = own.get(name)
            if name in after:
                if not same(before[name], after[name]):
                    if pair is None:
                        new[name] = after[name]  # it came by a merge key: an own one covers it
                    else:
                        self._value(node, pair, before[name], after[name])
            elif pair is None:
                raise Unable(f'"{name}" is not written here')
            else:
                gone.append(pair)
        for name, value in after.items():
            if name not in before:
                pair = own.get(name)
                if pair is not None:  # it says null
                    self._value(node, pair, None, value)
                else:
                    new[name] = value
        if len(gone) == len(node.pairs):
            raise Replace
        self._remove_pairs(node, gone)
        if new:
            self._insert_pairs(node, new)

    def _value(self, node: Node, pair: tuple[Node, Node], before: Any, after: Any) -> None:
        key, value = pair
        done = len(self._replacements)
        try:
            self.change(value, before, after)
        except (Replace, Unable):
            del self._replacements[done:]
            self._replace(node, key, value, after)

    def _replace(self, node: Node, key: Node, value: Node, after: Any) -> None:
        """Write another value behind a key."""
        step, dashes = self._habits[id(node)]
        colon = self._colon(key)
        one_line = "\n" not in self._text[colon : value.end]
        if is_inline(after):
            if one_line and not value.is_empty:
                style = value.style if value.kind == "scalar" else ""
                self._put(self._behind_anchor(value), value.end, scalar(after, style))
                return
            if value.style in ("|", ">"):
                self._put(colon, value.end, f" {scalar(after)}{self._remark(value)}")
                return
            self._put(colon, colon, " " + scalar(after))
            if not value.is_empty:
                self._clear(colon, value)
            return
        if isinstance(after, str):
            lines = literal(after, self._inset(value) or node.column + step)
            if value.is_empty or one_line:  # a comment behind it stays behind the sign of the block
                end = colon if value.is_empty else value.end
                sign, _, lines = lines.partition("\n")
                self._put(colon, end, f" {sign}")
                self._lines_after(end, f"{lines}\n")
            else:
                sign, _, lines = lines.partition("\n")
                self._put(colon, value.end, f" {sign}{self._remark(value)}\n{lines}")
            return
        lines = block(after, node.column + (dashes if isinstance(after, list) else step), step, dashes)
        if value.is_empty or one_line:
            if not value.is_empty:
                self._put(colon, value.end, "")
            self._lines_after(max(colon, value.end), lines)
            return
        start = self._clear(colon, value)
        self._put(start, start, lines)

    def _clear(self, colon: int, value: Node) -> int:
        """Take a value away that has lines of its own; where they began. What is behind the key (a comment) stays."""
        first = self._text.find("\n", colon) + 1
        if value.start < first:  # a block scalar's sign, a flow collection over several lines
            self._put(colon, value.end, "")
            return self._line_end(value.end)
        self._put(first, self._line_end(value.end), "")
        return first

    def _remark(self, value: Node) -> str:
        """The comment behind the sign of a block scalar, with the space before it."""
        sign = self._text[value.start : self._line_end(value.start)] if value.style in ("|", ">") else ""
        found = _SIGN.search(sign)
        return found[1].rstrip("\n") if found is not None else ""

    def _behind_anchor(self, value: Node) -> int:
        """Where a scalar itself begins: its anchor stays, for others refer to it."""
        found = _ANCHOR.match(self._text, value.start) if value.kind == "scalar" else None
        return found.end() if found is not None else value.start

    def _inset(self, value: Node) -> int:
        """How far the lines of a block scalar are set in; 0 when it is none."""
        if value.style not in ("|", ">"):
            return 0
        lines = self._text[value.start : value.end].split("\n")[1:]
        return next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), 0)

    def _remove_pairs(self, node: Node, gone: list[tuple[Node, Node]]) -> None:
        starts = {key.start for key, _ in gone}
        first = node.pairs[0][0].start
        kept = next(key.start for key, _ in node.pairs if key.start not in starts)
        if first in starts and self._text[self._line_start(first) : first].strip():
            self._put(first, kept, "")  # it is behind a dash: the first that stays takes its place
            gone = [pair for pair in gone if pair[0].start > kept]
        for key, value in gone:
            end = self._colon(key) if value.is_empty else value.end
            self._put(self._line_start(key.start), self._line_end(end), "")

    def _insert_pairs(self, node: Node, new: dict[str, Any]) -> None:
        self._lines_after(node.end, block(new, node.column, *self._habits[id(node)]))

    def _flow_mapping(self, node: Node, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Values that stay values are changed where they stand, new ones come last; else all of it is written again."""
        changed = [name for name in after if name in before and not same(before[name], after[name])]
        added = {name: value for name, value in after.items() if name not in before}
        own = node.by_name()
        places = [own[name][1] for name in changed if name in own]
        simple = (
            set(before) <= set(after)
            and len(places) == len(changed)
            and all(place.kind == "scalar" and not place.is_empty for place in places)
            and not any(isinstance(after[name], (dict, list)) for name in changed)
            and bool(node.pairs)
            and not node.pairs[-1][1].is_empty
            and not any(name in own for name in added)
        )
        if not simple:
            self._flow_pairs(node, before, after)
            return
        for name, place in zip(changed, places, strict=True):
            self._put(place.start, place.end, scalar(after[name], place.style, flow=True))
        if added and self._has_lines([pair[0].start for pair in node.pairs], [pair[1].end for pair in node.pairs]):
            self._flow_add(node.pairs[-1][0].start, node.pairs[-1][1].end, [flowing(added)[1:-1]])
        elif added:
            end = node.pairs[-1][1].end
            self._put(end, end, ", " + flowing(added)[1:-1])

    def _flow_pairs(self, node: Node, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Pairs that have lines of their own come, go and change as lines; else all of it is written again."""
        own, starts, ends = node.by_name(), [k.start for k, _ in node.pairs], [v.end for _, v in node.pairs]
        gone = [name for name in before if name not in after]
        changed = [name for name in after if name in before and not same(before[name], after[name])]
        added = [name for name in after if name not in before]
        known = all(name in own and not own[name][1].is_empty for name in (*gone, *changed))
        if not known or any(name in own for name in added) or not self._has_lines(starts, ends):
            self._put(node.start, node.end, flowing(after))
            return
        for name in changed:
            self._flow_value(own[name][1], before[name], after[name])
        for name in gone:
            self._put(self._line_start(own[name][0].start), self._line_end(own[name][1].end), "")
        if added:
            self._flow_add(starts[-1], ends[-1], [flowing({name: after[name]})[1:-1] for name in added])

    def _flow_sequence(self, node: Node, before: list[Any], after: list[Any]) -> None:
        """The same of items."""
        starts, ends = [item.start for item in node.items], [item.end for item in node.items]
        if len(before) != len(node.items) or not self._has_lines(starts, ends):
            self._put(node.start, node.end, flowing(after))
            return
        for tag, low, high, to_low, to_high in alignment(before, after):
            if tag == "replace" and high - low == to_high - to_low:
                for number, other in zip(range(low, high), range(to_low, to_high), strict=True):
                    self._flow_value(node.items[number], before[number], after[other])
                continue
            for number in range(low, high):
                self._put(self._line_start(starts[number]), self._line_end(ends[number]), "")
            new = [flowing(value) for value in after[to_low:to_high]]
            if new and high:
                self._flow_add(starts[high - 1], ends[high - 1], new)
            elif new:
                first = self._line_start(starts[0])
                indent = self._text[first : starts[0]]
                self._put(first, first, "".join(f"{indent}{value},\n" for value in new))

    def _flow_value(self, place: Node, before: Any, after: Any) -> None:
        done = len(self._replacements)
        try:
            self.change(place, before, after)
        except (Replace, Unable):
            del self._replacements[done:]
            style = place.style if place.kind == "scalar" else ""
            new = flowing(after) if isinstance(after, (dict, list)) else scalar(after, style, flow=True)
            self._put(self._behind_anchor(place), place.end, new)

    def _flow_add(self, start: int, end: int, new: list[str]) -> None:
        """Lines behind the one with this part."""
        indent = self._text[self._line_start(start) : start]
        comma = _COMMA.match(self._text, end)
        if comma is None:
            self._put(end, end, ",")
        lines = [f"{indent}{value}," for value in new]
        if comma is None:
            lines[-1] = lines[-1][:-1]
        self._lines_after(end, "".join(f"{line}\n" for line in lines))

    def _has_lines(self, starts: list[int], ends: list[int]) -> bool:
        """Whether each part of a flow collection is alone in its lines, but for a comma and a comment."""
        return bool(starts) and all(
            not self._text[self._line_start(start) : start].strip()
            and _ALONE.fullmatch(self._text[end : self._line_end(end)]) is not None
            for start, end in zip(starts, ends, strict=True)
        )

    def _sequence(self, node: Node, before: list[Any], after: list[Any]) -> None:
        if len(before) != len(node.items):
            raise Unable("the list is not as it was read")
        gone: set[int] = set()
        new: dict[int, list[Any]] = {}  # behind which item
        for tag, low, high, to_low, to_high in alignment(before, after):
            if tag == "replace" and high - low == to_high - to_low:
                for number, other in zip(range(low, high), range(to_low, to_high), strict=True):
                    self._item(node, number, before[number], after[other], gone, new)
                continue
            gone.update(range(low, high))
            if to_high > to_low:
                new.setdefault(high - 1, []).extend(after[to_low:to_high])
        if len(gone) == len(node.items):
            raise Replace
        self._remove_items(node, gone)
        left = sorted(gone)
        for number, values in new.items():
            self._lines_at(node, number, "".join(self._moved(node, value, before, left) for value in values))

    def _item(
        self, node: Node, number: int, before: Any, after: Any, gone: set[int], new: dict[int, list[Any]]
    ) -> None:
        item = node.items[number]
        try:
            self.change(item, before, after)
        except Replace:
            one_line = "\n" not in self._text[item.start : item.end]
            if item.kind == "scalar" and is_inline(after) and not item.is_empty and one_line:
                self._put(self._behind_anchor(item), item.end, scalar(after, item.style))
            else:
                gone.add(number)
                new.setdefault(number, []).append(after)

    def _remove_items(self, node: Node, gone: set[int]) -> None:
        for number in sorted(gone):
            item = node.items[number]
            if item.is_empty:
                raise Unable("an item that is not written")
            start = self._dash(node, item)
            self._put(start, self._line_end(item.end), "")

    def _moved(self, node: Node, value: Any, before: list[Any], left: list[int]) -> str:
        """The lines of a new item: those that it had in another place, with their comments, if it was only moved."""
        found = next((n for n in left if same(before[n], value)), None) if len(left) <= MOST_MOVED else None
        if found is None:
            return block([value], node.column, *self._habits[id(node)])
        left.remove(found)
        item = node.items[found]
        lines = self._text[self._dash(node, item) : self._line_end(item.end)]
        return lines if lines.endswith("\n") else f"{lines}\n"

    def _lines_at(self, node: Node, number: int, lines: str) -> None:
        """Lines behind an item; before all of them for -1."""
        if number < 0:
            start = self._dash(node, node.items[0])
            self._put(start, start, lines)
        else:
            self._lines_after(node.items[number].end, lines)

    def _dash(self, node: Node, item: Node) -> int:
        """The start of the line with an item's dash, which has to be the first thing in it."""
        start = self._line_start(item.start)
        while True:
            if self._text[start : start + node.column + 1] == " " * node.column + "-":
                return start
            if start == 0 or start <= node.start - node.column - 1:
                raise Unable("a list inside of a line")
            start = self._line_start(start - 1)

    def _lines_after(self, position: int, lines: str) -> None:
        end = self._line_end(position)
        if end == len(self._text) and not self._text.endswith("\n"):
            lines = "\n" + lines.removesuffix("\n")
        self._put(end, end, lines)

    def _put(self, start: int, end: int, new: str) -> None:
        self._replacements.append((start, end, new))

    def _colon(self, key: Node) -> int:
        """Behind the colon of a key."""
        if self._text[self._line_start(key.start) : key.start].rstrip().endswith("?"):
            raise Unable("a complex key")
        return self._text.index(":", key.end) + 1

    def _line_start(self, position: int) -> int:
        return self._text.rfind("\n", 0, position) + 1

    def _line_end(self, position: int) -> int:
        """Behind the newline of the line that a position is in; a position right behind a newline is in the line before."""
        if position and self._text[position - 1] == "\n":
            return position
        found = self._text.find("\n", position)
        return len(self._text) if found < 0 else found + 1


class Replace(Exception):  # noqa: N818
    """The value is another thing now: whoever has its key writes it again."""

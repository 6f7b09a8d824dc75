"""How a person sets things in, so that new lines look like the ones around them."""

from __future__ import annotations

from trimtab.systems.gitops.editing.tree import Node

Habits = tuple[int, int]
"""How far a mapping, and the dashes of a list, are set in from their key."""


def habits_of(root: Node) -> dict[int, Habits]:
    """For the id of each node in a document."""
    learned: dict[int, Habits] = {}
    _learn(root, _habits(root), learned)
    return learned


def _learn(node: Node, habits: Habits, learned: dict[int, Habits]) -> None:
    """What is set in how far at each node: as the things in it are, else as around it."""
    step, dashes = habits
    for key, value in node.pairs:
        if not value.flow and not node.flow:
            if value.kind == "mapping" and value.column > key.column:
                step = value.column - key.column
            elif value.kind == "sequence":
                dashes = value.column - key.column
    learned[id(node)] = (step, dashes)
    for _, value in node.pairs:
        _learn(value, (step, dashes), learned)
    for item in node.items:
        _learn(item, (step, dashes), learned)


def _habits(root: Node) -> Habits:
    """How far mappings, and the dashes of lists, are set in from their keys in most of this document."""
    steps: list[int] = []
    dashes: list[int] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.items
        for key, value in node.pairs:
            waiting.append(value)
            if not value.flow and not node.flow:
                if value.kind == "mapping" and value.column > key.column:
                    steps.append(value.column - key.column)
                elif value.kind == "sequence":
                    dashes.append(value.column - key.column)
    return (max(set(steps), key=steps.count) if steps else 2), (max(set(dashes), key=dashes.count) if dashes else 0)

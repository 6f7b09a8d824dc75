"""The overlay's fields as a tree that is walked beside the schemas, so that an overlay reaches a type only where its path
leads: a type that is used twice stays as it is in the other place.

Paths are those of the body, as the service names its fields. `rules[].port` is a field of each item, `tags.*` each value of
a map, `tags["a.b"]` one key of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.systems.rest.kinds.definition import FieldOverlay
from trimtab.systems.rest.syncing.paths import Path, PathError, Wild, format_path, parse

Key = str | Wild


class Overlaid:
    """What an overlay says of one place and of those below. `seen` is set where the schemas have such a place."""

    __slots__ = ("children", "ours", "path", "says", "seen")

    def __init__(self, path: Path = ()) -> None:
        self.path = path
        self.says: FieldOverlay | None = None
        self.ours = False  # the identity: its value comes from `name`
        self.children: dict[Key, Overlaid] = {}
        self.seen = False

    def add(self, path: str) -> Overlaid:
        """The place of this path. Raises PathError."""
        place = self
        for step in parse(path):
            if not isinstance(step, str | Wild):
                raise PathError(f"{path!r} names one item of a list; [] stands for all of them")
            place = place.children.setdefault(step, Overlaid((*place.path, step)))
        if place is self:
            raise PathError("the path is empty")
        return place

    def below(self, step: Key) -> Overlaid | None:
        found = self.children.get(step)
        if found is None and step is not Wild.ITEM:
            found = self.children.get(Wild.FIELD)
        if found is not None:
            found.seen = True
        return found

    def named(self) -> Iterator[str]:
        """The fields that it names below, not by a pattern."""
        return (step for step in self.children if isinstance(step, str))

    def unseen(self) -> Iterator[Overlaid]:
        """What it speaks of and nothing has."""
        for child in self.children.values():
            if (child.says is not None or child.ours) and not child.seen:
                yield child
            yield from child.unseen()

    def __str__(self) -> str:
        return format_path(self.path)

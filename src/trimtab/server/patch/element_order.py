"""The order of a merged list: as the patch says for what it names, as it was for the rest, interleaved.

Elements are compared by `identity`, a hashable value: the element itself, or its merge key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

Identity = Callable[[Any], Hashable]


def arranged(items: Sequence[Any], order: Sequence[Any], live: Sequence[Any], identity: Identity) -> list[Any]:
    """`items` with those that `order` names in its order, and the others, in live order, put before the first named one
    that they preceded in `live`."""
    named = _places(order, identity)
    lived = _places(live, identity)
    last = len(lived)
    ours = sorted((item for item in items if identity(item) in named), key=lambda item: named[identity(item)])
    theirs = sorted(
        (item for item in items if identity(item) not in named), key=lambda item: lived.get(identity(item), last)
    )
    result: list[Any] = []
    waiting = 0
    for item in ours:
        place = lived.get(identity(item))
        while place is not None and waiting < len(theirs) and lived.get(identity(theirs[waiting]), last) < place:
            result.append(theirs[waiting])
            waiting += 1
        result.append(item)
    result.extend(theirs[waiting:])
    return result


def follows(items: Sequence[Any], order: Sequence[Any], identity: Identity) -> bool:
    """Whether `items` are some of `order`, in its order."""
    rest = iter([identity(item) for item in order])
    return all(identity(item) in rest for item in items)


def _places(items: Sequence[Any], identity: Identity) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        places.setdefault(identity(item), place)
    return places

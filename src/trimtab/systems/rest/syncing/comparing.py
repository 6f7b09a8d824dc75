"""When what a service answers is what was wanted.

Fields that only the answer has never count: a service adds defaults and read-only fields as it likes. Nor do masked
values: nobody can tell what is behind them. Null and missing are the same; neither is the same as empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from trimtab.model.quantity import Quantity
from trimtab.systems.rest.model import Comparator, Model, Node
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, Leaf, child, is_arm, item_node, keyed, walk
from trimtab.systems.rest.syncing.paths import MISSING, get

MASKS = frozenset({"***", "<redacted>"})
SEAL = "hmac-sha256:"
"""What a secret begins with where its HMAC stands for it."""

Same = Callable[[str, Any, Any], bool]
"""Of a path, what is wanted there and what is there."""


def same(model: Model, node: Node, wanted: Any, live: Any) -> bool:
    """Whether `live` is what is wanted, by the comparator of the node and of the nodes below it."""
    return _same(model, model.node(node), wanted, live, 0)


def compared(model: Model, *bodies: Any) -> Same:
    """The comparison by path, for the leaves of these bodies; what is in none of them is compared exactly."""
    known: dict[str, Leaf] = {}
    for index, body in reversed(list(enumerate(bodies))):
        if body not in bodies[:index]:
            known.update(walk(model, body))
    return by_leaf(model, known)


def by_leaf(model: Model, known: Mapping[str, Leaf]) -> Same:
    """As `compared`, for leaves that were walked already."""
    arm = is_arm(model)

    def by_path(path: str, wanted: Any, live: Any) -> bool:
        leaf = known.get(path)
        if leaf is None:
            return equal(wanted, live)
        if arm and path == "name" and isinstance(wanted, str) and isinstance(live, str):
            # A child's name comes back as parent/child.
            return wanted.rsplit("/", 1)[-1].casefold() == live.rsplit("/", 1)[-1].casefold()
        return same(model, leaf.node, wanted, live)

    return by_path


def equal(one: Any, other: Any) -> bool:
    """As JSON: true is not 1, 1 is 1.0, null is missing."""
    if _nothing(one) or _nothing(other):
        return _nothing(one) and _nothing(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def masked(node: Node, value: Any) -> bool:
    """Whether it only stands for a value that the service does not show."""
    return isinstance(value, str) and (value in MASKS or (node.field in HIDDEN and value == ""))


def seals(value: Any) -> list[str]:
    """The digests of secrets in a value, in order."""
    if isinstance(value, dict):
        return [seal for name in sorted(value) for seal in seals(value[name])]
    if isinstance(value, list):
        return [seal for item in value for seal in seals(item)]
    return [value] if _sealed(value) else []


def _same(model: Model, node: Node, wanted: Any, live: Any, depth: int) -> bool:
    if masked(node, live):
        return True
    if node.field in HIDDEN and not (_sealed(wanted) and _sealed(live)):
        return True
    if _nothing(wanted) or _nothing(live):
        return _nothing(wanted) and _nothing(live)
    if depth >= DEPTH:
        return equal(wanted, live)
    if isinstance(wanted, dict) and isinstance(live, dict):
        node = model.variant(node, wanted)
        return all(
            _same(model, child(model, node, name), value, live.get(name, MISSING), depth + 1)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return _same_list(model, node, wanted, live, depth)
    return _COMPARATORS[node.compare](wanted, live)


def _same_list(model: Model, node: Node, wanted: list[Any], live: list[Any], depth: int) -> bool:
    below = item_node(model, node)
    keys = keyed(node, wanted)
    if keys is not None and (not live or keyed(node, live) is not None):
        return all(
            _same(model, below, item, get(live, (key,)), depth + 1) for key, item in zip(keys, wanted, strict=True)
        )
    if len(wanted) != len(live):
        return False
    if not node.unordered:
        return all(_same(model, below, one, other, depth + 1) for one, other in zip(wanted, live, strict=True))
    left = list(live)
    for item in wanted:
        found = next((at for at, other in enumerate(left) if _same(model, below, item, other, depth + 1)), None)
        if found is None:
            return False
        del left[found]
    return True


def _nothing(value: Any) -> bool:
    return value is None or value is MISSING


def _sealed(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(SEAL)


def _by(normal: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    """By a normal form; what has none is compared exactly."""

    def compare(one: Any, other: Any) -> bool:
        if equal(one, other):
            return True
        try:
            return equal(normal(one), normal(other))
        except (ValueError, TypeError, AttributeError, InvalidOperation, RecursionError):
            return False

    return compare


_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<years>[\d.]+)Y)?(?:(?P<months>[\d.]+)M)?(?:(?P<weeks>[\d.]+)W)?(?:(?P<days>[\d.]+)D)?"
    r"(?:T(?:(?P<hours>[\d.]+)H)?(?:(?P<minutes>[\d.]+)M)?(?:(?P<seconds>[\d.]+)S)?)?",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\.(\d+)")


def _duration(text: str) -> list[Decimal]:
    """Months and seconds: how many of these make one of those is nobody's to say."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or text.strip().upper().endswith(("P", "T")):
        raise ValueError(text)
    part = {name: Decimal(value) for name, value in found.groupdict("0").items() if name != "sign"}
    sign = -1 if found["sign"] else 1
    days = part["weeks"] * 7 + part["days"]
    seconds = ((days * 24 + part["hours"]) * 60 + part["minutes"]) * 60 + part["seconds"]
    return [sign * (part["years"] * 12 + part["months"]), sign * seconds]


def _date_time(text: str) -> list[Any]:
    """To the microsecond; services cut what follows."""
    text = _FRACTION.sub(lambda found: "." + (found.group(1) + "000000")[:6], text.strip())
    at = datetime.fromisoformat(text)
    return [(at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()]


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 64:
        raise ValueError(value)
    number = Decimal(str(value).strip())
    if not number.is_finite():
        raise ValueError(value)
    return number


_COMPARATORS: dict[Comparator, Callable[[Any, Any], bool]] = {
    Comparator.EXACT: equal,
    Comparator.CASELESS: _by(lambda text: text.casefold()),
    Comparator.ARM_ID: _by(lambda text: text.casefold().rstrip("/")),
    Comparator.LOCATION: _by(lambda text: "".join(text.split()).casefold()),
    Comparator.DURATION: _by(_duration),
    Comparator.DATE_TIME: _by(_date_time),
    Comparator.NUMBER: _by(_number),
    Comparator.QUANTITY: _by(lambda value: Quantity(str(value)).nanos),
    Comparator.JSON: _by(lambda value: json.loads(value) if isinstance(value, str) else value),
    Comparator.DNS_NAME: _by(lambda text: text.casefold().rstrip(".")),
}

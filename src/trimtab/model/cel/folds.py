"""The macros as loops. Each step costs what the expansion into a comprehension would cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.model.cel.cost import NEW_LIST
from trimtab.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload, no_such_overload
from trimtab.model.cel.values import LISTS, MAPS, NONE, Duration, Optional, Timestamp, Uint, spend, type_name

Frame = list[Any]
Code = Callable[[Frame], Any]
_END: Any = object()


def _items(value: Any) -> Any:
    if isinstance(value, (*LISTS, *MAPS)):
        return value
    kind = _GO_TYPES.get(type(value), "ref.Val")
    raise EvaluationError(f"got '{kind}', expected iterable type")


def _all_of(value: Any) -> Any:
    """What a loop goes through to its end: a turn that finds nothing may cost nothing."""
    items = _items(value)
    spend(len(items))
    return items


def weighed(body: Code, weight: int) -> Code:
    """A body of a loop with so much in it that is free, as literals are."""

    def run(frame: Frame) -> Any:
        spend(weight)
        return body(frame)

    return run


_GO_TYPES = {
    bool: "types.Bool", int: "types.Int", Uint: "types.Uint", float: "types.Double", str: "types.String",
    bytes: "types.Bytes", type(None): "types.Null", Timestamp: "types.Timestamp", Duration: "types.Duration",
    Optional: "*types.Optional",
}  # fmt: skip


def quantifier(source: Code, place: int, body: Code, decisive: bool, step: int) -> Code:
    def run(frame: Frame) -> Any:
        failure: EvaluationError | None = None
        frame[0] -= 1
        items = iter(_items(source(frame)))
        for item in items:
            frame[place] = item
            frame[0] -= step
            if frame[0] < 0:
                raise CostExceeded
            try:
                value = body(frame)
                if value is decisive:
                    if next(items, _END) is not _END:  # the condition is looked at once more
                        frame[0] -= step - 1
                    return decisive
                if type(value) is not bool:
                    failure = failure or no_such_overload()
            except EvaluationError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decisive

    return run


def exists_one(source: Code, place: int, body: Code) -> Code:
    def run(frame: Frame) -> bool:
        count = 0
        frame[0] -= 2
        for item in _all_of(source(frame)):
            frame[place] = item
            value = _boolean(body(frame))
            count += value
            if value:
                frame[0] -= 2
            if frame[0] < 0:
                raise CostExceeded
        return count == 1

    return run


def kept(source: Code, place: int, body: Code) -> Code:
    def run(frame: Frame) -> list[Any]:
        made = []
        frame[0] -= 1
        for item in _all_of(source(frame)):
            frame[place] = item
            if _boolean(body(frame)):
                made.append(item)
                frame[0] -= NEW_LIST + 3
            if frame[0] < 0:
                raise CostExceeded
        return made

    return run


def mapped(source: Code, place: int, body: Code, condition: Code | None) -> Code:
    def run(frame: Frame) -> list[Any]:
        made = []
        frame[0] -= 1
        for item in _all_of(source(frame)):
            frame[place] = item
            if condition is None or _boolean(condition(frame)):
                made.append(body(frame))
                frame[0] -= NEW_LIST + 2
            if frame[0] < 0:
                raise CostExceeded
        return made

    return run


def optional_map(source: Code, place: int, body: Code, wrap: bool) -> Code:
    def run(frame: Frame) -> Any:
        before = frame[0]
        value = source(frame)
        if type(value) is not Optional:
            raise NoSuchOverload(f"no such overload: hasValue({type_name(value)})")
        if not value.present:
            frame[0] -= 2
            return NONE
        frame[0] -= before - frame[0] + 2 + wrap  # the expansion reads the source twice
        frame[place] = value.value
        result = body(frame)
        return Optional(True, result) if wrap else result

    return run


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise no_such_overload()

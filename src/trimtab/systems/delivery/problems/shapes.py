"""Types of what is in a Deployment's and a Service's spec, so that a wrong one is named here and not first at apply.

Not all of Kubernetes' fields are here: those that people write by hand. A field that is not here is let through; where
`Fields` is `whole`, `unknown` names it, for it may be a slip of the pen. null is an absent field, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.problems.findings import keyed, missing, mistyped, unsupported, wrong


class Text(msgspec.Struct, frozen=True):
    """`among`: one of these, or nothing."""

    required: bool = False
    among: tuple[str, ...] = ()


class Flag(msgspec.Struct, frozen=True):
    required: bool = False


class Whole(msgspec.Struct, frozen=True):
    """A whole number within bounds, both included."""

    least: int = 0
    most: int = 2**31 - 1
    required: bool = False


class WholeOrText(msgspec.Struct, frozen=True):
    """Kubernetes' IntOrString: a port, a share."""

    required: bool = False


class Amount(msgspec.Struct, frozen=True):
    """A Quantity: a text, or a number where it needs no unit."""

    required: bool = False


class Each(msgspec.Struct, frozen=True):
    """A list."""

    of: Shape
    required: bool = False


class Table(msgspec.Struct, frozen=True):
    """An object with keys of the user's choice."""

    of: Shape
    required: bool = False


class Fields(msgspec.Struct, frozen=True):
    """An object with these fields, and others. `whole`: Kubernetes has no others today."""

    of: Mapping[str, Shape] = {}
    required: bool = False
    whole: bool = False


class Free(msgspec.Struct, frozen=True):
    """Anything: checked elsewhere, or by nobody."""

    required: bool = False


Shape = Text | Flag | Whole | WholeOrText | Amount | Each | Table | Fields | Free


def mistakes(value: Any, shape: Shape, path: str) -> Iterator[FieldError]:
    """What has the wrong type, or is not there though it must be."""
    match shape:
        case Text():
            if not isinstance(value, str):
                scalar = isinstance(value, bool | int | float)
                yield mistyped(path, value, "a text: put it in quotes" if scalar else "a text")
            elif value and shape.among and value not in shape.among:
                yield unsupported(path, value, shape.among)
        case Flag():
            if not isinstance(value, bool):
                yield mistyped(path, value, "true or false")
        case Whole():
            if not isinstance(value, int) or isinstance(value, bool):
                yield mistyped(path, value, "a whole number")
            elif not shape.least <= value <= shape.most:
                yield wrong(path, value, f"must be between {shape.least} and {shape.most}")
        case WholeOrText():
            if not isinstance(value, int | str) or isinstance(value, bool):
                yield mistyped(path, value, "a whole number or a text")
        case Amount():
            yield from _amount_mistakes(value, path)
        case Each():
            if not isinstance(value, list | tuple):
                yield mistyped(path, value, "a list")
                return
            for i, one in enumerate(value):
                yield from mistakes(one, shape.of, f"{path}[{i}]")
        case Table():
            if not isinstance(value, Mapping):
                yield mistyped(path, value, "an object")
                return
            for key, one in value.items():
                yield from mistakes(one, shape.of, keyed(path, key))
        case Fields():
            if not isinstance(value, Mapping):
                yield mistyped(path, value, "an object")
                return
            for name, of in shape.of.items():
                if of.required and value.get(name) == "":
                    yield missing(f"{path}.{name}", "must not be empty")
                elif value.get(name) is not None:
                    yield from mistakes(value[name], of, f"{path}.{name}")
                elif of.required:
                    yield missing(f"{path}.{name}", "must be given")
        case Free():
            pass


def unknown(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Paths of fields that Kubernetes does not know where it knows all."""
    if isinstance(shape, Each) and isinstance(value, list | tuple):
        for i, one in enumerate(value):
            yield from unknown(one, shape.of, f"{path}[{i}]")
    elif isinstance(shape, Fields) and isinstance(value, Mapping):
        for name, one in value.items():
            if name in shape.of:
                yield from unknown(one, shape.of[name], f"{path}.{name}")
            elif shape.whole:
                yield keyed(path, name)


def _amount_mistakes(value: Any, path: str) -> Iterator[FieldError]:
    from trimtab.model.quantity import Quantity

    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield mistyped(path, value, "an amount such as 500m or 64Mi")
        return
    try:
        Quantity(value if isinstance(value, str) else str(value))
    except ValueError:  # or a number of thousands of digits
        yield wrong(path, value, "must be an amount such as 500m or 64Mi")

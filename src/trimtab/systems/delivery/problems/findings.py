"""How problems are said, and how to read a document of which nothing is known.

A document of users (a Deployment's spec, a VirtualService's) may hold anything at any place: `mapping`, `items` and `text`
give what is there when it has the right type and something empty when not. That it has not is said once, by `shapes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UnsetType

from trimtab.model.duration import Duration
from trimtab.model.errors import Bare, FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems

LONGEST_SHOWN = 80


def wrong(path: str, value: Any, detail: str) -> FieldError:
    """A value that cannot be."""
    return FieldError(path, FieldProblem.INVALID, shown(value), detail)


def missing(path: str, detail: str) -> FieldError:
    return FieldError(path, FieldProblem.REQUIRED, None, detail)


def forbidden(path: str, detail: str) -> FieldError:
    """A value that must not be, or that is not to be shown."""
    return FieldError(path, FieldProblem.FORBIDDEN, None, detail)


def twice(path: str, value: Any) -> FieldError:
    return FieldError(path, FieldProblem.DUPLICATE, shown(value), "must be there only once")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{name}"' for name in supported)
    return FieldError(path, FieldProblem.UNSUPPORTED, shown(value), f"supported values: {listed}")


def mistyped(path: str, value: Any, expected: str) -> FieldError:
    return FieldError(path, FieldProblem.TYPE_INVALID, shown(value), f"must be {expected}")


def shown(value: Any) -> Any:
    """A value in a message: short, and a document only by what it is."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…"
    if isinstance(value, Mapping):
        return Bare("an object")
    if isinstance(value, list | tuple):
        return Bare("a list")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return Bare("a very large number")
    return value


def keyed(path: str, key: str) -> str:
    """The place of a key that a user chose: it may be long."""
    return f"{path}[{key if len(key) <= LONGEST_SHOWN else key[:LONGEST_SHOWN] + '…'}]"


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def repeated(values: Iterable[tuple[str, Any]]) -> Iterator[FieldError]:
    """Those of (path, value) whose value came before."""
    seen = set()
    for path, value in values:
        if value in seen:
            yield twice(path, value)
        seen.add(value)


def length(path: str, value: Duration, shortest: float, longest: float, why: str = "") -> Iterator[FieldError]:
    """A duration out of its bounds, in seconds."""
    if value.seconds < shortest:
        least = "must not be negative" if not shortest else f"must be at least {Duration.of(shortest)}"
        yield wrong(path, value, least + (f": {why}" if why else ""))
    elif value.seconds > longest:
        yield wrong(path, value, f"must be at most {Duration.of(longest)}")


def object_name(path: str, name: str | UnsetType) -> Iterator[FieldError]:
    """The name of an object that is referred to."""
    if not isinstance(name, UnsetType):
        for problem in dns_subdomain_problems(name):
            yield wrong(path, name, problem)


def finite(value: float) -> bool:
    return not (math.isnan(value) or math.isinf(value))

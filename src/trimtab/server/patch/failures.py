"""How a patch fails: the answers of kube-apiserver, and Go's way to print the values that its messages hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from trimtab.model.errors import StatusError, bad_request


def rejected() -> StatusError:
    """422 for a patch that cannot be applied. The real server hides the cause behind this sentence; so do we."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def unclassified(message: str) -> StatusError:
    """500 without a reason: what a plain Go error becomes."""
    return StatusError(500, "", message)


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """400 for documents that are nested deeper than we follow."""
    try:
        yield
    except RecursionError:
        raise bad_request("error decoding patch: json: exceeded max depth") from None


def printed(value: Any) -> str:
    """A JSON value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(printed, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _float(value) if isinstance(value, float) else str(value)


def _float(value: float) -> str:
    """In the fewest digits, and with an exponent only from 1e+21 on and below 1e-04."""
    if value and not 1e-4 <= abs(value) < 1e21:
        digits, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
        return f"{digits}e{exponent[0]}{exponent[1:]:0>2}"
    return f"{Decimal(repr(value)).normalize():f}"

"""The `timeouts` attribute: how long a user lets each operation take, as `{ create = "30m" }`."""

from __future__ import annotations

import re
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.types import STRING

OPERATIONS = ("create", "read", "update", "delete")

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def timeouts(*operations: str) -> Attribute:
    """For the schema of a resource: `"timeouts": timeouts("create", "delete")`."""
    from trimtab.terraform.framework.validators import Satisfies

    unknown = set(operations) - set(OPERATIONS)
    if unknown or not operations:
        raise ValueError(
            f"timeouts are for some of {', '.join(OPERATIONS)}, not for {', '.join(sorted(unknown)) or 'none'}"
        )
    attributes = {
        operation: Attribute(
            STRING,
            optional=True,
            description=f'How long {operation} may take, such as "30s", "5m" or "1h30m".',
            validators=(Satisfies(_is_duration, 'must be a duration such as "30s", "5m" or "1h30m"'),),
        )
        for operation in operations
    }
    return Attribute(Nested(attributes), optional=True, description="How long operations may take.")


def seconds(text: str) -> float:
    """Of "1h30m"; ValueError for what is no duration."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"not a duration: {text!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _is_duration(value: Any) -> bool:
    try:
        return seconds(value) > 0
    except ValueError:
        return False

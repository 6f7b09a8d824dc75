"""What an attribute is when the configuration leaves it out.

A plain value is a default as it stands; `Default` computes one at each plan, from the environment for example.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


class _None:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NONE"


NONE: Final = _None()
"""No default: None cannot say it, since it is Terraform's null."""


@dataclass(frozen=True, slots=True)
class Default:
    make: Callable[[], Any]
    description: str = ""


def default_of(default: Any) -> Any:
    """A fresh value, or NONE."""
    if default is NONE:
        return NONE
    return default.make() if isinstance(default, Default) else copy.deepcopy(default)

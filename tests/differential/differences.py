"""The differences from a real kube-apiserver that are accepted, each with its reason.

An entry matches by the path of the difference in the answer and, where given, by the scenario, the request and both
values; all are regular expressions that must match somewhere. docs/compatibility.md tells users the same.
"""

import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from .compare import Difference
    from .exchange import Request


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of difference, and why it is right to have it."""

    reason: str
    path: str
    scenario: str = ""
    request: str = ""
    real: str = ""
    ours: str = ""


ACCEPTED: tuple[Accepted, ...] = ()


def accepted(scenario: str, request: "Request", difference: "Difference") -> Accepted | None:
    """The entry that covers a difference, or None."""
    for entry in ACCEPTED:
        pairs: tuple[tuple[str, Any], ...] = (
            (entry.path, difference.path),
            (entry.scenario, scenario),
            (entry.request, f"{request.method} {request.path}"),
            (entry.real, difference.real),
            (entry.ours, difference.ours),
        )
        if all(re.search(pattern, str(text)) for pattern, text in pairs):
            return entry
    return None

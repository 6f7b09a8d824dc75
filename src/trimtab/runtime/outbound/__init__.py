"""The one HTTP client towards the world: `client` first; the rest are its rules, each in a file and mostly pure.

The client itself is imported when it is asked for: who only names an error or a setting does not carry aiohttp.
"""

from typing import TYPE_CHECKING, Any

from trimtab.runtime.outbound.budget import Budget
from trimtab.runtime.outbound.errors import OutboundError
from trimtab.runtime.outbound.pin import HostPin
from trimtab.runtime.outbound.tls import Tls

if TYPE_CHECKING:
    from trimtab.runtime.outbound.client import Limits, Outbound
    from trimtab.runtime.outbound.response import Response

__all__ = ["Budget", "HostPin", "Limits", "Outbound", "OutboundError", "Response", "Tls"]


def __getattr__(name: str) -> Any:
    if name in ("Limits", "Outbound", "Response"):
        from trimtab.runtime.outbound import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The one HTTP client towards the world: `client` first; the rest are its rules, each in a file and mostly pure."""

from trimtab.runtime.outbound.budget import Budget
from trimtab.runtime.outbound.client import Limits, Outbound
from trimtab.runtime.outbound.errors import OutboundError
from trimtab.runtime.outbound.pin import HostPin
from trimtab.runtime.outbound.response import Response
from trimtab.runtime.outbound.tls import Tls

__all__ = ["Budget", "HostPin", "Limits", "Outbound", "OutboundError", "Response", "Tls"]

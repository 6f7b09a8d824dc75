"""Admission functions and conversions, served to API servers as webhooks: `server` first."""

from trimtab.runtime.webhooks.convert import Conversion
from trimtab.runtime.webhooks.manifest import Service, configurations, conversion
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.runtime.webhooks.server import WebhookServer

__all__ = [
    "ClientReader",
    "Conversion",
    "Service",
    "WebhookServer",
    "configurations",
    "conversion",
]

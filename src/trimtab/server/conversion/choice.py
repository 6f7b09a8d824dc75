"""Which converter a definition asks for. Nothing of an HTTP client is loaded for those that ask for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.model.scheme import Scheme
from trimtab.server.strategy import Document

if TYPE_CHECKING:
    from trimtab.server.admission.webhook_client import WebhookClient
    from trimtab.server.conversion.converters import Converter

HOME, PATH = "trimtab-system", "/convert"
"""Where our own convertors are served on a cluster: a definition made for one may be applied here too."""


class Converters:
    """`scheme` has the convertors of this process, `client` calls webhooks."""

    def __init__(self, scheme: Scheme, client: WebhookClient) -> None:
        self._scheme = scheme
        self._client = client

    def of(self, definition: Document) -> Converter | None:
        """None: the versions differ in their apiVersion only."""
        spec = definition["spec"]
        conversion = spec.get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            return None
        from trimtab.server.conversion.converters import FunctionConverter, WebhookConverter

        service = (conversion["webhook"].get("clientConfig") or {}).get("service") or {}
        here = service.get("namespace") == HOME and service.get("path") == PATH
        if here and self._scheme.converts(spec["group"], spec["names"]["kind"]):
            return FunctionConverter(self._scheme.converted)
        return WebhookConverter(definition, self._client)

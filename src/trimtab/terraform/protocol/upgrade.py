"""A server of protocol 5 as one of protocol 6.

All that protocol 5 can say, protocol 6 can say: blocks stay blocks, and dicts are keyed alike. What differs is what six
methods are called, and the numbers of two fields, which only matters for schemas that are encoded already.
"""

from __future__ import annotations

from trimtab.terraform.protocol.contract import Encoded, Message, ProviderServer
from trimtab.terraform.protocol.messages5 import METHODS, RENAMED
from trimtab.terraform.protocol.wire import resolve


class Upgraded:
    def __init__(self, server: ProviderServer) -> None:
        self._server = server
        self.name = getattr(server, "name", type(server).__name__)

    def call(self, method: str, request: Message) -> Message | Encoded:
        old = RENAMED.get(method, method)
        answer = resolve(self._server.call(old, request), METHODS[old][1])
        if old == "PrepareProviderConfig":
            answer.pop("prepared_config", None)  # protocol 6 has no place for it, and Terraform never used it
        return answer

    def stop(self) -> None:
        self._server.stop()

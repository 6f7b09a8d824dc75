"""From a gRPC path and bytes to a provider's method and back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from trimtab.terraform.protocol import messages, messages5
from trimtab.terraform.protocol.contract import Encoded, Message, ProviderServer, Unimplemented
from trimtab.terraform.protocol.wire import Table, decode, encode

ERROR: Final = 1
"""The severity of a diagnostic that stops Terraform."""


def tables(protocol: int) -> tuple[str, dict[str, tuple[Table, Table]]]:
    """The service's name and the tables of its methods."""
    if protocol == 6:
        return messages.SERVICE, messages.METHODS
    if protocol == 5:
        return messages5.SERVICE, messages5.METHODS
    raise ValueError(f"Terraform's plugin protocol is 5 or 6, not {protocol}")


class Endpoint:
    """Answers the provider's methods of one protocol."""

    def __init__(self, provider: ProviderServer, protocol: int = 6) -> None:
        self._provider = provider
        service, self._tables = tables(protocol)
        self._prefix = f"/{service}/"

    def __call__(self, path: str, body: bytes) -> bytes:
        """Raises Unimplemented for paths that are not ours and InvalidRequest for bytes that are no such request."""
        method = path.removeprefix(self._prefix)
        if method == path or method not in self._tables:
            raise Unimplemented(path)
        wants, gives = self._tables[method]
        request = decode(body, wants)
        if method in ("StopProvider", "Stop"):
            self._provider.stop()
            return b""
        return encode(self._provider.call(method, request), gives)

    def stop(self) -> None:
        self._provider.stop()


class Lazy:
    """A provider that is made when it is first needed, once. One that cannot be made says why in Terraform's own output."""

    def __init__(self, make: Callable[[], ProviderServer], protocol: int = 6) -> None:
        self._make = make
        self._answers = {name: gives for name, (_, gives) in tables(protocol)[1].items()}
        self._lock = threading.Lock()
        self._made: ProviderServer | None = None
        self._failure: Exception | None = None
        self._stopped = False

    def call(self, method: str, request: Message) -> Message | Encoded:
        provider = self._provider()
        if provider is not None:
            return provider.call(method, request)
        if "diagnostics" not in self._answers[method].fields:
            raise RuntimeError(f"the provider could not start: {self._failure}")
        told = {"severity": ERROR, "summary": "The provider could not start", "detail": str(self._failure)}
        return {"diagnostics": [told]}

    def warm(self) -> None:
        """Makes the provider now, while the client is still connecting."""
        self._provider()

    def stop(self) -> None:
        self._stopped = True
        if self._made is not None:
            self._made.stop()

    def _provider(self) -> ProviderServer | None:
        with self._lock:
            if self._made is None and self._failure is None:
                try:
                    self._made = self._make()
                except Exception as failure:
                    self._failure = failure
                else:
                    if self._stopped:
                        self._made.stop()
            return self._made

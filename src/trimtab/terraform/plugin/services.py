"""What go-plugin wants of any plugin beside its own methods: health, shutdown, a broker and a way for output.

Terraform's providers use neither broker nor output stream, but the client opens both and takes their end for trouble, so they
are held open and nothing is said on them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from trimtab.terraform.plugin.grpc import NOT_FOUND, Service, Status
from trimtab.terraform.protocol.wire import Table, decode, encode, enum, string

SHUTDOWN: Final = "/plugin.GRPCController/Shutdown"
HELD: Final = {
    "/plugin.GRPCBroker/StartStream": True,
    "/plugin.GRPCStdio/StreamStdio": False,
}
_CHECK: Final = "/grpc.health.v1.Health/Check"
_CHECK_REQUEST = Table("HealthCheckRequest", service=string(1))
_CHECK_ANSWER = Table("HealthCheckResponse", status=enum(1))
_SERVING: Final = 1


def plugin_service(provider: Callable[[str, bytes], bytes], *, shutdown: Callable[[], None], **more: int) -> Service:
    """`provider` answers the provider's own methods; `shutdown` is called after the client was told that we go."""

    def calls(path: str, body: bytes) -> bytes:
        if path == _CHECK:
            return _check(body)
        if path == SHUTDOWN:
            return b""
        return provider(path, body)

    def after(path: str) -> None:
        if path == SHUTDOWN:
            threading.Thread(target=shutdown, name="shutdown", daemon=True).start()

    return Service(calls, held=HELD, after=after, **more)


def _check(body: bytes) -> bytes:
    service = decode(body, _CHECK_REQUEST).get("service", "")
    if service not in ("", "plugin"):
        raise Status(NOT_FOUND, f"there is no service {service!r}")
    return encode({"status": _SERVING}, _CHECK_ANSWER)

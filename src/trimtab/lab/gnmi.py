"""A gNMI server that speaks as a vendor's device does: Capabilities and Get, in plain text or TLS, with a login.

One server answers for one device at any number of addresses. One that is given a fault misbehaves, and `fault` may be
changed while it runs. Bind it to addresses of 127.0.0.0/8, or to a wildcard only inside of a network namespace of its
own: it is a device that anybody may ask.

    python -m trimtab.lab.gnmi --vendor srlinux --address 127.0.0.10 --address 127.0.0.11
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import ipaddress
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from trimtab.lab.gnmi_devices import DEVICES, Device, Json
from trimtab.lab.gnmi_faults import Fault, Front
from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify import gnmi_paths as paths
from trimtab.systems.discovery.identify.gnmi_grpc import grpc


class ServerTls(msgspec.Struct, frozen=True):
    """Certificate and key in PEM; with `client_ca` only clients that it signed may come."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None = None


class GnmiDevice:
    """Serves from `async with` until its end; `port` is then known. `calls` counts what was asked, by name."""

    def __init__(
        self,
        device: Device,
        *,
        addresses: Sequence[str] = ("127.0.0.1",),
        port: int = 0,
        login: tuple[str, str] | None = ("admin", "admin"),
        tls: ServerTls | None = None,
        fault: Fault | None = None,
        logins: int | None = None,
    ) -> None:
        """`logins` is how many calls are let in before the account is locked. With a fault, also with Fault.NONE, the
        device has a front, and can misbehave on the wire."""
        self.device = device
        self.addresses = tuple(addresses)
        self.port = port
        self._fault = fault
        self._front: Front | None = None
        self.calls: dict[str, int] = {"Capabilities": 0, "Get": 0, "refused": 0}
        self._login = login
        self._logins = logins
        self._tls = tls
        self._values = [(paths.parse(path), value) for path, value in device.values.items()]
        self._stack = contextlib.AsyncExitStack()

    @property
    def fault(self) -> Fault:
        return self._fault or Fault.NONE

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._fault = fault
        if self._front is not None:
            self._front.fault = fault

    @property
    def connections(self) -> int:
        """How many a device with a front has taken."""
        return self._front.connections if self._front is not None else 0

    async def __aenter__(self) -> Self:
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers((_Calls({messages.CAPABILITIES: self._capabilities, messages.GET: self._get}),))
        if self._fault is None:
            for address in self.addresses:
                self.port = self._bind(server, authority(address, self.port))
        else:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
            self._bind(server, f"unix:{folder}/gnmi")
            self._front = Front(folder / "gnmi", self._fault)
            for address in self.addresses:
                self.port = await self._front.start(address, self.port)
            self._stack.push_async_callback(self._front.close)
        await server.start()
        self._stack.push_async_callback(server.stop, None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _bind(self, server: Any, where: str) -> int:
        if self._tls is None:
            return int(server.add_insecure_port(where))
        credentials = grpc.ssl_server_credentials(
            [(self._tls.key, self._tls.certificate)], self._tls.client_ca, self._tls.client_ca is not None
        )
        return int(server.add_secure_port(where, credentials))

    async def _capabilities(self, request: bytes, context: Any) -> bytes:
        self.calls["Capabilities"] += 1
        await self._admit(context)
        if self.fault is Fault.HANG:
            await asyncio.Event().wait()
        models = [
            messages.ModelData(name=m.name, organization=m.organization, version=m.version) for m in self.device.models
        ]
        if self.fault is Fault.HUGE:
            models.append(messages.ModelData(name="x" * 9 * 1024 * 1024))
        encodings = [messages.Encoding[name].value for name in self.device.encodings]
        response = messages.CapabilityResponse(
            supported_models=models, supported_encodings=encodings, gNMI_version=self.device.version
        )
        return bytes(response.SerializeToString())

    async def _get(self, body: bytes, context: Any) -> bytes:
        self.calls["Get"] += 1
        await self._admit(context)
        if self.fault is Fault.GO_AWAY and self._front is not None:
            self._front.cut()
        if self.fault in (Fault.HANG, Fault.HANG_ON_GET, Fault.GO_AWAY):
            await asyncio.Event().wait()  # until the call is cancelled
        request = messages.GetRequest.FromString(body)
        if self.device.target and request.prefix.target != self.device.target:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown target {request.prefix.target!r}")
        encoding = messages.Encoding(request.encoding)
        if encoding.name not in self.device.encodings:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"unsupported encoding: {encoding.name}")
        notification = messages.Notification(timestamp=1, prefix=request.prefix)
        for path in request.path:
            found = 0 if self.fault is Fault.EMPTY else self._answer(path, encoding, notification)
            if not found and self.fault is Fault.ONE_BAD_PATH:
                await context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT, f"Path not valid - unknown element {path.elem[-1].name!r}"
                )
        return bytes(messages.GetResponse(notification=[notification]).SerializeToString())

    def _answer(self, asked: Any, encoding: messages.Encoding, notification: Any) -> int:
        """Adds an update for each value at the path and below it."""
        found = 0
        for path, value in self._values:
            if len(asked.elem) <= len(path.elements) and all(map(_asked_for, asked.elem, path.elements)):
                message = paths.to_message(path, modules=True)
                notification.update.add(path=message, val=typed(value, encoding))
                found += 1
        return found

    async def _admit(self, context: Any) -> None:
        if self._login is None:
            return
        given = dict(context.invocation_metadata())
        pair = (str(given.get("username", "")), str(given.get("password", "")))
        locked = self._logins is not None and self.calls["Capabilities"] + self.calls["Get"] > self._logins
        if locked or not all(
            hmac.compare_digest(a.encode(), b.encode()) for a, b in zip(pair, self._login, strict=True)
        ):
            self.calls["refused"] += 1
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "authentication failed")


class _Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Calls by their whole name. Bytes in and out: the device's own code reads them."""

    def __init__(self, calls: Mapping[str, Callable[[bytes, Any], Any]]) -> None:
        self._calls = {name: grpc.unary_unary_rpc_method_handler(call) for name, call in calls.items()}

    def service(self, details: Any) -> Any:
        return self._calls.get(details.method)


def typed(value: Json, encoding: messages.Encoding) -> Any:
    """A value as the encoding writes it."""
    match encoding:
        case messages.Encoding.JSON:
            return messages.TypedValue(json_val=json.dumps(value).encode())
        case messages.Encoding.JSON_IETF:
            return messages.TypedValue(json_ietf_val=json.dumps(value).encode())
        case messages.Encoding.ASCII:
            return messages.TypedValue(ascii_val=str(value))
    if isinstance(value, bool):
        return messages.TypedValue(bool_val=value)
    if isinstance(value, int):
        return messages.TypedValue(int_val=value)
    return messages.TypedValue(string_val=str(value))


def authority(address: str, port: int) -> str:
    """Address and port as one text; IPv6 in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _asked_for(asked: Any, held: paths.Element) -> bool:
    if asked.name not in (held.name, held.local, "*"):
        return False
    keys = dict(held.keys)
    return all(value in ("*", keys.get(key)) for key, value in asked.key.items())


async def serve(
    device: Device,
    addresses: Sequence[str],
    port: int,
    *,
    login: tuple[str, str],
    tls: ServerTls | None,
    fault: Fault | None,
) -> None:
    async with GnmiDevice(device, addresses=addresses, port=port, login=login, tls=tls, fault=fault) as server:
        print(f"gNMI on {', '.join(authority(each, server.port) for each in addresses)}; Ctrl-C ends it", flush=True)
        await asyncio.Event().wait()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m trimtab.lab.gnmi",
        description="A gNMI device, for demonstrations and tests.",
        epilog="Example: python -m trimtab.lab.gnmi --vendor eos --name spine2 --serial S2 --address 127.0.0.12 --tls",
    )
    parser.add_argument("--vendor", choices=sorted(DEVICES), default="srlinux", help="whose device it is (srlinux)")
    parser.add_argument("--name", help="what it is called")
    parser.add_argument("--serial", help="the serial number of its chassis")
    parser.add_argument("--address", action="append", help="where it listens; may be given again (127.0.0.1)")
    parser.add_argument("--port", type=int, default=57400, help="0 picks a free one (57400)")
    parser.add_argument("--username", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument("--tls", action="store_true", help="with a certificate that it makes at start")
    parser.add_argument("--expired", action="store_true", help="with TLS: the certificate ended yesterday")
    parser.add_argument("--fault", choices=[fault.value for fault in Fault], help="misbehave so")
    chosen = parser.parse_args(arguments)
    addresses = chosen.address or ["127.0.0.1"]
    for address in addresses:
        if not ipaddress.ip_address(address).is_loopback:
            print(
                f"{address} is not a loopback address; serve it only in a network namespace of its own", file=sys.stderr
            )
    tls = None
    if chosen.tls or chosen.expired:
        from trimtab.lab.gnmi_certificates import self_signed

        tls = self_signed(addresses=addresses, expired=chosen.expired)
    given = {"name": chosen.name, "serial": chosen.serial}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            serve(
                DEVICES[chosen.vendor](**{key: value for key, value in given.items() if value}),
                addresses,
                chosen.port,
                login=(chosen.username, chosen.password),
                tls=tls,
                fault=Fault(chosen.fault) if chosen.fault else None,
            )
        )


if __name__ == "__main__":
    main()
